"""Box leaves on all cores: the tree is cut into pieces that worker processes check independently.

Workers are isolated interpreters (`certiformer.isolation`) that run `main` below. They are sent the bytes that this process
has read and never open the folder: they prove what was read here, also when the folder changes while it is being checked,
and import nothing from it. On standard input come a line of JSON with the names and sizes of the files, their bytes, and
then one JSON request a line; on standard output goes one JSON answer a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any, BinaryIO, cast

from flint import arb

from certiformer.errors import BadInput
from certiformer.isolation import WORKER, command, environment
from certiformer.kernel import Refused
from certiformer.kernel.balls import largest
from certiformer.kernel.certificate import Boxes, Inner
from certiformer.kernel.claim import Claim, ProgramClaim, read_claim
from certiformer.kernel.problem import FiniteProblem, Problem
from certiformer.kernel.rules import LEAF, Effort, Path, prove_piece, stated_bound, subproblems, subtree_ends, subtrees

PIECES = 24  # pieces per worker, so that no worker waits long for the others
Files = Mapping[str, bytes]
Answer = tuple[arb, bytes]  # the largest leaf bound, and the tree of the leaves that were accepted


def prove_pieces(
    files: Files, path: Path, tree: bytes, dimension: int, workers: int, effort: Effort, tick: Callable[[int], None]
) -> Answer:
    """Prove the leaves of the boxes node at `path`."""
    most = max(1, len(tree) // (PIECES * workers))
    requests = [{"path": path, "cell": cell, "tree": part.hex()} for cell, part in subtrees(tree, dimension, most)]
    answers = _answers(files, requests, min(workers, len(requests)), effort, tick)
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


def _answers(
    files: Files, requests: list[dict[str, Any]], workers: int, effort: Effort, tick: Callable[[int], None]
) -> list[Answer]:
    """Hand the pieces to worker processes, one at a time each; the first refusal stops them all."""
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    processes = [_start() for _ in range(workers)]

    def answer(request: dict[str, Any]) -> Answer:
        process = idle.get()
        try:
            more = {"goal": effort.goal, "deepest": effort.deepest, "seconds": effort.end - time.monotonic()}
            pipe = cast(BinaryIO, process.stdin)
            pipe.write(json.dumps({**request, **more}).encode() + b"\n")
            pipe.flush()
            told = json.loads(cast(BinaryIO, process.stdout).readline())
            if "refused" in told:
                raise Refused(told["refused"])
            upper = arb((int(told["upper"][0]), int(told["upper"][1])))
            tick(told["leaves"])
            return upper, bytes.fromhex(told["tree"])
        finally:
            idle.put(process)

    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                for process in processes:
                    send_files(cast(BinaryIO, process.stdin), files)
                    idle.put(process)
                asked = [pool.submit(answer, request) for request in requests]
                for done in wait(asked, return_when=FIRST_EXCEPTION).done:
                    done.result()
                return [done.result() for done in asked]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in processes:
                    process.kill()  # which ends what its thread waits for
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise Refused(f"a worker process of the checker died or answered nonsense ({error})") from None
    finally:
        for process in processes:
            process.communicate()  # reaps the process and closes its pipes


def _start() -> subprocess.Popen[bytes]:
    """A worker, in a folder that is nobody's and a process group of its own: Ctrl-C is for this process, which ends it."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command(WORKER), stdin=pipe, stdout=pipe, env=environment(), cwd=os.path.abspath(os.sep), process_group=0
        )
    except OSError as error:
        raise Refused(f"no worker process of the checker can be started: {error.strerror}") from None


# What a worker does.


def send_files(stream: BinaryIO, files: Files) -> None:
    """What a worker reads first."""
    stream.write(json.dumps({name: len(data) for name, data in files.items()}).encode() + b"\n")
    for data in files.values():
        stream.write(data)
    stream.flush()


def receive_files(stream: BinaryIO) -> dict[str, bytes] | None:
    """The inverse of `send_files`; None where whoever started this process ended before it sent everything."""
    header = stream.readline()
    if not header.endswith(b"\n"):
        return None
    sizes = json.loads(header)
    files = {name: stream.read(size) for name, size in sizes.items()}
    return files if {name: len(data) for name, data in files.items()} == sizes else None


def _descend(claim: Claim | ProgramClaim, path: list[int]) -> tuple[Boxes, Problem]:
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


def _answer(node: Boxes, problem: Problem, request: dict[str, Any]) -> dict[str, Any]:
    """Check one piece."""
    cell, tree = tuple((m, k) for m, k in request["cell"]), bytes.fromhex(request["tree"])
    local = problem.restrict(problem.domain.box(cell))
    effort = Effort(request["goal"], request["deepest"], time.monotonic() + request["seconds"])
    accepted = bytearray()
    upper = prove_piece(local, cell, tree, node.order, stated_bound(node), lambda _: None, effort, accepted)
    mantissa, exponent = upper.man_exp()
    return {"upper": [str(mantissa), str(exponent)], "leaves": tree.count(LEAF), "tree": accepted.hex()}


def main() -> None:
    """The worker: the files, then one JSON request a line in, one JSON answer a line out."""
    files = receive_files(sys.stdin.buffer)
    if files is None:
        return
    try:
        claim = read_claim(files)
    except (Refused, BadInput) as problem:
        print(json.dumps({"refused": str(problem)}), flush=True)
        return
    known: dict[Path, tuple[Boxes, Problem]] = {}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        path = tuple(request["path"])
        try:
            if path not in known:
                known[path] = _descend(claim, request["path"])
            answer = _answer(*known[path], request)
        except (Refused, BadInput) as problem:
            answer = {"refused": str(problem)}
        print(json.dumps(answer), flush=True)
