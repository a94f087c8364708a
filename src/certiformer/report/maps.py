"""Pictures over two variables: one colour a pixel, with its scale, as PNG with one byte a pixel by the standard library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

from certiformer.report.frame import axis_ticks, figure, frame, value_ticks
from certiformer.report.palette import STEPS, Colour, index, scale

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def data_uri(rows: Sequence[bytes], colours: Sequence[Colour]) -> str:
    """The picture whose rows (top first) hold indices into `colours`; index `STEPS` is transparent.

    >>> data_uri([bytes([0, 1]), bytes([1, 255])], [(0, 0, 0), (255, 255, 255)])[:30]
    'data:image/png;base64,iVBORw0K'
    """
    return "data:image/png;base64," + base64.b64encode(encode(rows, colours)).decode("ascii")


def encode(rows: Sequence[bytes], colours: Sequence[Colour]) -> bytes:
    """The bytes of the PNG file."""
    filled = [*colours, *[(0, 0, 0)] * (STEPS + 1 - len(colours))]
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)  # 8 bits an index, palette colours
    opacity = bytes([255] * STEPS + [0])
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)  # every row without a filter
    parts = [
        (b"IHDR", header),
        (b"PLTE", b"".join(bytes(colour) for colour in filled)),
        (b"tRNS", opacity),
        (b"IDAT", body),
        (b"IEND", b""),
    ]
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def colour_map(picture: dict[str, Any]) -> str:
    """A map of values, its colour scale below it."""
    colours = scale(picture["palette"])
    low, high = picture["low"], picture["high"]
    rows = [bytes(index(value, low, high) for value in row) for row in reversed(picture["values"])]
    label = escape(f"{picture['title']}: {picture['unit']} over {picture['x']['label']} and {picture['y']['label']}")
    image = f'<img src="{data_uri(rows, colours)}" alt="{label}">'
    x, y = axis_ticks(picture["x"]), axis_ticks(picture["y"])
    name = f"{picture['x']['label']} →, {picture['y']['label']} ↑"
    drawn = frame(image, x, y, name, shape="square")
    return figure(picture["title"], picture["caption"], drawn + _legend(picture, colours))


def _legend(picture: dict[str, Any], colours: list[tuple[int, int, int]]) -> str:
    bar = data_uri([bytes(range(STEPS))], colours)
    low, high = picture["low"], picture["high"]
    whole = picture["palette"] == "depth"
    ticks = [tick for tick in value_ticks(low, high, 3) if not (whole and "." in tick[1])]
    labels = "".join(
        f'<span class="{_place(at)}" style="left:{100 * at:.2f}%">{escape(text)}</span>' for at, text in ticks
    )
    return (
        f'<div class="legend"><img src="{bar}" alt="colour scale"><div class="below">{labels}</div>'
        f'<div class="name">{escape(picture["unit"])}</div></div>'
    )


def _place(at: float) -> str:
    return "first" if at < 0.05 else "last" if at > 0.95 else "inner"
