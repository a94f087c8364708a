"""The cases really use every option, so that agreeing on them means something."""

from __future__ import annotations

from itertools import chain

from certiformer.model import schema
from export.cases import CASES, TIES, case, ties


def test_every_option_occurs():
    configs = [case(name).config for name in CASES]
    blocks = list(chain.from_iterable(config.blocks for config in configs))
    attentions = [block.attention for block in blocks if block.attention is not None]
    ffns = [block.ffn for block in blocks if block.ffn is not None]
    assert {c.input.kind for c in configs} == set(schema.INPUT)
    assert {c.code.kind for c in configs} == set(schema.CODE)
    assert {c.readout.kind for c in configs} == set(schema.READOUT)
    assert {a.kind for a in attentions} == set(schema.ATTENTION)
    assert {f.kind for f in ffns} == set(schema.FFN)
    assert {(b.norm.kind, b.norm.place) for b in blocks if b.norm} == {(k, p) for k in schema.NORM for p in PLACES}
    for rule, values in (
        ("scale", {a.scale for a in attentions}),
        ("mask", {a.mask for a in attentions}),
        ("score_bias", {a.score_bias for a in attentions}),
    ):
        wanted = schema.ATTENTION["softmax"][rule][0]  # "one of a, b, c"
        assert values == set(wanted.removeprefix("one of ").split(", ")), rule
    flags = [{a.bias for a in attentions}, {a.residual for a in attentions}, {f.residual for f in ffns}]
    assert flags == 3 * [{False, True}]
    assert {c.loops for c in configs} >= {1, 2} and {bool(c.registers) for c in configs} == {False, True}
    assert {len(c.blocks) for c in configs} == {0, 1, 2} and {len(a.heads) for a in attentions} == {1, 2}


PLACES = ("pre", "post")


def test_the_ties_are_ties():
    outputs = ties().evaluate([[x] for x in TIES])
    assert outputs[:, 0].tolist() == list(TIES.values())
