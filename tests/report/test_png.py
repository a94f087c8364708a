"""Pictures, decoded again by a reader of the format that shares nothing with the writer."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certiformer.report.maps import data_uri, encode
from certiformer.report.palette import STEPS, index, scale


def chunks(data: bytes) -> dict[bytes, bytes]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, found = 8, {}
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        (stored,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert stored == zlib.crc32(kind + body)
        found[kind] = body
        position += 12 + length
    return found


@given(st.integers(1, 5), st.data())
def test_pixels_come_back(width, data):
    rows = data.draw(st.lists(st.binary(min_size=width, max_size=width), min_size=1, max_size=5))
    parts = chunks(encode(rows, scale("error")))
    assert struct.unpack(">IIBBBBB", parts[b"IHDR"]) == (width, len(rows), 8, 3, 0, 0, 0)
    pixels = zlib.decompress(parts[b"IDAT"])
    assert [pixels[i * (width + 1) : (i + 1) * (width + 1)] for i in range(len(rows))] == [b"\0" + row for row in rows]
    assert parts[b"tRNS"] == b"\xff" * STEPS + b"\0" and len(parts[b"PLTE"]) == 3 * 256
    assert list(parts)[-1] == b"IEND"


def test_the_uri_holds_the_file():
    uri = data_uri([bytes([0, 255])], scale("depth"))
    assert base64.b64decode(uri.removeprefix("data:image/png;base64,")) == encode([bytes([0, 255])], scale("depth"))


@pytest.mark.parametrize("name", ["value", "error", "depth"])
def test_a_scale_grows_lighter_all_along(name):
    """Luminance by Rec. 709, on gamma-coded values: steps of less than half a grey level are not visible."""
    luminance = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in scale(name)]
    assert len(luminance) == STEPS and luminance[-1] - luminance[0] > 150
    assert all(later > earlier - 0.5 for earlier, later in zip(luminance, luminance[1:], strict=False))


@given(st.floats(allow_nan=True), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_every_value_has_a_colour(value, low, high):
    found = index(value, low, high)
    assert found == STEPS if value != value else 0 <= found < STEPS
