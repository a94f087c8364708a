"""The read-out: whatever the output's value is, decoding must name it, with room for the error.

`logits`: the number of the largest output is the place of the value (undefined last). `number`: the one output is nearest
to the feature of the value; numbers too many to list are decoded to the nearest one of their span, which says how far two
of these are apart at least. A float and the same fraction are one answer and need not be told apart; True and 1 must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Value, exact, identity, is_number, settled
from certiformer.kernel.situations.numbers import BITS, UNIT, ceil_shift, times
from certiformer.kernel.situations.rasp.circuit import Output, rational
from certiformer.kernel.situations.rasp.domains import said
from certiformer.kernel.situations.rasp.fixed import Arithmetic, as_float, nearest
from certiformer.kernel.situations.rasp.state import Content, Contents, Form
from certiformer.kernel.situations.rasp.variables import Variables


@dataclass(frozen=True)
class Decoding:
    """What is left of `room`, the distance at which decoding would change, in the worst case; there `name` has the value
    `value`."""

    left: float
    room: float
    name: str
    value: str

    @property
    def share(self) -> float:
        return self.left / self.room


def decoded(
    arithmetic: Arithmetic, variables: Variables, contents: Contents, forms: list[Form], output: Output
) -> Decoding:
    """The value of the output whose room the errors use up most; raises `Refused` where they use up all of it."""
    node = variables.graph.output
    read = sorted({x for form in forms for x in form.parts})
    variables.support(node, set(read))
    decide = _logits if output.kind == "logits" else _number
    decoder = decide(arithmetic, variables, contents, forms, output)
    worst = None
    for places, (value,) in variables.cases(read, [node]):
        left, room = decoder(dict(zip(read, places, strict=True)), value)
        if left <= 0:
            where = f"where {variables.name(node)} is {said(value)}, the read-out does not name the value"
            lost = as_float(room - left)
            raise Refused(
                f"{where} in {arithmetic.name}: errors may reach {lost:.3g}, and the room is {as_float(room):.3g}"
            )
        if worst is None or left * worst[1] < worst[0] * room:
            worst = (left, room, said(value))
    if worst is None:
        raise Refused("the output of the program has no value")
    return Decoding(as_float(worst[0]), as_float(worst[1]), variables.name(node), worst[2])


def _error_of(content: Content, places: dict[int, int]) -> int:
    """The error of a coordinate; at its largest where the variable is not told apart."""
    place = places.get(content.variable) if content.variable is not None else 0
    return content.worst if place is None else content.error[place]


def _logits(arithmetic: Arithmetic, variables: Variables, contents: Contents, forms: list[Form], output: Output):
    node = variables.graph.output
    if not variables.listed(node) or len(forms) != len(variables.domain(node)):
        raise Refused(
            f"the read-out has {len(forms)} logits, which is not one for each value of {variables.name(node)}"
        )
    plans, domain = [form.plan() for form in forms], variables.domain(node)
    shared = sorted({c for form in forms for c in form.weights})

    def decide(places: dict[int, int], value: Value) -> tuple[int, int]:
        z = variables.place(node, value)
        found = [form.at(places) for form in forms]
        loose = {c: e for c in shared if (e := _error_of(contents[c], places))}
        own, carried, size = found[z]
        rounded = plans[z].error(carried, size)
        worst = None
        for o, (other, e, s) in enumerate(found):
            if o == z or answer(domain[o]) == answer(value):
                continue
            room = own - other >> BITS
            error = rounded + plans[o].error(e, s)
            if arithmetic.form is None or (carried > plans[z].limit and e > plans[o].limit):
                # The same coordinates stand behind both logits: only the difference of their weights carries an error.
                apart = sum(
                    times(abs(forms[z].weights.get(c, 0) - forms[o].weights.get(c, 0)), x) for c, x in loose.items()
                )
                error = min(error, error - carried - e + apart + forms[z].collapsed + forms[o].collapsed)
            left = room - error
            if worst is None or left * worst[1] < worst[0] * room or room <= 0:
                worst = (left, room)
                if room <= 0:
                    return (min(left, -1), max(room, 1))
        return (UNIT, UNIT) if worst is None else worst

    return decide


def _number(arithmetic: Arithmetic, variables: Variables, contents: Contents, forms: list[Form], output: Output):
    node = variables.graph.output
    if len(forms) != 1:
        raise Refused("a number is read from one output")
    form, plan = forms[0], forms[0].plan()
    domain = variables.domain(node)
    defined = [x for x in domain if x is not None]
    undefined = None if domain[-1] is not None or output.undefined is None else rational(output.undefined)
    if domain[-1] is None and undefined is None:
        raise Refused("the read-out has no number for undefined")
    if output.feature is None and not all(map(is_number, defined)):
        raise Refused("the output is not a number, and the circuit gives it none")
    if not variables.listed(node):
        return _unlisted(form, plan, variables, undefined, output)
    held = [exact(x) for x in defined] if output.feature is None else [rational(f) for f in output.feature]
    held += [] if undefined is None else [undefined]
    if len(held) != len(domain):
        raise Refused("the read-out does not give every value of the output a number")
    meant: dict[Fraction, Value] = {}
    for number, value in zip(held, domain, strict=True):
        if answer(meant.setdefault(number, value)) != answer(value):
            raise Refused(f"the read-out gives {said(meant[number])} and {said(value)} the same number")
    ordered = sorted(meant)
    gaps = {x: Fraction(1) for x in ordered}
    for a, b in zip(ordered, ordered[1:], strict=False):
        gaps[a], gaps[b] = min(gaps[a], b - a), min(gaps[b], b - a)

    def decide(places: dict[int, int], value: Value) -> tuple[int, int]:
        number = held[variables.place(node, value)]
        found, carried, size = form.at(places)
        room, target = nearest_down(gaps[number] / 2), nearest(number)[0] << BITS
        return room - ceil_shift(abs(found - target)) - plan.error(carried, size) - 1, max(room, 1)

    return decide


def _unlisted(form: Form, plan, variables: Variables, undefined: Fraction | None, output: Output):
    span = variables.span(variables.graph.output)
    if span is None or span.gap is None or span.ambiguous or output.feature is not None:
        why = "no bound of their denominators, or a truth value beside the same number"
        raise Refused(f"the output has too many values to list, with {why}: it cannot be decoded")
    # What is within 1/2 of the number of undefined is undefined: numbers further apart than 1 have no more room than that.
    room = nearest_down((span.gap if undefined is None else min(span.gap, Fraction(1))) / 2)
    if undefined is not None and not (undefined <= span.low - 1 or undefined >= span.high + 1):
        raise Refused("the number that stands for undefined lies among the values")

    def decide(places: dict[int, int], value: Value) -> tuple[int, int]:
        found, carried, size = form.at(places)
        target = nearest(exact(value) if value is not None else undefined or Fraction(0))[0] << BITS
        return room - ceil_shift(abs(found - target)) - plan.error(carried, size) - 1, max(room, 1)

    return decide


def answer(value: Value) -> tuple:
    """Equal exactly for values that are the same as an answer: a float and a fraction that are the same number are."""
    return identity(settled(exact(value)) if type(value) is float else value)


def nearest_down(value: Fraction) -> int:
    """The largest fixed number that is not above a positive fraction."""
    return (value.numerator << BITS) // value.denominator
