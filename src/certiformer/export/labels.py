"""What the ids of an exported model stand for: one table of texts for inputs and outputs, and a tokenizer made of it.

The ids 0 .. V-1 are the input tokens in the order of the embedding, V is the start token, and then follow the outputs
that are not input tokens. An output that is the same value as an input token has its id, so that decoding the most
likely ids gives the answer as text. The embedding has NaN rows for ids that are outputs only: fed to the model, they
poison the answer instead of passing for another token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.files import canonical, read_bytes
from certiformer.kernel.situations.rasp.circuit import Circuit, Output, Rational, as_rational, rational
from certiformer.rasp.graph import Graph, ValueSet
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.value import Value, identity, to_json

PROGRAM_FILE, CIRCUIT_FILE = "program.json", "circuit.json"
TOKENS_FILE, TOKENIZER_FILE, TOKENIZER_CONFIG_FILE = "tokens.json", "tokenizer.json", "tokenizer_config.json"
START, UNDEFINED, NUMBER = "<bos>", "<undefined>", "<number>"


@dataclass(frozen=True)
class Labels:
    """`texts` by id; the ids of the model's outputs, in its order; how the outputs are to be read."""

    texts: tuple[str, ...]
    inputs: int
    outputs: tuple[int, ...]
    kind: str  # `logits` or `number`
    values: tuple[Any, ...]  # by id, as JSON: the value, None for undefined and for what is none
    numbers: tuple[tuple[Rational, Any], ...] = ()
    """Which number x stands for which value, when they can be listed; logits are 2 f x - f^2 for each such number f."""
    spacing: float | None = None
    """The least distance of two such numbers; None when nothing is known of the outputs."""
    single_heads: tuple[tuple[int, int, int], ...] = ()
    """The heads (block, group, head) that read at most one position, by the program's own facts."""
    gap: float | None = None
    """The smallest gap of scores that must differ, for those who had the checker prove it (`replace(labels, gap=...)`)."""

    @property
    def start(self) -> int:
        """The id of the start token."""
        return self.inputs

    def tokens_file(self) -> bytes:
        """`tokens.json`: what the ids stand for, for people and programs."""
        entries = [
            {"id": number, "text": text, "value": value}
            for number, (text, value) in enumerate(zip(self.texts, self.values, strict=True))
        ]
        data = {
            "start": self.start,
            "inputs": entries[: self.inputs],
            "outputs": [entries[number] for number in self.outputs],
            "outputs_are": self.kind,
        }
        return canonical(data | self._listed_numbers())

    def own_tokens_file(self) -> bytes:
        """`tokens.json` for the model as it stands, without a start token: input ids, and outputs by their place."""

        def entry(number: int, shown: int) -> dict[str, Any]:
            return {"id": shown, "text": self.texts[number], "value": self.values[number]}

        outputs = [entry(number, place) for place, number in enumerate(self.outputs)]
        inputs = [entry(number, number) for number in range(self.inputs)]
        data: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "outputs_are": self.kind}
        return canonical(data | self._listed_numbers())

    def _listed_numbers(self) -> dict[str, Any]:
        if not self.numbers or self.kind != "number":
            return {}
        return {"numbers": [{"number": number, "value": value} for number, value in self.numbers]}

    def tokenizer_files(self, length: int) -> dict[str, bytes]:
        """A word-level tokenizer of the `tokenizers` library: words between spaces, the start token in front.

        A word outside the vocabulary is an error there, as the vocabulary has no token for unknown ones.
        """
        start = self.texts[self.start]
        special = {"SpecialToken": {"id": start, "type_id": 0}}
        sequences = {name: {"Sequence": {"id": name, "type_id": 0}} for name in "AB"}
        template = {
            "type": "TemplateProcessing",
            "single": [special, sequences["A"]],
            "pair": [special, sequences["A"], sequences["B"]],
            "special_tokens": {start: {"id": start, "ids": [self.start], "tokens": [start]}},
        }
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        words = {text: number for number, text in enumerate(self.texts)}
        tokenizer = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": self.start, "content": start, **flags}],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": template,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": words, "unk_token": _distinct("<unk>", set(words))},
        }
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": start,
            "pad_token": start,
            "padding_side": "right",
            "model_max_length": length + 1,
            "clean_up_tokenization_spaces": False,
        }
        # The order of the vocabulary is that of the ids, for readers.
        text = json.dumps(tokenizer, indent=1, ensure_ascii=False) + "\n"
        return {TOKENIZER_FILE: text.encode("utf-8"), TOKENIZER_CONFIG_FILE: canonical(config)}


def plain_labels(vocabulary: int, outputs: int) -> Labels:
    """Labels for a model of which nothing is known: ids are numbers, and so are outputs.

    >>> plain_labels(2, 3).texts
    ('0', '1', '<bos>', '2')
    """
    names = [str(number) for number in range(max(vocabulary, outputs))]
    texts = (*names[:vocabulary], START, *names[vocabulary:])
    places = tuple(number if number < vocabulary else number + 1 for number in range(outputs))
    values = (*range(vocabulary), None, *range(vocabulary, len(names)))
    return Labels(texts, vocabulary, places, "logits", values)


def folder_labels(folder: Path) -> Labels | None:
    """The labels of a compiled program in its run folder; None when the folder holds none."""
    if not (folder / CIRCUIT_FILE).is_file():
        return None
    if not (folder / PROGRAM_FILE).is_file():
        raise BadInput(f"{folder} holds {CIRCUIT_FILE} but no {PROGRAM_FILE}")
    graph = graph_from_text(read_bytes(folder / PROGRAM_FILE))
    return program_labels(graph, Circuit.from_text(read_bytes(folder / CIRCUIT_FILE)))


def program_labels(graph: Graph, circuit: Circuit) -> Labels:
    """The labels of a compiled program."""
    values = graph.nodes[graph.output].values
    if values is None:
        raise BadInput("the program has no output with values")
    logits = circuit.output.kind == "logits"
    results = _listed(values) if logits else ()
    known: dict[Any, int] = {identity(token): number for number, token in enumerate(graph.vocab)}
    table: list[tuple[Value, str | None]] = [(token, None) for token in graph.vocab]
    table.append((None, START))
    outputs = []
    for result in results:
        place = known.get(identity(result)) if result is not None else None
        if place is None:
            place = len(table)
            table.append((result, UNDEFINED if result is None else None))
            known[identity(result)] = place
        outputs.append(place)
    if not logits:
        outputs.append(len(table))
        table.append((None, NUMBER))
    features = _features(circuit.output, values)
    numbers = tuple((as_rational(feature), to_json(value)) for feature, value in features)
    shown = tuple(to_json(value) for value, _ in table)
    spacing = _spacing([feature for feature, _ in features], values)
    kind, single = circuit.output.kind, _single_heads(circuit)
    return Labels(_texts(table), len(graph.vocab), tuple(outputs), kind, shown, numbers, spacing, single)


def _single_heads(circuit: Circuit) -> tuple[tuple[int, int, int], ...]:
    nodes = graph_from_text(circuit.extended).nodes
    reads = [role for role in circuit.heads if role.kind == "read" and "single" in nodes[role.selector].facts]
    return tuple((role.block, role.group, role.head) for role in reads)


def _listed(values: ValueSet) -> tuple[Value, ...]:
    if values.values is None:
        raise BadInput("the program's outputs are too many to list, and its circuit says that they are logits")
    return (*values.values, None) if values.undefined else values.values


def _features(output: Output, values: ValueSet) -> list[tuple[Fraction, Value]]:
    """The number that stands for each listed value; empty when they cannot be listed."""
    if values.values is None:
        return []
    own = values.values if output.feature is None else output.feature
    pairs = [(Fraction(number), value) for number, value in zip(own, values.values, strict=True)]
    return pairs if output.undefined is None else [*pairs, (rational(output.undefined), None)]


def _spacing(features: list[Fraction], values: ValueSet) -> float | None:
    numbers = sorted(set(features))
    if numbers:
        return float(min((b - a for a, b in zip(numbers, numbers[1:], strict=False)), default=Fraction(1)))
    gap = None if values.span is None else values.span.gap
    return None if gap is None else float(gap)


def _texts(table: list[tuple[Value, str | None]]) -> tuple[str, ...]:
    """A different word for each value; the first of several that look alike keeps its looks."""
    texts: list[str] = []
    for value, given in table:
        texts.append(_distinct(_word(value) if given is None else given, set(texts)))
    return tuple(texts)


def _word(value: Value) -> str:
    if isinstance(value, tuple):
        return f"({','.join(map(_word, value))})"
    text = str(value)
    # Words are split at spaces, so a token with one inside is written with an escape.
    plain = text and not any(character.isspace() for character in text)
    return text if plain else "".join(c if not c.isspace() else f"\\x{ord(c):02x}" for c in f"'{text}'")


def _distinct(word: str, used: set[str]) -> str:
    while word in used:
        word += "'"
    return word
