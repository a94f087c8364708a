"""Box leaves on all cores: the tree is cut into pieces that worker processes check independently.

Workers are isolated interpreters (`certiformer.isolation`) that run `main` below. They are sent the bytes that this process
has read and never open the folder: they prove what was read here, also when the folder changes while it is being checked,
and import nothing from it. A worker reads one line of JSON, with the files in base64, the boxes node and its share of the
pieces, dealt out in turn; it writes one line of JSON for each of them.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, BinaryIO, cast

from flint import arb

from certiformer.errors import BadInput
from certiformer.isolation import WORKER, command, environment
from certiformer.kernel import Refused
from certiformer.kernel.balls import largest
from certiformer.kernel.certificate import Boxes, Inner
from certiformer.kernel.claim import Claim, read_claim
from certiformer.kernel.problem import FiniteProblem, Problem
from certiformer.kernel.rules import LEAF, Effort, Path, prove_piece, stated_bound, subproblems, subtree_ends, subtrees

PIECES = 24  # pieces per worker, so that all of them get some of what takes long
Files = Mapping[str, bytes]
Answer = tuple[arb, bytes]  # the largest leaf bound, and the tree of the leaves that were accepted


def prove_pieces(
    files: Files, path: Path, tree: bytes, dimension: int, workers: int, effort: Effort, tick: Callable[[int], None]
) -> Answer:
    """Prove the leaves of the boxes node at `path`; the first refusal of a worker stops them all."""
    most = max(1, len(tree) // (PIECES * workers))
    pieces = [(cell, part.hex()) for cell, part in subtrees(tree, dimension, most)]
    count = min(workers, len(pieces))
    sent = {"files": {name: base64.b64encode(data).decode() for name, data in files.items()}, "path": path}
    sent |= {"goal": effort.goal, "deepest": effort.deepest, "seconds": effort.end - time.monotonic()}
    processes = [_start() for _ in range(count)]
    try:
        with ThreadPoolExecutor(count) as pool:
            try:
                shares = enumerate(processes)
                asked = [pool.submit(_ask, p, {**sent, "pieces": pieces[n::count]}, tick) for n, p in shares]
                for done in wait(asked, return_when=FIRST_EXCEPTION).done:
                    done.result()
                answers = [asked[n % count].result()[n // count] for n in range(len(pieces))]
            finally:
                for process in processes:
                    process.kill()  # which ends what its thread waits for
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise Refused(f"a worker process of the checker died or answered nonsense ({error})") from None
    finally:
        for process in processes:
            process.communicate()  # reaps the process and closes its pipes
    return largest([upper for upper, _ in answers]), _joined(tree, dimension, most, [part for _, part in answers])


def _joined(tree: bytes, dimension: int, largest: int, parts: list[bytes]) -> bytes:
    """The tree with other trees in the place of the pieces that `subtrees` cuts it into."""
    ends, result, position = subtree_ends(tree, dimension), bytearray(), 0
    for part in parts:
        while tree[position] != LEAF and ends[position] - position > largest:
            result.append(tree[position])
            position += 1
        result += part
        position = ends[position]
    return bytes(result)


def _start() -> subprocess.Popen[bytes]:
    """A worker, in a folder that is nobody's and a process group of its own: Ctrl-C is for this process, which ends it."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command(WORKER), stdin=pipe, stdout=pipe, env=environment(), cwd=os.path.abspath(os.sep), process_group=0
        )
    except OSError as error:
        raise Refused(f"no worker process of the checker can be started: {error.strerror}") from None


def _ask(process: subprocess.Popen[bytes], request: dict[str, Any], tick: Callable[[int], None]) -> list[Answer]:
    """What a worker says about each piece of its share."""
    pipe, answers = cast(BinaryIO, process.stdin), []
    pipe.write(json.dumps(request).encode() + b"\n")
    pipe.flush()
    for _ in request["pieces"]:
        told = json.loads(cast(BinaryIO, process.stdout).readline())
        if "refused" in told:
            raise Refused(told["refused"])
        answers.append((arb((int(told["upper"][0]), int(told["upper"][1]))), bytes.fromhex(told["tree"])))
        tick(told["leaves"])
    return answers


# What a worker does.


def _descend(claim: Any, path: list[int]) -> tuple[Boxes, Problem]:
    """The boxes node at `path` of the proof tree, and what it speaks of."""
    if not isinstance(claim, Claim) or isinstance(claim.problem, FiniteProblem):
        raise Refused("only a claim about a box has boxes")
    node, problem = claim.certificate.proof, claim.problem
    for position in path:
        if not isinstance(node, Inner):
            raise Refused("the request names a node of the proof tree that does not exist")
        problem = subproblems(node, problem)[0][position]
        node = node.children[position]
    if not isinstance(node, Boxes):
        raise Refused("the request names a node of the proof tree that has no boxes")
    return node, problem


def main() -> None:
    """The worker: one JSON request in, one JSON answer a piece out."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # whoever started this process ended before it sent everything
    request = json.loads(line)
    effort = Effort(request["goal"], request["deepest"], time.monotonic() + request["seconds"])
    try:
        claim = read_claim({name: base64.b64decode(data) for name, data in request["files"].items()})
        node, problem = _descend(claim, request["path"])
        for cell, text in request["pieces"]:
            cell, tree, accepted = tuple((m, k) for m, k in cell), bytes.fromhex(text), bytearray()
            local = problem.restrict(problem.domain.box(cell))
            upper = prove_piece(local, cell, tree, node.order, stated_bound(node), lambda _: None, effort, accepted)
            ends = [str(number) for number in upper.man_exp()]
            print(json.dumps({"upper": ends, "leaves": tree.count(LEAF), "tree": accepted.hex()}), flush=True)
    except (Refused, BadInput) as problem:
        print(json.dumps({"refused": str(problem)}), flush=True)
