"""Reading a jaxpr (the program that JAX traced) into scalar nodes.

An array of the jaxpr becomes one of three things:

* `Reals`: an array of node numbers, for everything of floating type (constants too: they mean the exact double) and for
  integers that depend on the variables;
* `Truths`: an array of condition numbers, for truth values that depend on the variables;
* a NumPy array of integers or truth values that are known while tracing, such as loop counters and indices.

Operations that only move elements are executed by JAX itself on the array of numbers, so that their conventions are
not written a second time here. Loops are unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend import core

from certiformer.errors import BadInput
from certiformer.target.primitives import (
    CALLS,
    COMPARISONS,
    EXACT_ON_INTEGERS,
    IDENTITIES,
    INNER_PROGRAM,
    INTEGER_OPERATIONS,
    LOGIC,
    MOVES,
    REAL_FUNCTIONS,
    refusal,
)
from certiformer.target.scalars import NAN, Scalars, all_of, any_of, finite, negated

MAX_STEPS = 256


@dataclass(frozen=True)
class Reals:
    """An array of real numbers, as the numbers of their nodes."""

    numbers: np.ndarray


@dataclass(frozen=True)
class Truths:
    """An array of truth values, as the numbers of their conditions."""

    numbers: np.ndarray


Value = Reals | Truths | np.ndarray


class Interpreter:
    """Runs jaxprs on arrays of nodes of one builder."""

    def __init__(self) -> None:
        self.scalars = Scalars()
        self.path: list[Any] = []  # the equation being read and those around it, to say where a refusal comes from
        self._handlers: dict[str, Callable[[Any, list[Value]], list[Value]]] = {
            "integer_pow": self._integer_pow,
            "convert_element_type": self._convert,
            "is_finite": self._is_finite,
            "max": self._extremum,
            "min": self._extremum,
            "clamp": self._clamp,
            "select_n": self._select_n,
            "dot_general": self._dot_general,
            "argmax": self._place,
            "argmin": self._place,
            **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), self._reduce),
            **dict.fromkeys(("reduce_and", "reduce_or"), self._reduce_truths),
            **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), self._cumulative),
            **dict.fromkeys(COMPARISONS, self._comparison),
            **dict.fromkeys(LOGIC, self._logic),
            **dict.fromkeys(REAL_FUNCTIONS, self._real_function),
        }
        self._control = {"cond": self._cond, "scan": self._scan, "while": self._while}

    def run(self, jaxpr: core.Jaxpr, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The values of the outputs of a jaxpr."""
        values: dict[Any, Value] = dict(zip(jaxpr.constvars, map(self.value, constants), strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> Value:
            return self.value(atom.val) if isinstance(atom, core.Literal) else values[atom]

        for equation in jaxpr.eqns:
            self.path.append(equation)
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
            self.path.pop()
        return [read(atom) for atom in jaxpr.outvars]

    def value(self, constant: Any) -> Value:
        """A constant array of the trace."""
        dtype = jnp.result_type(constant)
        if jnp.issubdtype(dtype, jnp.floating):
            return Reals(elementwise(lambda v: self.scalars.double(float(v)), np.asarray(constant)))
        if jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.bool_):
            return np.asarray(constant)
        raise BadInput(f"the callable uses values of type {dtype}, not real numbers, integers or truth values")

    def reals(self, value: Value) -> np.ndarray:
        """The node numbers of any value: integers are themselves, true is 1 and false is 0."""
        if isinstance(value, Reals):
            return value.numbers
        if isinstance(value, Truths):
            return elementwise(self.scalars.indicator, value.numbers)
        return elementwise(lambda v: self.scalars.build.rational(int(v)), value)

    def finite_reals(self, value: Value) -> list[int]:
        """The node numbers of any value, flattened, refusing what is not a real number."""
        return [finite(number) for number in self.reals(value).ravel().tolist()]

    def truths(self, value: Value) -> np.ndarray:
        """The condition numbers of truth values."""
        if isinstance(value, Truths):
            return value.numbers
        if isinstance(value, Reals):
            raise BadInput("the callable uses numbers that depend on the variables as truth values")
        return value.astype(np.int64)

    # One equation

    def _equation(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name = equation.primitive.name
        if name in IDENTITIES:
            return inputs
        if name in CALLS:
            inner = next(equation.params[key] for key in INNER_PROGRAM if key in equation.params)
            return self._call(inner, inputs)
        if name in self._control:
            return self._control[name](equation, inputs)
        known = all(isinstance(value, np.ndarray) for value in inputs)
        to_float = name == "convert_element_type" and jnp.issubdtype(equation.params["new_dtype"], jnp.floating)
        if known and name in INTEGER_OPERATIONS and not to_float:
            return [self.value(result) for result in _execute(equation, inputs)]
        if name in MOVES:
            return self._move(equation, inputs)
        if name not in self._handlers:
            raise refusal(name)
        if name != "convert_element_type":
            _check_type(name, equation.outvars[0].aval.dtype)
        return self._handlers[name](equation, inputs)

    def _call(self, inner: Any, inputs: Sequence[Value]) -> list[Value]:
        """Run an inner program, which JAX stores with or without its constants."""
        return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)

    def _move(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """Let JAX move the numbers as it would move the elements."""
        name = equation.primitive.name
        places = MOVES[name] or tuple(range(len(inputs)))
        truths = _are_truths([inputs[place] for place in places])
        moved: list[Any] = list(inputs)
        for place in places:
            moved[place] = self.truths(inputs[place]) if truths else self.reals(inputs[place])
        if not all(isinstance(value, np.ndarray) for value in moved):
            raise BadInput(f"an index of the JAX operation {name!r} depends on the variables, so it cannot be traced")
        # An element out of range is filled with the number of NaN, whatever the callable wanted there.
        fill = {"fill_value": NAN} if "fill_value" in equation.params else {}
        results = _execute(equation, moved, **fill)
        if truths and any(np.any(result < 0) for result in results):
            raise BadInput("the callable reads an array of truth values out of range")
        return [Truths(result) if truths else Reals(result) for result in results]

    # Real functions

    def _real_function(self, equation: Any, inputs: list[Value]) -> list[Value]:
        function = REAL_FUNCTIONS[equation.primitive.name]
        operands = map(self.reals, inputs)
        return [Reals(elementwise(lambda *a: function(self.scalars.build, *map(finite, a)), *operands))]

    def _integer_pow(self, equation: Any, inputs: list[Value]) -> list[Value]:
        build = self.scalars.build
        exponent = build.rational(equation.params["y"])
        return [Reals(elementwise(lambda a: build.power(finite(a), exponent), self.reals(inputs[0])))]

    def _convert(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """Conversions that keep every value: to a wider floating type, from integers and truth values to numbers."""
        old, new = equation.invars[0].aval.dtype, np.dtype(equation.params["new_dtype"])
        if old == new:
            return inputs
        from_real, to_real = jnp.issubdtype(old, jnp.floating), jnp.issubdtype(new, jnp.floating)
        if to_real:
            kept = jnp.finfo(new).nmant >= (jnp.finfo(old).nmant if from_real else 52)
        else:
            kept = not from_real and jnp.issubdtype(new, jnp.signedinteger)
        if not kept:
            raise BadInput(f"the callable converts {old} to {new}, which loses values; use float64 throughout")
        return [Reals(self.reals(inputs[0]))]

    def _is_finite(self, equation: Any, inputs: list[Value]) -> list[Value]:
        scalars = self.scalars
        return [Truths(elementwise(lambda a: scalars.number(a >= 0 and scalars.defined(a)), self.reals(inputs[0])))]

    def _extremum(self, equation: Any, inputs: list[Value]) -> list[Value]:
        return [Reals(elementwise(getattr(self.scalars, equation.primitive.name), *map(self.reals, inputs)))]

    def _clamp(self, equation: Any, inputs: list[Value]) -> list[Value]:
        low, value, high = map(self.reals, inputs)
        return [Reals(elementwise(self.scalars.min, elementwise(self.scalars.max, value, low), high))]

    # Sums and products

    def _combination(self, name: str) -> tuple[Callable[[int, int], int], list[int]]:
        """The function of two arguments and, where the empty combination has a value, that value."""
        if name in ("max", "min"):
            return getattr(self.scalars, name), []
        build = self.scalars.build
        function, start = (build.add, 0) if name == "sum" else (build.mul, 1)
        return lambda a, b: function(finite(a), finite(b)), [build.rational(start)]

    def _reduce(self, equation: Any, inputs: list[Value]) -> list[Value]:
        function, start = self._combination(equation.primitive.name.removeprefix("reduce_"))
        numbers, axes = self.reals(inputs[0]), equation.params["axes"]
        return [Reals(rowwise(lambda row: reduce(function, row, *start), numbers, axes))]

    def _cumulative(self, equation: Any, inputs: list[Value]) -> list[Value]:
        function, _ = self._combination(equation.primitive.name.removeprefix("cum"))
        axis, backwards = equation.params["axis"], equation.params["reverse"]
        numbers = np.moveaxis(self.reals(inputs[0]), axis, 0).copy()
        numbers = numbers[::-1] if backwards else numbers
        for step in range(1, len(numbers)):
            numbers[step] = elementwise(function, numbers[step - 1], numbers[step])
        return [Reals(np.moveaxis(numbers[::-1] if backwards else numbers, 0, axis))]

    def _dot_general(self, equation: Any, inputs: list[Value]) -> list[Value]:
        build = self.scalars.build
        (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
        left = matrices(self.reals(inputs[0]), left_batch, left_sum)
        right = matrices(self.reals(inputs[1]), right_batch, right_sum)
        result = np.empty((left.shape[0], left.shape[1], right.shape[1]), dtype=np.int64)
        for b, m, n in np.ndindex(*result.shape):
            pairs = zip(left[b, m].tolist(), right[b, n].tolist(), strict=True)
            result[b, m, n] = reduce(build.add, (build.mul(finite(p), finite(q)) for p, q in pairs), build.rational(0))
        return [Reals(result.reshape(equation.outvars[0].aval.shape))]

    # Conditions

    def _comparison(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name, scalars = equation.primitive.name, self.scalars
        if _are_truths(inputs) and name in ("eq", "ne"):
            different = elementwise(scalars.different, *map(self.truths, inputs))
            return [Truths(different if name == "ne" else self._each_condition(negated, different))]
        return [Truths(elementwise(lambda a, b: scalars.number(scalars.compare(name, a, b)), *map(self.reals, inputs)))]

    def _logic(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name = equation.primitive.name
        if not _are_truths(inputs):
            raise BadInput(f"the callable uses the bitwise operation {name!r} on numbers that depend on the variables")
        numbers = [self.truths(value) for value in inputs]
        if name == "xor":
            return [Truths(elementwise(self.scalars.different, *numbers))]
        combine = {"and": lambda *c: all_of(c), "or": lambda *c: any_of(c), "not": negated}[name]
        return [Truths(self._each_condition(combine, *numbers))]

    def _each_condition(self, function: Callable[..., Any], *numbers: np.ndarray) -> np.ndarray:
        scalars = self.scalars
        return elementwise(lambda *c: scalars.number(function(*(scalars.conditions[k] for k in c))), *numbers)

    def _reduce_truths(self, equation: Any, inputs: list[Value]) -> list[Value]:
        combine = all_of if equation.primitive.name == "reduce_and" else any_of
        scalars, axes = self.scalars, equation.params["axes"]

        def combined(row: list[int]) -> int:
            return scalars.number(combine(scalars.conditions[c] for c in row))

        return [Truths(rowwise(combined, self.truths(inputs[0]), axes))]

    def _place(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """The place of the first largest or smallest element along one axis."""
        scalars, axes = self.scalars, equation.params["axes"]
        largest = equation.primitive.name == "argmax"
        if largest and isinstance(inputs[0], Truths):  # the first true condition, or 0: how `jnp.select` chooses
            return [Reals(rowwise(scalars.first_true, inputs[0].numbers, axes))]
        return [Reals(rowwise(lambda row: scalars.place(row, largest), self.reals(inputs[0]), axes))]

    # Choices and loops

    def _select_n(self, equation: Any, inputs: list[Value]) -> list[Value]:
        return [self._chosen(inputs[0], inputs[1:])]

    def _chosen(self, which: Value, cases: Sequence[Value]) -> Value:
        """Element by element, the case that `which` (a condition, or an integer) names."""
        scalars, truths = self.scalars, _are_truths(cases)
        pick = scalars.pick_truth if truths else scalars.pick_real

        def element(selector: int, *options: int) -> int:
            by_condition = isinstance(which, Truths)
            branches = [(scalars.conditions[selector], 1)] if by_condition else scalars.branches(selector, len(options))
            result = options[0]
            for condition, k in reversed(branches):
                result = pick(condition, options[min(k, len(options) - 1)], result)
            return result

        selectors = which.numbers if isinstance(which, Truths) else self.reals(which)
        chosen = elementwise(element, selectors, *(self.truths(c) if truths else self.reals(c) for c in cases))
        return Truths(chosen) if truths else Reals(chosen)

    def _cond(self, equation: Any, inputs: list[Value]) -> list[Value]:
        which, *operands = inputs
        branches = equation.params["branches"]
        if isinstance(which, np.ndarray):
            return self._call(branches[min(max(int(which), 0), len(branches) - 1)], operands)
        results = [self._call(branch, operands) for branch in branches]
        return [self._chosen(which, cases) for cases in zip(*results, strict=True)]

    def _scan(self, equation: Any, inputs: list[Value]) -> list[Value]:
        parameters = equation.params
        length = parameters["length"]
        if "ft_in" in parameters:  # JAX 0.12 groups the inputs as (constants, carry, rows) instead of counting them
            fixed, carried, _ = (len(group) for group in parameters["ft_in"].unpack())
        else:
            fixed, carried = parameters["num_consts"], parameters["num_carry"]
        if length > MAX_STEPS:
            raise BadInput(f"the callable has a loop of {length} steps; at most {MAX_STEPS} are unrolled")
        constants, carry, rows = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
        steps: list[list[Value]] = [[]] * length
        for step in reversed(range(length)) if parameters["reverse"] else range(length):
            results = self._call(parameters["jaxpr"], [*constants, *carry, *(_element(row, step) for row in rows)])
            carry, steps[step] = results[:carried], results[carried:]
        stacked = equation.outvars[carried:]
        return [*carry, *(self._stack([s[i] for s in steps], var.aval.shape) for i, var in enumerate(stacked))]

    def _stack(self, column: list[Value], shape: tuple[int, ...]) -> Value:
        if column and all(isinstance(value, np.ndarray) for value in column):
            return np.array(column)
        truths = bool(column) and _are_truths(column)
        numbers = [self.truths(value) if truths else self.reals(value) for value in column]
        array = np.array(numbers, dtype=np.int64).reshape(shape)
        return Truths(array) if truths else Reals(array)

    def _while(self, equation: Any, inputs: list[Value]) -> list[Value]:
        parameters = equation.params
        tests, bodies = parameters["cond_nconsts"], parameters["body_nconsts"]
        test_constants, body_constants, carry = inputs[:tests], inputs[tests : tests + bodies], inputs[tests + bodies :]
        for _ in range(MAX_STEPS + 1):
            (going,) = self._call(parameters["cond_jaxpr"], [*test_constants, *carry])
            number = int(self.truths(going))
            if number > 1:
                raise BadInput("the callable has a while loop whose end depends on the variables")
            if number == 0:
                return list(carry)
            carry = self._call(parameters["body_jaxpr"], [*body_constants, *carry])
        raise BadInput(f"the callable has a while loop of more than {MAX_STEPS} steps; no more are unrolled")


def _check_type(name: str, dtype: Any) -> None:
    """Refuse arithmetic in a type that rounds more than float64, or wraps around."""
    if jnp.issubdtype(dtype, jnp.floating) and dtype != jnp.float64:
        raise BadInput(f"the callable computes {name!r} in {dtype}; convert its constants to float64 first")
    if jnp.issubdtype(dtype, jnp.integer):
        small = jnp.issubdtype(dtype, jnp.unsignedinteger) or dtype.itemsize < 4
        if small or (name in REAL_FUNCTIONS and name not in EXACT_ON_INTEGERS):
            raise BadInput(f"the callable computes {name!r} in {dtype} on values that depend on the variables")
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise BadInput(f"the callable computes {name!r} in {dtype}; complex numbers are not read")


def _are_truths(values: Sequence[Value]) -> bool:
    return all(isinstance(v, Truths) or (isinstance(v, np.ndarray) and v.dtype == bool) for v in values)


def _execute(equation: Any, values: Sequence[Any], **changed: Any) -> list[np.ndarray]:
    """The results of an operation of JAX on known arrays."""
    results = equation.primitive.bind(*map(jnp.asarray, values), **{**equation.params, **changed})
    return [np.asarray(r) for r in (results if equation.primitive.multiple_results else [results])]


def _element(value: Value, step: int) -> Value:
    """One step of an array that a loop runs over."""
    if isinstance(value, np.ndarray):
        return np.asarray(value[step])
    return type(value)(np.asarray(value.numbers[step]))


def elementwise(function: Callable[..., int], *arrays: np.ndarray) -> np.ndarray:
    """A function of scalars, element by element; scalars are repeated."""
    same = np.broadcast_arrays(*arrays)
    flat = [function(*elements) for elements in zip(*(array.ravel().tolist() for array in same), strict=True)]
    return np.array(flat, dtype=np.int64).reshape(same[0].shape)


def rowwise(function: Callable[[list[int]], int], numbers: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """A function of a list, over the given axes together, for each place of the others."""
    kept = [axis for axis in range(numbers.ndim) if axis not in axes]
    shape = tuple(numbers.shape[axis] for axis in kept)
    rows = np.transpose(numbers, [*kept, *axes]).reshape(math.prod(shape), math.prod(numbers.shape[a] for a in axes))
    return np.array([function(row.tolist()) for row in rows], dtype=np.int64).reshape(shape)


def matrices(numbers: np.ndarray, batch: Sequence[int], summed: Sequence[int]) -> np.ndarray:
    """The array as a batch of matrices, one row for each place of the free axes, the summed axes along it."""
    free = [axis for axis in range(numbers.ndim) if axis not in batch and axis not in summed]
    sizes = [math.prod(numbers.shape[a] for a in axes) for axes in (batch, free, summed)]
    return np.transpose(numbers, [*batch, *free, *summed]).reshape(sizes)
