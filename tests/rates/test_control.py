"""The study of control: tiny runs of every control, planted effects, and what is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.bounds.normed_stack import pieces
from certiformer.bounds.stack_by_count import entries
from certiformer.rates.control_models import HEADS, SIZE, TASKS, WIDTH, norms_of, outputs, sample, start
from certiformer.rates.studies.control import CONTROLS, STUDY, Options, jobs, run, summary

TINY = Options(samples=16, seeds=2, steps=50, batch=8, tasks=("largest",), controls=("none", "all spectral", "top-k"))


def test_a_tiny_run_has_every_figure():
    rows = [row for job in jobs(TINY) for row in job.run()]
    assert len(rows) == 6 and all(row["test_error"] > 0 and not row["diverged"] for row in rows)
    by = {(row["control"], row["seed"]): row for row in rows}
    assert by["all spectral", 0]["proved"] <= 1 and by["none", 0]["proved"] is None
    assert by["all spectral", 0]["log10_norms"] < by["none", 0]["log10_norms"]
    assert by["top-k", 0]["log10_norms"] is None
    told = summary(rows, TINY)
    assert len(told.findings) == 2 and len(told.tables[0].rows) == 3 and "finished" not in " ".join(told.limits)
    assert "finished" in " ".join(summary(rows[:3], TINY).limits)


def planted(control: str, seed: int, factor: float, bound: float | None) -> dict:
    noise = math.exp(0.01 * math.sin(7.0 * seed + len(control)))
    return {
        "task": "largest", "control": control, "seed": seed, "test_error": factor * noise, "train_error": 0.1, "seconds": 1.0,
        "diverged": False, "log10_norms": bound, "log10_ranks": bound, "proved": None,
    }  # fmt: skip


def test_planted_effects_are_found_and_no_others():
    options = Options(tasks=("largest",), controls=("none", "qk", "ov", "top-k"), seeds=4)
    factors = {"none": 1.0, "qk": 0.5, "ov": 1.0, "top-k": 3.0}
    rows = [
        planted(name, seed, factor, None if name == "top-k" else 5.0 - 2 * (name == "qk"))
        for name, factor in factors.items()
        for seed in range(4)
    ]
    qk, ov, top = summary(rows, options).findings
    assert "smaller" in qk and "10^(-2" in qk and "neither" in ov and "LARGER" in top and "10^" not in top


@pytest.mark.parametrize("task", TASKS)
def test_the_tasks(task):
    x, y = sample(task, 50, 3, 0.0)
    assert x.dtype == np.float32 and np.isfinite(x).all() and np.isfinite(y).all()
    if task == "largest":
        assert (y[:, 0] == x[:, :, 0].max(1)).all()
    elif task == "lookup":
        for one, answer in zip(x, y, strict=True):
            same = [t for t in range(len(one) - 1) if (one[t, 1:] == one[-1, 1:]).all()]
            assert len(same) == 1 and one[same[0], 0] == answer[0]
    else:
        assert (x.sum(-1) == 1).all() and (y.sum(-1) == 1).all()


def test_the_norms_are_those_of_the_model():
    tensors = start("largest", "softmax", 0)
    stack = norms_of(tensors)
    counted = sum(tensor.size for tensor in tensors.values())
    group = "blocks.0.attention.groups.0"
    counted += 2 * HEADS * WIDTH**2 - sum(tensors[f"{group}.{n}"].size for n in ("query", "key", "value", "output"))
    assert entries(pieces(stack), "count") == counted
    head = stack.layers[0].attention.heads[0]
    assert head.scores is not None and head.scores.rank == SIZE


def test_attention_of_every_kind_is_attention():
    """Equal tokens get the output of any one of them, whatever the weights of a row are: they sum to one."""
    x, _ = sample("largest", 4, 0, 0.0)
    same = np.repeat(x[:, :1], x.shape[1], axis=1)
    alike = []
    for kind in ("softmax", "distance", "top-k"):
        tensors = {**start("largest", kind, 0), "code.table": np.zeros((x.shape[1], WIDTH), np.float32)}
        alike.append(np.asarray(outputs(kind)(tensors, same)))
    assert np.allclose(alike[0], alike[2], atol=1e-5)
    assert {kind for _, _, kind in CONTROLS.values()} == {"softmax", "distance", "top-k"}
    Options(**STUDY.full)
    assert run(jobs(Options(samples=8, seeds=1, steps=50, controls=("distance",), tasks=("next item",)))[0].config)
