"""The closed list of JAX operations that the tracer understands, and what each means for real numbers.

Every rewriting below is an identity of real numbers with the same singular points. What is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from certiformer.errors import BadInput
from certiformer.target.build import Builder
from certiformer.target.functions import cosh, sigmoid, sign, sinh

RealFunction = Callable[..., int]


def _one_plus(build: Builder, a: int) -> int:
    return build.add(build.rational(1), a)


def _reciprocal_sqrt(build: Builder, a: int) -> int:
    return build.div(build.rational(1), build.sqrt(a))


def _asinh(build: Builder, a: int) -> int:
    """asinh(a) = log(a + sqrt(a^2 + 1)), and the argument of log is positive for every a."""
    return build.log(build.add(a, build.sqrt(_one_plus(build, build.pow(a, 2)))))


def _acosh(build: Builder, a: int) -> int:
    """acosh(a) = log(a + sqrt(a - 1) sqrt(a + 1)), real for a >= 1 exactly."""
    less, more = build.sub(a, build.rational(1)), build.add(a, build.rational(1))
    return build.log(build.add(a, build.mul(build.sqrt(less), build.sqrt(more))))


def _atanh(build: Builder, a: int) -> int:
    """atanh(a) = log((1 + a)/(1 - a))/2, real for |a| < 1 exactly."""
    ratio = build.div(_one_plus(build, a), build.sub(build.rational(1), a))
    return build.div(build.log(ratio), build.rational(2))


def _asin(build: Builder, a: int) -> int:
    """asin(a) = 2 atan(a/(1 + sqrt(1 - a^2))): the half-angle formula, which also holds at a = 1 and a = -1."""
    cosine = build.sqrt(build.sub(build.rational(1), build.pow(a, 2)))
    return build.mul(build.rational(2), build.atan(build.div(a, _one_plus(build, cosine))))


def _acos(build: Builder, a: int) -> int:
    return build.sub(build.div(build.constant("pi"), build.rational(2)), _asin(build, a))


def _polynomial(build: Builder, a: int, *coefficients: int) -> int:
    """c_0 + c_1 a + c_2 a^2 + ..., the operation that jax.numpy.polyval becomes from JAX 0.12 on."""
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = build.add(coefficient, build.mul(result, a))
    return result


# Operations on real scalars, applied element by element.
REAL_FUNCTIONS: dict[str, RealFunction] = {
    "add": Builder.add,
    "add_any": Builder.add,
    "sub": Builder.sub,
    "mul": Builder.mul,
    "div": Builder.div,
    "neg": Builder.neg,
    "pow": Builder.power,
    "square": lambda build, a: build.pow(a, 2),
    "sqrt": Builder.sqrt,
    "rsqrt": _reciprocal_sqrt,
    "exp": Builder.exp,
    "exp2": lambda build, a: build.exp(build.mul(a, build.log(build.rational(2)))),
    "expm1": lambda build, a: build.sub(build.exp(a), build.rational(1)),
    "log": Builder.log,
    "log1p": lambda build, a: build.log(_one_plus(build, a)),
    "log2": lambda build, a: build.div(build.log(a), build.log(build.rational(2))),
    "polynomial": _polynomial,
    "sin": Builder.sin,
    "cos": Builder.cos,
    "tan": Builder.tan,
    "asin": _asin,
    "acos": _acos,
    "atan": Builder.atan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": Builder.tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "erf": Builder.erf,
    "erfc": lambda build, a: build.sub(build.rational(1), build.erf(a)),
    "logistic": sigmoid,
    "abs": Builder.abs,
    "sign": sign,
}

# Of these, the ones that mean the same for integers that depend on the variables (an integer division would round).
EXACT_ON_INTEGERS = {"add", "add_any", "sub", "mul", "neg", "square", "abs", "sign"}

COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
LOGIC = {"and", "or", "xor", "not"}

# Operations that return their arguments: derivatives are never taken from JAX, so a stopped gradient is the identity.
IDENTITIES = {"stop_gradient", "copy", "copy_p", "optimization_barrier", "name"}

# Operations that run an inner program; a custom derivative is ignored. The parameter that holds the program varies.
CALLS = {
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
}
INNER_PROGRAM = ("jaxpr", "call_jaxpr", "fun_jaxpr")

# Operations that only move elements. They are executed by JAX itself on the numbers of the nodes. The value says which
# arguments hold elements (the others are positions, which must be known); None means all of them.
MOVES: dict[str, tuple[int, ...] | None] = {
    "reshape": None,
    "transpose": None,
    "broadcast_in_dim": None,
    "slice": None,
    "squeeze": None,
    "expand_dims": None,
    "concatenate": None,
    "stack": None,
    "unstack": None,
    "split": None,
    "rev": None,
    "tile": None,
    "pad": None,
    "gather": (0,),
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "scatter": (0, 2),
}

# Operations executed by JAX itself when all arguments are known integers or truth values (loop counters, indices).
INTEGER_OPERATIONS = {
    "iota",
    "convert_element_type",
    "rem",
    "max",
    "min",
    "clamp",
    "select_n",
    "integer_pow",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "reduce_sum",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_and",
    "reduce_or",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "argmax",
    "argmin",
    "sort",
    "dot_general",
    "div",
    *EXACT_ON_INTEGERS,
    *COMPARISONS,
    *LOGIC,
    *MOVES,
}

# Reasons for refusals that deserve more than "not in the list".
REASONS = {
    "cbrt": "write jnp.sign(x) * jnp.abs(x) ** (1 / 3) on a box without 0",
    "atan2": "write jnp.arctan(y / x) with the branch you mean",
    **dict.fromkeys(("floor", "ceil", "round", "rem"), "it jumps infinitely often; use jnp.where for a single step"),
    **dict.fromkeys(("pure_callback", "io_callback", "debug_callback", "debug_print"), "it calls back into Python"),
    **dict.fromkeys(
        ("random_seed", "random_wrap", "random_unwrap", "random_bits", "random_split", "random_fold_in", "random_gamma",
         "threefry2x32", "rng_bit_generator", "rng_uniform"),
        "a target may not be random",
    ),
    "reduce_precision": "it rounds to fewer digits",
}  # fmt: skip


def refusal(name: str) -> BadInput:
    """The sentence for an operation outside the closed list."""
    reason = f": {REASONS[name]}" if name in REASONS else ""
    return BadInput(f"the callable uses the JAX operation {name!r}, which is not in the closed list{reason}")
