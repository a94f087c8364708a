"""The three sparsity conditions: known patterns, brute force on small graphs, true witnesses, three-valued paths."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.hamiltonian_path import hamiltonian_path
from certiformer.expressivity.sparse_attention import masks_of, sparsity
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer

N = 16
DISTANCE = abs(np.subtract.outer(np.arange(N), np.arange(N)))
STAR = (DISTANCE == 0) | (np.arange(N) == 0) | (np.arange(N) == 0)[:, None]
RING = (DISTANCE <= 1) | (DISTANCE == N - 1)
BLOCKS = np.kron(np.eye(4, dtype=bool), np.ones((4, 4), dtype=bool))
STRIDE = np.kron(np.ones((4, 4), dtype=bool), np.eye(4, dtype=bool))

# pattern, connections a layer, s, whether there is a path, whether all three hold
PATTERNS = {
    "window 1": (DISTANCE <= 1, (46,), 15, True, True),
    "window 2": (DISTANCE <= 2, (74,), 8, True, True),
    "window 4": (DISTANCE <= 4, (124,), 4, True, True),
    "star": (STAR, (46,), 2, False, False),
    "ring and one global": (RING | STAR, (74,), 2, True, True),
    "blocks and stride": (np.array([BLOCKS, STRIDE]), (64, 64), 2, True, True),
    "blocks": (BLOCKS, (64,), None, False, False),
    "causal": (np.tri(N, dtype=bool), (136,), None, True, False),
    "full": (np.ones((N, N), dtype=bool), (256,), 1, True, True),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_known_patterns(name):
    masks, connections, layers, path, all_hold = PATTERNS[name]
    found = sparsity(masks)
    assert found.connections == connections
    assert found.layers == layers and found.reach.holds == (layers is not None)
    assert found.path.status == ("found" if path else "does not exist")
    assert found.self_edges.holds and found.holds is all_hold


def random_masks(generator, n, layers):
    return generator.random((layers, n, n)) < generator.uniform(0.1, 0.6)


def test_against_brute_force_on_small_graphs():
    """Definitions followed literally, on 300 random stacks of masks with up to six tokens."""
    generator = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        n, layers = int(generator.integers(1, 7)), int(generator.integers(1, 4))
        masks = random_masks(generator, n, layers)
        if generator.random() < 0.7:
            masks |= np.eye(n, dtype=bool)
        found, union = sparsity(masks), masks.any(axis=0)
        assert found.self_edges.holds == all(masks[le, k, k] for le in range(layers) for k in range(n))
        paths = [g for g in permutations(range(n)) if all(union[b, a] for a, b in pairwise(g))]
        assert found.path.status == ("found" if paths else "does not exist")
        assert not paths or found.path.path in paths
        heard, first = [{k} for k in range(n)], None
        # 3 layers, 6 tokens: a product of a period that is primitive is positive within (n-1)^2 + 1 periods.
        for step in range(layers * ((n - 1) ** 2 + 2)):
            heard = [set().union(*(heard[j] for j in range(n) if masks[step % layers, k, j])) for k in range(n)]
            if first is None and all(len(h) == n for h in heard):
                first = step + 1
        assert found.layers == first
        outcomes.add((found.self_edges.holds, found.path.status, found.reach.holds))
    assert len(outcomes) >= 6  # the random graphs reach most combinations


def test_a_pair_that_never_talks_really_does_not():
    """The witness (k, j): the output at token k does not depend on token j, and with the missing edge it does."""
    mask = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool)
    found = sparsity(mask)
    assert found.reach.witness == (0, 2) and "token 0 never hears token 2" in found.reach.reason
    layer = Block(Attention((Heads(2, 2, 2),), mask="table"), FeedForward(4))
    config = Config(Input("continuous", 3, width=1), 4, 1, Readout("all"), blocks=(layer,), loops=4)
    random = Transformer.random(config, 0)

    def change_at_0(mask):
        model = Transformer(config, {**random.tensors, "blocks.0.attention.mask": mask})
        outputs = model.evaluate([[0.1, 0.2, 0.3], [0.1, 0.2, 5.0]])
        return abs(outputs[1, 0] - outputs[0, 0])

    assert change_at_0(mask) == 0.0
    joined = mask.copy()
    joined[1, 2] = True  # 0 hears 1, and 1 now hears 2
    assert sparsity(joined).reach.holds and change_at_0(joined) > 1e-3


def test_a_missing_self_edge_is_named():
    masks = np.ones((2, 3, 3), dtype=bool)
    masks[1, 2, 2] = False
    found = sparsity(masks)
    assert found.self_edges.witness == (2, 2) and found.self_edges.reason.endswith("itself in layer 1")
    assert found.holds is False and found.reach.holds


def test_pairs_that_all_talk_but_never_at_once():
    swap = np.array([[0, 1], [1, 0]])
    found = sparsity(swap)
    assert not found.reach.holds and found.reach.reason.startswith("never all at once")


def test_heads_of_a_layer_are_united():
    heads = np.zeros((1, 2, 3, 3), dtype=bool)
    heads[0, 0], heads[0, 1] = np.eye(3), np.ones((3, 3))
    assert sparsity(heads).holds and sparsity(heads[:, 0]).holds is False


# --- the path ---------------------------------------------------------------------------------------------------------


def grid(rows, columns):
    """The graph of a grid, without its natural order: vertices are shuffled."""
    place = np.random.default_rng(1).permutation(rows * columns).reshape(rows, columns)
    edges = np.zeros((rows * columns,) * 2, dtype=bool)
    for a, b in [
        *zip(place[:, :-1].flat, place[:, 1:].flat, strict=True),
        *zip(place[:-1].flat, place[1:].flat, strict=True),
    ]:
        edges[a, b] = edges[b, a] = True
    return edges


def test_a_large_path_is_found_and_verified():
    edges = grid(5, 6)
    found = hamiltonian_path(edges)
    assert found.status == "found" and sorted(found.path) == list(range(30))
    assert all(edges[a, b] for a, b in pairwise(found.path))


def test_not_found_is_not_does_not_exist():
    """A bipartite graph with 15 + 17 vertices has no path, and no short obstruction: the budget decides what is said."""
    generator = np.random.default_rng(0)
    edges = np.zeros((32, 32), dtype=bool)
    edges[:15, 15:] = generator.random((15, 17)) < 0.9
    edges |= edges.T
    few = hamiltonian_path(edges, steps=1000)
    assert few.status == "not found" and "1,000 steps" in few.reason
    assert replace(sparsity(np.ones((3, 3))), path=few).holds is None
    assert replace(sparsity(np.tri(3)), path=few).holds is False
    small = np.zeros((8, 8), dtype=bool)
    small[:3, 3:] = True
    assert hamiltonian_path(small | small.T).status == "does not exist"


def test_a_search_that_ends_is_a_proof():
    # Three long arms around a triangle: at most two arm ends fit on a path, and no single vertex shows it.
    edges, arms = np.zeros((18, 18), dtype=bool), np.arange(18).reshape(3, 6)
    for chain in [*arms, arms[:, 0]]:
        for a, b in pairwise(chain):
            edges[a, b] = edges[b, a] = True
    edges[arms[0, 0], arms[2, 0]] = edges[arms[2, 0], arms[0, 0]] = True
    found = hamiltonian_path(edges)
    assert found.status == "does not exist" and found.reason == "all paths were tried"


def test_a_given_path_is_verified():
    edges = grid(5, 6)
    path = hamiltonian_path(edges).path
    assert hamiltonian_path(edges, path).status == "found"
    assert sparsity(edges | np.eye(30, dtype=bool), path[::-1]).path.path == path[::-1]
    wrong = (path[1], path[0], *path[2:])
    with pytest.raises(BadInput, match="there is no such edge"):
        hamiltonian_path(edges, wrong)
    with pytest.raises(BadInput, match="visits each"):
        hamiltonian_path(edges, path[:-1])


def test_the_direction_of_edges_counts():
    """Only 1 attends to 0 and 2 to 1: information moves upwards, and so does the path."""
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    assert sparsity(mask).path.path == (0, 1, 2)
    assert sparsity(mask.T).path.path == (2, 1, 0)
    with pytest.raises(BadInput, match="no such edge"):
        sparsity(mask, (2, 1, 0))


# --- what is no mask --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("masks", "why"),
    [
        (np.ones((2, 3)), "square"),
        (np.full((2, 2), 0.5), "nothing but 0 and 1"),
        (np.full((2, 2), np.nan), "nothing but 0 and 1"),
        (np.ones((0, 2, 2)), "square"),
        ([np.ones((2, 2)), np.ones((3, 3))], "same size"),
        (np.ones(3), "square"),
        (np.ones((1, 0, 2, 2)), "at least one head"),
    ],
)
def test_what_is_no_mask_is_refused(masks, why):
    with pytest.raises(BadInput, match=why):
        sparsity(masks)


def test_the_masks_of_a_model():
    layers = (
        Block(Attention((Heads(1, 1, 1),))),
        Block(Attention((Heads(1, 1, 1),), mask="causal")),
        Block(None, FeedForward(1)),
    )
    config = Config(Input("continuous", 3, width=1), 2, 1, Readout("all"), blocks=layers, registers=1)
    masks = masks_of(config)
    assert masks.shape == (2, 4, 4) and masks[0].all() and (masks[1] == np.tri(4)).all()
    with pytest.raises(BadInput, match="no attention"):
        masks_of(Config(Input("continuous", 3, width=1), 2, 1, Readout("all")))
    stored = Config(
        Input("continuous", 3, width=1), 2, 1, Readout("all"), (Block(Attention((Heads(1, 1, 1),), mask="table")),)
    )
    with pytest.raises(BadInput, match="stored in the tensors"):
        masks_of(stored)
    assert masks_of(stored, Transformer.random(stored, 0).tensors).all()
