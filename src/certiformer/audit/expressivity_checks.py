"""What the architecture of a checkpoint allows, theorem by theorem, with the assumption that fails where one does.

Universality is a statement about an architecture whose size may grow: it says that some weights exist, not that these
are they. So `holds` here means that the theorem is about this architecture. A theorem about what *cannot* be done
holds for these weights, too."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from certiformer.audit.architecture import INSIDE, SHOWN, architecture, length_of, mask_of, self_attentions
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.limits import FEW_BITS, SHARPNESS, few_bits, sharpness
from certiformer.audit.measure import Measurements
from certiformer.audit.universality_checks import IDS as UNIVERSALITY
from certiformer.audit.universality_checks import universality_checks
from certiformer.audit.verdict import Given, Verdict
from certiformer.expressivity.permutation_equivariance import is_equivariant
from certiformer.expressivity.relative_bias_not_universal import equal_tokens_stay_equal, spread_bound
from certiformer.expressivity.sparse_attention import sparsity

EQUIVARIANCE, RELATIVE = "expressivity.permutation_equivariance", "expressivity.relative_bias_not_universal"
SPARSE, CONTEXTUAL = "expressivity.sparse_attention", "expressivity.softmax_contextual"
ONE_BLOCK, HARD = "axioms.korovkin_ridges", "expressivity.selective_shifts"
# The order in which they are printed.
IDS = (*UNIVERSALITY, EQUIVARIANCE, RELATIVE, SPARSE, ONE_BLOCK, CONTEXTUAL, HARD, SHARPNESS, FEW_BITS)


def expressivity(checkpoint: Checkpoint, figures: Measurements, coverage: Coverage, given: Given) -> Iterator[Verdict]:
    """The verdicts, in the order of `IDS`."""
    tokens = length_of(checkpoint, given.length)
    yield from universality_checks(checkpoint, tokens)
    yield from _symmetries(checkpoint, tokens)
    yield _sparse(checkpoint, tokens)
    yield _existence(
        ONE_BLOCK,
        "One block approximates every Lipschitz function of a sequence",
        [
            *_norm_reasons(checkpoint),
            *_position_reasons(checkpoint),
            *_activation_reasons(checkpoint),
            *_masked(checkpoint),
        ],
    )
    yield _existence(
        CONTEXTUAL,
        "One softmax head of rank one can tell every token in every context apart",
        [*_norm_reasons(checkpoint), *_masked(checkpoint), *_softmax_reasons(checkpoint)],
    )
    hard = "this model has softmax" if not [*_softmax_reasons(checkpoint)] else "no file says that this model's is"
    yield Verdict(HARD, "does-not-apply", f"The layers that shift tokens one by one are hard attention; {hard}.")
    yield sharpness(checkpoint, figures, tokens)
    yield few_bits(checkpoint, coverage)


def _symmetries(checkpoint: Checkpoint, tokens: int | None) -> Iterator[Verdict]:
    known = architecture(checkpoint, min(tokens or 2, SHOWN))
    if known is None:
        for name in (EQUIVARIANCE, RELATIVE):
            needs = ("the position scheme and whether attention is causal",)
            yield Verdict(
                name, "holds-if", "Neither files nor config say how positions enter, or what a token sees.", needs=needs
            )
        return
    order, equal = is_equivariant(*known), equal_tokens_stay_equal(*known)
    scheme = _scheme(checkpoint)
    if order.holds:
        yield Verdict(
            EQUIVARIANCE, "holds", f"With {scheme}, {order.reason}: no task that depends on the order can be done."
        )
    else:
        yield Verdict(EQUIVARIANCE, "does-not-apply", f"The order is visible: {_in_words(order.reason, checkpoint)}.")
    if not equal.holds:
        yield Verdict(
            RELATIVE, "does-not-apply", f"Equal tokens need not stay equal: {_in_words(equal.reason, checkpoint)}."
        )
        return
    if known[0].readout.kind != "all":
        yield Verdict(
            RELATIVE, "does-not-apply", "There is one output for the whole sequence, and not one for each token."
        )
        return
    if tokens is None:
        needs = ("--length: how many tokens there are",)
        yield Verdict(
            RELATIVE, "holds-if", f"With {scheme}, {equal.reason}; the number depends on the length.", needs=needs
        )
        return
    # Half the spread of the targets 1/n, ..., n/n: the first and the last row attain it.
    bound = float(spread_bound([[Fraction(1, tokens)], [Fraction(1)]]))
    yield Verdict(
        RELATIVE,
        "holds",
        f"With {scheme}, {equal.reason}. So on {tokens:,} equal tokens (no first token of another kind) every such model"
        f" misses the target i/n by at least {bound:.4g}.",
        bound,
        0.0,
    )


def _sparse(checkpoint: Checkpoint, tokens: int | None) -> Verdict:
    attentions = self_attentions(checkpoint)
    if not attentions or any(each.causal is None for each in attentions):
        needs = ("whether attention is causal",)
        return Verdict(SPARSE, "holds-if", "Neither files nor config say which tokens a token sees.", needs=needs)
    size = min(tokens or SHOWN, SHOWN)
    masks = [mask_of(each, size) for each in attentions]
    same = all(np.array_equal(masks[0], each) for each in masks[1:])
    found = sparsity(masks[:1] if same else masks)
    reasons = []
    if not found.self_edges.holds or not found.reach.holds:
        reasons.append(found.reach.reason if found.self_edges.holds else found.self_edges.reason)
    elif not found.holds:
        reasons.append(f"a path through all tokens: {found.path.status}")
    if checkpoint.positions != "learned":
        reasons.append(f"it needs trainable codes added to the tokens, here is {_scheme(checkpoint)}")
    reasons += [*_softmax_reasons(checkpoint), *_norm_reasons(checkpoint), *_activation_reasons(checkpoint)]
    what = f"Density in L^p (not in the sup norm) for the pattern of {size} tokens"
    if reasons:
        return Verdict(SPARSE, "does-not-apply", f"{what} is not given: {'; '.join(reasons)}.")
    return Verdict(SPARSE, "holds", f"{what}: every token hears itself, a path visits all, {found.reach.reason}.")


def _existence(name: str, what: str, reasons: list[str]) -> Verdict:
    if reasons:
        return Verdict(name, "does-not-apply", f"{what}; not proved for this architecture: {'; '.join(reasons)}.")
    return Verdict(name, "holds", f"{what}, if it may be as wide as it needs.")


def _scheme(checkpoint: Checkpoint) -> str:
    words = {"none": "no positions", "rope": "rotary positions", "alibi": "ALiBi", "relative": "relative score biases"}
    return words.get(checkpoint.positions or "", f"{checkpoint.positions or 'unknown'} positions")


def _in_words(reason: str, checkpoint: Checkpoint) -> str:
    """The reason with the scheme's own name in the place of that of its table."""
    return reason.replace("the table score bias", f"what is inside the scores ({_scheme(checkpoint)})")


def _norm_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    if checkpoint.norm_place is not None:
        yield f"the proof has no norms, this model has them ({checkpoint.norm_place})"


def _position_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    if checkpoint.positions in (*INSIDE, "none", None):
        yield f"it needs codes that are added to the tokens, here is {_scheme(checkpoint)}"


def _activation_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    found = {each.activation for layer in checkpoint.layers for each in layer.ffn}
    gated = any(each.gate is not None for layer in checkpoint.layers for each in layer.ffn)
    if found != {"relu"} or gated:
        names = ", ".join(sorted(str(each or "not known") for each in found)) or "none"
        yield f"it needs ReLU units, here: {names}{' with gates' if gated else ''}"


def _softmax_reasons(checkpoint: Checkpoint) -> Iterator[str]:
    if any(not each.softmax for each in self_attentions(checkpoint)):
        yield "attention is not softmax"


def _masked(checkpoint: Checkpoint) -> Iterator[str]:
    attentions = self_attentions(checkpoint)
    if any(each.causal or each.window is not None for each in attentions):
        yield "its tokens do not all see all tokens"
