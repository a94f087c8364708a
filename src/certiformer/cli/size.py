"""`certiformer size`: how large a transformer for a class of functions must be, and how large one is that suffices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.sizes import Budget, Statement

SUMMARY = (
    "Say how large a transformer for a class of functions must be, and how large one is that suffices, both proved."
)
EXAMPLES = """
  certiformer size --class lipschitz --constant 1 --dimension 4 --eps 0.01             # weights, numbers and bits
  certiformer size --class lipschitz --constant 1 --dimension 2 --weights 10000        # what a budget buys
  certiformer size --class lipschitz --constant 1 --dimension 2 --over eps --values 0.1,0.03,0.01 --picture size.svg
  certiformer size --class circuits --inputs 64 --depth 8                              # exact classes have no epsilon
  certiformer size --class languages --symbols 2 --length 200 --over states --values 10,20,50

exit codes: 0 done, 2 bad input
"""
Number = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Text = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")]


@dataclass(kw_only=True)
class Options:
    """The flags of `size`."""

    kind: Annotated[str, arg(name="class", metavar="NAME")]
    """the class: lipschitz, symmetric, equivariant, smooth, analytic, ridges, circuits, languages, programs"""
    eps: Annotated[str | None, arg(metavar="E", help_behavior_hint="")] = None
    """the error in the sup norm, an exact number: 0.1, 1e-3, 1/100 (for classes of real functions)"""
    weights: Annotated[str | None, arg(metavar="N", help_behavior_hint="")] = None
    """instead of --eps: what so many weights buy"""
    bits: Annotated[int, arg(metavar="B")] = 64
    """how many bits a weight has, where bits are turned into weights"""
    constant: Text = None
    """the constant of a class of real functions: L, or M for analytic ones"""
    dimension: Number = None
    """D: the functions live on [0,1]^D"""
    smoothness: Number = None
    """smooth: the order of the derivatives that are bounded"""
    radius: Text = None
    """analytic: how far the power series converge at every point"""
    ridges: Number = None
    """ridges: how many terms the sums have"""
    inputs: Number = None
    """circuits: the number of input bits"""
    depth: Number = None
    """circuits: the depth, with gates of two operands"""
    states: Number = None
    """languages: the states of the automata"""
    symbols: Number = None
    """languages, programs: the size of the alphabet"""
    length: Number = None
    """languages, programs: the longest sequence"""
    units: Number = None
    """programs: the hidden units of the bill"""
    layers: Number = None
    """programs: its layers (1)"""
    heads: Number = None
    """programs: its heads (1)"""
    width: Number = None
    """programs: its width (7)"""
    over: Annotated[str | None, arg(metavar="AXIS", help_behavior_hint="")] = None
    """a table over eps or a parameter of the class"""
    values: Annotated[str | None, arg(metavar="A,B,C", help_behavior_hint="")] = None
    """its values; 1:8 is 1, 2, ..., 8"""
    picture: Annotated[str | None, arg(metavar="FILE.svg", help_behavior_hint="")] = None
    """draw the table of --over"""
    force: Flag = False
    """replace an existing FILE.svg"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Answer the question; returns the exit code."""
    from certiformer.api.studies import size
    from certiformer.cli.number_lists import spread
    from certiformer.sizes import PARAMETERS, Budget

    arguments: dict[str, Any] = {name: getattr(options, name) for name in ("eps", "bits", *PARAMETERS)}
    if options.over is None and (options.values is not None or options.picture is not None):
        raise BadInput("--values and --picture belong to --over AXIS, such as --over eps --values 0.1,0.03,0.01")
    values = spread(options.values or "")
    table = {} if options.over is None else {"over": options.over, "values": [] if options.values is None else values}
    answer = size(options.kind, weights=_count(options.weights), **arguments, **table)
    if isinstance(answer, list):
        _say_answers(answer, str(options.over), values, options, terminal)
    elif terminal.json:
        terminal.emit(answer.to_json())
    elif isinstance(answer, Budget):
        _say_budget(answer, terminal)
        _say(answer.statement, terminal)
    else:
        _say(answer, terminal)
    return 0


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    plain = text.replace(",", "").replace("_", "")
    if not (plain.isascii() and plain.isdigit()):
        raise BadInput(f"--weights is a whole number such as 10000, not {text!r}")
    return int(plain)


def _say_answers(found: list[Statement], axis: str, values: list[str], options: Options, terminal: Terminal) -> None:
    if options.picture is not None:
        _draw(options, axis, values, found)
    if terminal.json:
        terminal.emit({"over": axis, "values": values, "statements": [each.to_json() for each in found]})
        return
    _say_table(axis, values, found, terminal)
    terminal.fact("distance", found[-1].distance)
    if options.picture is not None:
        terminal.fact("wrote", options.picture)


def _draw(options: Options, axis: str, values: list[str], found: list[Statement]) -> None:
    from certiformer.disk import put_file
    from certiformer.report.size_picture import size_picture

    places = [Fraction(value) for value in values]
    text = size_picture(
        f"Class {options.kind}: what is proved about the smallest transformer",
        axis,
        places,
        ("bits that suffice", [each.upper.bits for each in found]),
        ("bits that are needed", [each.lower.bits for each in found]),
        [("weights of the construction", [each.upper.weights for each in found])],
    )
    put_file(Path(str(options.picture)), text.encode(), options.force)


def _say_table(axis: str, values: list[str], found: list[Statement], terminal: Terminal) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in (axis, "weights", "numbers", "bits", "least numbers", "least bits", "gap numbers", "gap bits"):
        table.add_column(name, justify="right")
    for value, each in zip(values, found, strict=True):
        gap = each.gap()
        above = (each.upper.weights, each.upper.values, each.upper.bits, each.lower.values, each.lower.bits)
        table.add_row(value, *map(_number, above), _ratio(gap["values"]), _ratio(gap["bits"]))
    terminal.table(table)


def _say(found: Statement, terminal: Terminal) -> None:
    """One statement for people."""
    upper, lower, gap = found.upper, found.lower, found.gap()
    parts = [f"{name} {value}" for name, value in found.parameters.items() if value is not None]
    terminal.fact("class", ", ".join([found.name, *parts, *([f"eps {found.epsilon}"] if found.epsilon else [])]))
    made = f"{_number(upper.weights)} weights, {_number(upper.values)} of them depend on the function"
    terminal.fact("enough", f"{made}; {_number(upper.bits)} bits choose among all that are needed")
    shape = [f"layers {upper.layers}", f"heads {upper.heads}", f"width {_number(upper.width)}"]
    shape += [f"hidden units {_number(upper.units)}"] if upper.units else []
    terminal.fact("", ", ".join([*shape, f"tokens {_number(upper.tokens)}"]))
    terminal.fact("needed", f"{_number(lower.bits)} bits, that is {_number(found.lower_weights)} weights of"
                  f" {found.bits_per_weight} bits")  # fmt: skip
    if lower.values is not None:
        terminal.fact("", f"{_number(lower.values)} numbers, if they depend continuously on the function")
    ratios = {"numbers": gap["values"], "bits": gap["bits"], "weights": gap["weights"]}
    terminal.fact("gap", ", ".join(f"{name} {_ratio(ratio)}" for name, ratio in ratios.items()))
    terminal.fact("distance", found.distance)
    for sentence in (*lower.others, *found.notes):
        terminal.fact("also", sentence)
    terminal.fact("theorems", f"{', '.join(upper.theorems)} (enough); {', '.join(lower.theorems)} (needed)")
    terminal.facts("make it" if upper.buildable else "too large", [upper.command])


def _say_budget(found: Budget, terminal: Terminal) -> None:
    terminal.fact("budget", f"{_number(found.weights)} weights of {found.bits_per_weight} bits")
    if found.axis == "eps":
        terminal.fact("buys", f"an error of {float(found.reached):.4g} for every function of the class", "good")
        if found.excluded is not None:
            terminal.fact("", f"and nobody reaches {float(found.excluded):.4g} with them")
    else:
        terminal.fact("buys", f"{found.axis} {_number(int(found.reached))}", "good")
        if found.excluded is not None:
            terminal.fact("", f"and nobody reaches {found.axis} {_number(int(found.excluded))} with them")


def _number(value: int | None) -> str:
    """A whole number, short where it is long."""
    if value is None:
        return "not known"
    return f"{value:,}" if value < 10**15 else f"{str(value)[0]}.{str(value)[1:4]}e{len(str(value)) - 1}"


def _ratio(value: Fraction | None) -> str:
    from certiformer.sizes.statement import ratio_text

    return "not known" if value is None else ratio_text(value)
