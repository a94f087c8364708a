"""PODs of kernels: exact singular values, what is resolved, and honest words about alpha."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from certiformer.cli.main import main
from certiformer.errors import BadInput
from certiformer.rates.kernels import formula_kernel, quadrature, sine_mixing, sine_pair
from certiformer.rates.pod import pod_of_kernel, pod_of_matrix
from certiformer.rates.targets import SineTarget

ROUNDING = 1e-12  # 200 x 200 decompositions of kernels of size 1; observed 1e-15


@pytest.mark.parametrize("rule", ["midpoint", "gauss"])
def test_the_mixing_kernel_has_the_values_of_the_closed_form(rule):
    found = pod_of_kernel(sine_mixing, nodes=100, rule=rule)
    exact = [math.sqrt((7 + math.sqrt(33)) / 8), 0.5, math.sqrt((7 - math.sqrt(33)) / 8)]
    assert found.values[:3] == pytest.approx(exact, abs=ROUNDING)
    assert [round(value, 6) for value in exact] == [1.262169, 0.5, 0.396143]
    assert found.values[3] < ROUNDING and found.resolved == 3


def test_before_mixing_both_values_are_one_and_centring_takes_one_away():
    assert pod_of_kernel(sine_pair, 100, "midpoint").values[:3] == pytest.approx([1, 1, 0], abs=ROUNDING)
    assert pod_of_kernel(sine_pair, 100, "midpoint", centred=True).values[:2] == pytest.approx([1, 0], abs=ROUNDING)
    mixed = pod_of_kernel(sine_mixing, 100, "midpoint", centred=True)
    assert mixed.values[:3] == pytest.approx([math.sqrt(3) / 2, 0.5, 0], abs=ROUNDING)


def test_centred_values_do_not_see_a_function_of_u():
    plain = pod_of_kernel(sine_mixing, 64, centred=True)
    shifted = pod_of_kernel(lambda u, v: sine_mixing(u, v) + np.exp(3 * u), 64, centred=True)
    assert shifted.values == pytest.approx(plain.values, abs=1e-11)  # the gauge has size 20
    assert pod_of_kernel(lambda u, v: sine_mixing(u, v) + np.exp(3 * u), 64).values[0] > 2


@pytest.mark.parametrize(("alpha", "rank"), [(1.0, 16), (1.5, 16), (0.55, 9)])
def test_sine_kernels_give_their_prescribed_values_alpha_and_constant(alpha, rank):
    target = SineTarget(alpha, rank=rank)
    found = pod_of_kernel(target.kernel, nodes=64, rule="midpoint")
    assert found.resolved == rank
    assert found.values[:rank] == pytest.approx(target.values, abs=ROUNDING)
    assert found.decay is not None and found.decay.alpha == pytest.approx(alpha, abs=1e-9)
    assert found.c1 == pytest.approx(1, abs=1e-9)
    assert found.note == ""


def test_brownian_motion_has_its_known_values_and_says_where_it_stops():
    """min(u, v) has 1 / ((k - 1/2) pi)^2; the kink makes quadrature converge slowly, which doubling must notice."""
    found = pod_of_kernel(formula_kernel("min(u,v)"), nodes=128)
    exact = 1 / ((np.arange(found.resolved) + 0.5) * np.pi) ** 2
    wrong = np.abs(found.values[: found.resolved] - exact)
    assert found.error is not None
    assert wrong.max() < found.error  # the values of twice the nodes are closer than the change
    assert 8 < found.resolved < 64 and "not resolved" in found.note
    assert found.decay is not None and abs(found.decay.alpha - 2) < 0.3


def test_an_exponential_fall_is_not_called_a_power_law():
    found = pod_of_kernel(formula_kernel("exp(-3*(u-v)**2)"), nodes=32)
    assert found.decay is not None and "not a power law" in found.note
    longer = pod_of_kernel(formula_kernel("exp(-3*(u-v)**2)"), nodes=32, window=(2, 6))
    assert longer.decay is not None and longer.decay.alpha < found.decay.alpha  # it grows with the window, as it says


@pytest.mark.parametrize(("text", "count"), [("u*v", 1), ("sin(u)*v + cos(u)", 2), ("0*u", 0)])
def test_finite_ranks_have_no_alpha_but_a_reason(text, count):
    found = pod_of_kernel(formula_kernel(text), nodes=16)
    assert (found.resolved, found.decay, found.c1) == (count, None, None)
    assert found.note.startswith("no alpha: ")
    assert pod_of_kernel(formula_kernel("u*v"), nodes=16, alpha=2.0).c1 == pytest.approx(1 / 3)


def test_c1_is_the_smallest_constant_above_all_values():
    found = pod_of_kernel(formula_kernel("exp(-abs(u-v))"), nodes=64, alpha=2.0)
    k = np.arange(1, found.resolved + 1)
    assert found.c1 is not None
    assert (found.values[: found.resolved] <= found.c1 * k**-2.0 * (1 + 1e-15)).all()
    assert not (found.values[: found.resolved] <= 0.999 * found.c1 * k**-2.0).all()


def test_matrices_are_kernels_of_equal_weights():
    nodes, _ = quadrature(64, "midpoint")
    u, v = np.meshgrid(nodes, nodes, indexing="ij")
    assert pod_of_matrix(sine_mixing(u, v)).values[:3] == pytest.approx([1.2621689, 0.5, 0.3961435], abs=1e-7)
    assert pod_of_matrix(sine_pair(u, v), centred=True).values[:2] == pytest.approx([1, 0], abs=ROUNDING)
    for bad in (np.zeros((0, 3)), np.full((2, 2), np.nan), np.zeros(3)):
        with pytest.raises(BadInput, match="matrix of finite numbers"):
            pod_of_matrix(bad)


def test_values_of_any_size_are_decomposed():
    small, large = (pod_of_kernel(lambda u, v, s=s: s * sine_mixing(u, v), 16).values[:3] / s for s in (1e-200, 1e200))
    assert small == pytest.approx(large, rel=1e-12)


def test_kernels_without_a_value_are_refused_with_the_place():
    with pytest.raises(BadInput, match="no finite value at u = "):
        pod_of_kernel(formula_kernel("1/(u-v)"), nodes=8)
    with pytest.raises(BadInput, match="one value"):
        formula_kernel("[u, v]")
    with pytest.raises(BadInput, match="2 to 2048 nodes"):
        pod_of_kernel(sine_pair, nodes=1)


def test_the_command_prints_what_is_promised(capsys):
    assert main(["rates", "pod", "exp(-3*(u-v)**2)", "--ranks", "8", "--nodes", "32", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["singular_values"]) == 8
    # Computed once with 60 digits; the quadrature of an entire kernel is exact to rounding.
    assert facts["singular_values"][:2] == pytest.approx([0.7044699573, 0.2417174595], abs=1e-9)
    assert facts["alpha_interval"][0] < facts["alpha"] < facts["alpha_interval"][1]
    assert facts["c1"] > 0 and "not a power law" in facts["note"]
    assert main(["rates", "pod", "u*v", "--nodes", "16", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["alpha"] is None and facts["c1"] is None and "no alpha" in facts["note"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["__import__('os')"], "column 1"),
        (["u +"], "expected a number"),
        (["u*v", "--window", "2"], "--window is two whole numbers"),
        (["u*v", "--ranks", "0"], "--ranks is 1 or more"),
        (["missing.npy"], "missing.npy"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(arguments, sentence, capsys):
    assert main(["rates", "pod", *arguments, "--json"]) == 2
    assert sentence in json.loads(capsys.readouterr().out)["reason"]


def test_a_file_of_samples_is_read(tmp_path, capsys):
    np.save(tmp_path / "k.npy", np.ones((3, 5)))
    assert main(["rates", "pod", str(tmp_path / "k.npy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["singular_values"][0] == pytest.approx(1)
    (tmp_path / "bad.npy").write_bytes(b"nonsense")
    assert main(["rates", "pod", str(tmp_path / "bad.npy"), "--json"]) == 2
