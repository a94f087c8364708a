"""`build_table` end to end: CSV files, run folders, teachers, and what the checker refuses."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from certiformer import load
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Finite, Outcome, Theorem, Triangle, Witness
from certiformer.kernel.check import check
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
    save,
)
from certiformer.search.finite import build_table, read_csv, table_from_model
from certiformer.target import Table
from negative.forge import reseal

ROWS = "x1,x2,y,z\n0.1,0.2,1,5\n0.3,-0.5,2e-1,6\n1/3,0,-4,7\n0.9,0.8,0.5,8\n-1,.25,3.5,9\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(ROWS)
    return path


def test_a_table_is_memorised_certified_and_loaded_again(data, tmp_path):
    run = build_table(data, inputs="x1,x2", outputs="y", out=tmp_path / "run")
    assert run.certified
    assert (run.certificate.method, run.summary()["rules"]) == ("memorise", ["finite"])
    assert run.lower is not None
    assert run.upper is not None
    assert run.lower <= run.upper <= 1e-6
    assert run.upper <= run.lower * (1 + 1e-8)  # both ends come from the same row in balls
    assert "5 rows" in run.notes[0]
    again = load(tmp_path / "run")
    assert again.subject.target == run.subject.target
    assert again.subject.target.rows[2] == ((Fraction(1, 3), Fraction(0)), (Fraction(-4),))
    assert "every one of the 5 rows" in again.claim
    verdict = check(tmp_path / "run")
    assert verdict.accepted
    assert verdict.sentence.startswith("For every one of the 5 rows of the table")


def test_nothing_is_written_unless_asked_for(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert build_table(data, inputs=["x1"], outputs=["y", "z"], eps="1e-9").certified
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv"]


def test_epsilon_below_float64_is_undecided_with_the_reason(data, tmp_path):
    run = build_table(data, inputs="x1,x2", outputs="y", eps="1e-30", out=tmp_path / "run")
    assert run.outcome is Outcome.UNDECIDED
    assert run.model is None
    assert "float64 weights of this construction come within" in run.certificate.reason
    assert not (tmp_path / "run").exists()


BROKEN = {
    "": "no rows",
    "x1,y\n": "no rows",
    "x1,y\n1,2\n3\n": "row 2",
    "x1,y\n1,2\n3,4,5\n": "row 2",
    "x1,y\n1,2\n3,nan\n": "row 2 .*'nan'",
    "x1,y\n1,inf\n": "row 1",
    "x1,y\n1,\n": "row 1",
    "x1,y\n1,1e99999\n": "row 1",
    "x1,y\n1,1/0\n": "row 1",
    "x1,y\n1,0x10\n": "row 1",
    "x1,x1,y\n1,2,3\n": "two columns called 'x1'",
    "a,y\n1,2\n": "no column 'x1'; its columns are a, y",
    "x1,y\n1,2\n2,3\n1.0,2.5\n": "rows 1 and 3 of .* have the same inputs but different outputs",
    "x1,y\n1e308,1\n1e309,2\n": "1e300",
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.items())
def test_broken_files_are_bad_input_in_one_sentence(text, reason, tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=reason) as caught:
        build_table(path, inputs="x1", outputs="y", out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_other_mistakes_of_the_request(data, tmp_path):
    for arguments, reason in [
        ({"inputs": "", "outputs": "y"}, "--inputs"),
        ({"inputs": "x1"}, "--outputs"),
        ({"inputs": "x1,y", "outputs": "y"}, "twice"),
        ({"inputs": "x1,x2", "outputs": "y", "tokens": 3}, "--tokens 3"),
        ({"inputs": "x1,x2", "outputs": "y", "teacher": "m"}, "exclude"),
    ]:
        with pytest.raises(BadInput, match=reason):
            build_table(data, **arguments)
    with pytest.raises(BadInput, match="cannot be read"):
        build_table(tmp_path / "absent.csv", inputs="x", outputs="y")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not a CSV file"):
        build_table(tmp_path / "bytes.csv", inputs="x", outputs="y")


def test_repeated_rows_are_merged_and_said_to_be(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("﻿x1,y\n1,2\n\n2,3\n1.0,2.00\n", encoding="utf-8")
    rows, merged = read_csv(path, ["x1"], ["y"])
    assert (len(rows), merged) == (2, 1)
    assert build_table(path, inputs="x1", outputs="y").notes[0] == "1 repeated rows were merged"


def changed(name: str, index: tuple[int, ...], by: float):
    def change(model: Transformer) -> Transformer:
        tensor = np.array(model.tensors[name])
        tensor[index] += by
        return Transformer(model.config, {**model.tensors, name: tensor})

    return change


def altered_row(folder) -> bytes:
    data = json.loads((folder / "target.json").read_bytes())
    data["rows"][3][1][0] = "501/1000"
    return (json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n").encode()


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda f: reseal(f, model=changed("readout.bias", (0,), 1e-5)), "only"),
        (lambda f: reseal(f, model=changed("embed.weight", (0, 0), 1e-3)), "only"),
        (lambda f: reseal(f, target=altered_row(f)), "only"),
        (lambda f: reseal(f, proof=Finite("1e-9")), "only"),
        (lambda f: reseal(f, proof=Finite("-1")), "not a positive number"),
        (lambda f: reseal(f, proof=Finite("nan")), "not a positive number"),
        (lambda f: reseal(f, proof=Theorem("1e-6", "exact_sort")), "sorting"),
        (lambda f: reseal(f, proof=Theorem("1e-6", "voronoi_first_order")), "no axiom about sequences"),
        (
            lambda f: reseal(f, raw_proof={"rule": "boxes", "bound": "1", "order": 1, "offset": 0, "length": 0}),
            "finite set",
        ),
        (lambda f: reseal(f, proof=Triangle("1", {}, (Finite("1"), Finite("1")))), "finite set"),
        (lambda f: reseal(f, epsilon="1e-9", upper="1e-9"), "exceeds epsilon"),
        (lambda f: reseal(f, witness=Witness(("9", "9"), 0, "0.1").to_json()), "not a row"),
        (lambda f: reseal(f, witness=Witness(("1/10", "1/5"), 1, "0.1").to_json()), "does not exist"),
        (lambda f: reseal(f, config=lambda c: {**c, "input": {"kind": "ids", "tokens": 1, "vocabulary": 2}}), ""),
    ],
)
def test_forgeries_are_refused(data, tmp_path, forge, reason):
    folder = tmp_path / "run"
    build_table(data, inputs="x1,x2", outputs="y", out=folder)
    verdict = check(forge(folder))
    assert verdict.outcome == "refused"
    assert reason in verdict.reason


def test_a_finite_node_proves_nothing_on_a_box(tmp_path):
    from certiformer.target import any_target_to_text
    from negative.forge import target_of

    folder = tmp_path / "run"
    build_table(Table("t", "continuous", (((Fraction(0),), (Fraction(0),)),)), out=folder)
    target = any_target_to_text(target_of("x1", "[0,1]")).encode()
    verdict = check(reseal(folder, target=target, proof=Finite("1"), witness=None, lower=None))
    assert verdict.outcome == "refused"
    assert "not about a box" in verdict.reason


def test_a_changed_byte_is_noticed_by_its_seal(data, tmp_path):
    folder = tmp_path / "run"
    build_table(data, inputs="x1,x2", outputs="y", out=folder)
    (folder / "target.json").write_bytes(altered_row(folder))
    assert "changed after the certificate was sealed" in check(folder).reason


DEEP = Config(
    Input("continuous", tokens=2, width=1),
    width=4,
    outputs=1,
    readout=Readout("token", token=1),
    code=Code("one-hot", offset=1),
    blocks=tuple(Block(Attention((Heads(2, 2, 2),)), FeedForward(8), Norm("pre")) for _ in range(3)),
)


def test_a_deep_teacher_becomes_one_block_on_given_sequences(tmp_path):
    teacher = Transformer.random(DEEP, 2)
    save(teacher, tmp_path / "teacher")
    points = tmp_path / "points.csv"
    points.write_text("a,b\n" + "".join(f"{k / 8},{(k * k % 5) / 4}\n" for k in range(20)))
    run = build_table(points, inputs="a,b", teacher=tmp_path / "teacher", tokens=2)
    assert run.certified
    assert run.model is not None
    assert len(run.model.config.blocks) == 1
    assert "outputs of" in run.subject.target.source
    inputs = [[float(x) for x in row] for row, _ in run.subject.target.rows]
    # The table holds the teacher's float64 outputs; the student's own float64 run adds rounding of slopes below 1e4.
    assert np.max(np.abs(run.evaluate(inputs) - teacher.evaluate(inputs))) < 1e-6 + 1e-9


def test_a_teacher_that_reads_letters():
    config = Config(Input("ids", 3, vocabulary=2), 4, 2, Readout("mean"), blocks=(Block(None, FeedForward(3)),))
    letters = [[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    table = table_from_model(Transformer.random(config, 1), letters)
    assert (table.kind, table.count, table.outputs) == ("ids", 8, 2)
    assert build_table(table, tokens=3).certified
