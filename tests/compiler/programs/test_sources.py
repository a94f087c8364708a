"""What a user may name as a program, and what is said when it is none."""

from __future__ import annotations

import pytest

from certiformer import BadInput
from certiformer.compiler.programs.lookup_table import table_program
from certiformer.compiler.programs.source_lines import source_lines
from certiformer.compiler.programs.sources import read_input, read_source, read_vocab
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.program_to_graph import program_to_graph

FILE = """from certiformer.rasp import *

double = (tokens + tokens).named("double")

everyone = Select(tokens, tokens, Comparison.TRUE)
size = SelectorWidth(everyone).named("size")
program = (size - indices).named("left")


def made():
    return program + 1


number = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def test_a_bare_name_is_a_library_program():
    source = read_source("sort")
    assert source.name == "sort" and source.program([3, 1, 2]) == [1, 2, 3] and source.vocab == (1, 2, 3)


def test_programs_of_a_file_by_name_by_default_and_made_by_a_function(file):
    assert read_source("mine.py:double").program([1, 2]) == [2, 4]
    assert read_source("mine.py").program([1, 1]) == [2, 1]
    assert read_source("mine.py:made").program([1, 1]) == [3, 2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("revrse", "the library has no program 'revrse'; did you mean 'reverse'?"),
        ("zzz", "the library has no program 'zzz'; a file is named as file.py:program, a table as table.csv"),
        ("none.py:program", "there is no file 'none.py'"),
        ("mine.py:nothing", "mine.py has no program 'nothing'; it has double, size, program"),
        ("mine.py:number", "'number' in mine.py is a int; a program is a sequence of values (an SOp)"),
        ("mine.py:everyone", "'everyone' in mine.py is a Select; a program is a sequence of values (an SOp)"),
        ("bad.py:x", "'bad.py' cannot be imported: ZeroDivisionError in line 1: division by zero"),
        (
            "endless.py:x",
            "x() in endless.py does not make a program: RecursionError in line 2: maximum recursion depth",
        ),
        ("syntax.py:x", "'syntax.py' cannot be imported: SyntaxError in line 1: "),
        ("exit.py:x", "'exit.py' cannot be imported: SystemExit in line 1: 0"),
        ("none.csv", "none.csv cannot be read: No such file or directory"),
    ],
)
def test_a_name_that_is_no_program_is_one_sentence(file, text, sentence):
    (file / "bad.py").write_text("x = 1 / 0\n")
    (file / "endless.py").write_text("def x():\n    return x()\n")
    (file / "syntax.py").write_text("x = = 1\n")
    (file / "exit.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(BadInput) as caught:
        read_source(text)
    assert str(caught.value).startswith(sentence) and "\n" not in str(caught.value)


def test_tokens_of_the_command_line():
    assert read_vocab("a, b,3") == ["a", "b", 3]
    with pytest.raises(BadInput, match="has an empty one"):
        read_vocab("a,,b")
    assert read_input("a, b", ["a", "b"]) == ["a", "b"]
    assert read_input("( ) x", ["(", ")", "x"]) == read_input("()x", ["(", ")", "x"]) == ["(", ")", "x"]
    assert read_input("12 3", [12, 3]) == [12, 3]


def test_lines_of_the_source_find_their_nodes(file):
    source = read_source("mine.py:program")
    graph = graph_to_simplified(program_to_graph(source.program, ["a", "b"], 4))
    lines = source_lines(source.program, graph)
    named = {graph.nodes[int(number)].name: line for number, line in lines.items()}
    assert named["left"] == "mine.py:7"
    assert "tokens" not in named


CSV = "x,y,out\n0,0,no\n0,1,yes\n1,0,yes\n1,1,no\n"


def test_a_table_answers_its_rows(tmp_path):
    (tmp_path / "xor.csv").write_text(CSV)
    program, vocab, length = table_program(tmp_path / "xor.csv")
    assert (vocab, length) == ((0, 1), 2)
    assert program([0, 1]) == ["yes", "yes"] and program([1, 1]) == ["no", "no"]
    assert program([0]) == [None]


def test_a_table_with_several_answers_gives_one_at_each_position(tmp_path):
    (tmp_path / "swap.csv").write_text("x,y,out1,out2\na,b,b,a\nb,a,a,\n")
    program, _, _ = table_program(tmp_path / "swap.csv")
    assert program("ab") == ["b", "a"] and program("ba") == ["a", None] and program("aa") == [None, None]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x,out\n", "has no rows"),
        ("x,out\na,1\na,2\n", "row 2 of .* has the same tokens as an earlier row but another answer"),
        ("x,out\na\n", "row 1 of .* has 1 fields, the header has 2"),
        ("x,out\n,1\n", "row 1 of .* has an empty token"),
        ("out\n1\n", "needs 2 to 64 columns"),
        ("x,out1,out2\na,1,2\n", "has 2 answer columns, more than the 1 tokens"),
    ],
)
def test_a_table_that_is_none_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match=sentence):
        table_program(tmp_path / "t.csv")
