"""Mutants of small checkpoints of every family: one sentence or an audit that adds up, whatever was done to them.

The whole audit runs on each: reading, figures, verdicts, JSON. `properties` says what must hold, `mutations` what is done.
Warnings are errors here, so that none of them reaches a user either."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from audit.read.drafts import BASES
from audit.read.mutations import LIKELY, mutant
from audit.read.properties import ASKED, examine
from certiformer.audit import Audit, audit, record
from certiformer.audit.read import blocks, gptj, ledger, names
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput

MOST_MEMORY = 1 << 30  # bytes of one process that audits hundreds of them
FEW = 100  # mutants of two families that find every planted fault
# BLAS sums in another order where an array begins at another place in memory: a few units of 2^-53 on sums of 20 terms.
SUMS = 1e-13


def fuzz(
    folder: Path,
    rounds: int,
    bases: Sequence[str] = tuple(sorted(BASES)),
    kinds: Sequence[str] = LIKELY,
    phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink),
) -> Counter[str]:
    """Examines so many mutants; a failing one is printed with its base and its steps, made as small as it gets."""
    seen: Counter[str] = Counter()
    steps = st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 2**32 - 1)), min_size=1, max_size=3).map(tuple)

    @settings(
        max_examples=rounds, derandomize=True, deadline=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    @given(st.tuples(st.sampled_from(bases), steps, st.sampled_from(ASKED)))
    def one(chosen) -> None:
        base, steps, asked = chosen
        seen[examine(mutant(base, steps), folder, asked)] += 1

    one()
    return seen


def check_both(seen: Counter[str]) -> None:
    """Both outcomes must occur, or nothing was tested."""
    assert min(seen["refused"], seen["audited"]) > seen.total() // 5, seen


def test_mutants_of_every_family(tmp_path):
    check_both(fuzz(tmp_path, 250))


@pytest.mark.slow
def test_ten_thousand_mutants(tmp_path):
    seen = fuzz(tmp_path, 10_000)
    check_both(seen)
    assert seen.total() >= 10_000


STATUS = Path(
    "/proc/self/status"
)  # the peak of this program; that of `resource` counts what the parent had when it began


@pytest.mark.skipif(not STATUS.exists(), reason="needs the peak of one program, which Linux tells")
@pytest.mark.parametrize(("spent", "within"), [(0, True), (MOST_MEMORY, False)])
def test_mutants_take_little_memory(spent, within, tmp_path):
    """With a negative control, which spends all that there is."""
    code = (
        "import pathlib, re, sys; import numpy as np; from audit.read.test_reader_fuzz import STATUS, fuzz;"
        f"fuzz(pathlib.Path(sys.argv[1]), {120 if within else 1}); np.ones({spent}, np.uint8);"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', STATUS.read_text())[1])"
    )
    path = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert (int(run.stdout.split()[-1]) * 1024 < MOST_MEMORY) == within


# Changes that say nothing new: order, and a tensor that nobody knows.


def heads_of(found: Audit) -> dict[str, float | None]:
    """Every number of every head, by where it stands."""

    def flat(value: Any, place: str) -> Iterator[tuple[str, float | None]]:
        if isinstance(value, (dict, list)):
            for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                yield from flat(each, f"{place}.{key}")
        else:
            yield place, value

    return dict(flat([layer["heads"] for layer in found.to_json()["layers"]], ""))


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    close = (
        math.isclose(a[key], each, rel_tol=SUMS, abs_tol=SUMS) if isinstance(each, float) else a[key] == each
        for key, each in b.items()
    )
    return a.keys() == b.keys() and all(close)


@pytest.mark.parametrize("base", BASES)
def test_order_and_unknown_tensors_change_no_figure(base, tmp_path):
    plain, turned, more = (BASES[base]() for _ in range(3))
    turned.tensors = dict(reversed(turned.tensors.items()))
    more.tensors = {"unheard.of": np.full((3, 2), 0.25, np.float32)} | more.tensors
    found = [audit(each.write(tmp_path / str(place)), **each.given) for place, each in enumerate((plain, turned, more))]
    wanted = heads_of(found[0])
    assert wanted and all(same(heads_of(each), wanted) for each in found[1:])
    assert found[0].coverage == found[1].coverage and not found[0].coverage.missing
    assert found[2].coverage.missing == (("unheard.of", (3, 2)),)
    assert found[2].coverage.accounted == found[0].coverage.accounted == found[2].coverage.total - 6


# The fuzzer can fail: every planted fault is found by some property.


def planted(folder: Path, *kinds: str) -> BaseException:
    """What ends a short run with such mutations; it must not end well."""
    with pytest.raises(Exception) as caught:
        fuzz(folder, FEW, ("gptj", "opt"), kinds, (Phase.generate,))
    assert not isinstance(caught.value, BadInput)
    return caught.value


def test_an_unchecked_number_of_the_config_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(Settings, "whole", Settings.get)
    assert isinstance(planted(tmp_path, "entry", "numbers"), (TypeError, ValueError, ArithmeticError))


def test_an_unchecked_reshape_is_found(monkeypatch, tmp_path):
    rule = blocks.hidden

    def wrong(found, up, *rest, **more):
        found.files.read(f"{found.prefix}{up}.weight").reshape(20, 12)
        return rule(found, up, *rest, **more)

    monkeypatch.setattr(gptj, "hidden", wrong)
    assert isinstance(planted(tmp_path, "reshape", "narrow"), ValueError)


def test_keys_taken_for_queries_are_found(monkeypatch, tmp_path):
    """Even where shapes, provenance and coverage stay right, and where the figures do: exchanged maps have equal norms."""
    rule = blocks.separate

    def twice(*args, **more):
        found = rule(*args, **more)
        return replace(found, query=replace(found.query, load=found.key.load))

    def exchanged(*args, **more):
        found = rule(*args, **more)
        return replace(
            found, query=replace(found.query, load=found.key.load), key=replace(found.key, load=found.query.load)
        )

    def counted_twice(*args, **more):
        found = rule(*args, **more)
        return replace(found, query=found.key)

    for wrong in (twice, exchanged, counted_twice):
        monkeypatch.setattr(gptj, "separate", wrong)
        assert isinstance(planted(tmp_path, "retype_all", "numbers", "drop"), AssertionError)
        with pytest.raises(AssertionError):
            examine(BASES["gptj"](), tmp_path)


def test_heads_read_in_another_order_are_found(monkeypatch, tmp_path):
    rule = blocks.fused_rows
    monkeypatch.setattr(blocks, "fused_rows", lambda heads, layout: rule(heads, "blocks"))
    with pytest.raises(AssertionError):
        examine(BASES["neox"](), tmp_path)


def test_a_tensor_that_vanishes_is_found(monkeypatch, tmp_path):
    rule = ledger.Ledger.coverage
    monkeypatch.setattr(ledger.Ledger, "coverage", lambda self: replace(rule(self), missing=()))
    assert isinstance(planted(tmp_path, "extra", "rename"), AssertionError)


def test_nan_in_the_json_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "plain", lambda value: value)
    assert "JSON compliant" in str(planted(tmp_path, "numbers"))


def test_readers_that_refuse_everything_are_found(monkeypatch, tmp_path):
    def refuse(*args):
        raise BadInput("no")

    monkeypatch.setattr(names.Names, "count", refuse)
    with pytest.raises(AssertionError):
        check_both(fuzz(tmp_path, FEW))
