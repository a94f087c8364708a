"""Tables of the page of a study, and the slopes with their intervals beside the exponents of theories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from certiformer.report.numbers import short
from certiformer.report.rates_data import (
    ERRORS,
    cell_text,
    exclusions,
    signed,
    slope_of,
    slope_text,
    theory_name,
    theory_of,
    theory_place,
)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table that scrolls sideways when it is wider than the page."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in headings)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="values"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def values_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The numbers of a picture, folded away."""
    return f"<details><summary>The values as a table</summary>{table(headings, rows)}</details>" if rows else ""


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{' class=number' if number else ''}>{escape(cell_text(value))}</td>"


def slopes(series: Sequence[Mapping[str, Any]]) -> str:
    """For each error a table: slope, interval, theories on one scale, and what the interval excludes."""
    drawn = ""
    for error, word in ERRORS.items():
        fitted = [each for each in series if slope_of(each, error)[0] is not None]
        if fitted:
            drawn += f'<figure class="broad"><h3>Slope of the {word}</h3>{_slope_rows(fitted, error)}</figure>'
    missing = [each for each in series if slope_of(each, "mse")[0] is None]
    items = "".join(f"<li><b>{escape(each['name'])}</b>: {escape(_reason(each))}</li>" for each in missing)
    rest = f'<p>No slope was fitted for:</p><ul class="plain">{items}</ul>' if items else ""
    return f'<div class="figures">{drawn}</div>{rest}' if drawn or rest else ""


def _reason(series: Mapping[str, Any]) -> str:
    return str(series.get("note") or "the study asks for none")


def _slope_rows(series: Sequence[Mapping[str, Any]], error: str) -> str:
    names = list(dict.fromkeys(name for each in series for name in theory_of(each, error)))
    values = [value for each in series for value in (*(_ends(each, error)), *theory_of(each, error).values())]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.5
    low, high = low - room, high + room

    def share(value: float) -> float:
        return 100 * (value - low) / (high - low)

    rows = ""
    for each in series:
        first, last = _ends(each, error)
        slope = slope_of(each, error)[0] or 0.0
        marks = f'<i style="left:{share(first):.2f}%;width:{share(last) - share(first):.2f}%"></i>'
        marks += f'<b style="left:{share(slope):.2f}%"></b>'
        for name, exponent in theory_of(each, error).items():
            out = " out" if name in (each.get("excluded") or ()) else ""
            tip = f"{theory_name(name)}: {signed(exponent)}{', excluded' if out else ''}"
            place = f'style="left:{share(exponent):.2f}%" data-tip="{escape(tip)}"'
            marks += f'<u class="t{theory_place(name, names)}{out}" {place}></u>'
        rows += (
            f'<tr><th scope="row">{escape(each["name"])}</th><td class="scale"><div class="iv">{marks}</div></td>'
            f'<td class="number">{escape(slope_text(each, error))}</td></tr>'
            f'<tr class="verdict-row"><td colspan="3">{escape(exclusions_for(each, error))}</td></tr>'
        )
    keys = "".join(
        f'<span class="mark t{theory_place(name, names)}">{escape(theory_name(name))}</span>' for name in names
    )
    keys += '<span class="mark-note">× excluded by the interval</span>' if names else ""
    ends = f'<div class="ivends"><span>{escape(short(low))}</span><span>{escape(short(high))}</span></div>'
    return (
        f'<table class="slopes"><tbody>{rows}</tbody><tfoot><tr><td></td><td class="scale">{ends}</td><td></td></tr>'
        f'</tfoot></table><p class="theory-keys">{keys}</p>'
    )


def exclusions_for(series: Mapping[str, Any], error: str) -> str:
    """What the interval of this error's slope says about the theories that speak of it."""
    return exclusions({**series, "theory": theory_of(series, error)})


def _ends(series: Mapping[str, Any], error: str) -> tuple[float, float]:
    slope, interval = slope_of(series, error)
    value = slope or 0.0
    return (min(interval[0], value), max(interval[1], value)) if interval else (value, value)
