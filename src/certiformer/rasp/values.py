"""Which values a node can take, for every input over the vocabulary up to the length: sets that contain them all.

Sets are lists up to `MAX_VALUES`; longer ones of exact numbers become a span. The sets may be too large (a sum of two
counts ignores that they are related), never too small.

Means. Let S be numbers with smallest a, largest b, and g the greatest common divisor of all x - a. A sum of w of them is
w a + g t with an integer 0 <= t <= w (b - a)/g, so their mean is a + g t / w; t at an end means that all are equal. With
w = 1, ..., N this is a finite set: k/w for truth values, 775 numbers at N = 50 and 3,045 at N = 100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import gcd, lcm, prod
from typing import Any

from certiformer.rasp.graph import Span, ValueSet
from certiformer.rasp.meaning import Fault, apply
from certiformer.rasp.operation import TRUTHS, Affine, Binary, Operation, Unary, WithConstant, as_affine, is_exact
from certiformer.rasp.value import Ratio, Value, all_exact, canonical, exact, identity, in_order, reduced

MAX_VALUES = 20_000  # in the list of one expression
MAX_PAIRS = 50_000  # arguments on which a known operation is tried; above, its bounds are computed
MAX_TABLE = 1_000_000  # arguments on which a user's function is tried

UNKNOWN = ValueSet(None, True)


def listed(values: Sequence[Value] | set[Value], undefined: bool = False) -> ValueSet:
    """A set from its values, None among them meaning that undefined is possible."""
    defined = [value for value in values if value is not None]
    return ValueSet(in_order(defined), undefined or len(defined) < len(values))


def whole_numbers(low: int, high: int, undefined: bool = False) -> ValueSet:
    """The integers from `low` to `high`."""
    if high - low >= MAX_VALUES:
        return ValueSet(None, undefined, Span(Fraction(low), Fraction(high), 1))
    return ValueSet(tuple(range(low, high + 1)), undefined)


def arguments_of(inputs: Sequence[ValueSet]) -> Iterator[tuple[Value, ...]]:
    """All combinations of listed values, in the order of a table's entries."""
    return product(*(values.values or () for values in inputs))


def size_of(inputs: Sequence[ValueSet]) -> int:
    """How many combinations there are."""
    return prod(len(values.values or ()) for values in inputs)


def of_operation(operation: Operation, inputs: Sequence[ValueSet]) -> ValueSet:
    """The results of an operation; `Fault` when it has no meaning on a listed argument."""
    affine, listed_numbers = as_affine(operation), all(values.values and all_exact(values.values) for values in inputs)
    return _of_operation(affine if affine is not None and listed_numbers else operation, tuple(inputs))


@lru_cache(maxsize=512)  # every pass asks again for the same nodes
def _of_operation(operation: Operation, inputs: tuple[ValueSet, ...]) -> ValueSet:
    undefined = any(values.undefined for values in inputs)
    if not all(values.known for values in inputs):
        return UNKNOWN
    if all(values.values is not None for values in inputs):
        if isinstance(operation, Affine) and all(all_exact(values.values or ()) for values in inputs):
            plain = type(operation.offset) is int and all(abs(f) == 1 for f in operation.factors)
            if plain and all(map(consecutive, inputs)):
                return _sum_of_integers(operation, inputs, undefined)
            if size_of(inputs) <= MAX_PAIRS:
                return _capped(ValueSet(_sums(operation, inputs), undefined))
        elif size_of(inputs) <= MAX_PAIRS:
            return _capped(listed([apply(operation, x) for x in arguments_of(inputs)], undefined))
        if isinstance(operation, Binary) and operation.symbol in ("and", "or"):  # either of the two is the result
            return _capped(listed([x for values in inputs for x in values.values or ()], undefined))
    return _by_bounds(operation, inputs, undefined)


def _capped(values: ValueSet) -> ValueSet:
    if values.values is None or len(values.values) <= MAX_VALUES:
        return values
    bounds = _bounds(values)  # None for floats, which would be rounded, and for symbols
    return UNKNOWN if bounds is None else ValueSet(None, values.undefined, _with_truths(bounds, values.values))


def _with_truths(span: Span, values: Sequence[Value]) -> Span:
    """A span of these exact numbers with the truth values among them."""
    truths = tuple(truth for truth in (False, True) if any(value is truth for value in values))
    both = any(type(value) is not bool and value in truths for value in values) if truths else False
    return replace(span, truths=truths, ambiguous=both)


def _of_means(span: Span) -> Span:
    """The span of the means of its numbers. One at an end is a mean of equal values, which is that value itself; inside,
    different numbers may have the mean 1 beside True.
    """
    inside = any(span.low < truth < span.high for truth in span.truths)
    return replace(span, ambiguous=span.ambiguous or inside)


def consecutive(values: ValueSet) -> bool:
    """Whether the values are integers without a gap."""
    numbers = values.values
    if not numbers or type(numbers[0]) is not int or type(numbers[-1]) is not int:
        return False
    return numbers[-1] - numbers[0] == len(numbers) - 1 and all(type(x) is int for x in numbers)


def _sum_of_integers(affine: Affine, inputs: Sequence[ValueSet], undefined: bool) -> ValueSet:
    """Sums and differences of consecutive integers are consecutive; at N = 1,000 a table would have a million entries."""
    lists = [[f * x for x in vs.values or (0,)] for f, vs in zip(affine.factors, inputs, strict=True)]
    return whole_numbers(*(int(sum(map(end, lists)) + affine.offset) for end in (min, max)), undefined=undefined)


def _sums(affine: Affine, inputs: Sequence[ValueSet]) -> tuple[Value, ...]:
    """Sums of exact numbers in order, over one denominator: thousands of fractions would take long to add."""
    terms = [[exact(f) * exact(x) for x in vs.values or ()] for f, vs in zip(affine.factors, inputs, strict=True)]
    bottom = lcm(exact(affine.offset).denominator, *(x.denominator for term in terms for x in term))
    tops = {int(affine.offset * bottom)}
    for shifts in [[int(x * bottom) for x in term] for term in terms]:
        tops = {top + shift for top in tops for shift in shifts}
    canonical(bottom + max(map(abs, tops), default=0))  # numbers with too many digits are refused
    return tuple([Ratio(top, bottom) if top % bottom else top // bottom for top in sorted(tops)])


def _bounds(values: ValueSet) -> Span | None:
    """The span of a set of exact numbers, or None when it holds anything else; floats would be rounded."""
    if values.values is None:
        return values.span and values.span.plain()
    if not values.values or not all_exact(values.values):
        return None
    # Lists are in order.
    return Span(exact(values.values[0]), exact(values.values[-1]), max([x.denominator for x in values.values]))


def _by_bounds(operation: Operation, inputs: Sequence[ValueSet], undefined: bool) -> ValueSet:
    spans = [_bounds(values) for values in inputs]
    if any(span is None for span in spans):
        return UNKNOWN
    known = [span for span in spans if span is not None]
    affine = as_affine(operation)
    if affine is not None:
        total = Span(exact(affine.offset), exact(affine.offset), exact(affine.offset).denominator)
        for factor, span in zip(affine.factors, known, strict=True):
            total = _plus(total, _scaled(span, factor))
        return ValueSet(None, undefined, total)
    match operation:
        case Unary("not"):
            return ValueSet((False, True), undefined)
        case Binary("*"):
            return ValueSet(None, undefined, _product(*known))
        case Binary(symbol) if symbol in TRUTHS:
            return ValueSet(_truths(symbol, *known), undefined)
        case WithConstant(symbol=symbol, constant=c) if symbol in TRUTHS and is_exact(c):
            constant = Span(exact(c), exact(c), exact(c).denominator)
            pair = (constant, known[0]) if operation.constant_first else (known[0], constant)
            return ValueSet(_truths(symbol, *pair), undefined)
    return UNKNOWN


def _plus(x: Span, y: Span) -> Span:
    return Span(x.low + y.low, x.high + y.high, _times(x.largest_denominator, y.largest_denominator))


def _product(x: Span, y: Span) -> Span:
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return Span(min(corners), max(corners), _times(x.largest_denominator, y.largest_denominator))


def _truths(symbol: str, x: Span, y: Span) -> tuple[bool, ...]:
    """Both truth values, unless the bounds decide."""
    always = {"<": x.high < y.low, "<=": x.high <= y.low, ">": x.low > y.high, ">=": x.low >= y.high}
    never = {"<": x.low >= y.high, "<=": x.low > y.high, ">": x.high <= y.low, ">=": x.high < y.low}
    if always.get(symbol):
        return (True,)
    return (False,) if never.get(symbol) else (False, True)


def _scaled(span: Span, factor: Any) -> Span:
    f = exact(factor)
    ends = sorted((span.low * f, span.high * f))
    return Span(ends[0], ends[1], _times(span.largest_denominator, f.denominator))


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def with_default(result: ValueSet, default: Value) -> ValueSet:
    """The same values or the default."""
    if result.values is not None:
        if default is None:
            return replace(result, undefined=True)
        if any(identity(default) == identity(value) for value in result.values if value == default):
            return result
        return listed([*result.values, default], result.undefined)
    if default is None:
        return replace(result, undefined=True)
    span, more = _bounds(result), _bounds(ValueSet((default,)))
    if span is None or more is None or result.span is None:
        return UNKNOWN
    known = span.largest_denominator, more.largest_denominator
    largest = None if None in known else max(x or 0 for x in known)
    ends = Span(min(span.low, more.low), max(span.high, more.high), largest)
    return replace(result, span=_with_default_truth(ends, result.span, default))


def _with_default_truth(ends: Span, span: Span, default: Value) -> Span:
    """The truth values of a span and of a default: one of them may be the number of the other."""
    if type(default) is bool:
        new = default not in span.truths and span.low <= default <= span.high
        truths = tuple(sorted({*span.truths, default}))
    else:
        new, truths = default in span.truths, span.truths
    return replace(ends, truths=truths, ambiguous=span.ambiguous or new)


def of_function(f: Callable[..., Any], inputs: Sequence[ValueSet]) -> tuple[list[Value], list[Fault]]:
    """The results of a user's function on all listed arguments, in table order, and where it has no meaning."""
    results: list[Value] = []
    faults: list[Fault] = []
    for arguments in arguments_of(inputs):
        try:
            results.append(apply(f, arguments))
        except Fault as fault:
            results.append(None)
            faults.append(fault)
    return results, faults


@lru_cache(maxsize=128)  # every pass asks again for the same nodes
def of_mean(values: ValueSet, length: int) -> ValueSet:
    """Means of one to `length` numbers of the set; equal numbers keep their own value."""
    numbers = None if values.values is None else [exact(x) for x in values.values]
    if numbers is None:
        span = values.span
        if span is None:
            return UNKNOWN
        denominator = length if span.largest_denominator == 1 else None
        return ValueSet(None, values.undefined, replace(_of_means(span), largest_denominator=denominator))
    if len(numbers) < 2:
        return values
    low, high = min(numbers), max(numbers)
    step = common_step([x - low for x in numbers])
    if step == 0:  # truth values and numbers that are equal, like True and 1
        return listed([*(values.values or ()), reduced(low)], values.undefined)
    steps = int((high - low) / step)
    if steps * length * (length + 1) > 4 * MAX_VALUES:
        if any(isinstance(x, float) for x in values.values or ()):
            return UNKNOWN  # a span holds exact numbers only: what is computed from floats is rounded
        span = Span(low, high, length, common_step([low, step]))
        return ValueSet(None, values.undefined, _of_means(_with_truths(span, values.values or ())))
    ends = [reduced(low), reduced(high)] if len(set(numbers)) < len(numbers) else []
    # Each t / w once, in lowest terms; a whole number is a mean of two or more.
    shortest = range(1, length + 1) if length > 1 else range(0)
    a, g, d = (int(x * (low.denominator * step.denominator)) for x in (low, step, Fraction(1)))
    whole = [*(values.values or ()), *ends, *([reduced(low + step * t) for t in range(1, steps)] if length > 1 else [])]
    inside = [(a * w + g * t, d * w) for w in shortest[1:] for t in range(1, w * steps) if gcd(t, w) == 1]
    return _capped(ValueSet(_merged(in_order(whole), inside), values.undefined))


def _merged(whole: tuple[Value, ...], fractions: list[tuple[int, int]]) -> tuple[Value, ...]:
    """Values in order and p/q that are none of them nor each other, all in order.

    Quotients of integers are rounded upwards or downwards, but never past each other: their order is that of the
    fractions unless two become equal.
    """
    found = [*whole, *(p // q if p % q == 0 else Ratio(p, q) for p, q in fractions)]
    try:
        rough = [*map(float, whole), *(p / q for p, q in fractions)]
    except OverflowError:
        return in_order(found)
    if len(set(rough)) < len(rough):
        return in_order(found)
    return tuple([found[place] for place in sorted(range(len(found)), key=rough.__getitem__)])


def of_sum(values: ValueSet, length: int) -> ValueSet | None:
    """Sums of one to `length` numbers of the set: w a + g t, as for means; None for other values than exact ones."""
    bounds = _bounds(values)
    if bounds is None or values.values is None:
        return None
    numbers = [exact(x) for x in values.values]
    step = common_step([*numbers, Fraction(0)])  # sums of multiples of a step are multiples of it
    low, high = min(bounds.low, bounds.low * length), max(bounds.high, bounds.high * length)
    if step == 0:
        return ValueSet((0,), values.undefined)
    first, last = int(low / step), int(high / step)
    if last - first >= MAX_VALUES:
        return ValueSet(None, values.undefined, Span(low, high, step.denominator))
    multiples = [reduced(step * k) for k in range(first, last + 1)]
    # One selected truth value times a width of 1 is that number, so no truth values are left.
    return ValueSet(in_order(multiples), values.undefined)


def common_step(differences: list[Fraction]) -> Fraction:
    """The largest number of which all of these are multiples; 0 when all are 0."""
    step = Fraction(0)
    for x in differences:
        denominator = step.denominator * x.denominator // gcd(step.denominator, x.denominator)
        step = Fraction(gcd(int(step * denominator), int(x * denominator)), denominator)
    return step
