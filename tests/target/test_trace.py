"""Traced JAX callables: the program has the value of the callable, and what cannot be traced is refused by name."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from numpy import sin as numpy_sin

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_NODES
from certiformer.target import formula, parse_formula
from certiformer.target.trace import trace
from target.oracle import balls, exact

WEIGHTS = np.random.default_rng(5).normal(size=(3, 2, 4))


@jax.custom_jvp
def clipped_derivative(x):
    return jnp.sin(x)


clipped_derivative.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 0 * tangents[0]))


@jax.custom_vjp
def reversed_derivative(x):
    return jnp.cos(x) * 2


reversed_derivative.defvjp(lambda x: (jnp.cos(x) * 2, x), lambda x, g: (-g,))


def horner(x):
    return jax.lax.scan(lambda c, a: (c * x[0] + a, c), 0.0, jnp.array([1.0, -2.0, 0.5]))


def network(x):
    hidden = jnp.tanh(jnp.array([[0.3, -1.0], [0.7, 0.2], [1.5, 0.1]], dtype=jnp.float32) @ x + 0.1)
    return jnp.array([0.5, -0.25, 1.0]) @ hidden


def attention(x):
    scores = jnp.outer(x, x) / jnp.sqrt(2.0)
    return jax.nn.softmax(scores, axis=-1) @ x


# Every callable takes a vector of two numbers. The points below avoid its steps: equality is undecided in balls.
FUNCTIONS = {
    "arithmetic": lambda x: 2 * x[0] - x[1] / 3 + x[0] * x[1] - 1,
    "powers": lambda x: x**2 + x**-1 + x**3.0 + (2 + x[0]) ** 0.5 + (2 + x[1]) ** 1.5,
    "general power": lambda x: (3 + x[0]) ** x[1] + 2.0 ** x[0],
    "square, rsqrt": lambda x: jnp.square(x) + jax.lax.rsqrt(3 + x),
    "exp family": lambda x: (
        jnp.exp(x) + jnp.exp2(x) + jnp.expm1(x) + jnp.log(3 + x) + jnp.log1p(x**2) + jnp.log2(4 + x) + jnp.log10(5 + x)
    ),
    "sin cos tan": lambda x: jnp.sin(x) * jnp.cos(x) + jnp.tan(x / 2),
    "arc functions": lambda x: jnp.arcsin(x / 3) + jnp.arccos(x / 4) + jnp.arctan(x),
    "hyperbolic": lambda x: jnp.sinh(x) + jnp.cosh(x) + jnp.tanh(x),
    "inverse hyperbolic": lambda x: jnp.arcsinh(x) + jnp.arccosh(3 + x) + jnp.arctanh(x / 3),
    "erf, erfc": lambda x: jax.scipy.special.erf(x) + jax.scipy.special.erfc(x[::-1]),
    "sigmoid": lambda x: jax.nn.sigmoid(x) + jax.scipy.special.expit(2 * x),
    "abs and sign": lambda x: jnp.abs(x) + jnp.sign(x),
    "min, max, clip": lambda x: jnp.minimum(x[0], x[1]) + jnp.maximum(x, 0.25) + jnp.clip(x, -0.5, 0.75),
    "where": lambda x: jnp.where(x > 0.1, x, x**2) + jnp.where(x[0] <= x[1], 1.0, jnp.exp(x[0])),
    "and, or, not, xor": lambda x: (
        jnp.where((x[0] > 0) & (x[1] > 0) | ~(x[0] < 1), x[0], 2.0) + jnp.where((x[0] > 0) ^ (x[1] < 0.5), 1, x[1])
    ),
    "any, all": lambda x: jnp.where(jnp.any(x > 0.5), x[0], jnp.where(jnp.all(x < 0), 3.0, x[1])),
    "equality": lambda x: jnp.where(x[0] == 0.123, 5.0, x[0]) + jnp.where(x[1] != 0.321, 1.0, 2.0),
    "truths compared": lambda x: (
        jnp.where((x[0] > 0) == (x[1] > 0), x[0], 7.0) + jnp.where((x[0] > 0) != jnp.array(True), 1.0, 2.0)
    ),
    "counting": lambda x: jnp.sum(x > 0.2) * 1.5 + (x[0] > 0).astype(float) * 2,
    "select": lambda x: jnp.select([x[0] < -0.5, x[0] < 0.5], [x[1], x[0] ** 2], 3.0),
    "piecewise": lambda x: jnp.piecewise(x[0], [x[0] < -0.5, x[0] > 0.5], [lambda t: -t, lambda t: t**2, 0.125]),
    "argmax": lambda x: jnp.where(jnp.argmax(x) == 1, x[0], x[1] * 2) + jnp.where(jnp.argmin(x) == 1, 1.0, 3.0),
    "cond": lambda x: jax.lax.cond(x[0] > 0, lambda a: a[0] * 2, lambda a: a[1] - 1, x),
    "known cond": lambda x: jax.lax.cond(True, jnp.sin, jnp.cos, x[0]),
    "switch": lambda x: jax.lax.switch(
        (x[0] > 0).astype(int) + (x[1] > 0), [lambda a: a[0], lambda a: a[1], lambda a: a[0] * a[1]], x
    ),
    "fori loop": lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * x[0] + i, 1.0),
    "while loop": lambda x: jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x[0] + c[0]), (0, 1.0))[
        1
    ],
    "scan": lambda x: horner(x),
    "reversed scan": lambda x: jax.lax.scan(lambda c, a: (c * a, c + a), 1.0, x, reverse=True),
    "associative scan": lambda x: jax.lax.associative_scan(jnp.add, jnp.concatenate([x, x**2])),
    "map": lambda x: jax.lax.map(lambda t: t * x[1], x),
    "polynomial": lambda x: jnp.polyval(jnp.array([1.0, -2.0, 3.0]), x),
    "sums": lambda x: jnp.sum(x) + jnp.mean(x) + jnp.prod(x) + jnp.max(x) + jnp.min(x) + jnp.var(x),
    "cumulative": lambda x: jnp.cumsum(x) + jnp.cumprod(x) + jax.lax.cummax(x) + jax.lax.cummin(x, reverse=True),
    "matrix products": lambda x: jnp.array([[1.0, 2.0], [3.0, 4.5]]) @ x + jnp.dot(x, x) + jnp.vdot(x, x[::-1]),
    "einsum": lambda x: jnp.einsum("bij,i->bj", WEIGHTS, x),
    "batched einsum": lambda x: jnp.einsum("bij,bik->bjk", WEIGHTS[:2, :, :2], x[:, None, None] * WEIGHTS[:2, :, 1:3]),
    "outer, kron, trace": lambda x: jnp.outer(x, x).ravel() + jnp.trace(jnp.kron(jnp.eye(2), x[:, None] * x)),
    "norms": lambda x: jnp.linalg.norm(x) + jnp.hypot(x[0], x[1]) + jnp.linalg.norm(x, ord=1),
    "reshape, transpose": lambda x: jnp.tile(x, 3).reshape(3, 2).T.ravel() * jnp.arange(6.0),
    "stack, concatenate": lambda x: jnp.concatenate([jnp.stack([x[0], x[1]]), x, jnp.zeros(1)]),
    "split, roll, flip": lambda x: jnp.roll(x, 1) + jnp.flip(x) + jnp.split(x, 2)[0],
    "pad, repeat": lambda x: jnp.pad(x, 1, constant_values=2.0) + jnp.repeat(x, 2),
    "indexing": lambda x: x[jnp.array([1, 0, 1])] + x[-1] + x[::2].sum(),
    "known mask": lambda x: jnp.where(jnp.array([True, False]), x, x**2),
    "updates": lambda x: x.at[0].set(3.0) + jax.lax.dynamic_update_slice(x, x[:1] * 2, (1,)),
    "dynamic slice": lambda x: (
        jax.lax.dynamic_slice(x, (1,), (1,)) * jax.lax.dynamic_index_in_dim(x, 0, keepdims=False)
    ),
    "triangles": lambda x: jnp.tril(jnp.outer(x, x)) + jnp.diag(x) + jnp.eye(2),
    "vmap": lambda x: jax.vmap(lambda t: jnp.where(t > 0, jnp.sin(t), t))(x),
    "jit": lambda x: jax.jit(lambda t: jnp.sin(t) * 2)(x),
    "remat": lambda x: jax.checkpoint(lambda t: jnp.sin(t) * 2)(x),
    "derivative inside": lambda x: jax.grad(lambda t: jnp.sin(t[0]) * t[1] ** 2)(x),
    "custom derivatives": lambda x: clipped_derivative(x) + reversed_derivative(x),
    "stop gradient": lambda x: x - jax.lax.stop_gradient(x) + jax.lax.stop_gradient(jnp.sin(x)),
    "activations": lambda x: (
        jax.nn.relu(x) + jax.nn.gelu(x) + jax.nn.gelu(x, approximate=False) + jax.nn.silu(x) + jax.nn.elu(x)
    ),
    "more activations": lambda x: (
        jax.nn.leaky_relu(x) + jax.nn.softplus(x) + jax.nn.relu6(x) + jax.nn.hard_tanh(x) + jax.nn.mish(x)
    ),
    "softmax": lambda x: jax.nn.softmax(x) + jax.nn.logsumexp(x) + jax.nn.log_softmax(x),
    "logaddexp of the singular": lambda x: jax.nn.softplus(1 / x[0]) + jnp.logaddexp(jnp.sqrt(2 + x[0]), x[1]),
    "network": network,
    "attention": attention,
    "layer norm": lambda x: (x - x.mean()) / jnp.sqrt(x.var() + 1e-5),
    "Gaussian": lambda x: jnp.exp(-0.5 * jnp.sum((x - jnp.array([0.1, 0.2])) ** 2)) / jnp.sqrt(2 * jnp.pi),
    "Rosenbrock": lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
    "constant": lambda x: 3,
    "integer constant array": lambda x: jnp.arange(3) * 2 + x.sum(),
    "pytree": lambda x: {"a": x[0], "b": (x[1] * 2, jnp.ones((2, 2)) * x[0])},
}

# From JAX 0.12 on, jnp.sinc rounds its argument, which is refused by name.
if "round" not in str(jax.make_jaxpr(jnp.sinc)(1.0)):
    FUNCTIONS["sinc"] = lambda x: jnp.sinc(x)

POINTS = [[0.3, -0.7], [-1.1, 0.4], [0.9, 1.7], [-0.2, -0.6]]


def test_there_are_enough_functions():
    assert len(FUNCTIONS) >= 60


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_program_has_the_value_of_the_callable(name):
    function = FUNCTIONS[name]
    program = trace(function, 2)
    assert program.inputs == 2
    for point in POINTS:
        leaves = jax.tree.leaves(function(jnp.array(point)))
        wanted = np.concatenate([np.ravel(np.asarray(leaf, dtype=float)) for leaf in leaves])
        found = balls(program, point)
        assert len(found) == len(wanted)
        for ball, value in zip(found, wanted, strict=True):
            assert ball.is_finite(), name
            # XLA's float64 of a few dozen operations, each wrong by a few ulps, on values up to about 100
            assert abs(float(ball.mid()) - value) <= 1e-11 * (1 + abs(value)), name


def test_a_wrong_program_would_be_noticed():
    """The control of the test above: another constant, another sign, another function."""
    for wrong in (lambda x: x[0] + 1e-9, lambda x: -x[0], lambda x: jnp.sin(x[0])):
        found = balls(trace(wrong, 2), POINTS[0])[0]
        assert abs(float(found.mid()) - POINTS[0][0]) > 1e-11 * 2


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: jnp.sin(3 * jax.lax.stop_gradient(x)), "sin(3*x1)"),
        (lambda x: clipped_derivative(3 * x), "sin(3*x1)"),
        (lambda x: jnp.log1p(x), "log(1+x1)"),
        (lambda x: jax.nn.sigmoid(x), "sigmoid(x1)"),
        (lambda x: x * x * x, "x1**3"),
        (lambda x: x**2.5, "sqrt(x1)**5"),
        (lambda x: 0 * x + 1 * x - x + 2, "2"),
        (lambda x: x - jax.lax.stop_gradient(x), "0"),
        (lambda x: jnp.where(x < 0.5, x, 1.0), "where(x1 < 0.5, x1, 1)"),
        (lambda x: jnp.where((x > 0) & (x < 1), x, 2.0), "where(0 < x1 < 1, x1, 2)"),
        (lambda x: jnp.max(x, initial=-jnp.inf), "x1"),
        (lambda x: jnp.where(x < jnp.inf, x, jnp.inf), "x1"),
        (lambda x: jnp.where(jnp.isnan(x) | jnp.isinf(x), jnp.nan, x), "x1"),
        (lambda x: jnp.nan_to_num(x), "x1"),
        (lambda x: jnp.array([1.5, 2.25]).sum() * x, "3.75*x1"),
    ],
)
def test_exact_rewritings(function, text):
    assert trace(function, 1) == parse_formula(text)


def test_constants_are_the_exact_doubles():
    program = trace(lambda x: 0.1 * x + jnp.pi, 1)
    assert exact(program, [0]) == [Fraction(math.pi)]
    assert exact(program, [1]) == [Fraction(0.1) + Fraction(math.pi)]
    narrow = trace(lambda x: jnp.float32(0.1) * x, 1)
    assert exact(narrow, [1]) == [Fraction(float(np.float32(0.1)))]


def test_a_value_tested_for_nan_keeps_its_singular_points():
    program = trace(lambda x: jnp.where(jnp.isnan(1 / x), 5.0, 7.0), 1)
    assert exact(program, [3]) == [Fraction(7)]
    assert exact(program, [0]) == [None]


def test_tracing_needs_no_global_setting():
    with jax.enable_x64(False):
        assert exact(trace(lambda x: 0.1 * x, 1), [1]) == [Fraction(0.1)]


def test_parameters():
    assert trace(lambda x, y: x * y, 2) == parse_formula("x1*x2")
    assert trace(lambda x: x[0] * x[1], 2) == parse_formula("x1*x2")
    assert trace(lambda *x: x[0] * x[1], 2) == parse_formula("x1*x2")
    assert trace(lambda x, scale=2.0: x[0] * x[1] * scale, 2) == parse_formula("x1*x2*2")
    assert trace(partial(lambda a, x: a * x, 3.0), 1) == parse_formula("3*x1")
    assert trace(jnp.sin, 1) == parse_formula("sin(x1)")
    assert trace(jax.jit(lambda x, y: x - y), 2) == parse_formula("x1-x2")
    with pytest.raises(BadInput, match="has 3 parameters but the box has 2 axes"):
        trace(lambda x, y, z: x, 2)
    with pytest.raises(BadInput, match="variables"):
        trace(jnp.sin, 0)


def test_outputs_are_flattened_in_order():
    assert formula(trace(lambda x, y: (x, jnp.array([[y, 1.0], [x * y, 2.0]])), 2)) == ["x1", "x2", "1", "x1*x2", "2"]


REFUSED = {
    "cbrt": lambda x: jnp.cbrt(x),
    "atan2": lambda x: jnp.arctan2(x[0], x[1]),
    "floor": lambda x: jnp.floor(x),
    "ceil": lambda x: jnp.ceil(x),
    "round": lambda x: jnp.round(x),
    "rem": lambda x: x % 2,
    "sort": lambda x: jnp.sort(x),
    "erf_inv": lambda x: jax.scipy.special.erfinv(x),
    "lgamma": lambda x: jax.scipy.special.gammaln(x),
    "random_": lambda x: x * jax.random.normal(jax.random.key(0)),
    "pure_callback": lambda x: jax.pure_callback(np.sin, x, x),
    "io_callback": lambda x: io_callback(np.sin, x, x),
    "debug_": lambda x: (jax.debug.print("{}", x), x)[1],
    "conv_general_dilated": lambda x: jnp.convolve(x, x),
    "float64 to float32": lambda x: x.astype(jnp.float32),
    "float64 to bfloat16": lambda x: x.astype(jnp.bfloat16),
    "float64 to int": lambda x: x.astype(int),
    "float64 to bool": lambda x: jnp.where(x.astype(bool), 1.0, 2.0),
    "float64 to complex128": lambda x: jnp.abs(jnp.exp(1j * x)),
    "'mul' in float32": lambda x: x + jnp.float32(0.1) * jnp.ones(2, dtype=jnp.float32),
    "reduce_precision": lambda x: jax.lax.reduce_precision(x, 8, 7),
    "truth values": lambda x: x > 0,
    "no numbers": lambda x: None,
    "infinite or NaN": lambda x: x * jnp.inf,
    "infinite": lambda x: jnp.where(x > 0, x, jnp.inf),
    "out of range": lambda x: jnp.take(x, 7),
    "depends on the variables": lambda x: x[(x[0] > 0).astype(int)],
    "end depends": lambda x: jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, x[0]),
    "more than 256 steps": lambda x: jax.lax.while_loop(lambda c: c[0] < 999, lambda c: (c[0] + 1, c[1]), (0, x))[1],
    "loop of 999 steps": lambda x: jax.lax.scan(lambda c, _: (c, None), x, None, length=999)[0],
    f"more than {MAX_NODES}": lambda x: jnp.sin(jnp.outer(jnp.arange(200.0), jnp.arange(200.0)) + x[0]).sum(),
    "zero": lambda x: x / 0.0,
    "raised AttributeError": lambda x: x.no_such_name,
    "raised TypeError": lambda x: jnp.dot(x, "text"),
    "Python's if": lambda x: x if x[0] > 0 else -x,
    "Python's if at": lambda x: max(x[0], x[1]),
}


@pytest.mark.parametrize("part", REFUSED)
def test_refused_in_one_sentence(part):
    with pytest.raises(BadInput) as caught:
        trace(REFUSED[part], 2)
    message = str(caught.value)
    assert part in message
    assert "\n" not in message and len(message) < 400


def test_integers_that_wrap_around_are_refused():
    with pytest.raises(BadInput, match="uint8"):
        trace(lambda x: ((x > 0).astype(jnp.uint8) - jnp.uint8(1)).astype(float), 1)
    with pytest.raises(BadInput, match="'div' in int"):
        trace(lambda x: jax.lax.div((x > 0).astype(int), 2) * 1.0, 1)


def numpy_only(x):
    y = x + 1
    return np.sin(y)  # the line that is named


def math_only(x):
    return math.atan(x[0])


def bare_numpy(x):
    return numpy_sin(x)


def hidden_numpy(x):
    return np.asarray(x) + 1


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (numpy_only, ["numpy_only", "np.sin", "jnp.sin"]),
        (math_only, ["math_only", "math.atan", "jnp.arctan"]),
        (bare_numpy, ["bare_numpy", "numpy_sin", "jnp.sin"]),
        (hidden_numpy, ["np.asarray", "jnp.asarray"]),
        (jax.jit(numpy_only), ["np.sin"]),
    ],
)
def test_a_callable_of_numpy_gets_the_line_and_the_spelling(function, parts):
    with pytest.raises(BadInput) as caught:
        trace(function, 2)
    message = str(caught.value)
    assert all(part in message for part in [*parts, __file__, ", line ", "import jax.numpy as jnp"])
    assert "\n" not in message


def test_the_line_is_right():
    first = numpy_only.__code__.co_firstlineno
    with pytest.raises(BadInput, match=f"line {first + 2},"):
        trace(numpy_only, 1)
    with pytest.raises(BadInput, match=f"line {unsupported.__code__.co_firstlineno + 2}\\)"):
        trace(unsupported, 1)


def unsupported(x):
    y = x + 1
    return jnp.floor(y)


def _log(x):
    return jnp.log(x[0])


# Callables with a part that has no value at x1 = -1, in a place where tracing knows the result without it
LOST_PARTS = {
    "and False": lambda x: jnp.where((_log(x) < 2) & jnp.array(False), x[0], x[1]),
    "or True": lambda x: jnp.where((_log(x) < 2) | jnp.array(True), x[0], x[1]),
    "the place of one element": lambda x: jnp.argmax(jnp.log(x[:1])) + x[1],
    "0 times": lambda x: 0 * _log(x) + x[1],
    "power 0": lambda x: _log(x) ** 0 + x[1],
    "minus itself": lambda x: _log(x) - _log(x) + x[1],
    "the same branches": lambda x: jnp.where(_log(x) < 2, x[1], x[1]),
    "compared with infinity": lambda x: jnp.where(_log(x) < jnp.inf, x[0], x[1]),
}


@pytest.mark.parametrize("name", sorted(LOST_PARTS))
def test_a_part_without_a_value_is_not_lost_in_tracing(name):
    program = trace(LOST_PARTS[name], 2)
    assert not balls(program, [-1, 3])[0].is_finite()
    assert balls(program, [1, 3])[0].is_finite()


def test_the_maximum_of_infinity_and_a_part_without_a_value_is_refused():
    with pytest.raises(BadInput, match="infinite"):
        trace(lambda x: jnp.minimum(jnp.maximum(_log(x), jnp.inf), x[1]), 2)


def test_a_condition_that_a_false_one_stands_before_is_not_asked():
    program = trace(lambda x: jnp.where((x[0] > 0) & (_log(x) < 2), x[0], x[1]), 2)
    assert balls(program, [-1, 3])[0] == 3
    nothing = jnp.array([False, False])
    masked = trace(lambda x: jnp.max(jnp.where((x > 0) & nothing, x, -jnp.inf), initial=0.0) + x[1], 2)
    assert balls(masked, [1, 3])[0] == 3
