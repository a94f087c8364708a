"""The peer's half of `audit.py`: WeightWatcher on the same file, after its imports.

    python _weightwatcher_peer.py FILE.safetensors

runs under a Python that has weightwatcher and torch (and need not have certiformer), and prints one JSON line.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    import weightwatcher
    from safetensors.torch import load_file


def main(path: str) -> None:
    began, used = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        details = weightwatcher.WeightWatcher(model=load_file(path)).analyze()
    facts = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
    facts |= {"version": weightwatcher.__version__, "matrices": len(details)}
    # Its column spectral_norm is the square of one; sv_max is the largest singular value.
    words = details[details["name"].str.contains("word_embeddings")]
    print(json.dumps({**facts, "word_sigma_max": float(words["sv_max"].iloc[0]) if len(words) else None}))


if __name__ == "__main__":
    main(sys.argv[1])
