"""`build` and `prove`: functions, tables, maps on sequences and deeper transformers become proved transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.model import Transformer
    from certiformer.target import Table

Progress = Callable[[str, float, float | None, str], None]
Box = str | Sequence[Any]
Method = Literal[
    "auto",
    "fit",
    "gather",
    "ridge",
    "voronoi",
    "temperatures",
    "ridge-temperatures",
    "sigmoid-heads",
    "korovkin",
    "shifted-grids",
    "squares-rbf",
    "max-norm",
]
Layout = Literal["token", "sequence", "output-token"]
Rule = Literal["auto", "boxes", "theorem", "sum", "ridges"]
Dtype = Literal["float64", "float32", "bfloat16"]

# The names of `search.sequences`, spelled out: the command line needs them before anything is imported.
WORDS = ("sort", "count", "parity", "majority", "hist", "induction")
EPSILON = "1e-6"  # of rows and sequences, unless the user says otherwise


def build(
    target: str | Path | Callable[..., Any] | Transformer | Table,
    *,
    on: Box | None = None,
    eps: str | float | Fraction | None = None,
    method: Method = "auto",
    objective: Literal["parameters", "heads", "time"] = "parameters",
    fit_seconds: float = 30.0,
    tokens: int | None = None,
    out_tokens: int | None = None,
    out_width: int | None = None,
    layout: Layout | None = None,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    teacher: str | Path | Transformer | None = None,
    alphabet: int | None = None,
    rule: Rule = "auto",
    level: Literal[1, 2] = 2,
    boxes: int = 2_000_000,
    seconds: float = 600.0,
    quality: float = 0.1,
    order: int | None = None,
    dtype: Dtype | None = None,
    seed: int = 0,
    workers: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Artifact:
    """A transformer proved to be within `eps` of `target`: at every point of the box `on`, or of every row or sequence.

    **Arguments:**

    - `target`: a formula in x1, ..., xD, a function written in jax.numpy or its `"file.py:name"`, a table `"data.csv"` (or
      a `Table`), the name of a map on all sequences (`sort`, `count`, `parity`, `majority`, `hist`, `induction`), or a
      transformer (or its folder) to be imitated.
    - `on`: the box: text such as `"[0,2*pi]^2"`, a pair `(0, 1)`, or one pair for every variable, `[(0, 1), (0, 2)]`.
    - `eps`: the tolerance, text or a number: `0.1` is one tenth (default for rows and sequences: 1e-6).
    - `method`: how the weights are made; `auto` is the smallest that can be proved, `fit` is trained.
    - `objective`: what `auto` keeps small.
    - `fit_seconds`: how long `fit` trains.
    - `tokens`: read the inputs as that many tokens (default: one number a token); of a map, the length of the sequences.
    - `out_tokens`: write the outputs as that many rows (default: follows `tokens`).
    - `out_width`: how many numbers each of these rows has (default: the rest).
    - `layout`: all inputs in one `token`, a `sequence` of tokens, or the answer read off an `output-token`.
    - `inputs`: the columns of a table that are read, `"x1,x2"` or a list.
    - `outputs`: the columns of a table that are memorised.
    - `teacher`: a transformer (or its folder) whose outputs are memorised instead of columns.
    - `alphabet`: the number of letters of a map on sequences.
    - `rule`: the kind of proof; `auto` tries the cheap ones first.
    - `level`: 2 ends with the checker, 1 stops after the float64 search.
    - `boxes`: give up the search after so many boxes.
    - `seconds`: give up search and check after so many seconds together.
    - `quality`: how close the proved upper end should come to the lower end: 0.1 is within ten per cent.
    - `order`: of the Taylor forms of a proof by boxes, 1 to 10 (default: chosen).
    - `dtype`: store the weights in this type, and bound the rounding of runs in it as well (default: float64, no bound).
    - `seed`: of every random choice, from 0 up.
    - `workers`: how many processes share the boxes of the check (default: one for each core).
    - `out`: a folder to write (default: none stays on disk).
    - `force`: whether `out` may replace a finished run.
    - `keep`: write `runs/NAME` where `out` is not given, as the command line does.
    - `progress`: called with the stage, what is done, all there is, and a note.

    >>> import certiformer
    >>> artifact = certiformer.build("sin(x1)", on=(0, 6), eps=0.05, method="ridge")
    >>> artifact.outcome.value, artifact.level, artifact.certificate.method
    ('proved', 2, 'ridge')
    >>> certiformer.build("sort", alphabet=3, tokens=4).run([2, 0, 1, 0])
    [0, 0, 1, 2]
    """
    from certiformer.target import Table

    search: dict[str, Any] = {"rule": rule, "level": level, "boxes": boxes, "seconds": seconds, "quality": quality}
    search |= {"order": order, "dtype": dtype, "seed": seed, "workers": workers}
    place: dict[str, Any] = {"out": out, "force": force, "keep": keep, "progress": progress}
    rows = isinstance(target, Table) or speaks_of_rows(target)
    if not rows:
        foreign = {"inputs": inputs, "outputs": outputs, "teacher": teacher, "alphabet": alphabet}
        for name, value in foreign.items():
            if value is not None:
                raise BadInput(f"--{name} is for tables and sequences, not for a function on a box")
        box, tolerance = claim_of(on, eps)
        from certiformer.search import build as build_function

        return build_function(
            target,  # type: ignore[arg-type]  # a Table was told apart above
            on=box,
            eps=tolerance,
            method=method,
            objective=objective,
            fit_seconds=fit_seconds,
            tokens=tokens,
            out_tokens=out_tokens,
            out_width=out_width,
            layout=layout,
            **search,
            **place,
        )
    what = target if isinstance(target, str) else "a table"
    boxed = {"on": on, "layout": layout, "out_width": out_width, "order": order}
    boxed |= {"method": None if method == "auto" else method, "rule": None if rule == "auto" else rule}
    boxed |= {"level": None if level == 2 else level}
    for name, value in boxed.items():
        if value is not None:
            raise BadInput(f"--{name.replace('_', '-')} is for functions on a box, not for {what}")
    tolerance = EPSILON if eps is None else eps
    if target in WORDS:
        letters = 2 if target == "parity" and alphabet is None else alphabet
        if letters is None or tokens is None:
            raise BadInput(f"build {target} needs --alphabet V and --tokens N: the number of letters and the length")
        from certiformer.search.sequences import build_sequences

        return build_sequences(str(target), letters, tokens, eps=tolerance, dtype=dtype or "float64", **place)
    if dtype is not None:
        raise BadInput("--dtype is for functions on a box and for maps on sequences, not for a table")
    from certiformer.search.finite import build_table

    table: Any = target
    columns: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "teacher": teacher, "seed": seed}
    return build_table(table, eps=tolerance, tokens=tokens or 1, out_tokens=out_tokens or 1, **columns, **place)


def prove(
    model: Any,
    target: str | Callable[..., Any],
    *,
    on: Box | None = None,
    eps: str | float | Fraction | None = None,
    heads: int | None = None,
    activation: Literal["relu", "gelu"] | None = None,
    norm_first: bool | None = None,
    norm_epsilon: float | None = None,
    read: Literal["all", "mean", "sum", "first", "last"] | None = None,
    causal: bool | None = None,
    rule: Rule = "auto",
    level: Literal[1, 2] = 2,
    boxes: int = 2_000_000,
    seconds: float = 600.0,
    quality: float = 0.1,
    order: int | None = None,
    dtype: Dtype | None = None,
    seed: int = 0,
    workers: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Artifact:
    """Prove or refute that your own transformer is within `eps` of `target` at every point of the box `on`.

    **Arguments:**

    - `model`: a `Transformer`, a folder with `model.safetensors` and `config.json`, which is never changed, or an encoder
      of PyTorch: an `nn.Module`, or the path of a safetensors file with its state dict.
    - `target`: a formula in x1, ..., xD, a function written in jax.numpy, or its `"file.py:name"`.
    - `heads`, `activation`, `norm_first`, `norm_epsilon`, `read`, `causal`: what a state dict does not say
      (`certiformer.from_torch`).
    - the others are those of `build`.

    >>> import certiformer
    >>> artifact = certiformer.build("x1**2", on=(0, 1), eps=0.1, method="ridge")
    >>> certiformer.prove(artifact.model, "x1**2", on=(0, 1), eps=0.2).certified
    True
    >>> certiformer.prove(artifact.model, "x1**3", on=(0, 1), eps=0.01).outcome.value
    'refuted'
    """
    from certiformer.search import prove as prove_model

    box, tolerance = claim_of(on, eps)
    return prove_model(
        model,
        target,
        on=box,
        eps=tolerance,
        heads=heads,
        activation=activation,
        norm_first=norm_first,
        norm_epsilon=norm_epsilon,
        read=read,
        causal=causal,
        rule=rule,
        level=level,
        boxes=boxes,
        seconds=seconds,
        quality=quality,
        order=order,
        dtype=dtype,
        seed=seed,
        workers=workers,
        out=out,
        force=force,
        keep=keep,
        progress=progress,
    )


def speaks_of_rows(target: Any) -> bool:
    """Whether a target is a table or a word such as `sort`, not a function on a box."""
    return str(target).lower().endswith(".csv") or target in WORDS if isinstance(target, str | Path) else False


def claim_of(on: Box | None, eps: str | float | Fraction | None) -> tuple[str, Any]:
    """The box as text and the tolerance, which a claim about a function needs."""
    if on is None or eps is None:
        flag = "--on BOX" if on is None else "--eps E"
        raise BadInput(f'{flag} is missing: a function is approximated on a box, as in --on "[0,1]^2" --eps 0.1')
    return box_text(on), eps


def box_text(on: Box) -> str:
    """A box as the text that is recorded; a pair is one axis, and pairs are one for every variable.

    >>> box_text((0, 1)), box_text([(0, 1), ("-pi", 0.5)]), box_text("[0,1]^2")
    ('[0,1]', '[0,1]x[-pi,0.5]', '[0,1]^2')
    """
    if isinstance(on, str):
        return on
    axes = [on] if len(on) == 2 and not any(_is_pair(axis) for axis in on) else list(on)
    if not axes or not all(_is_pair(axis) for axis in axes):
        raise BadInput(f"--on is text such as '[0,1]^2', a pair of ends or a list of such pairs, not {on!r}")
    return "x".join(f"[{_end(low)},{_end(high)}]" for low, high in axes)


def _is_pair(axis: Any) -> bool:
    return not isinstance(axis, str) and hasattr(axis, "__len__") and len(axis) == 2


def _end(value: Any) -> str:
    from certiformer.arguments import plain

    number = plain(value)
    return repr(number) if isinstance(number, float) else str(number)
