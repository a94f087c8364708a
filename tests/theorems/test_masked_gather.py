"""The gather in hops: exact in balls under many masks, softmax and linear; certified; refused where it cannot be."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb

from certiformer.construct.masked_gather import construction_under_mask, masked_gather
from certiformer.construct.method import Shape, Task
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.layers import units_of
from certiformer.kernel.problem import Problem, ProgramFunction, error_upper
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from certiformer.search import build_under_mask
from certiformer.search.ridge_proof import prove_by_ridges
from certiformer.verify import Budget
from kernel.networks import network_of
from negative.forge import target_of

KINDS = ("softmax", "linear")


def window(n, reach=1):
    return abs(np.subtract.outer(np.arange(n), np.arange(n))) <= reach


def one_way_ring(n):
    """Every token hears itself and the one before it, around a ring: the fewest connections there can be."""
    return np.eye(n, dtype=bool) | np.roll(np.eye(n, dtype=bool), 1, axis=0)


def hub(n):
    """A star with a global token: no path visits all, and the gather does not need one."""
    mask = np.eye(n, dtype=bool)
    mask[1], mask[:, 1] = True, True
    return mask


BLOCKS = np.kron(np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool))
STRIDE = np.kron(np.ones((2, 2), dtype=bool), np.eye(2, dtype=bool))
MASKS = {
    "window": (window(4), 3),
    "one-way ring": (one_way_ring(4), 3),
    "star": (hub(4), 2),
    "blocks and stride in turn": (np.array([BLOCKS, STRIDE]), 2),
    "full": (np.ones((4, 4), dtype=bool), 1),
}


def identity(n, d, per_position):
    """Arguments for a map without units: everything at token 0, or the reversed sequence, a row a token."""
    outs = n * d
    linear = np.eye(outs) if not per_position else np.eye(outs).reshape(n, d, n, d)[::-1].reshape(outs, outs)
    shape = Shape(n, d, n if per_position else 1, d if per_position else outs, "sequence")
    return shape, linear, (np.zeros((0, outs)), np.zeros(0), np.zeros((0, outs)))


def affine_problem(model, linear, on):
    rows = ["+".join(f"{v}*x{i + 1}" for i, v in enumerate(column) if v) for column in linear.T.astype(int)]
    target = target_of(f"[{', '.join(rows)}]", on)
    return Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("width", "per_position"), [(1, False), (2, False), (1, True)])
def test_every_number_arrives(name, kind, width, per_position):
    masks, layers = MASKS[name]
    shape, linear, none = identity(4, width, per_position)
    low, high = np.linspace(-3, 0, 4 * width), np.linspace(0.5, 2, 4 * width)
    model = masked_gather(masks, shape, low, high, linear, np.zeros(4 * width), *none, attention=kind)
    attentions = [b.attention for b in model.config.blocks if b.attention is not None]
    assert len(attentions) == layers and all(a.kind == kind for a in attentions)
    on = "x".join(f"[{Fraction(float(a))}, {Fraction(float(b))}]" for a, b in zip(low, high, strict=True))
    problem = affine_problem(model, linear, on)
    # First-order forms of an affine map are exact: the bound is the error of the stored weights, some roundings of
    # logarithms and lifts, each 2^-52 of numbers below 10. Linear attention has none at all, unless a unit gates.
    bound = error_upper(problem, problem.domain.box(((0, 0),) * 4 * width), 1)[0]
    assert bound < 1e-13
    if kind == "linear" and not per_position:
        assert bound < 1e-30


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_masks_are_the_given_ones(kind):
    shape, linear, none = identity(4, 1, False)
    masks = MASKS["blocks and stride in turn"][0]
    model = masked_gather(masks, shape, np.zeros(4), np.ones(4), linear, np.zeros(4), *none, attention=kind)
    stored = [t for n, t in model.tensors.items() if n.endswith("mask")]
    assert len(stored) == 2 and all((a == b).all() for a, b in zip(stored, masks, strict=True))


def test_random_masks():
    """Whatever the graph, if everybody is heard the numbers arrive; if not, the pair is named."""
    generator, outcomes = np.random.default_rng(0), set()
    shape, linear, none = identity(5, 1, False)
    for _ in range(25):
        mask = (generator.random((5, 5)) < 0.3) | np.eye(5, dtype=bool)
        heard = np.linalg.matrix_power(mask.astype(int), 5)[0] > 0
        outcomes.add(bool(heard.all()))
        arguments = mask, shape, np.zeros(5), np.ones(5), linear, np.zeros(5), *none
        if not heard.all():
            with pytest.raises(BadInput, match=f"token 0 never hears token {np.flatnonzero(~heard)[0]}"):
                masked_gather(*arguments)
            continue
        problem = affine_problem(masked_gather(*arguments), linear, "[0,1]^5")
        assert error_upper(problem, problem.domain.box(((0, 0),) * 5), 1)[0] < 1e-13
    assert outcomes == {True, False}


# --- approximation under a mask ---------------------------------------------------------------------------------------

TARGET, ON, EPSILON = "sin(3*x1) + abs(x2 - x3) + x4", "[0,1]^4", Fraction(1, 50)


def certified(formula, on, epsilon, sizes, masks, kind):
    """The model, the problem, and a proof tree by the rule ridges that the checker accepts."""
    target = target_of(formula, on)
    built = construction_under_mask(Task(target, epsilon, Shape(*sizes, "sequence")), masks, kind)
    problem = Problem(network_of(built.model), ProgramFunction(target.program), BallDomain(target.domain))
    tree = prove_by_ridges(problem, Budget(20_000, 60), built.through, epsilon)
    return built.model, problem, tree


@cache
def under_a_window():
    return certified(TARGET, ON, EPSILON, (4, 1, 1, 1), window(4), "softmax")


def accepted(problem, tree):
    """What the checker proves for a tree of ridges; its leaves lie in one line each."""
    from certiformer.kernel.rules import prove_piece, root

    def boxes(node, part, _, limit):
        piece = tree.leaves[node.offset : node.offset + node.length]
        return prove_piece(part, root(part.domain.dimension), piece, node.order, limit, lambda _: None)

    return prove(tree.proof, problem, boxes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masks", [window(4), np.array([BLOCKS, STRIDE])], ids=["window", "blocks and stride"])
def test_a_sum_of_ridges_is_certified_under_the_mask(kind, masks):
    model, problem, tree = certified(TARGET, ON, EPSILON, (4, 1, 1, 1), masks, kind)
    assert accepted(problem, tree) <= arb("0.02")
    assert {b.attention.mask for b in model.config.blocks if b.attention is not None} == {"table"}


def test_linear_attention_without_a_mask():
    """Every token hears every other in one layer; one block, as for softmax."""
    model, problem, tree = certified(TARGET, ON, EPSILON, (4, 1, 1, 1), np.ones((4, 4), dtype=bool), "linear")
    assert len(model.config.blocks) == 1 and model.config.blocks[0].attention.mask == "none"
    assert accepted(problem, tree) <= arb("0.02")


@pytest.mark.parametrize("kind", KINDS)
def test_a_different_function_at_every_token(kind):
    """Gated units behind the hops; ridges output by output."""
    formula = "[abs(x1 - x3), x1 + x2 + x3, sin(x3)]"
    _, problem, tree = certified(formula, "[0,2]^3", EPSILON, (3, 1, 3, 1), window(3), kind)
    assert accepted(problem, tree) <= arb("0.02")


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("blocks.1.attention.groups.0.query", (0, 1, 0)),  # a score of the first head, in a row that receives
        ("blocks.1.attention.groups.0.output", (0, 0, 5)),
        ("blocks.0.ffn.up", (1, 0)),  # a gate that is larger at its own token: the slot is shifted
        ("blocks.0.ffn.down", (1, 6)),
        ("blocks.2.attention.groups.0.value", (0, 7, 0)),
    ],
)
def test_a_changed_weight_is_charged(name, index):
    model, problem, tree = under_a_window()
    tensors = {n: np.array(t) for n, t in model.tensors.items()}
    tensors[name][index] += 0.2
    changed = Problem(network_of(Transformer(model.config, tensors)), problem.right, problem.domain)
    if units_differ(problem, changed):
        with pytest.raises(Refused):
            accepted(changed, tree)
    else:
        pytest.fail("the changed weight does not reach the output; choose another")


def units_differ(left, right):
    """Whether some slope, offset or constant of the two transformers is certainly different."""
    found = [units_of(p.left, p.domain) for p in (left, right)]
    numbers = [[u.constant, *u.linear, *(v for unit in u.units for v in (*unit.slope, unit.offset))] for u in found]
    return len(numbers[0]) != len(numbers[1]) or any(not a.overlaps(b) for a, b in zip(*numbers, strict=True))


def test_scores_that_depend_on_the_input_are_charged_by_the_rule():
    """The rule takes several blocks now: what bends before the last feed-forward part must end in the remainder."""
    model, problem, _ = under_a_window()
    tensors = {n: np.array(t) for n, t in model.tensors.items()}
    tensors["blocks.1.attention.groups.0.query"][0, 0, 0] = 2.0  # coordinate 0 carries x
    network = network_of(Transformer(model.config, tensors))
    assert max(unit.error for unit in units_of(network, problem.domain).units) > 1e-3
    assert max(unit.error for unit in units_of(problem.left, problem.domain).units) < 1e-20


# --- what is refused --------------------------------------------------------------------------------------------------


def test_masks_that_cannot_gather_are_refused():
    shape, linear, none = identity(3, 1, False)
    rest = shape, np.zeros(3), np.ones(3), linear, np.zeros(3), *none
    deaf = np.ones((3, 3), dtype=bool)
    deaf[1, 1] = False
    with pytest.raises(BadInput, match="token 1 does not hear itself in layer 0"):
        masked_gather(deaf, *rest)
    with pytest.raises(BadInput, match="token 0 never hears token 1"):
        masked_gather(np.tri(3, dtype=bool), *rest)
    with pytest.raises(BadInput, match="for 4 tokens, not for 3"):
        masked_gather(np.ones((4, 4)), *rest)
    with pytest.raises(BadInput, match="softmax or linear"):
        masked_gather(np.ones((3, 3)), *rest, attention="hard")
    token = Shape(3, 1, 1, 3, "token")
    with pytest.raises(BadInput, match="layout token"):
        masked_gather(np.ones((3, 3)), token, *rest[1:])


def test_a_reader_that_hears_all_it_needs_is_enough():
    """Under the causal mask token 0 hears nobody, but a function of its own numbers needs nobody."""
    shape, linear, none = identity(3, 1, False)
    own = linear * (np.arange(3) == 0)[:, None]
    for kind in KINDS:
        model = masked_gather(np.tri(3), shape, np.zeros(3), np.ones(3), own, np.zeros(3), *none, attention=kind)
        np.testing.assert_allclose(model.evaluate([[0.25, 0.5, 1.0]]), [[0.25, 0, 0]], atol=1e-12)  # lift: 2^-20 steps


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_way_to_a_certificate(kind, tmp_path):
    """A sum of ridges, and a product, which is fitted by one first; the folder is checked once more."""
    from certiformer import check

    for formula, on in ((TARGET, ON), ("x1*x2 + x3", "[0,1]^3")):
        masks, folder = window(int(on[-1])), tmp_path / on[-1]
        run = build_under_mask(formula, masks, on=on, eps="0.02", attention=kind, out=folder)
        assert run.certified and run.certificate.method == "masked-gather" and check(folder).accepted


def test_requests_that_cannot_be_built_are_refused():
    with pytest.raises(BadInput, match="token 0 never hears token 1"):
        build_under_mask("x1 + x2", np.tri(2), on="[0,1]^2", eps="0.1")
    run = build_under_mask("x1*x2*x3*x4*x5", window(5), on="[0,1]^5", eps="0.1")
    assert run.outcome.value == "undecided" and "at most 4 variables" in run.certificate.reason
