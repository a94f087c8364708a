"""What ids stand for: one word for each value, inputs first, and a tokenizer that knows no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from certiformer import rasp
from certiformer.compiler.driver import compile_program
from certiformer.errors import BadInput
from certiformer.export.labels import Labels, folder_labels, plain_labels, program_labels
from certiformer.rasp.graph_file import graph_to_text


def labels_of(program: rasp.SOp, vocab: tuple) -> Labels:
    compiled = compile_program(program, vocab, 3)
    return program_labels(compiled.graph, compiled.circuit)


def test_outputs_that_are_inputs_share_their_ids():
    labels = labels_of(rasp.Map(lambda x: {"a": "b", "b": "z"}[x], rasp.tokens), ("a", "b"))
    assert labels.texts == ("a", "b", "<bos>", "z") and set(labels.outputs) == {1, 3}
    assert labels.kind == "logits" and labels.spacing == 1.0


def test_values_that_look_alike_get_different_words():
    swap = rasp.Map(lambda x: {"1": 1, " ": "1", "": ("a", 2)}[x], rasp.tokens)
    labels = labels_of(swap, ("1", " ", ""))
    assert len(set(labels.texts)) == len(labels.texts) and not any(" " in text for text in labels.texts)
    assert "(a,2)" in labels.texts and {"1", "1'"} <= set(labels.texts)
    named = labels_of(rasp.tokens, ("<bos>", "x"))
    assert named.texts == ("<bos>", "x", "<bos>'")


def test_undefined_comes_last():
    labels = labels_of(
        rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices - 1, rasp.Comparison.EQ), rasp.tokens), ("a", "b")
    )
    assert labels.texts[labels.outputs[-1]] == "<undefined>" and labels.values[labels.outputs[-1]] is None


def test_numbers_are_listed_beside_their_id():
    mean = rasp.Aggregate(
        rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ), rasp.numerical(rasp.tokens == "a")
    )
    labels = labels_of(mean, ("a", "b"))
    assert labels.kind == "number" and labels.texts[labels.outputs[0]] == "<number>"
    data = json.loads(labels.tokens_file())
    assert {"number": "1/3", "value": {"ratio": "1/3"}} in data["numbers"] or any(
        n["number"] == "1/3" for n in data["numbers"]
    )
    assert labels.spacing == pytest.approx(1 / 6)


def test_the_tokenizer_puts_the_start_token_in_front():
    tokenizers = pytest.importorskip(
        "tokenizers", reason="the library tokenizers is not installed: its file was not opened"
    )
    text = plain_labels(2, 3).tokenizer_files(4)["tokenizer.json"].decode("utf-8")
    tokenizer = tokenizers.Tokenizer.from_str(text)
    assert tokenizer.encode("1 0 1").ids == [2, 1, 0, 1] and tokenizer.decode([1, 3]) == "1 2"
    with pytest.raises(Exception, match="(?i)unk"):
        tokenizer.encode("7")


def test_a_folder_without_a_circuit_has_none(tmp_path: Path):
    assert folder_labels(tmp_path) is None
    compiled = compile_program(rasp.tokens, ("a",), 2)
    (tmp_path / "circuit.json").write_text(compiled.circuit.to_text(), encoding="ascii")
    with pytest.raises(BadInput, match=r"no program\.json"):
        folder_labels(tmp_path)
    (tmp_path / "program.json").write_text(graph_to_text(compiled.graph), encoding="ascii")
    labels = folder_labels(tmp_path)
    assert labels is not None and labels.texts == ("a", "<bos>")
