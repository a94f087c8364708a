"""Folders made to hang, to fill the memory or to be read through: each is refused with one sentence, soon and small."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from certiformer.api.compiling import compile as compile_program
from certiformer.cli.main import main
from certiformer.errors import BadInput
from certiformer.isolation import COMMAND, command
from certiformer.kernel import files
from certiformer.kernel.certificate import STATEMENTS
from certiformer.kernel.files import (
    CERTIFICATE,
    CIRCUIT,
    CONFIG,
    DESCRIPTIONS,
    LEAVES,
    MODEL,
    PROGRAM,
    TARGET,
    canonical,
    digest,
    read_bytes,
)
from certiformer.kernel.weights import FORMAT, expected_shapes
from certiformer.rasp import tokens
from certiformer.rasp.library.ordering import make_reverse
from negative.forge import reseal, theorem_run

RULE_OF = {subject: name for name, subject in STATEMENTS.items() if subject in DESCRIPTIONS}
MEMORY = 1 << 30
SECONDS = 60  # an honest check takes less than one
EVERY = (MODEL, CONFIG, TARGET, LEAVES, CERTIFICATE)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return theorem_run("sin(x1)", "[0,1]", "0.1").write(tmp_path_factory.mktemp("honest") / "run")


@pytest.fixture
def folder(honest, tmp_path):
    shutil.copytree(honest, tmp_path / "run")
    return tmp_path / "run"


def limited_check(folder: Path) -> subprocess.CompletedProcess[str]:
    """`check` with no more address space than `MEMORY`."""
    limit = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY})); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", limit, *command(COMMAND, "check", str(folder), "--json", "--workers", "1")]
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)


def refusal(folder: Path) -> str:
    done = limited_check(folder)
    assert done.returncode in (1, 2), (done.returncode, done.stdout[-500:], done.stderr[-500:])
    data = json.loads(done.stdout)
    assert data["outcome"] in ("refused", "error") and "\n" not in data["reason"]
    return data["reason"]


def test_an_honest_folder_is_checked_within_the_memory(honest):
    done = limited_check(honest)
    assert done.returncode == 0, done.stderr


def test_the_limit_is_seen():
    """The negative control: reading without limits ends the process."""
    program = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY})); open('/dev/zero', 'rb').read(2 << 30)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS)
    assert "MemoryError" in done.stderr


# --- files that are none ---------------------------------------------------------------------------------------------


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def outside(path: Path) -> None:
    away = path.parent.parent / f"away-{path.name}"
    shutil.copy(path.parent.parent / "kept" / path.name, away)
    path.symlink_to(away)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def subfolder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def itself(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = (device, outside, pipe, subfolder, listening, sparse, itself)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_not_a_small_regular_file_is_not_read(folder, kind):
    shutil.copytree(folder, folder.parent / "kept")
    for name in EVERY:
        (folder / name).unlink()
        kind(folder / name)
        with pytest.raises(BadInput):
            read_bytes(folder / name)
        if name in (CERTIFICATE, MODEL):
            assert name in refusal(folder)
        (folder / name).rmdir() if kind is subfolder else (folder / name).unlink()
        shutil.copy(folder.parent / "kept" / name, folder / name)
    assert main(["check", str(folder), "--json"]) == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", [device, pipe, sparse, outside], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", [CERTIFICATE, MODEL, CONFIG])
def test_no_verb_reads_such_a_file(folder, kind, name, capsys, tmp_path):
    shutil.copytree(folder, folder.parent / "kept")
    (folder / name).unlink()
    kind(folder / name)
    verbs = [["show", str(folder)], ["export", str(folder), "--to", "torch", "--out", str(tmp_path / "out")]]
    if kind is not outside:  # a model of one's own may be links
        model = ["prove", str(folder), "sin(x1)", "--on", "[0,1]", "--eps", "0.5", "--out", str(tmp_path / "new")]
        verbs += [model] if name != CERTIFICATE else []
    for words in verbs:
        code = main([*words, "--json"])
        answer = json.loads(capsys.readouterr().out)
        if words[0] == "export" and name == CERTIFICATE and kind in (device, pipe):
            continue  # no certificate: a model without a claim
        assert code in (1, 2) and answer["outcome"] in ("error", "refused"), words


# --- files that grow when they are read --------------------------------------------------------------------------------


def sealed(folder: Path, name: str, data: bytes) -> Path:
    """The file exchanged, and all hashes computed anew."""
    (folder / name).write_bytes(data)
    certificate = json.loads((folder / CERTIFICATE).read_bytes())
    del certificate["sha256"]
    certificate["seals"] = {each: digest((folder / each).read_bytes()) for each in certificate["seals"]}
    certificate["sha256"] = digest(canonical(certificate))
    (folder / CERTIFICATE).write_bytes(canonical(certificate))
    return folder


MANY = files.SMALL_BYTES
BOMBS = {
    "deep lists": b"[" * 900_000 + b"]" * 900_000,
    "deep objects": b'{"a":' * 500_000 + b"1" + b"}" * 500_000,
    "empty lists": b"[" + b"[]," * (MANY // 3 - 2) + b"[]]",
    "most values": b"[" + b"{}," * (files.MAX_VALUES // 2 - 10) + b"{}]",
    "most texts": b"[" + b",".join(b'"%07d"' % n for n in range(1_400_000)) + b"]",
    "many keys": b"{" + b",".join(b'"%x":{}' % n for n in range(500_000)) + b"}",
    "a long number": b"9" * 5_000,
    "a longer number": b"9" * (MANY - 10),
    "a large exponent": b"[1e999999999999]",
    "a long text": b'"' + b"a" * (MANY - 10) + b'"',
    "escapes": b'"' + b"\\u00e9" * (MANY // 6 - 10) + b'"',
    "not text": b"\xff" * 1000,
    "nothing": b"",
}


GROWING = ("deep objects", "most values", "many keys", "a long number")


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_certificate_that_grows_is_refused(folder, bomb):
    (folder / CERTIFICATE).write_bytes(BOMBS[bomb])
    refusal(folder)


@pytest.mark.parametrize("bomb", GROWING)
@pytest.mark.parametrize("name", [CONFIG, TARGET])
def test_a_configuration_or_target_that_grows_is_refused(folder, name, bomb):
    refusal(sealed(folder, name, BOMBS[bomb]))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_program(make_reverse(tokens), ["a", "b"], 3).save(tmp_path_factory.mktemp("program") / "run")


@pytest.mark.parametrize("bomb", GROWING[:2])
@pytest.mark.parametrize("name", [PROGRAM, CIRCUIT])
def test_a_compiled_program_that_grows_is_refused(program, tmp_path, name, bomb):
    folder = Path(shutil.copytree(program, tmp_path / "run"))
    refusal(sealed(folder, name, BOMBS[bomb]))


@pytest.mark.parametrize("bomb", GROWING[:2])
@pytest.mark.parametrize("name", files.DESCRIPTIONS)
def test_a_description_that_grows_is_refused(folder, name, bomb):
    (folder / name).write_bytes(BOMBS[bomb])
    data = json.loads((folder / CERTIFICATE).read_bytes())
    data["proof"] = {"rule": "theorem", "bound": "0", "id": RULE_OF[name], "parameters": {}}
    data["seals"] = dict.fromkeys((MODEL, CONFIG, name), "")
    (folder / CERTIFICATE).write_bytes(canonical(data))
    refusal(sealed(folder, name, BOMBS[bomb]))


def header(entries: dict | bytes, size: int | None = None, body: bytes = b"") -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + body


def tensor(shape: list[int], first: int = 0, last: int = 0, dtype: str = "F64") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


HEADERS = {
    "a length beyond the file": header({}, 2**63),
    "the largest length": header({}, 2**64 - 1),
    "a huge shape": header({"embed.weight": tensor([2**40, 2**40])}),
    "many axes": header({"embed.weight": tensor([10**4000] * 3000)}),
    "an overlapping range": header({"a": tensor([1], 0, 8), "b": tensor([1], 0, 8)}, None, b"\0" * 8),
    "many tensors": header(b"{" + b",".join(b'"%d":{}' % n for n in range(1_500_000)) + b"}"),
    "too many small numbers": header({"m": tensor([60 << 20], 0, 60 << 20, "U8")}, None, bytes(60 << 20)),
    "the most small numbers": header(
        {"m": tensor([files.MAX_NUMBERS], 0, files.MAX_NUMBERS, "U8")}, None, bytes(files.MAX_NUMBERS)
    ),
    "the most large numbers": header(
        {"m": tensor([files.MAX_NUMBERS], 0, 8 * files.MAX_NUMBERS)}, None, bytes(8 * files.MAX_NUMBERS)
    ),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_weights_that_grow_are_refused(folder, kind):
    refusal(sealed(folder, MODEL, HEADERS[kind]))


@pytest.mark.parametrize("size", [10**12, 10**4000])
@pytest.mark.parametrize("field", ["width", "registers", "outputs", "loops"])
def test_a_configuration_of_a_huge_model_is_refused(folder, field, size):
    config = json.loads((folder / CONFIG).read_bytes())
    config[field] = size
    refusal(sealed(folder, CONFIG, json.dumps(config).encode()))


def test_a_folder_is_limited_as_a_whole(folder, monkeypatch):
    monkeypatch.setattr(files, "MAX_TOTAL", 100)
    with pytest.raises(BadInput, match="the most that is read of a run folder"):
        files.read_files(folder)


# --- small files that ask for a large computation ---------------------------------------------------------------------


def zero_network(inputs: int, **changes: object) -> dict[str, bytes]:
    """The configuration and weights of a transformer that is zero."""
    config: dict = {
        "format": FORMAT, "dtype": "float64", "input": {"kind": "continuous", "tokens": 1, "width": inputs}, "width": 1,
        "registers": 0, "code": {"kind": "none"}, "blocks": [], "loops": 1,
        "readout": {"kind": "token", "token": 0}, "outputs": 1, **changes,
    }  # fmt: skip
    header, end = {}, 0
    for name, shape in expected_shapes(config).items():
        start, end = end, end + 8 * math.prod(shape)
        header[name] = {"dtype": "F64", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    return {"config": canonical(config), "model": struct.pack("<Q", len(text)) + text + bytes(end)}


def claim_on_unit_box(folder: Path, inputs: int, nodes: list, proof: dict, **changes: object) -> Path:
    """The folder with the claim that the last node is within 2 of zero."""
    program = {"inputs": inputs, "nodes": nodes, "outputs": [len(nodes) - 1]}
    target = {"format": "certiformer-target-2", "norm": "max", "source": "", "program": program}
    target["domain"] = [["0", "1"]] * inputs
    return reseal(
        folder,
        target=canonical(target),
        leaves=b"\xff",
        raw_proof=proof,
        epsilon="2",
        **zero_network(inputs, **changes),
    )


def boxes(bound: str, order: int) -> dict:
    return {"rule": "boxes", "bound": bound, "order": order, "offset": 0, "length": 1}


def test_a_table_of_monomials_that_would_fill_the_memory_is_not_made(folder):
    nodes = [["var", 0]]
    assert limited_check(claim_on_unit_box(folder, 12, nodes, boxes("2", 2))).returncode == 0  # the control
    assert "too many coefficients" in refusal(claim_on_unit_box(folder, 12, nodes, boxes("2", 12)))


def squared_constants() -> list:
    nodes = [["var", 0], ["const", "3/2"]]
    return [*nodes, *(["mul", n, n] for n in range(1, 60)), ["mul", 0, 60]]


def growing_sums() -> list:
    nodes = [["var", 0]]
    for n in range(0, 19_000, 2):
        nodes += [["sin", n], ["add", n, n + 1]]
    return nodes


def one_sum_in_many_atoms() -> list:
    nodes, total = [["var", 0]], 0
    for n in range(1, 4 * 900, 4):
        nodes += [["const", f"{n}/8191"], ["mul", 0, n], ["sin", n + 1], ["add", total, n + 2]]
        total = n + 3
    return [*nodes, ["mul", total, 0], *(["mul", total, n] for n in range(total + 1, 19_000))]


@pytest.mark.parametrize("nodes", [squared_constants, growing_sums, one_sum_in_many_atoms], ids=lambda f: f.__name__)
def test_a_normal_form_that_would_fill_the_memory_is_not_made(folder, nodes):
    part = {"directions": [[1]], "target": {"inputs": 1, "nodes": [["var", 0]], "outputs": [0]}, "units": []}
    part |= {"slopes": ["0"], "constant": "0"}
    split = {"rule": "split", "bound": "2", "linear": ["0"], "parts": [part], "children": [boxes("3/2", 2)]}
    small = claim_on_unit_box(folder, 1, [["var", 0]], split)
    assert "needs blocks" in refusal(small)  # the control: the comparison before that succeeds
    assert "too large to be compared" in refusal(claim_on_unit_box(folder, 1, nodes(), split))


@pytest.mark.parametrize("width", [1_000, 1_000_000])
def test_wide_arrays_that_would_fill_the_memory_are_not_made(folder, width):
    tokens = {"kind": "continuous", "tokens": 64, "width": 1}
    claim = claim_on_unit_box(folder, 64, [["var", 0]], boxes("2", 0), input=tokens, width=width)
    if width > 1_000:
        assert "too large to be computed" in refusal(claim)
    else:
        assert limited_check(claim).returncode == 0  # the control


@pytest.mark.parametrize("loops", [100, 1_000])
def test_many_small_arrays_that_would_fill_the_memory_are_not_made(folder, loops):
    """Half a megabyte that asks for a million passes, each of arrays of one number."""
    ffn = {"kind": "identity", "width": 1, "residual": True}
    blocks = [{"attention": None, "ffn": ffn, "norm": None}] * (1_000 if loops > 100 else 100)
    claim = claim_on_unit_box(folder, 1, [["var", 0]], boxes("2", 0), loops=loops, blocks=blocks)
    if loops > 100:
        assert "too large to be computed" in refusal(claim)
    else:
        assert limited_check(claim).returncode == 0  # the control
