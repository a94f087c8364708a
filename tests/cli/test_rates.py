"""`certiformer rates`: the list, the flags of a study, a run from jobs to files, what is refused, what goes on."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys

import pytest

from certiformer.cli import rates as rates_module
from certiformer.cli.config_file import read_config
from certiformer.cli.rates import study_options
from certiformer.errors import BadInput
from certiformer.rates import studies
from certiformer.rates.studies import STUDIES, load_study
from certiformer.report import rates_files
from cli import fake_study
from cli.test_main import HEAVY, run_python


@pytest.fixture
def fake(cli, monkeypatch):
    """`certiformer rates fake ...` in this process, without figures."""
    monkeypatch.setitem(studies.STUDIES, "fake", "do made-up numbers fall?")
    monkeypatch.setitem(sys.modules, "certiformer.rates.studies.fake", fake_study)
    monkeypatch.setattr(rates_files, "draw_all", lambda data, folder: [])

    def run(*arguments: str):
        return cli("rates", "fake", "--engine", "here", *arguments)

    return run


def test_alone_it_lists_every_study(cli):
    done = cli("rates")
    assert (done.code, done.err) == (0, "")
    assert len(STUDIES) == 19 and all(f"\n  {name} " in done.out for name in (*STUDIES, "pod", "show"))
    assert list(cli("rates", "--json").data["studies"]) == list(STUDIES)


def test_listing_and_help_import_nothing_heavy():
    for arguments in (["rates"], ["rates", "--help"]):
        done = run_python("-X", "importtime", "-m", "certiformer", *arguments)
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert done.returncode == 0 and imported.isdisjoint({*HEAVY, "pyarrow"}), imported & {*HEAVY, "pyarrow"}
        assert "certiformer" in imported


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["jakson"], "there is no study 'jakson'; did you mean 'jackson'?"),
        (["shwo"], "there is no study 'shwo'; did you mean 'show'?"),
        (["zzz"], "there is no study 'zzz'; the studies are jackson, "),
        (["--quiet", "jackson"], "the name of the study comes first: certiformer rates jackson ..."),
    ],
)
def test_an_unknown_study_is_one_sentence(cli, arguments, said):
    done = cli("rates", *arguments)
    assert (done.code, done.out) == (2, "") and said in done.err
    assert cli("rates", *arguments, "--json").data["outcome"] == "error"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_what_the_command_needs(name):
    """A module for each name, a class of frozen options with help texts, and no flag that the command has itself."""
    if importlib.util.find_spec(f"certiformer.rates.studies.{name}") is None:
        pytest.fail(f"there is no module for the study {name}")
    study = load_study(name)
    assert study.name == name and study.question.endswith("?")
    made = study_options(study, full=True)()
    assert all(getattr(made, key) == value for key, value in study.full.items())
    assert dataclasses.fields(study.options) and isinstance(study.options().seed, int)
    assert len({job.id for job in study.jobs(study.options())}) == len(study.jobs(study.options())) > 0


def test_a_study_with_a_common_flag_is_a_defect():
    options = dataclasses.make_dataclass("Options", [("out", str, "")], frozen=True)
    with pytest.raises(TypeError, match="has options that every study has: out"):
        study_options(dataclasses.replace(fake_study.STUDY, options=options), full=False)


def test_a_run_writes_everything_and_says_what_came_out(fake, tmp_path):
    done = fake("--mh", "1:4", "--alpha", "1", "1.5")
    assert done.code == 0, done.err
    assert "Do made-up numbers fall?" in done.out and "8 rows were measured." in done.out
    assert "−1.50 [−1.60, −1.40]" in done.out and "excludes founding note −9.00" in done.out
    assert "4 of 4 done" in done.out
    folder = tmp_path / "runs" / "rates-fake"
    names = {"report.html", "result.json", "tables.md", "tables.tex", "run.json", "store"}
    assert {path.name for path in folder.iterdir()} == names
    saved = json.loads((folder / "result.json").read_text())
    assert saved["series"][1]["x"] == [1.0, 2.0, 3.0, 4.0] and "seconds" not in saved
    assert json.loads((folder / "run.json").read_text())["options"]["target_rank"] == [2.0, "inf"]


def test_json_is_one_object_with_the_promised_entries(fake):
    data = fake("--json", "--target-rank", "2", "6", "inf", "--csv", "rows.csv").data
    assert data["options"]["target_rank"] == [2.0, 6.0, "inf"]
    assert {"study", "options", "series", "tables", "findings", "limits", "jobs", "seconds"} <= set(data)
    wanted = {"x", "error_mse", "error_l1", "slope_mse", "slope_interval", "theory", "excluded"}
    assert wanted <= set(data["series"][0])
    assert data["jobs"] == {"total": 3, "done": 3, "missing": [], "failed": []}
    with open("rows.csv") as file:
        assert len(file.readlines()) == 4


def test_a_failed_job_is_exit_code_3_and_named(fake):
    done = fake("--mh", "1", "2", "4", "-5")
    assert done.code == 3 and "3 of 4 done" in done.out
    assert "ValueError: a size of -5" in done.out
    data = fake("--mh", "1", "2", "4", "-5", "--json").data
    assert [each["reason"].partition(":")[0] for each in data["jobs"]["failed"]] == ["ValueError"]
    assert data["series"][0]["x"] == [1.0, 2.0, 4.0]
    assert any("1 of 4 jobs gave no result" in text for text in data["limits"])


def test_nothing_finished_is_said_and_written(fake, tmp_path):
    done = fake("--mh", "-5")
    assert done.code == 3 and "No job has finished" in done.out
    assert "Nothing was found out yet." in (tmp_path / "runs/rates-fake/report.html").read_text()


def test_a_second_run_computes_only_what_is_missing(fake, monkeypatch):
    assert fake("--mh", "1", "2", "4").code == 0
    monkeypatch.setattr(fake_study, "run", lambda config: [{"m": config["m"], "alpha": 1.0, "mse": 7.0}])
    data = fake("--mh", "1", "2", "4", "8", "--json").data
    assert data["series"][0]["error_mse"] == [1.0, 0.5, 0.25, 7.0]


def test_an_interruption_leaves_what_was_finished(fake, tmp_path):
    done = fake("--mh", "2", "999")
    assert done.code == 130 and "the same command goes on: certiformer rates fake" in done.err
    assert not (tmp_path / "runs/rates-fake/result.json").exists()
    data = fake("--mh", "2", "3", "4", "--json").data
    assert data["jobs"]["done"] == 3


def test_full_changes_the_defaults_and_flags_still_win(fake, tmp_path):
    (tmp_path / "full.toml").write_text('full = true\nalpha = [3]\nmh = "1:3"\n')
    assert fake("--full", "--json").data["options"]["mh"] == [1, 2, 4, 8]
    assert fake("--full", "--mh", "5", "--json").data["options"]["mh"] == [5]
    options = fake("--config", "full.toml", "--json").data["options"]
    assert (options["mh"], options["alpha"]) == ([1, 2, 3], [3.0])
    (tmp_path / "only.toml").write_text("full = true\n")
    assert fake("--config", "only.toml", "--json").data["options"]["alpha"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mh = [1.5]", "mh must be a list of whole numbers"),
        ("mh = [true]", "mh must be a list of whole numbers"),
        ('mh = "4:1"', "the range '4:1' is empty"),
        ("mhh = 1", "unknown key 'mhh'; did you mean 'mh'?"),
        ("full = ", "is not a TOML file"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(fake, tmp_path, text, said):
    (tmp_path / "bad.toml").write_text(text)
    done = fake("--config", "bad.toml")
    assert done.code == 2 and said in done.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--mh", "4:1"], "the range '4:1' is empty"),
        (["--mh", "0:99999999"], "more than 10,000 numbers"),
        (["--mh", "a"], "--mh"),
        (["--layers", "3"], "--layers"),
        (["--engine", "clouds"], "clouds"),
        (["--tracker", "clipboard"], "there is no tracker 'clipboard'"),
        (["--workers", "0"], "workers"),
    ],
)
def test_bad_flags_exit_2(fake, flags, said):
    done = fake(*flags)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_another_folder_is_not_overwritten(fake, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    done = fake("--out", str(mine))
    assert done.code == 2 and "not an earlier run of a study" in done.err
    assert (mine / "thesis.tex").read_text() == "years of work" and len(list(mine.iterdir())) == 1
    (mine / "thesis.tex").unlink()
    (mine / "run.json").write_text('{"study": "width"}')
    assert "holds a run of the study 'width', not 'fake'" in fake("--out", str(mine)).err
    (mine / "run.json").write_text("[]")
    assert "does not say which study" in fake("--out", str(mine)).err
    (tmp_path / "file").write_text("")
    assert "is a file" in fake("--out", str(tmp_path / "file")).err


def test_help_of_a_study_has_its_flags_with_their_texts_and_the_common_ones(fake, cli):
    done = cli("rates", "fake", "--help")
    assert done.code == 0
    for words in ("--target-rank", "sizes (default: 1 2 4)", "--engine", "--store DIR", "exit codes: 0", "rates fake"):
        assert words in done.out
    assert "sizes (default: 1 2 4 8)" in cli("rates", "fake", "--full", "--help").out


def test_progress_is_on_standard_error_only(fake):
    done = fake("--json")
    assert "measuring" in done.err and done.data["study"] == "fake"
    assert fake("--json", "--quiet").err == ""


def test_the_store_may_be_elsewhere(fake, tmp_path):
    assert fake("--store", str(tmp_path / "all")).code == 0
    assert (tmp_path / "all" / "ledger.sqlite").is_file() and not (tmp_path / "runs/rates-fake/store").exists()


def test_the_module_names_what_main_dispatches():
    from certiformer.cli.main import KINDS

    assert set(KINDS["rates"]) == set(rates_module.KINDS)


def test_numbers_of_a_configuration_may_stand_where_texts_are_wanted(tmp_path):
    kind = dataclasses.make_dataclass("Options", [("rank", tuple[str, ...])])
    path = tmp_path / "ranks.toml"
    path.write_text('rank = [2, 0.5, "inf"]')
    assert read_config(kind, "rates", str(path)) == {"rank": ("2", "0.5", "inf")}
    path.write_text("rank = [true]")
    with pytest.raises(BadInput, match="rank must be a list of texts"):
        read_config(kind, "rates", str(path))
