"""Whether models of a shape can compute every function of words up to a length: true, false with a reason, or open.

`judge` asks each hypothesis of `expressivity.words_in_normed_blocks` of the facts of a model. A fact that no file says is
None and is asked for. Where a theorem shows that some function is out of reach of *all* weights, the verdict is false,
with that theorem and the error that none of them avoids; where neither is proved, it is open, with what is in the way.

*Out of reach by windows.* A token hears w - 1 places back in a layer with window w. If all layers together do not reach
from the last token to the first, the last output is the same for two words that differ in the first letter only, so
half of the difference of the targets is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from certiformer.expressivity.normed_outputs import MISSED, is_normed_output
from certiformer.expressivity.word_network import PLACES, UNITS
from certiformer.expressivity.words_in_normed_blocks import half_width

WORDS, OUTPUTS = "expressivity.words_in_normed_blocks", "expressivity.normed_outputs"
EQUAL, ORDER = "expressivity.relative_bias_not_universal", "expressivity.permutation_equivariance"
CODES = ("learned",)
INSIDE = ("rope", "alibi", "none")  # positions that causal attention tells with a start token
UNSEEN = (*INSIDE, "relative")  # positions that leave equal tokens equal
TIED_MORE = 8  # half of the width that a tied table needs besides its letters, and under rotary codes:
TIED_MORE_ROTARY = 13
REACH_MISSED = 0.5
START = "a start token before every input (--set start_token=true)"


@dataclass(frozen=True)
class ModelShape:
    """The facts of a model that the theorems ask about; None where no file says them.

    `place` of the norms ("none" for no norms), `norms`: their kinds; `units`: the activations; `windows`: of each layer
    that is stored, which is applied `repeats` times at most;
    `read_out`: "own", "tied" or "none"; `last_norm`: the kind of the norm behind everything; `start`: whether every
    input begins with one token, False only for softmax without tokens of the model's own; `oddities`: what else there
    is, in words.
    """

    place: str | None
    norms: frozenset[str]
    units: frozenset[str | None]
    causal: bool | None
    positions: str | None
    layers: int
    width: int
    key_size: int | None
    value_size: int | None
    read_out: str
    outputs: int | None
    last_norm: str | None = None
    letters: int | None = None
    length: int | None = None
    windows: tuple[int | None, ...] = ()
    repeats: int = 1
    projected: bool = True
    start: bool | None = None
    score_biases: bool = False
    oddities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Universality:
    """`holds`, `holds-if` (with `needs`), `false` (with the theorem that shows it and what all weights miss) or `open`."""

    verdict: str
    sentence: str
    needs: tuple[str, ...] = ()
    because: str | None = None
    missed: float | None = None


def judge(shape: ModelShape) -> Universality:
    """The verdict.

    >>> gpt2 = ModelShape("pre", frozenset({"layer"}), frozenset({"gelu-tanh"}), True, "learned", 12, 768, 64, 64,
    ...                   "tied", 50_257, "layer", 50_257, 1024)
    >>> judge(gpt2).verdict
    'holds'
    >>> from dataclasses import replace
    >>> blind = judge(replace(gpt2, positions="none", causal=False, length=4))
    >>> blind.verdict, blind.missed
    ('false', 0.375)
    """
    needs = tuple(_unknown(shape))
    if needs:
        return Universality("holds-if", "Whether every function of words can be computed is not said by files.", needs)
    return next(_refutations(shape), None) or _opened(shape) or _holds(shape)


def needed_width(shape: ModelShape) -> int:
    """The width that the theorem's network has."""
    rotary = shape.positions == "rope"
    if shape.read_out == "tied":
        return 2 * ((shape.outputs or 0) + (TIED_MORE_ROTARY if rotary else TIED_MORE))
    return 2 * half_width(shape.outputs or 1 if shape.read_out == "own" else 1, rotary)


def _unknown(shape: ModelShape) -> Iterator[str]:
    if shape.place is None:
        yield "where the norms stand (--norm-first)"
    if shape.causal is None:
        yield "whether a token sees later ones (--causal)"
    if shape.positions is None:
        yield "how positions enter"
    if shape.key_size is None or shape.value_size is None:
        yield "how many heads there are (--heads)"


def _refutations(shape: ModelShape) -> Iterator[Universality]:
    """What no weights can do, the most basic reason first."""
    length = shape.length or 2
    missed = float(Fraction(length - 1, 2 * length))  # half the spread of the target i/n
    tables = shape.score_biases or any(window is not None for window in shape.windows)
    if shape.positions == "none" and not shape.causal and not tables:
        yield Universality(
            "false",
            "False: without codes, masks or biases the order of the tokens is invisible, and on equal tokens every model"
            f" misses the target i/n by {missed:.4g}.",
            because=ORDER,
            missed=missed,
        )
    if shape.positions in UNSEEN and shape.start is False:
        yield Universality(
            "false",
            "False without a start token: on equal tokens positions inside the softmax leave all outputs equal, so every"
            f" model misses the target i/n of {length:,} tokens by {missed:.4g}.",
            because=EQUAL,
            missed=missed,
        )
    if shape.length is not None and shape.windows and None not in shape.windows:
        reach = shape.repeats * sum(window - 1 for window in shape.windows if window is not None)
        if reach < shape.length - 1:
            yield Universality(
                "false",
                f"False for {shape.length:,} tokens: windows let a token hear {reach:,} places back, so the last output"
                f" misses a target in {{0, 1}} that needs the first token by {REACH_MISSED}.",
                missed=REACH_MISSED,
            )
    if is_normed_output(shape.last_norm, affine_behind=shape.read_out != "none"):
        yield Universality(
            "false",
            "False for the token vectors themselves: behind a layer norm they lie in one hyperplane, and every model"
            f" misses some corner of the cube by {MISSED:g}. With an affine read-out behind it, it holds.",
            because=OUTPUTS,
            missed=MISSED,
        )


def _opened(shape: ModelShape) -> Universality | None:
    reasons = list(_reasons(shape))
    if not reasons:
        return None
    return Universality("open", f"Open: neither proved nor refuted for {'; '.join(reasons)}.")


def _reasons(shape: ModelShape) -> Iterator[str]:
    if shape.place not in PLACES:
        yield f"norms at the place {shape.place!r}"
    if len(shape.norms) > 1 or not shape.norms <= {"layer", "rms"}:
        yield "norms of several kinds"
    odd = sorted(str(unit or "unknown") for unit in shape.units if unit not in UNITS)
    if odd or not shape.units:
        yield f"{', '.join(odd) or 'no'} units"
    if shape.positions not in CODES and not (shape.positions in INSIDE and shape.causal):
        yield f"{shape.positions} positions" + ("" if shape.causal else " with all tokens in sight")
    least = (2 if shape.positions == "rope" else 1, 2 if shape.projected else 4)
    if (shape.key_size or 0) < least[0] or (shape.value_size or 0) < least[1]:
        yield f"heads of size {shape.key_size} and {shape.value_size}"
    wanted = (1 if shape.positions in CODES else 2) * (2 if shape.place == "parallel" else 1)
    if shape.layers < wanted:
        yield f"{shape.layers} layers, where the proof needs {wanted}"
    if any(window is not None for window in shape.windows):
        yield "windows"
    yield from shape.oddities


def _holds(shape: ModelShape) -> Universality:
    width, length = needed_width(shape), "" if shape.length is None else f" of up to {shape.length:,} tokens"
    what = "prefix map (row i a function of the first i tokens)" if shape.causal else "function"
    told = "trained codes" if shape.positions in CODES else "a start token"
    wide = (
        f"{shape.width:,} is wide enough"
        if width <= shape.width
        else f"the width may grow from {shape.width:,} to {width:,}"
    )
    sentence = (
        f"Every {what} of words{length} is computed exactly by some weights of this shape, positions told by {told}, if"
        f" hidden units may be as many as contexts ({wide})."
    )
    if shape.causal:
        sentence += " A target whose first row needs a later token is missed by half its spread."
    if shape.positions in CODES or shape.start:
        return Universality("holds", sentence)
    missed = float(1 - Fraction(1, shape.length or 2)) / 2
    without = f" Without a start token it is false: equal tokens then miss the target i/n by {missed:.4g}."
    return Universality("holds-if", sentence + without, (START,), EQUAL, missed)
