"""Nothing that is read from a file can move the cursor, colour, turn the writing, or begin a line that looks like ours.

Every text of every file is replaced by an attack, all seals are computed anew, and the verbs that read folders are run.
"""

from __future__ import annotations

import copy
import json
import unicodedata

import pytest

from certiformer.cli import terminal
from certiformer.cli.terminal import visible
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.reports import automaton_claim
from negative.kinds import COMMANDS, certificate_of, copied, in_process, put_certificate

# A line break before a label of ours, colours, a cleared screen, a turned direction, C1 controls, separators, DEL, BEL.
MARK = "For every input of any length"
ATTACK = f"ok)\n\x1b[32mcertified\x1b[0m  {MARK}\r\x1b[2J\u202e\x9b32m\u2028certified  {MARK}\x7f\x07\x85\u200b"
LONG = "A" * 89 + "certified" + "A" * 300
LABELS = (
    "certified",
    "proved",
    "claim",
    "proof",
    "recorded",
    "error",
    "run",
    "runs",
    "meaning",
    "next",
    "trace",
    "program",
)
VERBS = {
    "check": ["--quiet", "--workers", "1", "--proof-only"],
    "check --json": ["--quiet", "--workers", "1", "--proof-only", "--json"],
    "show": [],
    "show --json": ["--json"],
    "run": ["a b"],
    "run --trace": ["a b", "--trace"],
    "export": ["--to", "torch", "--force", "--out", "exported"],
}


def attacked(data, attack: str, count: list[int], chosen: int):
    """The data with its text number `chosen`, a value or a key, replaced."""
    if isinstance(data, str):
        count[0] += 1
        return attack if count[0] - 1 == chosen else data
    if isinstance(data, list):
        return [attacked(part, attack, count, chosen) for part in data]
    if isinstance(data, dict):
        return {
            attacked(key, attack, count, chosen): attacked(part, attack, count, chosen) for key, part in data.items()
        }
    return data


def texts_in(data) -> int:
    count = [0]
    attacked(data, "", count, -1)
    return count[0]


def require_clean(out: str, context: object) -> None:
    """No control character but our own line breaks, and no line of ours from data."""
    odd = [mark for mark in out if mark != "\n" and unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not odd, (context, odd, out)
    for line in out.split("\n"):
        assert not (MARK in line and line.startswith(LABELS) and "ok)" not in line), (context, line)
        assert not line.startswith(f"certified  {MARK}"), (context, line)


def attacks_of(folder, most: int):
    """(file, damaged data) for texts of every JSON file, at most `most` of each file, spread evenly."""
    honest = certificate_of(folder)
    for name in ("certificate.json", *(name for name in honest["seals"] if name.endswith(".json"))):
        data = honest if name == "certificate.json" else json.loads((folder / name).read_bytes())
        total = texts_in(data)
        for chosen in range(0, total, max(1, total // most)):
            yield name, attacked(copy.deepcopy(data), ATTACK, [0], chosen)
        yield name, attacked_everywhere(data)


def attacked_everywhere(data):
    """Every value that is a text replaced; keys stay, so that readers come further."""
    if isinstance(data, str):
        return ATTACK
    if isinstance(data, list):
        return [attacked_everywhere(part) for part in data]
    if isinstance(data, dict):
        return {key: attacked_everywhere(part) for key, part in data.items()}
    return data


def put(folder, name: str, data) -> None:
    honest = certificate_of(folder)
    if name == "certificate.json":
        put_certificate(folder, {**data, "seals": honest["seals"]})
    else:
        (folder / name).write_text(json.dumps(data))
        put_certificate(folder, honest)


def run_all(folder) -> None:
    for verb, more in VERBS.items():
        code, out, err = in_process(verb.split()[0], str(folder), *more)
        require_clean(out, (verb, code))
        require_clean(err, (verb, code))


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind not in ("level 1", "boxes")])
def test_no_text_of_a_file_reaches_the_terminal_as_it_is(folders, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, data in attacks_of(folders[kind], 2 if kind == "program" else 6):
        folder = copied(folders[kind], tmp_path / "copy")
        put(folder, name, data)
        run_all(folder)


def test_a_theorem_is_printed_line_by_line():
    for arguments in (["voronoi_second_order"], [], ["no\x1b[32m\ncertified"]):
        _, out, err = in_process("theorem", *arguments)
        require_clean(out + err, arguments)


def test_a_long_word_does_not_begin_a_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    screen = terminal.Terminal()
    screen.fact("label", LONG)
    screen.listing("program", [LONG])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert all(line.startswith((" " * 11, "label  ", "program  ")) for line in lines)


def test_what_is_printable_stays_as_it_is():
    assert visible("sin(x1) ≤ 0.1, π and ü; \\n as two letters") == "sin(x1) ≤ 0.1, π and ü; \\n as two letters"
    assert visible("a\x1b[0m\nb\u202ec\x7f") == r"a\x1b[0m\nb\u202ec\x7f"
    for code in range(0x3000):
        mark = visible(chr(code))
        assert "\n" not in mark and all(unicodedata.category(x) not in ("Cc", "Cf", "Zl", "Zp") for x in mark)


def test_a_terminal_that_prints_raw_texts_would_be_noticed(folders, tmp_path, monkeypatch):
    """The control: the same attack where `visible` does nothing."""
    monkeypatch.setattr(terminal, "visible", lambda text: text)
    folder = copied(folders["undecided"], tmp_path / "copy")
    put(folder, "certificate.json", {**certificate_of(folder), "reason": ATTACK})
    with pytest.raises(AssertionError):
        run_all(folder)


@pytest.mark.parametrize(
    ("symbol", "listed"),
    [("1", True), (")", True), ("left", True), ("and_all_longer_words", False), ("1,ㅤandㅤall", False)],
)
def test_a_symbol_that_could_read_like_a_claim_does_not_stand_in_the_sentence(symbol, listed):
    """U+3164 is a letter that looks like a blank."""
    rows = (("q", "0", "q"), ("q", symbol, "q"))
    said = automaton_claim(Automaton(("0", symbol), ("q",), "q", ("q",), rows), 3, "one pass of the block", "float64")
    assert (f"over 0, {symbol}, one pass" in said) == listed
    assert ("over an alphabet of 2, one pass" in said) != listed
