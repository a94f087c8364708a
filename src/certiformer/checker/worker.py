"""A worker process of the checker: reads a run folder, checks the pieces of its cover that it is given.

One JSON request a line on standard input, one JSON answer a line on standard output; see `checker.pool`.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from certiformer.certificate import Boxes, Inner, digest
from certiformer.checker.claim import Claim, read_claim
from certiformer.checker.points import FiniteProblem
from certiformer.checker.problem import Problem
from certiformer.checker.rules import Refused, stated_bound, subproblems
from certiformer.checker.rules.boxes import prove_piece
from certiformer.errors import BadInput


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


def main(directory: str, seal: str) -> None:
    """The worker: one JSON request a line in, one JSON answer a line out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    try:
        claim = read_claim(Path(directory))
        if not isinstance(claim, Claim):
            raise Refused("a claim about a compiled program has no boxes")
        if digest(claim.certificate.to_bytes()) != seal:
            raise Refused("the certificate changed while it was being checked")
    except (Refused, BadInput) as problem:
        print(json.dumps({"refused": str(problem)}), flush=True)
        return
    known: dict[tuple[int, ...], tuple[Boxes, Problem]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        path = tuple(request["path"])
        try:
            if path not in known:
                known[path] = _descend(claim, request["path"])
            answer = _answer(*known[path], request)
        except (Refused, BadInput) as problem:
            answer = {"refused": str(problem)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
