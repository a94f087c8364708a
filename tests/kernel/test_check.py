"""`check` from the files to the verdict: what is accepted says what it should, on one core and on several."""

from __future__ import annotations

import base64
import json
import math
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import certiformer
from certiformer.errors import BadInput
from certiformer.isolation import WORKER, command, environment
from certiformer.kernel import workers
from certiformer.kernel.balls import decimal
from certiformer.kernel.certificate import Boxes, Outcome, Triangle
from certiformer.kernel.check import check
from certiformer.kernel.claim import read_claim
from certiformer.kernel.files import read_files
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.target import parse_formula
from certiformer.target.floating import as_jax
from negative.forge import Run, boxes_run, grid_model, judged, reseal, split_run, target_of, theorem_run, uniform_tree

SOURCE = Path(certiformer.__file__).parents[1]


def test_an_accepted_theorem_says_everything(tmp_path):
    verdict = judged(theorem_run("sin(x1)", "[0,2*pi]", "0.1").write(tmp_path / "run"))
    assert (verdict.outcome, verdict.level, verdict.exit_code, verdict.accepted) == ("proved", 2, 0, True)
    assert verdict.lower is None
    assert verdict.sentence == (
        "At every real point x1 of [0, 2*pi], the transformer's output differs from sin(x1) by at most 0.1."
    )
    assert verdict.claim is not None


@pytest.mark.parametrize(
    "run",
    [
        lambda: boxes_run("sin(x1)", "[0,2*pi]", "0.1", 3, 5),
        lambda: split_run("sin(x1)+sin(x2)", "[0,2*pi]^2", "0.2", 3, 5),
        lambda: theorem_run("abs(x1 - 0.3)", "[0,1]", "0.05"),
        lambda: theorem_run("[x1*x2, x1 - x2]", "[0,1]^2", "0.2"),
    ],
    ids=["boxes", "split", "kink by first order", "two outputs"],
)
def test_the_proved_bound_is_above_every_sampled_error(run, tmp_path):
    content = run()
    verdict = judged(content.write(tmp_path / "run"))
    assert verdict.outcome == "proved"
    ends = [(float(low.upper()), float(high.lower())) for low, high in verdict.claim.problem.domain.ends]
    unit = np.random.default_rng(0).random((2000, len(ends)))
    points = np.array([low for low, _ in ends]) + unit * np.array([high - low for low, high in ends])
    error = np.abs(content.model.evaluate(points) - np.asarray(as_jax(content.target.program)(points))).max()
    assert error <= float(verdict.upper) + 1e-12  # float64 rounding of the two evaluations
    assert Fraction(verdict.upper) <= Fraction(content.epsilon)


def small_network() -> Transformer:
    """Two data tokens, attention and feed-forward: not of prototype form."""
    config = Config(
        Input("continuous", 2, width=1), 4, 1, Readout("mean"), (Block(Attention((Heads(1, 2, 2),)), FeedForward(3)),)
    )
    return Transformer.random(config, 3)


def test_any_network_can_be_proved_by_boxes(tmp_path):
    model = small_network()
    value = float(model.evaluate([[0.5, 0.5]])[0, 0])
    target = target_of(f"{value!r} + 0*x1*x2", "[0.4,0.6]^2")
    tree = uniform_tree(2, 1)
    run = Run(model, target, "0.5", Boxes("0.5", 2, 0, len(tree)), tree).write(tmp_path / "run")
    verdict = judged(run)
    assert verdict.outcome == "proved"
    corners = model.evaluate([[a, b] for a in (0.4, 0.6) for b in (0.4, 0.6)])
    largest = float(np.abs(corners - value).max())
    assert largest <= float(verdict.upper) + 1e-12
    reseal(run, epsilon=f"{largest * 0.99:.9f}", proof=Boxes(f"{largest * 0.99:.9f}", 2, 0, len(tree)))
    assert judged(run).outcome == "refused"


def test_a_triangle_from_the_files(tmp_path):
    base = theorem_run("sin(x1)", "[0,1]", "0.1")
    tree = uniform_tree(1, 2)
    sides = (Boxes("0.09", 4, 0, len(tree)), Boxes("0.009", 4, 0, len(tree)))
    node = Triangle("0.1", parse_formula("x1 - x1**3/6").to_json(), sides)
    verdict = judged(Run(base.model, base.target, "0.1", node, tree).write(tmp_path / "run"))
    assert verdict.outcome == "proved"


# --- several processes -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many_leaves(tmp_path_factory):
    """512 leaves: enough for worker processes. A small grid, so that a leaf is cheap."""
    target = target_of("x1", "[0,1]")
    model = grid_model(target, "second", (3,), 3, Fraction(1)).model
    tree = uniform_tree(1, 9)
    return Run(model, target, "0.01", Boxes("0.01", 2, 0, len(tree)), tree).write(
        tmp_path_factory.mktemp("many") / "run"
    )


def test_workers_agree_with_one_process(many_leaves):
    seen = []
    alone = check(many_leaves, workers=1)
    together = check(many_leaves, workers=2, progress=lambda done, total: seen.append((done, total)))
    assert together.outcome == alone.outcome == "proved"
    assert together.upper == alone.upper
    assert max(seen) == (512, 512)


def test_a_refusal_of_one_worker_refuses_everything(many_leaves, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for path in many_leaves.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    # A spike inside one single leaf.
    reseal(folder, target=target_of("x1 + exp(-1e9*(x1 - 0.7001)**2)", "[0,1]"))
    verdict = check(folder, workers=2)
    assert verdict.outcome == "refused"
    assert "could only be bounded" in verdict.reason


def worker(files: dict[str, bytes], tree: str, seconds: float = math.inf) -> list[dict]:
    sent = {name: base64.b64encode(data).decode() for name, data in files.items()}
    request = {"files": sent, "path": [], "goal": None, "deepest": 5, "seconds": seconds, "pieces": [[[[0, 0]], tree]]}
    text = json.dumps(request).encode() + b"\n"
    done = subprocess.run(command(WORKER), input=text, capture_output=True, env=environment(), timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_worker_proves_the_bytes_that_it_is_sent(many_leaves):
    files = read_files(many_leaves)
    (answer,) = worker(files, "ff")
    assert answer["leaves"] == 1
    (answer,) = worker(files, "00ff")
    assert "malformed" in answer["refused"]
    (answer,) = worker(files, "ff", seconds=-1.0)
    assert "time was spent" in answer["refused"]
    (answer,) = worker({**files, "leaves.bin": b"\xff"}, "ff")
    assert "hash does not match" in answer["refused"]


def test_a_folder_exchanged_between_reading_and_proving_changes_nothing(many_leaves, tmp_path, monkeypatch):
    """The workers must prove what the parent read: an easier claim slipped in afterwards is not it."""
    folder = tmp_path / "run"
    folder.mkdir()
    originals = {path.name: path.read_bytes() for path in many_leaves.iterdir()}
    for name, data in originals.items():
        (folder / name).write_bytes(data)
    hard = target_of("x1 + exp(-1e9*(x1 - 0.7001)**2)", "[0,1]")
    reseal(folder, target=hard)
    real = workers.subprocess.Popen

    def exchanging(command, **options):
        for name, data in originals.items():
            (folder / name).write_bytes(data)
        return real(command, **options)

    monkeypatch.setattr(workers.subprocess, "Popen", exchanging)
    verdict = check(folder, workers=2)
    assert verdict.outcome == "refused"
    assert "could only be bounded" in verdict.reason
    assert check(folder, workers=2).outcome == "proved"  # what was slipped in is the honest run


def test_dead_workers_are_no_proof(many_leaves, monkeypatch):
    real = workers.subprocess.Popen

    def dying(command, **options):
        return real([command[0], "-c", "import sys; sys.stdin.readline()"], **options)

    monkeypatch.setattr(workers.subprocess, "Popen", dying)
    verdict = check(many_leaves, workers=2)
    assert verdict.outcome == "refused"
    assert "died" in verdict.reason


@pytest.mark.parametrize(
    "answer",
    [
        '{"leaves": 1}',
        "nonsense",
        "{}",
        '{"upper": [], "leaves": 1}',
        '{"upper": ["x", "0"], "leaves": 1}',
        "null",
        "[]",
    ],
)
def test_a_worker_that_answers_nonsense_is_no_proof(many_leaves, monkeypatch, answer):
    real = workers.subprocess.Popen
    code = f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)"
    monkeypatch.setattr(
        workers.subprocess, "Popen", lambda command, **options: real([command[0], "-c", code], **options)
    )
    assert check(many_leaves, workers=2).outcome == "refused"


# --- what is read and said -------------------------------------------------------------------------------------------------


def test_the_claim_is_read_from_the_files(tmp_path):
    claim = read_claim(read_files(theorem_run("[x1*x2, x1 - x2]", "[0,1]^2", "0.2").write(tmp_path / "run")))
    assert claim.epsilon == Fraction(1, 5)
    assert "each of the transformer's 2 outputs differs from [x1*x2, x1 - x2] by at most 0.2" in claim.sentence()
    assert "(x1, x2) of [0, 1] x [0, 1]" in claim.sentence()


def test_models_and_targets_of_different_sizes_are_refused(tmp_path):
    one = theorem_run("sin(x1)", "[0,1]", "0.1")
    for formula, on in (("x1 + x2", "[0,1]^2"), ("[x1, x1]", "[0,1]")):
        folder = Run(one.model, target_of(formula, on), "0.1", one.proof).write(tmp_path / formula)
        verdict = judged(folder)
        assert verdict.outcome == "refused"
        assert "the transformer" in verdict.reason


def test_what_is_undecided_claims_nothing_and_what_is_called_invalid_is_refused(tmp_path):
    base = theorem_run("sin(x1)", "[0,1]", "0.1")
    for outcome, said, code in ((Outcome.UNDECIDED, "undecided", 3), (Outcome.INVALID, "refused", 1)):
        verdict = judged(Run(base.model, base.target, "0.1", None, outcome=outcome).write(tmp_path / outcome.value))
        assert (verdict.outcome, verdict.exit_code, verdict.level) == (said, code, 0)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(BadInput, match="not the folder of a finished run"):
        check(tmp_path)


@pytest.mark.parametrize("value", ["0", "1/3", "1e-5", "123456.789"])
def test_decimal_text_lies_on_the_stated_side(value):
    number = Fraction(value)
    ball = arb(number.numerator) / number.denominator
    assert Fraction(decimal(ball.upper(), up=True)) >= number >= Fraction(decimal(ball.lower(), up=False))


def test_decimal_text_of_extreme_numbers_stays_short_and_true():
    tiny, huge = arb(-(10**15)).exp(), arb(10**15).exp()
    assert decimal(tiny.lower(), up=False) == "0"
    assert 0 < Fraction(decimal(tiny.upper(), up=True)) < Fraction(1, 10**300)
    assert 10**300 < Fraction(decimal(huge.lower(), up=False)) < 10**302
    assert decimal(arb(0), up=True) == "0"
