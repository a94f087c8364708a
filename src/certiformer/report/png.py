"""Small pictures with one byte a pixel, written as PNG with the standard library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

from certiformer.report.palette import STEPS, Colour

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
