"""Control (ii): with every hash recomputed, wrong content is still refused. Nothing here is caught by a seal."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.kernel.certificate import Boxes, Outcome, Split, Theorem, Triangle, to_json
from certiformer.model import Transformer
from certiformer.target import Target, parse_formula
from certiformer.target.trace import trace
from negative.forge import (
    Run,
    boxes_run,
    grid_model,
    judged,
    moved_register,
    reseal,
    split_run,
    target_of,
    theorem_run,
    uniform_tree,
)

EPSILON = "0.1"
THEOREM = theorem_run("sin(x1)", "[0,2*pi]", EPSILON)
BOXES = boxes_run("sin(x1)", "[0,2*pi]", EPSILON, 3, 5)
SPLIT = split_run("sin(x1)+sin(x2)", "[0,2*pi]^2", "0.2", 3, 5)
RUNS = {"theorem": THEOREM, "boxes": BOXES, "split": SPLIT}
# Columns of the registers of a Voronoi model with D inputs: x (D) | flag | centre (D) | offset | value | out.
VALUE = {1: 4, 2: 6}


def refused(folder) -> str:
    """The reason of the refusal; fails when the verdict is anything else."""
    verdict = judged(folder)
    assert verdict.outcome == "refused", verdict
    assert not verdict.accepted
    assert verdict.upper is None
    assert verdict.exit_code == 1
    return verdict.reason


@pytest.fixture(params=RUNS)
def honest(request, tmp_path):
    return request.param, RUNS[request.param].write(tmp_path / "run")


def test_the_honest_runs_are_accepted_and_resealing_alone_changes_nothing(honest):
    _, folder = honest
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    verdict = judged(folder)
    assert (verdict.outcome, verdict.level, verdict.exit_code) == ("proved", 2, 0)
    assert Fraction(verdict.upper) <= Fraction(verdict.claim.certificate.epsilon)
    reseal(folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert judged(folder).outcome == "proved"


# --- the model ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_a_register_value_moved_by_four_epsilon(honest, share):
    name, folder = honest
    run = RUNS[name]
    dimension, epsilon = run.target.domain.dimension, float(run.epsilon)
    rows = run.model.config.registers
    reseal(folder, model=moved_register(int(share * rows), VALUE[dimension], 4 * epsilon))
    # A register of the far margin has little weight on the domain: then the claim may still be true, and by boxes it
    # may still be proved. It must be refused whenever the error really exceeds epsilon.
    verdict = judged(folder)
    points = np.stack(np.meshgrid(*[np.linspace(0, 2 * np.pi, 61)] * dimension), -1).reshape(-1, dimension)
    moved = moved_register(int(share * rows), VALUE[dimension], 4 * epsilon)(run.model)
    error = np.abs(moved.evaluate(points)[:, 0] - np.sin(points).sum(axis=1)).max()
    if error > epsilon or name != "boxes":
        assert verdict.outcome == "refused"
    else:
        assert verdict.outcome == "proved"


def test_a_value_moved_in_the_middle_really_breaks_the_claim(honest):
    name, folder = honest
    run = RUNS[name]
    dimension, rows = run.target.domain.dimension, run.model.config.registers
    side = round(rows ** (1 / dimension))
    middle = sum((side // 2) * side**i for i in range(dimension))
    reseal(folder, model=moved_register(middle, VALUE[dimension], 4 * float(run.epsilon)))
    assert refused(folder)


@pytest.mark.parametrize("part", ["centre", "offset"])
def test_one_key_moved(honest, part):
    name, folder = honest
    run = RUNS[name]
    dimension = run.target.domain.dimension
    column = dimension + 1 if part == "centre" else 2 * dimension + 1
    reseal(folder, model=moved_register(run.model.config.registers // 2, column, 2.0))
    assert refused(folder)


@pytest.mark.parametrize(
    "tensor", ["embed.weight", "embed.bias", "blocks.0.attention.groups.0.query", "readout.weight", "readout.bias"]
)
def test_any_other_tensor_scaled_or_shifted(honest, tensor):
    _, folder = honest

    def change(model: Transformer) -> Transformer:
        return Transformer(model.config, {**model.tensors, tensor: np.asarray(model.tensors[tensor]) * 1.5 + 0.3})

    reseal(folder, model=change)
    assert refused(folder)


def test_registers_cut_or_doubled(honest):
    name, folder = honest
    for rows in (lambda r: r[:-1], lambda r: np.concatenate([r, r[:1]])):
        old = RUNS[name].model
        registers = rows(np.asarray(old.tensors["registers"]))
        config = replace(old.config, registers=len(registers))
        model = Transformer(config, {**old.tensors, "registers": registers})
        reseal(folder, model=lambda _, model=model: model, config=config.to_bytes())
        # By boxes a list with one register more or less may still be a good approximation, and is then proved.
        assert name == "boxes" or refused(folder)


# --- the claim -----------------------------------------------------------------------------------------------------------


def test_an_epsilon_below_the_error(honest):
    name, folder = honest
    proved = float(judged(folder).upper)
    for factor in (0.999, 0.5, 1e-3, 1e-30):
        text = f"{proved * factor:.6e}"
        reseal(folder, epsilon=text, proof=RUNS[name].proof)
        assert "exceeds epsilon" in refused(folder)
        scaled = scale_bounds(RUNS[name].proof, factor)
        reseal(folder, epsilon=text, proof=scaled)
        # The checker may bisect leaves a little further, so 0.999 of an earlier bound may really be provable by boxes.
        if factor < 0.6:
            assert refused(folder)


def scale_bounds(node, factor: float):
    """The same proof with every bound multiplied: what a forger would write."""
    bound = f"{float(node.bound) * factor:.6e}"
    if isinstance(node, Split):
        return replace(node, bound=bound, children=tuple(scale_bounds(child, factor) for child in node.children))
    return type(node)(**{**vars(node), "bound": bound})


@pytest.mark.parametrize("text", ["0", "-0.1", "nan", "inf", "1e99999", "", "0.1*x1", "pi", "1e400000", "0,1"])
def test_an_epsilon_that_is_no_positive_rational(honest, text):
    _, folder = honest
    reseal(folder, epsilon=text)
    assert "epsilon" in refused(folder)


@pytest.mark.parametrize("bound", ["nan", "-1", "0", "inf", "", "1e99999", "pi"])
def test_a_node_with_a_bound_that_is_no_positive_rational(honest, bound):
    name, folder = honest
    reseal(folder, proof=type(RUNS[name].proof)(**{**vars(RUNS[name].proof), "bound": bound}))
    assert "not a positive number" in refused(folder)


def test_a_huge_bound_does_not_stretch_epsilon(honest):
    """A node may claim 1e999; what counts is what is proved, and that must be below epsilon."""
    name, folder = honest
    proof = type(RUNS[name].proof)(**{**vars(RUNS[name].proof), "bound": "1e999"})
    reseal(folder, proof=proof, epsilon="0.001")
    assert "exceeds epsilon" in refused(folder)
    reseal(folder, proof=proof, epsilon=RUNS[name].epsilon)
    verdict = judged(folder)
    assert verdict.outcome == "refused" or Fraction(verdict.upper) <= Fraction(RUNS[name].epsilon)


@pytest.mark.parametrize("on", ["[0,3*pi]", "[-0.5,2*pi]", "[0,100]", "[-1e9,1e9]"])
def test_a_domain_enlarged_past_the_grid(honest, on):
    """The split tree is relative to the domain, so it still covers it: the error outside must be what refuses."""
    name, folder = honest
    run = RUNS[name]
    dimension = run.target.domain.dimension
    reseal(folder, target=target_of(run.target.source, on if dimension == 1 else f"{on}^2"))
    assert refused(folder)


def test_another_target(honest):
    name, folder = honest
    run = RUNS[name]
    for formula in ("cos(x1)", "sin(x1) + 1", "-sin(x1)", "sin(1.1*x1)", "1/x1", "sin(x1) + where(x1 < 3, 0, 1)"):
        full = formula if run.target.domain.dimension == 1 else f"{formula} + sin(x2)"
        reseal(folder, target=Target(run.target.source, parse_formula(full), run.target.domain))
        assert refused(folder)


def test_a_source_text_that_says_something_else_is_not_what_is_claimed(honest):
    """The sentence prints the recorded program, never the source."""
    name, folder = honest
    run = RUNS[name]
    reseal(folder, target=Target("exp(x1)", run.target.program, run.target.domain))
    verdict = judged(folder)
    assert verdict.outcome == "proved"
    assert "sin(x1)" in verdict.sentence
    assert "exp" not in verdict.sentence


# --- the proof -----------------------------------------------------------------------------------------------------------


def test_a_leaf_cut_from_the_tree(tmp_path):
    folder = BOXES.write(tmp_path / "run")
    tree = BOXES.leaves
    for i in range(0, len(tree), 3):
        cut = tree[:i] + tree[i + 1 :]
        reseal(folder, leaves=cut, proof=Boxes(EPSILON, 5, 0, len(cut)))
        assert "malformed" in refused(folder)
        reseal(folder, leaves=cut, proof=BOXES.proof)  # the node still asks for the old length
        assert "outside leaves.bin" in refused(folder)


def test_a_coarser_tree_is_a_proposal_that_must_still_hold(tmp_path):
    folder = BOXES.write(tmp_path / "run")
    reseal(folder, leaves=b"\xff", proof=Boxes(EPSILON, 0, 0, 1))
    assert "could only be bounded" in refused(folder)


@pytest.mark.parametrize(
    ("offset", "length"),
    [(-1, 15), (0, 0), (0, -1), (1, 15), (0, 16), (15, 1), (10**12, 1), (0, 10**12), (1, 14), (3, 5)],
)
def test_a_node_that_points_elsewhere(tmp_path, offset, length):
    folder = BOXES.write(tmp_path / "run")
    assert len(BOXES.leaves) == 15
    reseal(folder, proof=Boxes(EPSILON, 5, offset, length))
    if (offset, length) == (3, 5):  # bytes 3..8 may by chance be a tree of their own: then it is one, and is checked
        assert judged(folder).outcome in ("refused", "proved")
    else:
        assert refused(folder)


@pytest.mark.parametrize("order", [-1, 13, 100, 10**9])
def test_an_order_out_of_range(tmp_path, order):
    folder = BOXES.write(tmp_path / "run")
    reseal(folder, proof=Boxes(EPSILON, order, 0, len(BOXES.leaves)))
    assert "outside 0..12" in refused(folder)


@pytest.mark.parametrize("order", [True, "5", 5.0, None, [5]])
def test_an_order_that_is_no_integer(tmp_path, order):
    folder = BOXES.write(tmp_path / "run")
    reseal(folder, raw_proof={**to_json(BOXES.proof), "order": order})
    assert "wrong type" in refused(folder)


def test_the_second_order_theorem_on_a_kink(tmp_path):
    """abs(x1 - 0.3) with the weights and the node of the second-order theorem, sharp enough to look right."""
    kink = target_of("abs(x1 - 0.3)", "[0,1]")
    built = grid_model(kink, "second", (200,), 3, Fraction(1), 64)
    for parts in (1, 2, 10, 64, 1000):
        parameters = {**built.proof.parameters, "partition": [parts]}
        node = Theorem("0.05", "voronoi_second_order", parameters)
        folder = Run(built.model, kink, "0.05", node).write(tmp_path / f"run{parts}")
        assert "not known to be smooth" in refused(folder)
    # The claim itself is true, and by boxes it is proved: only the theorem does not apply.
    tree = uniform_tree(1, 5)
    honest = Run(built.model, kink, "0.05", Boxes("0.05", 2, 0, len(tree)), tree).write(tmp_path / "boxes")
    assert judged(honest).outcome == "proved"


def test_the_first_order_theorem_on_a_step(tmp_path):
    step = target_of("where(x1 < 0.5, 0, 1)", "[0,1]")
    built = grid_model(step, "first", (50,), 0, Fraction(4), 64)
    for parts in (1, 2, 64):
        node = Theorem("0.05", "voronoi_first_order", {**built.proof.parameters, "partition": [parts]})
        folder = Run(built.model, step, "0.05", node).write(tmp_path / f"run{parts}")
        assert "not known to be Lipschitz" in refused(folder)


@pytest.mark.parametrize("order", [0, 1, 2, 6])
def test_the_mean_value_across_a_step(tmp_path, order):
    """A constant transformer and a step: on every leaf both derivatives vanish, and the error is 1."""
    flat = target_of("0*x1 + 0.01", "[0,1]")
    model = grid_model(flat, "first", (3,), 0, Fraction(4)).model
    step = target_of("where(x1 < 1/3, 0, 1)", "[0,1]")
    tree = uniform_tree(1, 6)
    folder = Run(model, step, "0.5", Boxes("0.5", order, 0, len(tree)), tree).write(tmp_path / "run")
    assert "could only be bounded by" in refused(folder)


@pytest.mark.parametrize("formula", ["exp(-1e12*(x1 - 0.3)**2)", "where(abs(x1 - 0.3) < 1e-13, 1, 0)"])
def test_a_planted_spike(tmp_path, formula):
    """T = 0 and a spike of height 1 that no sampling finds."""
    model = grid_model(target_of("0*x1", "[0,1]"), "first", (3,), 0, Fraction(4)).model
    target = target_of(formula, "[0,1]")
    for levels, order in ((4, 0), (6, 3), (8, 6)):
        tree = uniform_tree(1, levels)
        folder = Run(model, target, "0.5", Boxes("0.5", order, 0, len(tree)), tree).write(tmp_path / f"run{levels}")
        assert "could only be bounded by" in refused(folder)
    x = np.linspace(0, 1, 1001)
    assert np.abs(np.exp(-1e12 * (x[x != 0.3] - 0.3) ** 2)).max() < 1e-9  # a grid of 1,000 points sees nothing


def test_a_function_that_lies_about_its_derivative(tmp_path):
    """sin(3*stop_gradient(x)): autodiff sees a constant, the program is sin(3x), and sin(3x) is what must be proved."""
    program = trace(lambda x: jnp.sin(3 * jax.lax.stop_gradient(x[0])), 1)
    assert [node[0] for node in program.nodes] == [node[0] for node in parse_formula("sin(3*x1)").nodes]
    assert jax.grad(lambda x: jnp.sin(3 * jax.lax.stop_gradient(x)))(0.3) == 0.0
    target = Target("sin(3*stop_gradient(x))", program, target_of("x1", "[0,1]").domain)
    constant = grid_model(target_of("0*x1 + 0.5", "[0,1]"), "first", (4,), 0, Fraction(4))
    # A derivative of zero would make the constant's bound hold for the whole box from its value at one point.
    tree = uniform_tree(1, 5)
    by_boxes = Run(constant.model, target, "0.3", Boxes("0.3", 1, 0, len(tree)), tree).write(tmp_path / "boxes")
    assert refused(by_boxes)
    node = Theorem("0.3", "voronoi_first_order", constant.proof.parameters)
    assert refused(Run(constant.model, target, "0.3", node).write(tmp_path / "theorem"))
    # The honest transformer for sin(3x) is accepted for the traced program.
    good = theorem_run("sin(3*x1)", "[0,1]", "0.1")
    assert judged(Run(good.model, target, "0.1", good.proof).write(tmp_path / "good")).outcome == "proved"


def test_a_custom_derivative_is_ignored(tmp_path):
    @jax.custom_jvp
    def liar(x):
        return jnp.sin(3 * x)

    liar.defjvp(lambda primals, tangents: (liar(primals[0]), 0.0 * tangents[0]))
    target = Target("liar", trace(lambda x: liar(x[0]), 1), target_of("x1", "[0,1]").domain)
    constant = grid_model(target_of("0*x1 + 0.5", "[0,1]"), "first", (4,), 0, Fraction(4))
    node = Theorem("0.3", "voronoi_first_order", constant.proof.parameters)
    assert refused(Run(constant.model, target, "0.3", node).write(tmp_path / "run"))


def test_a_wrong_intermediate_program(tmp_path):
    tree = uniform_tree(1, 3)

    def through(formula: str, first: str, second: str) -> Triangle:
        sides = (Boxes(first, 5, 0, len(tree)), Boxes(second, 5, 0, len(tree)))
        return Triangle(EPSILON, parse_formula(formula).to_json(), sides)

    folder = Run(THEOREM.model, THEOREM.target, EPSILON, through("sin(x1)", "0.09", "0.001"), tree).write(
        tmp_path / "run"
    )
    assert judged(folder).outcome == "proved"
    for wrong in (
        through("cos(x1)", "0.09", "0.001"), through("sin(x1) + 0.05", "0.09", "0.001"), through("sin(x1)", "0.001", "0.09"),
        through("sin(x1)", "0.09", "0.02"), through("sin(x1) + 0/(x1 - 1)", "0.09", "0.001"),
        through("where(x1 < 3, sin(x1), 0)", "0.09", "0.001"),
    ):  # fmt: skip
        reseal(folder, proof=wrong)
        if wrong.children[1].bound == "0.02":
            assert judged(folder).outcome in ("proved", "refused")  # 0.09 + 0.02 is stated, less is proved: both sound
        else:
            assert refused(folder)


def test_a_split_node_with_swapped_children(tmp_path):
    run = split_run("sin(3*x1)+0.1*x2", "[0,2]^2", "0.2", 4, 5)
    children = (Boxes("0.18", 5, 0, len(run.leaves)), Boxes("0.015", 5, 0, len(run.leaves)))
    folder = Run(run.model, run.target, "0.2", replace(run.proof, children=children), run.leaves).write(
        tmp_path / "run"
    )
    assert judged(folder).outcome == "proved"
    reseal(folder, proof=replace(run.proof, children=children[::-1]))
    assert refused(folder)
    for wrong in (children[:1], children * 2, ()):
        reseal(folder, proof=replace(run.proof, children=wrong))
        assert "children for 2 parts" in refused(folder)


def test_a_grid_with_doubled_points(tmp_path):
    """Copies of one inner grid point in place of all others: every register is exactly additive, the softmax is not."""
    run = split_run("x1+x2", "[0,1]^2", "0.2", 3, 5)
    side = round(math.sqrt(run.model.config.registers))

    def change(model: Transformer) -> Transformer:
        grid = np.array(model.tensors["registers"]).reshape(side, side, -1)
        grid[1:, 1:] = grid[1, 1]
        return Transformer(model.config, {**model.tensors, "registers": grid.reshape(side * side, -1)})

    assert abs(change(run.model).evaluate([[1.0, 1.0]])[0, 0] - 2) > 0.5
    folder = run.write(tmp_path / "run")
    assert judged(folder).outcome == "proved"
    reseal(folder, model=change)
    assert "only about" in refused(folder)


def test_high_orders_are_as_honest_as_low_ones(tmp_path):
    """f = 1000 (exp - its Taylor polynomial of degree 9): a series cut after ten terms would call it zero."""
    polynomial = " + ".join(f"x1**{i}/{math.factorial(i)}" for i in range(1, 10))
    target = target_of(f"1000*(exp(x1) - (1 + {polynomial}))", "[-2,2]")
    model = grid_model(target_of("0*x1", "[-2,2]"), "first", (3,), 0, Fraction(4)).model
    assert 1000 * (math.exp(2) - sum(2**i / math.factorial(i) for i in range(10))) > 0.3
    for order in (9, 10, 11, 12):
        folder = Run(model, target, "0.05", Boxes("0.05", order, 0, 1), b"\xff").write(tmp_path / f"run{order}")
        assert "could only be bounded by" in refused(folder)


def test_a_proof_that_is_missing_or_of_another_outcome(honest):
    name, folder = honest
    reseal(folder, raw_proof=None)
    assert "carries none" in refused(folder)
    RUNS[name].write(folder)
    for outcome in ("undecided", "invalid", "refuted"):
        reseal(folder, outcome=outcome)
        assert "the field proof, which such a claim does not have" in refused(folder)
    for outcome in ("certified", "PROVED", "", None, 1):
        reseal(folder, outcome=outcome)
        assert "outcome" in refused(folder)


# --- witnesses -------------------------------------------------------------------------------------------------------------


def witness(*point: str, output: int = 0) -> dict:
    return {"point": list(point), "output": output, "error": "0"}


def test_an_honest_counterexample_is_confirmed(tmp_path):
    folder = Run(THEOREM.model, target_of("cos(x1)", "[0,2*pi]"), EPSILON, None, outcome=Outcome.REFUTED).write(
        tmp_path / "run"
    )
    reseal(folder, witness=witness("0"))
    verdict = judged(folder)
    assert (verdict.outcome, verdict.exit_code) == ("refuted", 1)
    assert 0.8 < Fraction(verdict.lower) < 1.1
    for wrong in (witness("785398/1000000"), None):  # there sin and cos agree; and no point at all
        reseal(folder, witness=wrong)
        assert "does not exceed epsilon" in refused(folder)


@pytest.mark.parametrize(
    "point",
    [["-1/1000"], ["6.2831853071796"], ["1", "1"], [], ["nan"], ["1e999999999"], ["x1"], ["1/0"], [" 1"], ["10"]],
)
@pytest.mark.parametrize("outcome", ["refuted", "proved"])
def test_a_witness_outside_the_domain(tmp_path, point, outcome):
    folder = Run(THEOREM.model, target_of("cos(x1)", "[0,2*pi]"), EPSILON, THEOREM.proof).write(tmp_path / "run")
    reseal(folder, outcome=outcome, witness=witness(*point))
    assert refused(folder)


@pytest.mark.parametrize("output", [-1, 1, 10**9])
def test_a_witness_for_an_output_that_does_not_exist(tmp_path, output):
    folder = Run(THEOREM.model, target_of("cos(x1)", "[0,2*pi]"), EPSILON, None, outcome=Outcome.REFUTED).write(
        tmp_path / "run"
    )
    reseal(folder, witness=witness("0", output=output))
    assert "output that does not exist" in refused(folder)


@pytest.mark.parametrize("formula", ["1/x1", "log(x1)", "sqrt(-x1)", "tan(x1 + pi/2)"])
def test_a_witness_where_the_target_has_no_value(tmp_path, formula):
    target = target_of(formula, "[0,2*pi]")
    folder = Run(THEOREM.model, target, EPSILON, None, outcome=Outcome.REFUTED).write(tmp_path / "run")
    reseal(folder, witness=witness("0"))
    assert refused(folder)


def test_a_witness_that_contradicts_the_proof_is_noticed(honest):
    """It cannot happen with a sound checker, so it is forced: the lower end of an honest run stays below its upper end."""
    name, folder = honest
    dimension = RUNS[name].target.domain.dimension
    reseal(folder, witness=witness(*["1"] * dimension))
    verdict = judged(folder)
    assert verdict.outcome == "proved"
    assert 0 < Fraction(verdict.lower) <= Fraction(verdict.upper)
