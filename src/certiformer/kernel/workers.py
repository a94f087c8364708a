"""Box leaves on all cores: the tree is cut into pieces that worker processes check independently.

Workers are isolated interpreters (`certiformer.isolation`) that run `main` below. They are sent the bytes that this process
has read and never open the folder: they prove what was read here, also when the folder changes while it is being checked,
and import nothing from it. On standard input come a line of JSON with the names and sizes of the files, their bytes, and
then one JSON request a line; on standard output goes one JSON answer a line. Small trees are checked in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, BinaryIO, cast

from flint import arb

from certiformer.errors import BadInput
from certiformer.isolation import WORKER, command, environment
from certiformer.kernel.balls import largest
from certiformer.kernel.certificate import Boxes, Inner
from certiformer.kernel.claim import Claim, read_claim
from certiformer.kernel.cover import CHECK, LEAF, Effort, prove_piece, root, subtree_ends, subtrees
from certiformer.kernel.problem import FiniteProblem, Problem
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rules import stated_bound, subproblems

SMALL = 400  # leaves: below this, starting processes costs more than it saves
MAX_WORKERS = 64
PIECES = 24  # pieces per worker, so that no worker waits long for the others


def _cores() -> int:
    """The cores this process may use, which a container or a pinned job may have restricted."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prove_boxes(
    claim: Claim,
    files: Mapping[str, bytes],
    node: Boxes,
    problem: Problem,
    path: tuple[int, ...],
    limit: arb,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
    effort: Effort = CHECK,
) -> tuple[arb, bytes]:
    """Prove a boxes node; returns the largest leaf bound and the tree of the leaves that were accepted."""
    tree = _tree(claim, node)
    total = tree.count(LEAF)
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, total)

    workers = min(workers or _cores(), MAX_WORKERS)
    if workers == 1 or total < SMALL:
        accepted, whole = bytearray(), root(problem.domain.dimension)
        return prove_piece(problem, whole, tree, node.order, limit, tick, effort, accepted), bytes(accepted)
    largest = max(1, len(tree) // (PIECES * workers))
    pieces = list(subtrees(tree, problem.domain.dimension, largest))
    upper, accepted = _run(
        files, [{"path": path, "cell": cell, "tree": part.hex()} for cell, part in pieces], workers, effort, tick
    )
    return upper, _joined(tree, problem.domain.dimension, largest, accepted)


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


def _tree(claim: Claim, node: Boxes) -> bytes:
    if node.offset < 0 or node.length < 1 or node.offset + node.length > len(claim.leaves):
        raise Refused("a boxes node points outside leaves.bin")
    return claim.leaves[node.offset : node.offset + node.length]


def _run(
    files: Mapping[str, bytes],
    requests: list[dict[str, Any]],
    workers: int,
    effort: Effort,
    tick: Callable[[int], None],
) -> tuple[arb, list[bytes]]:
    """Hand the pieces to worker processes, one at a time each; the first refusal stops them all."""
    processes = [_start() for _ in range(min(workers, len(requests)))]
    queue, answers, problems = list(range(len(requests))), dict[int, tuple[arb, bytes]](), list[str]()

    def serve(pipe: BinaryIO, replies: BinaryIO) -> None:
        try:
            send_files(pipe, files)
            while queue and not problems:
                number = queue.pop()
                more = {"goal": effort.goal, "deepest": effort.deepest, "seconds": effort.end - time.monotonic()}
                pipe.write(json.dumps({**requests[number], **more}).encode() + b"\n")
                pipe.flush()
                answer = json.loads(replies.readline())
                if "refused" in answer:
                    problems.append(answer["refused"])
                else:
                    upper = arb((int(answer["upper"][0]), int(answer["upper"][1])))
                    answers[number] = upper, bytes.fromhex(answer["tree"])
                    tick(answer["leaves"])
        except IndexError:
            pass  # another thread took the last piece; a piece without an answer is noticed below
        except (OSError, ValueError, TypeError, KeyError) as error:
            problems.append(f"a worker process of the checker died or answered nonsense ({error})")

    pipes = [(cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)) for process in processes]
    threads = [Thread(target=serve, args=both, daemon=True) for both in pipes]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for process in processes:
            process.kill()
            process.communicate()  # reaps the process and closes its pipes
    if problems:
        raise Refused(problems[0])
    if len(answers) != len(requests):
        raise Refused("not every piece of the cover was answered for")
    return largest([upper for upper, _ in answers.values()]), [answers[number][1] for number in range(len(requests))]


def _start() -> subprocess.Popen[bytes]:
    """A worker, in a folder that is nobody's and a process group of its own: Ctrl-C is for this process, which ends it."""
    try:
        return subprocess.Popen(
            command(WORKER),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=os.path.abspath(os.sep),
            process_group=0,
        )
    except OSError as error:
        raise Refused(f"no worker process of the checker can be started: {error.strerror}") from None


# What a worker does.


def send_files(stream: BinaryIO, files: Mapping[str, bytes]) -> None:
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


def _descend(claim: Claim, path: list[int]) -> tuple[Boxes, Problem]:
    """The boxes node at `path` of the proof tree, and what it speaks of."""
    node, problem = claim.certificate.proof, claim.problem
    if isinstance(problem, FiniteProblem):
        raise Refused("a claim about a finite set of rows has no boxes")
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
    cell = tuple((m, k) for m, k in request["cell"])
    count = 0

    def tick(leaves: int) -> None:
        nonlocal count
        count += leaves

    local = problem.restrict(problem.domain.box(cell))
    effort = Effort(request["goal"], request["deepest"], time.monotonic() + request["seconds"])
    accepted, tree = bytearray(), bytes.fromhex(request["tree"])
    upper = prove_piece(local, cell, tree, node.order, stated_bound(node), tick, effort, accepted)
    mantissa, exponent = upper.man_exp()
    return {"upper": [str(mantissa), str(exponent)], "leaves": count, "tree": accepted.hex()}


def main() -> None:
    """The worker: the files, then one JSON request a line in, one JSON answer a line out."""
    files = receive_files(sys.stdin.buffer)
    if files is None:
        return
    try:
        claim = read_claim(files)
        if not isinstance(claim, Claim):
            raise Refused("a claim about a compiled program has no boxes")
    except (Refused, BadInput) as problem:
        print(json.dumps({"refused": str(problem)}), flush=True)
        return
    known: dict[tuple[int, ...], tuple[Boxes, Problem]] = {}
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
