"""The rule for the choice among strengths: its claim in exact rationals, its runs, and that no fault passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.axioms.in_context_selection import find
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.compiler.incontext.selection_network import selection_points
from certiformer.kernel import Refused
from certiformer.kernel.computation import check_computation
from compiler.incontext.exact_relu import run, selected, selection_tokens
from compiler.incontext.numpy_relu import run as float_run


def compiled(**changes) -> ContextLearner:
    flags = {"learner": "select", "features": 2, "rows": 5, "layers": 2, "strength": "0.1,1,4", "validation": 2}
    return context_learner(describe(Request(**{**flags, **changes})))


numbers = st.fractions(-4, 4, max_denominator=7)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_passes_choose_in_exact_rationals(data):
    """Any context, in the box or not, with wide and narrow gaps; zero tolerance."""
    chosen = compiled(margin=data.draw(st.sampled_from([1e-6, 0.25, 64.0])))
    learner, n = chosen.learner, data.draw(st.integers(3, 5))
    xs = data.draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=n, max_size=n))
    ys, query = (
        data.draw(st.lists(numbers, min_size=n, max_size=n)),
        data.draw(st.lists(numbers, min_size=2, max_size=2)),
    )
    answer, shares, losses = selected(learner, xs, ys, query)
    assert run(chosen.model, selection_tokens(learner, xs, ys, query)) == [answer, *shares, *losses]
    # what the statement says of the shares
    assert sum(shares) == 1 and min(shares) >= 0
    best = min(losses)
    assert all(share == 0 or loss - best < learner.gap for share, loss in zip(shares, losses, strict=True))
    if sorted(losses)[1] - best >= learner.gap:
        assert shares[losses.index(best)] == 1


def test_equal_losses_go_to_the_first():
    """With answers 0 all weights are 0 and all losses equal."""
    learner = compiled().learner
    xs = [[Fraction(1), Fraction(2)]] * 4
    outputs = run(compiled().model, selection_tokens(learner, xs, [Fraction(0)] * 4, [Fraction(1), Fraction(1)]))
    assert outputs == [0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_runs_choose_the_same_within_the_bound(dtype):
    learner = compiled(dtype=dtype, layers=6, margin=1e-3, rows=8, validation=3)
    found = find(learner.files())
    bound, lead = float(found.bound), float(found.parameters["lead"])
    assert lead < {"float64": 1.001e-3, "float32": 5e-3}[dtype]  # the gap is 2^-10
    rng, decided, worst = np.random.default_rng(3), 0, 0.0
    for _ in range(40):
        n = int(rng.integers(4, 9))
        x = rng.uniform(-1, 1, (n, 2)).astype(dtype).astype(float)
        y = np.clip(x @ rng.normal(size=2) + 0.5 * rng.normal(size=n), -1, 1).astype(dtype).astype(float)
        query = np.sign(rng.normal(size=2))
        outputs = float_run(learner, selection_points(learner.learner, x, y, query[None]))[0].astype(float)
        xs, ys = [list(map(Fraction, row)) for row in x], list(map(Fraction, y))
        answer, shares, losses = selected(learner.learner, xs, ys, list(map(Fraction, query)))
        low, next_one = sorted(losses)[:2]
        if float(next_one - low) >= lead:
            decided += 1
            assert outputs[1:4].tolist() == [float(share) for share in shares]
            worst = max(worst, abs(outputs[0] - float(answer)))
    assert decided >= 20 and 0 < worst <= bound


def test_the_lead_covers_the_rounding_of_the_losses():
    """With a gap that is far below the rounding of float32, the lead is all rounding."""
    learner = compiled(dtype="float32", layers=4, margin=1e-12)
    lead, rng, worst = float(find(learner.files()).parameters["lead"]), np.random.default_rng(5), 0.0
    for _ in range(20):
        x = rng.uniform(-1, 1, (5, 2)).astype("float32").astype(float)
        y = rng.uniform(-1, 1, 5).astype("float32").astype(float)
        outputs = float_run(learner, selection_points(learner.learner, x, y, x[:1]))[0].astype(float)
        xs, ys = [list(map(Fraction, row)) for row in x], list(map(Fraction, y))
        losses = selected(learner.learner, xs, ys, xs[0])[2]
        worst = max(worst, *(abs(a - float(b)) for a, b in zip(outputs[4:], losses, strict=True)))
    assert 1e-9 < 2 * worst <= lead < 1e-2


def test_one_step_that_is_too_long_is_refused():
    learner = compiled().learner
    long = context_learner(replace(learner, rates=(*learner.rates[:2], 1.5)))
    with pytest.raises(Refused, match="steps are too long"):
        find(long.files())


def test_every_single_weight_counts():
    learner = compiled()
    find(learner.files())
    rng = np.random.default_rng(1)
    for tensor, array in learner.tensors.items():
        places = [np.unravel_index(i, array.shape) for i in rng.integers(0, array.size, 2)]
        places += list(zip(*array.nonzero(), strict=True))[-2:]
        for place in places:
            changed = array.copy()
            changed[place] = np.nextafter(changed[place], np.inf)
            with pytest.raises(Refused, match=f"of {tensor} is"):
                find(replace(learner, tensors={**learner.tensors, tensor: changed}).files())


@pytest.mark.parametrize(
    "change",
    [
        {"rates": (0.25, 0.25, 0.25)}, {"decays": (0.0, 0.25, 0.5)}, {"gap": 0.5}, {"steps": 3}, {"rows": 6},
        {"spectrum": 100.0}, {"rates": (0.5, 0.25), "decays": (0.5, 0.25)}, {"features": 3}, {"dtype": "float32"},
    ],
    ids=str,
)  # fmt: skip
def test_another_description_is_refused(change):
    learner = compiled()
    with pytest.raises(Refused):
        find(replace(learner, learner=replace(learner.learner, **change)).files())


@pytest.mark.parametrize("change", [{"loops": 3}, {"kind": "linear"}, {"residual": False}], ids=str)
def test_another_architecture_is_refused(change):
    learner = compiled()
    data = learner.config.to_json()
    for name, value in change.items():
        (data if name == "loops" else data["blocks"][2]["attention"])[name] = value
    with pytest.raises(Refused, match="is not of the form"):
        find(replace(learner, config=type(learner.config).from_json(data)).files())


def test_the_folder_is_checked(tmp_path):
    learner = compiled()
    artifact = learner.certified()
    artifact.save(tmp_path / "run")
    certificate = artifact.certificate
    assert certificate.level == 2 and certificate.proof is not None
    assert check_computation(tmp_path / "run").outcome == "proved"
    # A smaller gap or lead would be a stronger claim.
    for key, value in {"gap": "0.0000001", "lead": "0", "margin": "1.9", "strengths": 2}.items():
        proof = replace(certificate.proof, parameters={**certificate.proof.parameters, key: value})
        (tmp_path / "run/certificate.json").write_bytes(replace(certificate, proof=proof).to_bytes())
        assert check_computation(tmp_path / "run").outcome == "refused"
