"""The bound for real stacks against models in NumPy: changes of weights and inputs, figures of the notes, faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.bounds.normed_stack import complexity, cover, pieces
from certiformer.bounds.numbers import above, ball
from certiformer.bounds.stack_norms import (
    AttentionNorms,
    HiddenNorms,
    MapNorms,
    NormNorms,
    StackHead,
    StackLayer,
    StackNorms,
    TableNorms,
)
from certiformer.errors import BadInput
from theorems.sine_matrices import matrix
from theorems.stack_model import HEADS, TOKENS, WORDS, Layout

LAYOUTS = [
    Layout("pre"),
    Layout("pre", rotary=True, gated=True, tied=True),
    Layout("pre", final=False),
    Layout("post", embedding=True, final=False),
    Layout("post", final=False, tied=True, gated=True),
    Layout("parallel", rotary=True),
]


def tensors_of(layout: Layout) -> list[str]:
    """The tensors in the order of `pieces`."""
    names = [] if layout.tied else ["table"]
    names.append("last bias")
    names += ["final gain", "final shift"] * layout.final
    for n in reversed(range(layout.layers)):
        names += [f"{n} units gain", f"{n} units shift"]
        names += [f"{n} gate"] * layout.gated + [f"{n} up", f"{n} down", f"{n} units bias"]
        names += [f"{n} attention gain", f"{n} attention shift"]
        for h in range(HEADS):
            names += [f"{n} query {h}", f"{n} key {h}"] if layout.rotary else [f"{n} scores {h}"]
            names.append(f"{n} value {h}")
        names.append(f"{n} attention bias")
    return [*names, *(["embedding gain", "embedding shift"] * layout.embedding), "words", "places"]


def local_error(change: np.ndarray, reach: float, frobenius: float, name: str) -> float:
    """How far the piece moves on all inputs that it meets: the length of inputs times the norm of the change."""
    inputs = reach / frobenius
    by_rows = name in ("words", "places", "table")
    size = np.linalg.norm(change, axis=1).max() if by_rows else np.linalg.norm(change)
    return float(inputs * size)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.place}-{each.rotary}-{each.gated}-{each.final}")
@pytest.mark.parametrize("causal", [False, True])
def test_a_change_of_any_piece_moves_no_logit_farther(layout, causal):
    """One piece after the other, and all at once: never above the sum of the factors times local errors."""
    ratios = []
    for seed in range(6):
        first, second = layout.random(seed, 0.3 + 0.1 * seed), layout.random(seed + 100, 0.3 + 0.1 * seed)
        norms = layout.norms(first, second)
        made, names = pieces(norms), tensors_of(layout)
        assert len(made) == len(names)
        word = np.random.default_rng(seed).integers(0, WORDS, TOKENS)
        before, allowed = layout.logits(first, word, causal), 0.0
        for piece, name in zip(made, names, strict=True):
            by_rows = name in ("words", "places", "table")
            sizes = [
                np.linalg.norm(m[name], axis=1).max() if by_rows else np.linalg.norm(m[name]) for m in (first, second)
            ]
            error = local_error(second[name] - first[name], above(piece.reach), float(max(sizes)), name)
            one = abs(layout.logits({**first, name: second[name]}, word, causal) - before).max()
            assert one <= above(piece.factor) * error, name
            ratios.append(one / (above(piece.factor) * error))
            allowed += above(piece.factor) * error
        moved = abs(layout.logits(second, word, causal) - before).max()
        assert moved <= allowed
    assert max(ratios) > 1e-3  # not so loose that no fault could show


@pytest.mark.parametrize(
    ("fault", "changed"),
    [("value", "0 scores 0"), ("down", "1 up"), ("gain", "1 down"), ("readout", "words")],
)
def test_a_norm_that_is_too_small_is_noticed(fault, changed):
    """The negative control: with one norm understated, a change of what is in front of it moves the logits farther."""
    layout, small = Layout("post", final=False, epsilon=1.0), 1e-14
    first = layout.random(0, 1.0)
    second = {**first, changed: first[changed] + 1e-3 * np.random.default_rng(1).normal(size=first[changed].shape)}
    norms = layout.norms(first, second)
    layers = norms.layers
    if fault == "value":
        heads = tuple(replace(h, value=h.value.scaled(small)) for h in layers[0].attention.heads)
        layers = tuple(replace(y, attention=replace(y.attention, heads=heads)) for y in layers)
    elif fault == "down":
        layers = tuple(replace(y, hidden=replace(y.hidden, down=y.hidden.down.scaled(small))) for y in layers)
    elif fault == "gain":
        gain = layers[0].hidden_norm.gain
        tiny = replace(layers[0].hidden_norm, gain=None if gain is None else gain.scaled(small))
        layers = tuple(replace(y, hidden_norm=tiny) for y in layers)
    readout = norms.readout.scaled(small) if fault == "readout" and norms.readout is not None else norms.readout
    word = np.arange(TOKENS)
    moved = abs(layout.logits(second, word) - layout.logits(first, word)).max()
    places = dict(zip(tensors_of(layout), range(100), strict=False))
    change = second[changed] - first[changed]
    sizes = [
        np.linalg.norm(w, axis=1).max() if changed == "words" else np.linalg.norm(w)
        for w in (first[changed], second[changed])
    ]
    right, broken = (pieces(each)[places[changed]] for each in (norms, replace(norms, layers=layers, readout=readout)))
    error = local_error(change, above(right.reach), float(max(sizes)), changed)
    assert above(broken.factor) * error < moved <= above(right.factor) * error


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.place}-{each.rotary}-{each.gated}-{each.final}")
def test_larger_norms_never_give_a_smaller_bound(layout):
    norms = layout.norms(layout.random(0))
    base = above(complexity(norms, 1.0, 1000))
    layer = norms.layers[0]
    for larger in (
        replace(
            norms,
            layers=(replace(layer, hidden=replace(layer.hidden, down=layer.hidden.down.scaled(2))), *norms.layers[1:]),
        ),
        replace(
            norms,
            layers=(replace(layer, attention_norm=replace(layer.attention_norm, epsilon=0.01)), *norms.layers[1:]),
        ),
        replace(norms, tables=(norms.tables[0].scaled(2), *norms.tables[1:])),
    ):
        assert above(complexity(larger, 1.0, 1000)) > base
    assert above(complexity(norms, 1.0, 4000)) < base


def map_norms(w: np.ndarray) -> MapNorms:
    rows, columns = w.shape
    spectral, frobenius = float(np.linalg.norm(w, 2)), float(np.linalg.norm(w))
    return MapNorms(spectral, frobenius, float(abs(w).sum()), rows, columns, min(rows, columns))


@pytest.mark.parametrize(
    ("epsilon", "layers", "inverse"),
    [(1.0, 1, "1.4048e+06"), (1.0, 2, "6.3433e+08"), (1e-5, 1, "7.9719e+14"), (1e-5, 2, "6.1834e+26")],
)
def test_the_figures_of_an_earlier_calculation(epsilon, layers, inverse):
    """Without gains, biases and tables of words: K of another program, in five digits."""
    norm, stacked = NormNorms(epsilon), []
    for i in range(layers):
        scores, value = matrix(8, 8, 0.7 + 0.1 * i) / np.sqrt(8), matrix(8, 8, 1.3 + 0.1 * i)
        up, down = matrix(8, 16, 2.1 + 0.1 * i), matrix(16, 8, 2.9 + 0.1 * i)
        hidden = HiddenNorms(map_norms(up), map_norms(down), slope=1.1289)
        stacked.append(
            StackLayer(AttentionNorms((StackHead(map_norms(value), map_norms(scores)),)), hidden, norm, norm)
        )
    out = matrix(20, 8, 0.5)
    readout = TableNorms(20, 8, float((abs(out).sum(1) ** 2).sum()), float(np.linalg.norm(out, axis=1).max()))
    model = StackNorms("pre", 8, tuple(stacked), (), final_norm=norm, readout=readout)
    assert len(pieces(model)) == 1 + 4 * layers
    assert f"{above(ball(cover(model).inverse_square)):.4e}" == inverse


def test_what_it_refuses():
    norms = Layout("pre").norms(Layout("pre").random(0))
    with pytest.raises(BadInput, match="not at 'queries'"):
        pieces(replace(norms, place="queries"))
    with pytest.raises(BadInput, match="no Lipschitz constant"):
        pieces(replace(norms, final_norm=NormNorms(0.0)))
    head = StackHead(norms.layers[0].attention.heads[0].value)
    layer = replace(norms.layers[0], attention=AttentionNorms((head,)))
    with pytest.raises(BadInput, match="one score matrix"):
        pieces(replace(norms, layers=(layer,)))
