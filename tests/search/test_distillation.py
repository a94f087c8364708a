"""A deeper transformer as the target: imitated on a box, proved against its own weights, and hard to forge."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from certiformer import load
from certiformer.errors import BadInput
from certiformer.kernel.check import check
from certiformer.kernel.files import TARGET
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer, save
from certiformer.search import build, prove
from certiformer.search.request import read_any, teacher_model
from certiformer.target import Teacher, any_target_from_text, any_target_to_text
from negative.forge import reseal

BLOCK = Block(Attention((Heads(2, 3, 3),)), FeedForward(8, "gelu"))


def teacher(outputs: int = 1, readout: str = "mean") -> Transformer:
    """Two blocks, two tokens, weights small enough for a smooth function."""
    config = Config(
        Input("continuous", 2, width=1),
        width=6,
        outputs=outputs,
        readout=Readout(readout),
        blocks=(BLOCK, BLOCK),
        code=Code("one-hot", offset=1),
    )
    model = Transformer.random(config, seed=3)
    inner = ("attention", "ffn")
    return Transformer(
        config, {k: np.asarray(v) * (0.5 if any(i in k for i in inner) else 1.0) for k, v in model.tensors.items()}
    )


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distil")
    save(teacher(), folder / "teacher")
    return build(str(folder / "teacher"), on="[-1,1]^2", eps="0.03", fit_seconds=6, out=folder / "student")


def test_a_block_imitates_two(student):
    assert student.certified and student.certificate.method == "fit"
    assert len(student.model.config.blocks) == 1
    points = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    error = np.abs(student.evaluate(points) - teacher().evaluate(points)).max()
    # Both evaluations are float64: 1e-12 of rounding against an error of 0.02.
    assert error <= student.upper + 1e-12
    assert student.upper <= 1.01 * student.lower
    assert any("exponentially" in note for note in student.notes)


@pytest.mark.slow
def test_the_folder_is_complete_and_can_be_read_again(student):
    verdict = check(student.directory)
    assert verdict.accepted and "teacher" in verdict.sentence
    again = load(student.directory)
    assert isinstance(again.subject.target, Teacher)
    assert (
        np.asarray(teacher_model(again.subject.target).evaluate([[0.3, -0.2]])) == teacher().evaluate([[0.3, -0.2]])
    ).all()


def test_another_teacher_under_the_same_claim_is_refused(student, tmp_path):
    import shutil

    folder = tmp_path / "forged"
    shutil.copytree(student.directory, folder)
    original = any_target_from_text((folder / TARGET).read_bytes())
    moved = teacher_model(original)
    tensors = {name: np.array(t) for name, t in moved.tensors.items()}
    tensors["readout.bias"] = tensors["readout.bias"] + 0.1
    forged = read_any(Transformer(moved.config, tensors), "[-1,1]^2")
    reseal(folder, target=any_target_to_text(replace(forged, source=original.source)).encode())
    assert check(folder).outcome == "refused"


@pytest.mark.parametrize("change", ["repeated", "weights", "config", "box"])
def test_malformed_teachers_are_refused(student, tmp_path, change):
    import shutil

    folder = tmp_path / "forged"
    shutil.copytree(student.directory, folder)
    text = (folder / TARGET).read_text()
    data = json.loads(text)
    if change == "repeated":
        text = text.replace('{"config"', '{"config":"","config"', 1)
    elif change == "weights":
        text = json.dumps({**data, "tensors": data["tensors"][:-8]}, sort_keys=True, separators=(",", ":")) + "\n"
    elif change == "config":
        text = text.replace('\\"loops\\": 1', '\\"loops\\": 2')
        assert text != (folder / TARGET).read_text()
    else:
        text = json.dumps({**data, "domain": data["domain"][:1]}, sort_keys=True, separators=(",", ":")) + "\n"
    reseal(folder, target=text.encode())
    assert check(folder).outcome == "refused"


@pytest.mark.slow
def test_sequence_teachers_keep_their_tokens():
    run = build(teacher(readout="all"), on="[-1,1]^2", eps="0.3", fit_seconds=4)
    assert run.certified
    assert run.model.config.tokens == 2 and run.model.config.readout.kind == "all"


def test_prove_can_compare_two_transformers_through_build_only():
    with pytest.raises(BadInput):
        prove(teacher(), 3, on="[-1,1]^2", eps="0.1")
    with pytest.raises(BadInput, match="axes"):
        build(teacher(), on="[-1,1]^3", eps="0.1")


def test_other_methods_need_a_formula():
    run = build(teacher(), on="[-1,1]^2", eps="0.1", method="voronoi")
    assert run.outcome.value == "undecided" and "a teacher can only be imitated by fit" in run.certificate.reason
