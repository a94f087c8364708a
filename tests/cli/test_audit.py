"""`certiformer audit`: what is printed, what is one JSON object, and which exit code it ends with."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import certiformer
from audit.checkpoints import bert_tensors, write_bert, write_llama
from certiformer.audit.figures import NAMES
from certiformer.audit.result import IDS

HEAVY = ("jax", "jaxlib", "numpy", "flint", "rich", "safetensors")


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> str:
    return str(write_bert(tmp_path_factory.mktemp("models") / "bert"))


def test_coverage_layers_theorems_and_mistakes_are_printed(cli, bert):
    done = cli("audit", bert)
    assert done.code == 0 and "\033" not in done.out
    assert "5,344 of 5,344 parameters accounted for" in done.out
    for name in IDS:
        assert name.rpartition(".")[2] in done.out
    for number in range(1, 9):
        assert f"\nE{number}  " in done.out
    assert "auditing" in done.err
    assert max(map(len, done.out.splitlines())) <= 100
    order = [
        done.out.index(word) for word in ("in short ", "coverage ", " holds ", " vacuous ", " holds-if ", "silent ")
    ]
    assert order == sorted(order)  # what says something comes first
    assert "does-not-apply" not in done.out
    every = cli("audit", bert, "--all")
    assert every.out.index(" holds-if ") < every.out.index(" does-not-apply ") and "silent " not in every.out


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_number_is_broken_at_any_width(cli, bert, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow, data = cli("audit", bert), cli("audit", bert, "--json").data
    numbers = {f"{head['qk_spectral']:.4g}" for head in data["layers"][0]["heads"]}
    said = [each for each in data["theorems"] if each["value"] is not None and each["verdict"] != "does-not-apply"]
    numbers = {max(numbers, key=float)} | {f"{each['value']:.4g}" for each in said}
    words = set(narrow.out.replace(",", " ").split())
    assert numbers <= words
    assert max(map(len, narrow.out.splitlines())) <= max(columns, 60)
    assert ("layer 0\n" in narrow.out) == (columns < 80)  # row under row where the columns do not fit


def test_the_card_is_markdown_in_which_names_are_text(cli, tmp_path):
    tensors = {**bert_tensors(), "<script>|`x`_a_[b](c)": np.ones((2, 2), np.float32)}
    card = tmp_path / "card.md"
    done = cli("audit", str(write_bert(tmp_path / "odd", tensors)), "--out", str(card), "--fail-if", "coverage < 1")
    text = card.read_text(encoding="utf-8")
    assert done.code == 1 and text.startswith("# Audit of odd\n\n4 of 5,348 parameters are not accounted for")
    assert "Not accounted for: \\<script\\>\\|\\`x\\`\\_a\\_\\[b\\](c) of shape (2, 2)." in text
    assert "**Fails:** coverage is 0.99" in text and "| layer | heads |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5, 10}  # four and nine columns


def test_quiet_is_the_coverage_alone(cli, bert):
    done = cli("audit", bert, "--quiet")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith("coverage ")


def test_json_is_one_object_with_its_schema(cli, bert):
    data = cli("audit", bert, "--json", "--tokens", "1e9", "--loss", "0.25", "--length", "10").data
    assert data["schema"] == "certiformer-audit-1" and data["conditions_met"] == []
    assert (data["given"]["tokens"], data["given"]["loss"], data["given"]["length"]) == (10**9, 0.25, 10)
    compression = next(each for each in data["theorems"] if each["id"] == "bounds.compression")
    assert compression["verdict"] == "holds" and 0.25 < compression["value"] < 0.27 and compression["trivial"] == 1


def test_a_gap_is_exit_code_1_and_named(cli, tmp_path):
    folder = write_bert(tmp_path / "gap", {**bert_tensors(), "mystery.weight": np.ones((3, 2), np.float32)})
    done = cli("audit", str(folder), "--quiet")
    assert done.code == 1 and "missing    mystery.weight (3, 2)" in done.out


def test_nan_is_exit_code_1_and_named(cli, tmp_path):
    tensors = bert_tensors()
    tensors["encoder.layer.1.output.dense.weight"][0, 0] = np.nan
    done = cli("audit", str(write_bert(tmp_path / "nan", tensors)))
    assert done.code == 1 and "not finite encoder.layer.1.output.dense.weight" in done.out
    assert " holds " not in done.out.partition("what it says")[2].partition("E1 ")[0]


def test_conditions_decide_the_exit_code(cli, bert):
    assert cli("audit", bert, "--fail-if", "spectral_norm > 1000", "--fail-if", "coverage < 1").code == 0
    done = cli("audit", bert, "--quiet", "--fail-if", "spectral_norm > 1000", "--fail-if", "qk_spectral > 0")
    assert done.code == 1 and " in layer " in done.out and done.out.endswith("the condition 'qk_spectral > 0' is met\n")
    as_json = cli("audit", bert, "--json", "--fail-if", "qk_spectral > 0")
    assert as_json.code == 1 and as_json.data["conditions_met"] == ["qk_spectral > 0"]
    assert as_json.data["conditions"][0].startswith("qk_spectral is ")


def test_a_condition_that_cannot_be_decided_is_an_error_and_no_pass(cli, tmp_path):
    folder = str(write_bert(tmp_path / "bare", config={}))
    done = cli("audit", folder, "--quiet", "--fail-if", "qk_spectral > 1e9")
    assert done.code == 2 and done.out == "" and "cannot be decided" in done.err and "--heads" in done.err
    assert cli("audit", folder, "--quiet", "--fail-if", "qk_spectral > 1e9", "--heads", "4").code == 0


def test_a_path_needs_only_what_was_not_said(cli, bert):
    for flags, needs in (
        ([], ("--tokens", "--rho")),
        (["--tokens", "1e6"], ("--rho",)),
        (["--rho", "0.5"], ("--tokens",)),
    ):
        data = cli("audit", bert, "--json", *flags).data
        path = next(each for each in data["theorems"] if each["id"] == "bounds.mixing_path")
        assert tuple(need.partition(":")[0] for need in path["needs"]) == needs


def test_the_figures_that_conditions_may_name_are_in_the_help(cli):
    said = cli("audit", "--help").out.split()
    assert [name for name in NAMES if name not in said] == []


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--fail-if", "qk_spectral"], "a condition is a name"),
        (["--fail-if", "nonsense > 1"], "there is no figure 'nonsense'"),
        (["--fail-if", "__import__('os').system('true') > 0"], "a condition is a name"),
        (["--tokens", "0"], "--tokens is a positive whole number"),
        (["--samples", "1.5"], "--samples is a positive whole number"),
        (["--delta", "1"], "--delta is between 0 and 1"),
        (["--loss", "2"], "--loss is between 0 and the largest loss"),
        (["--radius", "-1"], "--radius is a positive number"),
        (["--rho", "1"], "--rho is between 0 and 1"),
        (["--set", "heads"], "--set takes NAME=VALUE"),
        (["--heads", "3"], "cannot be shared"),
        (["--out", "no/such/folder/report.html"], "No such file"),
    ],
)
def test_a_mistake_is_one_sentence(cli, bert, flags, said):
    done = cli("audit", bert, "--quiet", *flags)
    assert (done.code, done.out) == (2, "") and said in done.err and done.err.count("\n") == 1
    assert said in cli("audit", bert, *flags, "--json").data["reason"]


def test_what_is_no_checkpoint_is_one_sentence(cli, tmp_path):
    pickle = tmp_path / "model.bin"
    pickle.write_bytes(b"\x80\x04")
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(struct.pack("<Q", 1 << 40))
    for path, said in (
        (tmp_path / "nowhere", "does not exist"),
        (pickle, "save_file"),
        (cut, "not a safetensors file"),
    ):
        done = cli("audit", str(path))
        assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_what_the_config_leaves_out_can_be_said(cli, tmp_path):
    folder = str(write_bert(tmp_path / "bare", config={}))
    unknown = cli("audit", folder, "--json").data
    assert not unknown["layers"][0]["heads_known"] and len(unknown["layers"][0]["heads"]) == 1
    for flags in (["--heads", "4"], ["--set", "num_attention_heads=4"], ["--head-size", "4"]):
        data = cli("audit", folder, "--json", *flags).data
        assert len(data["layers"][0]["heads"]) == 4 and data["layers"][0]["heads_known"]


def test_two_checkpoints_are_compared(cli, bert, tmp_path):
    other = str(write_bert(tmp_path / "other", bert_tensors(seed=1)))
    done = cli("audit", bert, "--compare", other)
    assert done.code == 0 and f"compared   with {other}" in done.out and "random_heads" in done.out
    data = cli("audit", bert, "--compare", other, "--json").data
    ours, theirs = data["compare"]["figures"]["qk_spectral"]
    assert ours == data["figures"]["qk_spectral"] != theirs


def test_the_report_is_drawn(cli, bert, tmp_path):
    page = tmp_path / "report.html"
    done = cli("audit", bert, "--out", str(page))
    assert done.code == 0 and f"wrote {page}" in done.err
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_single_file_finds_the_config_beside_it(cli, tmp_path):
    folder = write_llama(tmp_path / "llama")
    data = cli("audit", str(folder / "model.safetensors"), "--json").data
    assert data["family"] == "llama" and len(data["layers"][0]["heads"]) == 4


def test_flags_from_a_file(cli, bert, tmp_path):
    config = tmp_path / "audit.toml"
    config.write_text(f'path = "{bert}"\ntokens = 1e9\nquiet = true\nfail-if = ["coverage < 1"]\n')
    done = cli("audit", "--config", str(config))
    assert done.code == 0 and done.out.count("\n") == 1
    both = cli("audit", "--config", str(config), "--fail-if", "coverage == 1")
    assert both.code == 1 and "coverage == 1" in both.out
    config.write_text('fail-if = "coverage < 1"\n')
    assert "fail-if must be a list of texts" in cli("audit", bert, "--config", str(config)).err


def test_help_imports_nothing_heavy():
    command = [sys.executable, "-X", "importtime", "-m", "certiformer", "audit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0 and "--fail-if" in done.stdout
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert imported.isdisjoint(HEAVY), imported & set(HEAVY)


def test_the_command_loads_no_jax(bert, tmp_path):
    program = (
        "import sys; from certiformer.cli.main import main; code = main(['audit', sys.argv[1], '--quiet', '--out', sys.argv[2]]);"
        "print(code, sorted({'jax', 'jaxlib', 'equinox', 'torch'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, bert, str(tmp_path / "report.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_a_checkpoint_may_not_lead_outside_its_folder(cli, tmp_path):
    """An index that names a file elsewhere is refused before anything is opened."""
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))
    done = cli("audit", str(folder))
    assert done.code == 2 and "not a safetensors file of the same folder" in done.err


def test_the_ending_names_the_format(cli, bert):
    for name in ("a.html", "a.json", "a.md"):
        assert cli("audit", bert, "--quiet", "--out", name).code == 0
    assert Path("a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(Path("a.json").read_text())["coverage"] == cli("audit", bert, "--json").data["coverage"]
    card = Path("a.md").read_text(encoding="utf-8")
    assert card.startswith("# Audit of bert\n") and "Each of the 5,344 parameters" in card
    assert "\033" not in card
    for name in ("a.txt", "a", "a.safetensors", "a.HTML"):
        done = cli("audit", bert, "--out", name)
        assert done.code == 2 and ".html (a page with pictures), .json" in done.err and not Path(name).exists()


def test_an_existing_file_is_replaced_only_with_force_and_never_through_a_link(cli, bert):
    Path("mine.html").write_text("mine")
    os.symlink("mine.html", "link.html")
    for flags in ([], ["--force"]):
        done = cli("audit", bert, "--out", "link.html", *flags)
        assert done.code == 2 and "link" in done.err
    done = cli("audit", bert, "--out", "mine.html")
    assert done.code == 2 and "already exists; add --force" in done.err
    assert Path("mine.html").read_text() == "mine" and sorted(os.listdir()) == ["link.html", "mine.html"]
    assert cli("audit", bert, "--quiet", "--out", "mine.html", "--force").code == 0
    assert Path("mine.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_no_force_writes_over_the_files_of_a_checkpoint(cli, bert, tmp_path):
    folder = Path(shutil.copytree(bert, tmp_path / "bert"))
    (folder / "README.md").write_text("the card")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in (*before, "audit.json"):
        for flags in (["audit", str(folder)], ["audit", bert, "--compare", str(folder)]):
            assert cli(*flags, "--out", str(folder / name), "--force").code == 2, name
    os.symlink(folder, "other")
    assert cli("audit", str(folder), "--out", "other/config.json", "--force").code == 2
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert cli("audit", str(folder), "--quiet", "--out", str(folder / "audit.html"), "--force").code == 0


@pytest.mark.parametrize("kind", ["gpt2", "llama", "phi3"])
def test_the_exports_of_a_compiled_program_are_audited(cli, tmp_path, kind):
    """Their ids of outputs that are no inputs have NaN throughout; a single NaN elsewhere is a gap."""
    folder, name = tmp_path / kind, "transformer.wte.weight" if kind == "gpt2" else "model.embed_tokens.weight"
    certiformer.compile("frac_prevs", length=4).export(kind, out=folder)
    done = cli("audit", str(folder))
    assert done.code == 0 and f"1 of 5 rows of {name} are NaN throughout" in " ".join(done.out.split())
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors[name] = tensors[name].copy()
    tensors[name][0, 0] = np.nan
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    assert cli("audit", str(folder)).code == 1
