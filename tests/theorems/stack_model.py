"""A transformer in NumPy, written from the statement of `bounds.normed_stack`, with its weights as a dictionary."""

from __future__ import annotations

import numpy as np

from certiformer.bounds.stack_norms import (
    AttentionNorms,
    HiddenNorms,
    MapNorms,
    NormNorms,
    StackHead,
    StackLayer,
    StackNorms,
    TableNorms,
    VectorNorms,
)

WIDTH, SIZE, UNITS, HEADS, WORDS, TOKENS = 6, 3, 7, 2, 5, 4
Weights = dict[str, np.ndarray]


class Layout:
    """Where norms stand, and which options there are."""

    def __init__(self, place, *, rotary=False, gated=False, tied=False, final=True, embedding=False, epsilon=0.3):
        self.place, self.rotary, self.gated, self.tied = place, rotary, gated, tied
        self.final, self.embedding, self.epsilon, self.layers = final, embedding, epsilon, 2

    def random(self, seed: int, size: float = 0.4) -> Weights:
        rng = np.random.default_rng(seed)
        shapes = {"words": (WORDS, WIDTH), "places": (TOKENS, WIDTH), "last bias": (WORDS,)}
        if not self.tied:
            shapes["table"] = (WORDS, WIDTH)
        for name in [*("embedding",) * self.embedding, *("final",) * self.final]:
            shapes |= {f"{name} gain": (WIDTH,), f"{name} shift": (WIDTH,)}
        for n in range(self.layers):
            for part in ("attention", "units"):
                shapes |= {f"{n} {part} gain": (WIDTH,), f"{n} {part} shift": (WIDTH,), f"{n} {part} bias": (WIDTH,)}
            for h in range(HEADS):
                if self.rotary:
                    shapes |= {f"{n} query {h}": (SIZE, WIDTH + 1), f"{n} key {h}": (SIZE, WIDTH + 1)}
                else:
                    shapes[f"{n} scores {h}"] = (WIDTH + 1, WIDTH)
                shapes[f"{n} value {h}"] = (WIDTH, WIDTH)
            shapes |= {f"{n} up": (UNITS, WIDTH + 1), f"{n} down": (WIDTH, UNITS)}
            if self.gated:
                shapes[f"{n} gate"] = (UNITS, WIDTH + 1)
        return {name: rng.normal(size=shape) * size for name, shape in shapes.items()}

    def norms(self, *models: Weights) -> StackNorms:
        """The norms that hold for all of these models."""

        def of(name: str, measure) -> float:
            return max(float(measure(model[name])) for model in models) * (1 + 1e-12)

        def map_of(name: str, scale: float = 1.0) -> MapNorms:
            rows, columns = models[0][name].shape
            found = MapNorms(
                of(name, lambda w: np.linalg.norm(w, 2)),
                of(name, np.linalg.norm),
                of(name, lambda w: abs(w).sum()),
                rows,
                columns,
                min(rows, columns),
                of(name, lambda w: np.linalg.norm(w, axis=1).max()),
            )
            return found.scaled(scale)

        def vector(name: str) -> VectorNorms:
            sums, largest = of(name, lambda v: abs(v).sum()), of(name, lambda v: abs(v).max())
            return VectorNorms(sums, of(name, np.linalg.norm), largest, models[0][name].size)

        def table(name: str) -> TableNorms:
            rows, columns = models[0][name].shape
            squares = of(name, lambda w: (abs(w).sum(1) ** 2).sum())
            return TableNorms(rows, columns, squares, of(name, lambda w: np.linalg.norm(w, axis=1).max()))

        def norm(name: str) -> NormNorms:
            return NormNorms(self.epsilon, vector(f"{name} gain"), vector(f"{name} shift"))

        layers = []
        for n in range(self.layers):
            heads = []
            for h in range(HEADS):
                ways = {"query": map_of(f"{n} query {h}"), "key": map_of(f"{n} key {h}")} if self.rotary else {}
                scores = None if self.rotary else map_of(f"{n} scores {h}")
                heads.append(StackHead(map_of(f"{n} value {h}"), scores, **ways, biased=True))
            gate = map_of(f"{n} gate") if self.gated else None
            hidden = HiddenNorms(
                map_of(f"{n} up"), map_of(f"{n} down"), gate, 1.0, biased=True, bias=vector(f"{n} units bias")
            )
            attention = AttentionNorms(tuple(heads), vector(f"{n} attention bias"))
            layers.append(StackLayer(attention, hidden, norm(f"{n} attention"), norm(f"{n} units")))
        return StackNorms(
            self.place,
            WIDTH,
            tuple(layers),
            (table("words"), table("places")),
            embedding_norm=norm("embedding") if self.embedding else None,
            final_norm=norm("final") if self.final else None,
            readout=None if self.tied else table("table"),
            readout_bias=vector("last bias"),
            tied=self.tied,
        )

    def logits(self, model: Weights, word: np.ndarray, causal: bool = False) -> np.ndarray:
        x = model["words"][word] + model["places"][: len(word)]
        if self.embedding:
            x = self._norm(model, "embedding", x)
        for n in range(self.layers):
            if self.place == "parallel":
                x = (
                    x
                    + self._attention(model, n, self._norm(model, f"{n} attention", x), causal)
                    + self._units(model, n, self._norm(model, f"{n} units", x))
                )
            elif self.place == "pre":
                x = x + self._attention(model, n, self._norm(model, f"{n} attention", x), causal)
                x = x + self._units(model, n, self._norm(model, f"{n} units", x))
            else:
                x = self._norm(model, f"{n} attention", x + self._attention(model, n, x, causal))
                x = self._norm(model, f"{n} units", x + self._units(model, n, x))
        if self.final:
            x = self._norm(model, "final", x)
        return x @ model["words" if self.tied else "table"].T + model["last bias"]

    def _norm(self, model: Weights, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(1, keepdims=True)
        v = centred / np.sqrt((centred**2).mean(1, keepdims=True) + self.epsilon)
        return v * model[f"{name} gain"] + model[f"{name} shift"]

    def _attention(self, model: Weights, n: int, u: np.ndarray, causal: bool) -> np.ndarray:
        ones, total = np.concatenate([u, np.ones((len(u), 1))], 1), model[f"{n} attention bias"]
        for h in range(HEADS):
            if self.rotary:
                query, key = (self._turned(ones @ model[f"{n} {way} {h}"].T) for way in ("query", "key"))
                scores = query @ key.T
            else:
                scores = ones @ model[f"{n} scores {h}"] @ u.T
            if causal:
                scores = np.where(np.tri(len(u)) > 0, scores, -np.inf)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            total = total + (weights / weights.sum(1, keepdims=True)) @ u @ model[f"{n} value {h}"].T
        return total

    def _turned(self, rows: np.ndarray) -> np.ndarray:
        angle = 0.7 * np.arange(len(rows))
        found = rows.copy()
        found[:, 0] = np.cos(angle) * rows[:, 0] - np.sin(angle) * rows[:, 1]
        found[:, 1] = np.sin(angle) * rows[:, 0] + np.cos(angle) * rows[:, 1]
        return found

    def _units(self, model: Weights, n: int, u: np.ndarray) -> np.ndarray:
        ones = np.concatenate([u, np.ones((len(u), 1))], 1)
        raised = ones @ model[f"{n} up"].T
        hidden = np.maximum(ones @ model[f"{n} gate"].T, 0) * raised if self.gated else np.tanh(raised)
        return hidden @ model[f"{n} down"].T + model[f"{n} units bias"]
