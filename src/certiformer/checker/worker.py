"""A worker process of the checker: is given the files of a run folder, checks the pieces of its cover that it is sent.

On standard input a line of JSON with the names and sizes of the files, their bytes, and then one JSON request a line; on
standard output one JSON answer a line. A worker opens no file of the folder; see `checker.pool`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from certiformer.certificate import Boxes, Inner
from certiformer.checker.claim import Claim, read_claim
from certiformer.checker.rules import Refused, stated_bound, subproblems
from certiformer.errors import BadInput
from certiformer.kernel.cover import prove_piece
from certiformer.kernel.points import FiniteProblem
from certiformer.kernel.problem import Problem


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
    upper = prove_piece(local, cell, bytes.fromhex(request["tree"]), node.order, stated_bound(node), tick)
    mantissa, exponent = upper.man_exp()
    return {"upper": [str(mantissa), str(exponent)], "leaves": count}


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
