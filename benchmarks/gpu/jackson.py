"""Figure 5 of Jiang and Li 2024 at the paper's size on one accelerator, through the study `jackson` (a part of `--full`).

    PYTHONPATH=src python benchmarks/gpu/jackson.py

Three ReLU layers of 128 units before and behind one head, n = d_v = 32, m_h = 1 to 16, PyTorch's initialisation, five
restarts, all 80 models of a series side by side. Each series is one compiled call; what is found is printed after each.
"""

from __future__ import annotations

import time
from dataclasses import replace

import jax

from certiformer.rates.studies.jackson import FULL, Options, jobs, summary

STEPS = 20_000
SERIES = (("inf", 1.0), ("inf", 1.5), ("6", 1.0))


def main() -> None:
    print(f"on {jax.devices()[0].device_kind}", flush=True)
    for rank, alpha in SERIES:
        full = Options(**{**FULL, "steps": STEPS})
        options = replace(full, alpha=(alpha,), trained_alpha=(alpha,), target_rank=(rank,), diagonal="masked")
        rows, began = [], time.perf_counter()
        for job in jobs(options):
            rows += job.run()
        result = summary(rows, options)
        models = sum(row["kind"] == "trained" for row in rows)
        print(f"rank {rank}, alpha {alpha:g}: {models} models in {time.perf_counter() - began:.0f} s", flush=True)
        for series in result.series:
            print(
                f"  {series.name}: {', '.join(f'{m:g}: {e:.2e}' for m, e in zip(series.x, series.error_mse, strict=True))}"
            )
        for sentence in result.findings:
            print(f"  {sentence}", flush=True)


if __name__ == "__main__":
    main()
