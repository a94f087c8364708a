"""The bounds for real stacks read off small checkpoints of the families, with cells, causes, and refusals by name."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from audit.checkpoints import write_bert, write_llama
from audit.pre_norm_checkpoint import WIDTH, checkpoint, part, weight
from audit.read.contract import write
from audit.read.synthetic import gpt2
from audit.read.synthetic_more import sasrec
from certiformer.audit import audit
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.audit.stack_norms_of import RATIO, UNIT, Cells, stack_norms_of
from certiformer.audit.stack_verdicts import COUNT, IDS, NORMS, stack_verdicts
from certiformer.audit.verdict import Given
from certiformer.bounds import normed_stack
from certiformer.bounds.mending import CAUSES, waterfall
from certiformer.bounds.normed_stack import norm_radius, pieces, stretch
from certiformer.bounds.numbers import above
from certiformer.bounds.stack_by_count import entries

PLAIN = replace(checkpoint(), embeddings={"token": checkpoint().embeddings["tokens"]})


@pytest.fixture(scope="module")
def families(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("families")
    found = {
        "bert": read_checkpoint(write_bert(folder / "bert"))[0],
        "llama": read_checkpoint(write_llama(folder / "llama", layers=2))[0],
    }
    return {name: (each, measure(each)) for name, each in found.items()} | {"gpt2": (PLAIN, measure(PLAIN))}


def verdicts(pair, **given) -> dict:
    answers = {each.id: each for each in stack_verdicts(*pair, Given(**given))}
    assert tuple(answers) == IDS
    return answers


def test_cells_hold_their_norms_and_pay():
    cells = Cells()
    for size in (0.0, 1e-9, UNIT, 0.3, 1.0, 77.7):
        before, end = cells.paid, cells.end(size)
        assert size <= end <= max(UNIT, size * float(RATIO) * (1 + 1e-8)) and cells.paid <= before / 2


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_every_weight_of_the_layers_is_in_the_class(families, name):
    """Counted one by one; a bias of keys leaves the softmax, and V then O of a head counts as one matrix."""
    held, figures = families[name]
    stack, _ = stack_norms_of(held, figures)
    assert len(stack.layers) == len(held.layers) and len(stack.tables) == len(held.embeddings)
    width, total = held.width, 0
    for layer in held.layers:
        attention, ffn = layer.attention[0], layer.ffn[0]
        heads, size = attention.query.shape[:2]
        biased = attention.query_bias is not None
        total += heads * width**2  # values and outputs
        total += heads * (2 * size * (width + biased) if held.positions == "rope" else width * (width + biased))
        total += sum(
            each.count for each in (ffn.up, ffn.down, ffn.gate, ffn.up_bias, ffn.down_bias) if each is not None
        )
        total += width * (attention.value_bias is not None or attention.output_bias is not None)
        total += sum(
            each.count for norm in layer.norms.values() for each in (norm.gain, norm.shift) if each is not None
        )
    outside = [*held.embeddings.values(), held.head, held.head_bias]
    norms = [norm for norm in (held.final_norm, held.norms.get("embeddings")) if norm is not None]
    outside += [each for norm in norms for each in (norm.gain, norm.shift)]
    total += sum(each.count for each in outside if each is not None)
    assert entries(pieces(stack), "count") == total


def test_the_norms_of_a_head_are_not_understated(families):
    held, figures = families["gpt2"]
    stack, _ = stack_norms_of(held, figures)
    for layer, norms in zip(held.layers, stack.layers, strict=True):
        attention = layer.attention[0]
        assert attention.query_bias is not None and attention.output is not None
        for h, head in enumerate(norms.attention.heads):
            key = attention.key.read()[h]
            scores = attention.query.read()[h].T @ key * attention.scale
            shift = attention.query_bias.read()[h] @ key * attention.scale
            whole = np.concatenate([scores, shift[None]])
            value = attention.output.read()[h] @ attention.value.read()[h]
            assert head.scores is not None and head.biased and head.scores.rows == WIDTH + 1
            for claimed, true in ((head.scores, whole), (head.value, value)):
                assert claimed.spectral >= np.linalg.norm(true, 2)
                assert claimed.frobenius >= np.linalg.norm(true)
                assert claimed.l11 >= abs(true).sum() and claimed.rank >= np.linalg.matrix_rank(true)
                assert claimed.spectral <= 1.2 * np.linalg.norm(true, 2)
        ffn = layer.ffn[0]
        assert ffn.up_bias is not None
        up = np.concatenate([ffn.up.read(), ffn.up_bias.read()[:, None]], axis=1)
        assert norms.hidden.up.spectral >= np.linalg.norm(up, 2) and norms.hidden.up.columns == WIDTH + 1
        assert norms.hidden.up.largest_row >= np.linalg.norm(up, axis=1).max()
        radius = above(norm_radius(norms.attention_norm, WIDTH))
        assert radius >= math.sqrt(WIDTH) and above(stretch(norms.attention, arb(radius))) > 0


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_verdicts_as_powers_of_ten(families, name):
    few, many = verdicts(families[name], samples=1000), verdicts(families[name], samples=10**60)
    assert few[NORMS].verdict == few[COUNT].verdict == "vacuous"
    assert few[NORMS].value > few[COUNT].value > few[NORMS].trivial == 0.0
    assert many[COUNT].verdict == "holds" and many[COUNT].value < 0
    assert many[NORMS].value < few[NORMS].value
    asked = verdicts(families[name])
    for answer in asked.values():
        assert answer.verdict == "holds-if" and "--samples" in answer.needs[0]
        digits = answer.details["digits_needed"]
        assert isinstance(digits, int)
        for more, verdict in ((0, "holds"), (-1, "vacuous")):
            if digits + more <= 300:
                assert verdicts(families[name], samples=10 ** (digits + more))[answer.id].verdict == verdict


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_the_causes_multiply_to_the_bound(families, name):
    answer = verdicts(families[name], samples=1000)[NORMS]
    assert [each.name for each in answer.factors[:-1]] == [cause for cause, _, _ in CAUSES]
    assert sum(each.log10 for each in answer.factors) == pytest.approx(answer.value, abs=1e-9)
    assert all(each.log10 > -1e-9 and each.mend for each in answer.factors[:-1])
    epsilon = answer.factors[0]
    assert (epsilon.log10 > 3) == (name != "gpt2")  # whose epsilons are 1
    worst = max(answer.factors[:-1], key=lambda each: each.log10)
    assert f"The largest cause is {worst.name}" in answer.sentence


def test_mending_each_cause_leaves_none_of_it(families):
    stack, _ = stack_norms_of(*families["bert"])

    def measure_(mended):
        return normed_stack.complexity(mended, 1.0, 1000)

    for _, mended, _ in CAUSES:
        stack = mended(stack)
    for fall in waterfall(stack, measure_)[:-1]:
        assert abs(above(fall.factor) - 1) < 1e-9


def test_gpt2_and_sasrec_shapes_without_a_final_norm_or_a_read_out(families):
    held, figures = families["gpt2"]
    for change in ({"final_norm": None}, {"head": None}, {"head": None, "head_tied": True}, {"norm_place": "parallel"}):
        other = replace(held, **change)
        answers = verdicts((other, measure(other)), samples=100)
        assert answers[NORMS].verdict == "vacuous", change
    post = replace(held, norm_place="post", final_norm=None)
    assert verdicts((post, measure(post)), samples=100)[NORMS].verdict == "vacuous"
    assert figures.layers


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: replace(c, norm_place="queries"), "here they are: queries"),
        (lambda c: replace(c, norm_place=None), "here they are: unknown"),
        (lambda c: replace(c, positions="relative"), "trained score biases"),
        (lambda c: replace(c, positions="rope", config={"rope_scaling": {"type": "odd"}}), "rotary codes are scaled"),
        (lambda c: replace(c, positions="sinusoidal", final_norm=None), "codes of positions"),
        (lambda c: replace(c, positions="one-hot", final_norm=None), "codes of positions"),
        (lambda c: replace(c, norm_place="post", positions="circle"), "codes of positions"),
        (lambda c: replace(c, norm_place="late"), "here they are: late"),
        (lambda c: replace(c, layers=tuple(replace(one, repeats=2) for one in (*c.layers, *c.layers))), "take turns"),
        (lambda c: replace(c, family="certiformer", config={"readout": {"kind": "sum"}}), "their sum"),
        (lambda c: replace(c, others={"cls.predictions.transform.dense.weight": c.head}), "maps stand between"),
        (lambda c: replace(c, embeddings=c.embeddings | {"mapping": c.head}), "maps stand between"),
        (lambda c: replace(c, head=None, head_tied=True, others={"project_out": c.head}), "maps stand between"),
        (lambda c: replace(c, final_norm=replace(c.final_norm, epsilon=None)), "the epsilon of every norm"),
        (lambda c: replace(c, final_norm=replace(c.final_norm, gain=weight(np.full(WIDTH, math.nan)))), "finite gains"),
        (lambda c: replace(c, layers=()), "needs layers"),
        (lambda c: replace(c, embeddings={}), "table of tokens"),
        (lambda c: part(c, "attention", query_norm=c.final_norm), "queries or keys are normed"),
        (lambda c: part(c, "attention", scale=None), "the score scale"),
        (lambda c: part(c, "attention", cross=True), "softmax self-attention"),
        (lambda c: part(c, "attention", output=None), "an output projection"),
        (lambda c: part(c, "ffn", activation="mish"), "activation mish is not known"),
        (lambda c: replace(c, layers=(replace(c.layers[0], norms={}),)), "a norm at each of the two parts"),
    ],
)
def test_what_is_not_proved_is_refused_by_name(families, change, sentence):
    held, figures = families["gpt2"]
    for answer in stack_verdicts(change(held), figures, Given(samples=100)):
        assert answer.verdict == "does-not-apply" and sentence in answer.sentence


def test_a_bound_above_all_floats_is_still_a_power_of_ten(tmp_path):
    """The negative control of a float: fifteen layers with small epsilons are beyond 10^308, and are said as what they are."""
    deep = read_checkpoint(write_llama(tmp_path, layers=15, rms_norm_eps=1e-18))[0]
    answer = verdicts((deep, measure(deep)), samples=1000)[NORMS]
    assert answer.value > 308 and math.isfinite(answer.value) and "10^" in answer.sentence
    assert math.isinf(max(each.value for each in answer.factors)) or answer.factors[0].log10 > 200


@pytest.mark.parametrize(
    ("made", "more", "words"), [(gpt2(True), {}, "holds"), (sasrec(), {"norm_first": True}, "holds")]
)
def test_files_of_gpt2_and_sasrec_have_bounds_and_a_verdict_on_words(tmp_path, made, more, words):
    folder = write(tmp_path, made.tensors(), made.config | {"layer_norm_epsilon": 1e-5})
    answers = {each.id: each for each in audit(folder, Given(samples=1000), **{**made.given, **more}).verdicts}
    assert answers[NORMS].verdict == answers[COUNT].verdict == "vacuous"
    assert answers["expressivity.words_in_normed_blocks"].verdict == words
