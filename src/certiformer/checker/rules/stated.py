"""The bound that a node of a proof tree claims, as a ball."""

from __future__ import annotations

from flint import arb

from certiformer.certificate import Node
from certiformer.errors import BadInput
from certiformer.kernel.balls import ball
from certiformer.kernel.refusal import Refused
from certiformer.target import parse_epsilon


def stated_bound(node: Node) -> arb:
    """The bound a node claims, as a ball of its exact decimal text."""
    try:
        return ball(parse_epsilon(node.bound)).lower()
    except BadInput as error:
        raise Refused(f"the bound {node.bound!r} of a proof node is not a positive number: {error}") from None
