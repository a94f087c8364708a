"""Why a bound is as large as it is: what it would be if one thing after the other were mended.

`waterfall` mends the causes in a fixed order, each on top of those before, and says by which factor the bound falls. The
factors and what remains multiply to the bound, exactly as they are computed. What a factor is depends on the order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flint import arb

from certiformer.bounds.stack_norms import HiddenNorms, MapNorms, NormNorms, StackHead, StackLayer, StackNorms

Measure = Callable[[StackNorms], arb]
NO_COMMAND = "no command mends it"
LIMIT = 'recommend fit --constrain "{}<=1", or train(constraints=...)'


@dataclass(frozen=True)
class Fall:
    """A cause: its name, the factor by which the bound falls without it, and what mends it."""

    cause: str
    factor: arb
    mend: str


def waterfall(stack: StackNorms, measure: Measure) -> list[Fall]:
    """The causes in the order of `CAUSES`, and at last what remains (depth, width, tables and the sample)."""
    falls, before = [], measure(stack)
    for cause, mended, mend in CAUSES:
        stack = mended(stack)
        after = measure(stack)
        falls.append(Fall(cause, before / after, mend))
        before = after
    return [*falls, Fall(REST, before, f"{NO_COMMAND}: more sequences, fewer layers, a narrower model")]


def _norms(stack: StackNorms, change: Callable[[NormNorms], NormNorms]) -> StackNorms:
    """The stack with every norm changed."""

    def maybe(norm: NormNorms | None) -> NormNorms | None:
        return None if norm is None else change(norm)

    layers = tuple(
        replace(layer, attention_norm=change(layer.attention_norm), hidden_norm=change(layer.hidden_norm))
        for layer in stack.layers
    )
    return replace(stack, layers=layers, embedding_norm=maybe(stack.embedding_norm), final_norm=maybe(stack.final_norm))


def _layers(stack: StackNorms, change: Callable[[StackLayer], StackLayer]) -> StackNorms:
    return replace(stack, layers=tuple(map(change, stack.layers)))


def _heads(stack: StackNorms, change: Callable[[StackHead], StackHead]) -> StackNorms:
    def changed(layer: StackLayer) -> StackLayer:
        return replace(layer, attention=replace(layer.attention, heads=tuple(map(change, layer.attention.heads))))

    return _layers(stack, changed)


def _capped(norms: MapNorms) -> MapNorms:
    """The map scaled down to spectral norm 1 where it is larger."""
    return norms.scaled(1 / norms.spectral) if norms.spectral > 1 else norms


def _capped_or_none(norms: MapNorms | None) -> MapNorms | None:
    return None if norms is None else _capped(norms)


def _epsilons(stack: StackNorms) -> StackNorms:
    return _norms(stack, lambda norm: replace(norm, epsilon=max(norm.epsilon, 1.0)))


def _gains(stack: StackNorms) -> StackNorms:
    def change(norm: NormNorms) -> NormNorms:
        large = norm.gain is not None and norm.gain.largest > 1
        return replace(norm, gain=norm.gain.scaled(1 / norm.gain.largest)) if norm.gain is not None and large else norm

    return _norms(stack, change)


def _scores(stack: StackNorms) -> StackNorms:
    def change(head: StackHead) -> StackHead:
        maps = {name: _capped_or_none(getattr(head, name)) for name in ("scores", "query", "key")}
        return replace(head, **maps)

    return _heads(stack, change)


def _values(stack: StackNorms) -> StackNorms:
    return _heads(stack, lambda head: replace(head, value=_capped(head.value)))


def _units(stack: StackNorms) -> StackNorms:
    def change(hidden: HiddenNorms) -> HiddenNorms:
        gate = _capped_or_none(hidden.gate)
        return replace(hidden, up=_capped(hidden.up), down=_capped(hidden.down), gate=gate)

    return _layers(stack, lambda layer: replace(layer, hidden=change(layer.hidden)))


def _biases(stack: StackNorms) -> StackNorms:
    stack = _norms(stack, lambda norm: replace(norm, shift=None))
    stack = _layers(
        stack,
        lambda layer: replace(
            layer, attention=replace(layer.attention, bias=None), hidden=replace(layer.hidden, bias=None)
        ),
    )
    return replace(stack, readout_bias=None)


def _tables(stack: StackNorms) -> StackNorms:
    tables = tuple(one.scaled(1 / one.largest_row) if one.largest_row > 1 else one for one in stack.tables)
    readout = stack.readout
    if readout is not None and readout.largest_row > 1:
        readout = readout.scaled(1 / readout.largest_row)
    return replace(stack, tables=tables, readout=readout, scale=min(stack.scale, 1.0))


REST = "what remains"
CAUSES: tuple[tuple[str, Callable[[StackNorms], StackNorms], str], ...] = (
    ("1/sqrt(epsilon) of the norms", _epsilons, f"{NO_COMMAND}: norms with a larger epsilon, or none, before training"),
    ("gains above 1", _gains, LIMIT.format("gain")),
    ("scores (QK) above 1", _scores, LIMIT.format("qk")),
    ("values (OV) above 1", _values, LIMIT.format("ov")),
    ("hidden units above 1", _units, LIMIT.format("ffn")),
    ("biases and shifts", _biases, "recommend fit --weight-decay, or Optimiser(weight_decay=...)"),
    ("rows of tables above 1", _tables, LIMIT.format("rows")),
)
