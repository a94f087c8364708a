"""A compiled transformer computes its program on every input: errors stay smaller than what decoding removes.

Statement
    Let a transformer have one register in front of the tokens, softmax attention, ReLU units, residuals and no norm, and
    let a circuit assign to coordinates of its residual stream, from sub-layer to sub-layer, nodes of a RASP program. If the
    checks below succeed for every sub-layer, then for every input of 1 to N tokens of the vocabulary on which the program
    has a value, and at every position, decoding the read-out gives that value: the largest logit names it, or it is nearest
    to the number. This holds (1) in real arithmetic on the stored weights and (2) in every run in the dtype.

Source
    The language is that of Weiss, Goldberg and Yahav (weiss2021), compiled transformers those of Tracr (lindner2023). The
    rule is our own derivation.

Differs from the source in
    Neither has a proof about the weights. Here everything is carried by numbers with bounds of their errors, and holds for
    all inputs at once.

Proof
    By induction over the sub-layers. The state says of every coordinate: at every position of every input it is within
    e(v) of f(v), v the value of one node of the program there; at the register it is within e' of a constant; a coordinate
    without a node is within e of zero.
    *Cases* (`tally`): what is read together at a position has as many cases as the product of the domains. One is left out
    only where an equation of the program, evaluated on it, fails: a node differs from what defines it, an index is not
    below the length, a count is none that it can be. Cases checked and left out are counted and must be that product.
    Numbers too many to list are an interval, and only affine functions of them are followed. A node that the output
    does not need must have a value on every input, so that it excludes none.
    *Embedding*: the sum of the rows of a token and a position is compared with f for all tokens and positions.
    *Program* (`kernel.meanings.rasp`, `closure`, `lemmas`): program.json is read by the definition of what it means, the
    values that it proposes for each node are checked by the equation of that node, and what no case can show (one
    position is selected, selected values are the same one) is concluded by listed lemmas from premises that are checked.
    *Attention* (`checker.margin.scores`, `heads`): scores are functions of the values of nodes at the two positions. All
    combinations of values are enumerated and compared with the selector. Selected keys exceed all others by a gap, so the
    weights are those of the mean over the selected positions up to a relative error, and what else is attended to weighs
    at most N e^-gap.
    *Feed-forward* (`tables`): a sum of units is a piecewise-linear function of linear forms; again all combinations of
    values are enumerated, and the result is compared with f of the node that it should hold. An error of a form moves the
    sum by at most what the function moves over the interval.
    *Rounding* (`fixed`): sums of multiples of 2^k below 2^(p + k) are exact in any order, also if tiny errors ride on them;
    all other sums err by gamma_m times the sum of sizes.
    *Identities* (`identities`) between counts are checked for every pair of positions.
    *Read-out*: for all values of the output the error is smaller than the distance at which decoding changes. QED.

Assumptions
    circuit (**checked**): everything that the circuit says follows from the weights and from program.json; every head,
    unit and coordinate is accounted for.
    value-sets (**checked**): the values that program.json proposes contain what occurs, node by node; facts about several
    positions follow by the lemmas that the circuit names.
    run (**trusted**): a run follows the model of `kernel.rounding`, uses one value of each score, and computes exp(x) = 1
    for |x| <= u/4 and x/1 = x.

Certified
    Every decoded output, for all inputs up to the length, in real arithmetic and in the stored dtype.

Not certified
    Inputs on which the program has no value: a mean of symbols, a list written for another length (the sentence then says
    "exactly" its length). Longer inputs, tokens outside the vocabulary. What the numbers between read-out and decoding are.

Example
    >>> from certiformer.checker.margin.prove import claim_of
    >>> from certiformer.kernel.meanings.rasp import Node, Program
    >>> copy = Program((Node("tokens", (), None, None, None, "tokens"),), 0, (1, 2, 3), 16)
    >>> claim_of(copy, "float32")[:57]
    'For every input of 1 to 16 tokens of a vocabulary of 3 on'

Tests
    tests/theorems/test_margin.py
"""

from __future__ import annotations

from certiformer.checker.margin.prove import MarginReport, prove_margin
from certiformer.kernel.certificate import Margin
from certiformer.kernel.claim import ProgramClaim
from certiformer.kernel.refusal import Refused

THEOREM = {
    "id": "axioms.margin",
    "title": "A compiled transformer computes its program on every input.",
    "kind": "exact",
    "sources": (
        "weiss2021",
        "lindner2023",
        "classical",
    ),
    "verb": "compile",
    "assumptions": (
        ("circuit", "what the circuit says follows from the weights and the program", "checked"),
        ("value-sets", "the values and facts stated of the program contain what occurs", "checked"),
        ("run", "a run follows the model of one operation, exp(0) = 1 and x/1 = x", "trusted"),
    ),
    "uses": (),
}


def check(claim: ProgramClaim) -> MarginReport:
    """The report of a proof; raises `Refused` when the claim does not follow."""
    certificate = claim.certificate
    if certificate.proof != Margin("0") or (certificate.epsilon, certificate.upper) != ("0", "0"):
        raise Refused("a compiled program is claimed to be exact (epsilon 0), and proved by the rule margin")
    if certificate.witness is not None or certificate.run_error is not None or certificate.lower is not None:
        raise Refused("the certificate of a compiled program claims more than that its outputs are exact")
    return prove_margin(claim.config, claim.tensors, claim.program, claim.circuit)
