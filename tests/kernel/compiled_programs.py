"""Compiled programs for tests, and a plain NumPy run of them: an independent reading of the model's definition."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from certiformer.compiler.draft_to_circuit import lemmas_of
from certiformer.compiler.driver import compile_graph, compile_program
from certiformer.kernel.meanings.rasp import read_program
from certiformer.kernel.situations.rasp.prove import ProgramReport, prove_program
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.kernel.weights import Tensor
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.library import catalogue


@dataclass(frozen=True)
class Built:
    """Everything that a folder of a compiled program holds."""

    config: dict
    arrays: dict[str, np.ndarray]
    program: str
    circuit: str

    def tensors(self) -> dict[str, Tensor]:
        return {k: Tensor(tuple(a.shape), a.astype(float).ravel().tolist()) for k, a in self.arrays.items()}

    def prove(self, dtype: str | None = None) -> ProgramReport:
        return prove_program(self.config, self.tensors(), self.program, self.circuit, dtype)

    def changed(self, name: str, index, value: float) -> Built:
        arrays = {k: a.copy() for k, a in self.arrays.items()}
        arrays[name][index] = value
        return replace(self, arrays=arrays)

    def with_circuit(self, change) -> Built:
        """The same with another circuit file; `change` edits its data in place."""
        data = json.loads(self.circuit)
        change(data)
        return replace(self, circuit=canonical(data))

    def with_program(self, change) -> Built:
        """Another program, also inside the circuit; `change` edits the data of either in place."""
        data, circuit = json.loads(self.program), json.loads(self.circuit)
        extended = json.loads(circuit["extended"])
        change(data)
        change(extended)
        circuit["extended"] = canonical(extended)
        return replace(self, program=canonical(data), circuit=canonical(circuit))


def canonical(data) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"


def key(value) -> tuple:
    """Equal for the same value of the compiler and of the checker, whose fractions have types of their own."""
    if isinstance(value, tuple):
        return tuple(map(key, value))
    return ("fraction" if isinstance(value, Fraction) else type(value).__name__, value)


def variables_of(graph) -> Variables:
    """What the checker knows about a graph, by the steps that a compiler would write."""
    program = read_program(graph_to_text(graph))
    return Variables(program, lemmas_of(program))


@cache
def built(name: str, length: int = 4, dtype: str = "float32", causal: bool = False) -> Built:
    entry = catalogue()[name]
    return built_from(compile_program(entry.make(), entry.vocab, length, causal, dtype))


def built_from(compiled) -> Built:
    config = json.loads(json.dumps(compiled.config.to_json()))
    return Built(config, dict(compiled.tensors), graph_to_text(compiled.graph), compiled.circuit.to_text())


def from_graph(graph, dtype: str = "float64", causal: bool = False) -> Built:
    return built_from(compile_graph(graph, causal, dtype))


def states(model: Built, ids: list[int], dtype) -> list[np.ndarray]:
    """The residual stream after the embedding and after every sub-layer, computed in `dtype`."""
    t = {k: a.astype(dtype) for k, a in model.arrays.items()}
    h = np.concatenate([t["registers"], t["embed.weight"][ids] + t["code.table"][: len(ids)]]).astype(dtype)
    found = [h]
    for b, block in enumerate(model.config["blocks"]):
        if block["attention"] is not None:
            h = h + _attention(t, f"blocks.{b}.attention", block["attention"], h, dtype)
            found.append(h)
        if block["ffn"] is not None:
            name = f"blocks.{b}.ffn"
            hidden = np.maximum(h @ t[f"{name}.up"] + t[f"{name}.up_bias"], 0)
            h = h + (hidden @ t[f"{name}.down"] + t[f"{name}.down_bias"])
            found.append(h)
    return found


def _attention(t, name, attention, h, dtype):
    out = np.zeros_like(h)
    for g, group in enumerate(attention["heads"]):
        p = f"{name}.groups.{g}"
        for k in range(group["count"]):
            sides = {}
            for side in ("query", "key", "value"):
                sides[side] = h @ t[f"{p}.{side}"][k]
                if attention["bias"]:
                    sides[side] = sides[side] + t[f"{p}.{side}_bias"][k]
            scores = sides["query"] @ sides["key"].T
            if attention["scale"] != "unit":
                scores = scores / np.sqrt(dtype(group["key"]))
            if attention["mask"] == "causal":
                scores = np.where(np.tri(len(h), dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights = weights / weights.sum(axis=1, keepdims=True)
            out = out + weights @ sides["value"] @ t[f"{p}.output"][k]
    return out + (t[f"{name}.output_bias"] if attention["bias"] else 0)


def decoded(model: Built, ids: list[int], dtype=np.float64) -> list:
    """The decoded outputs: the largest logit, or the nearest number."""
    graph, circuit = graph_from_text(model.program), json.loads(model.circuit)
    t = {k: a.astype(dtype) for k, a in model.arrays.items()}
    y = states(model, ids, dtype)[-1][1:] @ t["readout.weight"] + t["readout.bias"]
    values = graph.nodes[graph.output].values
    domain = [*values.values, *([None] if values.undefined else [])]
    if circuit["output"]["kind"] == "logits":
        return [domain[k] for k in y.argmax(axis=1)]
    codes, undefined = circuit["output"]["feature"], circuit["output"]["undefined"]
    held = [float(v) if codes is None else float(Fraction(codes[k])) for k, v in enumerate(values.values)]
    held = np.array(held + ([float(Fraction(undefined))] if values.undefined else []))
    return [domain[int(np.abs(held - x).argmin())] for x in y[:, 0]]


def all_inputs(model: Built, longest: int):
    count = len(graph_from_text(model.program).vocab)
    for n in range(1, longest + 1):
        yield from itertools.product(range(count), repeat=n)


def meaning(model: Built):
    """The program's outputs as a function of ids."""
    graph = graph_from_text(model.program)
    runner = GraphRunner(graph)
    return lambda ids: runner.run([graph.vocab[k] for k in ids])
