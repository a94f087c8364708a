"""The quickstart notebook runs from its first cell to its last, and every artifact has its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "examples" / "quickstart.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed (extra dev): the notebook was not run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra dev): the notebook was not run")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra dev): the notebook was not run")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # stored without what it printed
    ran = nbclient.execute(notebook, cwd=str(tmp_path), timeout=600)
    answers = [output for cell in ran.cells if cell.cell_type == "code" for output in cell.outputs]
    texts = "\n".join(str(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in answers)
    assert "(['b', 'a', 'c', 'b', 'a'], True)" in texts and "'refuted'" in texts and "-> True" in texts
    assert "<iframe" in answers[0]["data"]["text/html"]
