"""An aggregate as a function of counts: aggregate(S, v) = F(total, width of S), total = sum of code(v_j) over selected j.

`total` is a linear combination of widths of selectors (S and a property of v). Pair by pair of positions it must add
code(v_j) where S holds and nothing elsewhere (the atoms are treated as in `identities`). Then w = 0 selected positions must
give F(0, 0) = the default; if all selected values agree, F(w code(v), w) = v; otherwise v must be a linear function of its
code, numbers have the mean of total / w, and any total that one undefined value can be part of must give undefined.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Value, exact, identity, is_exact, settled
from certiformer.kernel.situations.rasp.circuit import Identity, rational
from certiformer.kernel.situations.rasp.domains import MOST
from certiformer.kernel.situations.rasp.evaluation import NO_SUCH_COUNT
from certiformer.kernel.situations.rasp.pairs import Counted, Pairs
from certiformer.kernel.situations.rasp.variables import Variables


def check_aggregate(variables: Variables, given: Identity) -> None:
    """Verify `node` = one other node, for an aggregate; raises `Refused`."""
    node = variables.node(given.node)
    selector, value = node.inputs
    if len(given.terms) != 1 or rational(given.terms[0][0]) != 1 or rational(given.offset):
        raise Refused("an aggregate equals exactly one other node")
    other = given.terms[0][1]
    if variables.node(other).kind != "map":
        raise Refused("an aggregate equals a map of counts")
    inputs = variables.node(other).inputs
    if not all(map(variables.listed, (value, given.node, *inputs))):
        raise Refused("some of its numbers are too many to list")
    widths = [i for i in inputs if variables.node(i).kind == "width" and variables.node(i).inputs[0] == selector]
    totals = [i for i in inputs if i not in widths]
    if len(totals) > 1:
        raise Refused("it reads more than a width and one total")
    codes = _codes(variables, selector, value, totals[0]) if totals else [Fraction(0)] * len(variables.domain(value))
    order = [*widths, *totals]
    function = variables.evaluator(other, order)

    def require(total: Fraction, width: int, wanted: Value) -> None:
        counts = [(i, width) for i in widths] + [(i, variables.named(i, total)) for i in totals]
        if not all(variables.takes(i, count) for i, count in counts):
            variables.tally.close(1, 0, Counter([NO_SUCH_COUNT]))
            return
        result = function(tuple(variables.place(i, count) for i, count in counts))
        if identity(result) != identity(wanted):
            raise Refused(f"{width} selected values of total {total} give {result!r} instead of {wanted!r}")
        variables.tally.close(1, 1, Counter())

    if not variables.facts.holds("reflexive", selector):
        require(Fraction(0), 0, node.constant)
    single = variables.facts.holds("single", selector)
    domain, most = variables.domain(value), 1 if single else variables.graph.length
    if variables.facts.holds("same", selector, value):
        for w in range(1, most + 1):
            for v, code in zip(domain, codes, strict=True):
                require(w * code, w, v)
        return
    _check_means(variables, (domain, codes), totals, most, require)


def _check_means(variables: Variables, values: tuple, totals: list[int], most: int, require) -> None:
    domain, codes = values
    pairs = [(v, c) for v, c in zip(domain, codes, strict=True) if v is not None]
    limit = codes[-1] if domain[-1] is None else None
    if not totals or not all(is_exact(v) for v, _ in pairs) or len({exact(v) for v, _ in pairs}) < len(pairs):
        raise Refused("several positions may be selected, and their values are not different exact numbers")
    pairs.sort(key=lambda pair: pair[1])
    if any(identity(v) != identity(settled(exact(v))) for v, _ in pairs[1:-1]):
        raise Refused("several positions may be selected, and a truth value may be mistaken for a mean")
    (low, first), (high, last) = pairs[0], pairs[-1]
    slope = (exact(high) - exact(low)) / (last - first) if last != first else Fraction(0)
    if any(exact(v) != exact(low) + slope * (c - first) for v, c in pairs):
        raise Refused("the codes of the values are not a linear function of them")
    defined, undefined = {Fraction(0)}, set()  # the totals of w values, without and with an undefined one
    for w in range(1, most + 1):
        if limit is not None:
            undefined = {t + c for t in undefined for c in codes} | {t + limit for t in defined}
        defined = {t + c for t in defined for _, c in pairs}
        if (len(defined) + len(undefined)) * len(codes) > MOST:
            raise Refused("its totals are too many to enumerate")
        ends = {w * first: low, w * last: high}  # all selected values are the same there
        for total in defined:
            require(total, w, ends.get(total, settled(exact(low) + slope * (total / w - first))))
        for total in undefined:
            require(total, w, None)


def _codes(variables: Variables, selector: int, value: int, total: int) -> list[Fraction]:
    """What one selected position adds to the total, by the place of its value."""
    terms = _widths(variables, total, Fraction(1))
    counted = [Counted(factor, variables.node(width).inputs[0]) for width, factor in terms.items()]
    pairs = Pairs(variables, [Counted(Fraction(1), selector), *counted], {value})
    found = []
    for place in range(len(variables.domain(value))):
        inside: set[Fraction] = set()
        for atoms in pairs.cases({value: place}):
            added = sum((term.factor for term in counted if pairs.holds(term.selector, atoms)), Fraction(0))
            if pairs.holds(selector, atoms):
                inside.add(added)
            elif added:
                raise Refused("a position that is not selected adds to the total")
        if len(inside) > 1:
            raise Refused("what a selected position adds does not follow from its value")
        found.append(inside.pop() if inside else Fraction(0))
    return found


def _widths(variables: Variables, number: int, factor: Fraction) -> dict[int, Fraction]:
    """A node as a linear combination of widths, without an offset."""
    if variables.node(number).kind == "width":
        return {number: factor}
    terms, offset = variables.linear_definition(number)
    if not terms or offset:
        raise Refused(f"{variables.name(number)} is no sum of widths")
    found: dict[int, Fraction] = {}
    for x, f in terms.items():
        for width, g in _widths(variables, x, factor * f).items():
            found[width] = found.get(width, Fraction(0)) + g
    return found
