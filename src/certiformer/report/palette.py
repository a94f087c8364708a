"""Colour scales of the pictures, as anchors that are interpolated in sRGB.

All three run from dark to light with steadily growing lightness, so they survive grey printing and colour blindness, and
they read the same on a light and on a dark page.
"""

from __future__ import annotations

Colour = tuple[int, int, int]

STEPS = 255  # colours of a scale; index 255 of a picture is "no value"

_ANCHORS = {
    # violet - teal - yellow, for values of either sign
    "value": ("440154", "46327e", "365c8d", "277f8e", "1fa187", "4ac16d", "a0da39", "fde725"),
    # black - purple - orange - cream, for the size of an error
    "error": ("0b0724", "35115f", "6b1d81", "a1307e", "d8456c", "f8765c", "feae77", "fcfdbf"),
    # navy - blue - pale green, for the depth of a cut
    "depth": ("2a1e44", "413d7b", "395a95", "347ca4", "379fa9", "4fbfae", "94dcb5", "def5e5"),
}


def scale(name: str) -> list[Colour]:
    """The `STEPS` colours of a scale, from its low to its high end.

    >>> scale("value")[0], scale("value")[-1], len(scale("depth"))
    ((68, 1, 84), (253, 231, 37), 255)
    """
    anchors = [_colour(text) for text in _ANCHORS[name]]
    colours = []
    for step in range(STEPS):
        position = step / (STEPS - 1) * (len(anchors) - 1)
        index = min(int(position), len(anchors) - 2)
        share = position - index
        below, above = anchors[index], anchors[index + 1]
        mixed = [round(a + (b - a) * share) for a, b in zip(below, above, strict=True)]
        colours.append((mixed[0], mixed[1], mixed[2]))
    return colours


def index(value: float | None, low: float, high: float) -> int:
    """The colour of a value on a scale from `low` to `high`; what lies beyond gets the end colours.

    >>> index(0.0, 0.0, 1.0), index(0.5, 0.0, 1.0), index(7.0, 0.0, 1.0), index(None, 0.0, 1.0)
    (0, 127, 254, 255)
    """
    if value is None or value != value:
        return STEPS
    if high <= low:
        return 0
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return round(share * (STEPS - 1))


def _colour(text: str) -> Colour:
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)
