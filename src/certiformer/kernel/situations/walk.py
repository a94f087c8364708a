"""The walk through the sub-layers of a stored transformer: from what the coordinates hold before to what they hold after.

What a coordinate holds is computed from the weights, in every situation, and is named by the plan: cells and codes, which
are only names and reference points. The embedding gives every coordinate the numbers of the token or of the row that the
weights have. A pass that is repeated must lead back to what was assumed before it (`looped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import larger, smaller, working_precision
from certiformer.kernel.situations.cells import EMPTY, Content, Contents, Form, Meaning
from certiformer.kernel.situations.heads import ROW, Projections, column, fetched
from certiformer.kernel.situations.numbers import UNIT, Number, Run, fixed, gathered, sure, term
from certiformer.kernel.situations.plan import Held, Step
from certiformer.kernel.situations.units import Sublayer, settled
from certiformer.kernel.weights import Tensor, expected_shapes

TOKEN = "token"
WIDENINGS = 4  # how often what is assumed before a pass is widened by what was found after it


_ATTENTION = {"kind": "softmax", "score_bias": "none", "residual": True}


def require_form(config: dict[str, Any], registers: int) -> None:
    """The transformers that are followed: softmax attention, ReLU units, residuals, a table of rows, no norm."""
    if (config["input"]["kind"], config["code"]["kind"], config["readout"]["kind"]) != ("ids", "table", "all"):
        raise Refused("the transformer does not read tokens and a table of rows, or does not read out every row")
    if config["registers"] != registers:
        raise Refused(f"the transformer has {config['registers']} registers instead of {registers}")
    for b, block in enumerate(config["blocks"]):
        attention, ffn = block["attention"], block["ffn"]
        if block["norm"] is not None or (ffn and (ffn["kind"], ffn["residual"]) != ("relu", True)):
            raise Refused(f"block {b} has a norm, or hidden units that are not ReLU with a residual")
        if attention and (any(attention[k] != x for k, x in _ATTENTION.items()) or attention["mask"] == "table"):
            raise Refused(f"the attention of block {b} is not plain softmax with a residual")
        for group in attention["heads"] if attention else ():
            if attention["scale"] != "unit" and (not registers or group["key"] not in (4**i for i in range(16))):
                raise Refused(f"the scores of block {b} are not of unit scale, or divided by no power of two")


class Weights:
    """The stored tensors as exact integers, zeros left out."""

    def __init__(self, tensors: Mapping[str, Tensor], run: Run):
        self.tensors = tensors
        for name, tensor in tensors.items():
            if not all(x - x == 0 and run.is_number(fixed(x, name)) for x in set(tensor.data)):
                raise Refused(f"{name} holds a number that is not finite, none of {run.name}, or read as zero there")

    def rows(self, name: str) -> list[dict[int, int]]:
        """The rows of a tensor, all leading axes run together; one row for a vector."""
        tensor = self.tensors[name]
        width, data = tensor.shape[-1], tensor.data
        starts = range(0, len(data), width)
        return [{c: fixed(x, name) for c, x in enumerate(data[s : s + width]) if x} for s in starts]

    def vector(self, name: str) -> dict[int, int]:
        return self.rows(name)[0] if name in self.tensors and self.tensors[name].data else {}

    def head(self, name: str, number: int) -> list[dict[int, int]]:
        size = self.tensors[name].shape[1]
        return self.rows(name)[number * size : (number + 1) * size]


def columns(rows: Sequence[Mapping[int, int]], width: int) -> list[dict[int, int]]:
    """The columns of a matrix that is given by its rows."""
    found: list[dict[int, int]] = [{} for _ in range(width)]
    for r, row in enumerate(rows):
        for c, x in row.items():
            found[c][r] = x
    return found


class Walk:
    """One transformer, what its rows mean, and what has been found: gaps, leaks and margins."""

    def __init__(self, config: dict[str, Any], tensors: Mapping[str, Tensor], meaning: Meaning):
        working_precision()
        if {name: tensor.shape for name, tensor in tensors.items()} != expected_shapes(config) or not config["blocks"]:
            raise Refused("the stored tensors are not those that the configuration calls for, or there is no block")
        require_form(config, 0)
        self.run = Run(config["dtype"])
        self.config, self.weights, self.meaning = config, Weights(tensors, self.run), meaning
        self.gap: arb | None = None
        self.leak: arb = arb(0)
        self.margin: int | None = None

    def require_decoder(self) -> None:
        """One pass in which no row sees a later one: tokens can be written one after the other."""
        masks = {block["attention"]["mask"] for block in self.config["blocks"] if block["attention"]}
        if masks != {"causal"} or self.config["loops"] != 1:
            raise Refused("a transformer that writes its tokens is causal, and has one pass")

    def embedding(self) -> Contents:
        """Coordinates hold the numbers of a token or of a row; a coordinate that has both is refused."""
        tokens, rows = self.weights.rows("embed.weight"), self.weights.rows("code.table")
        known, numbered = self.meaning.cell(TOKEN).domain, self.meaning.cell(ROW).domain
        if (len(tokens), len(rows)) != (len(known), len(numbered)):
            raise Refused("the transformer does not have the tokens or the rows of the plan")
        contents = []
        for c in range(self.config["width"]):
            mine, ours = ([row.get(c, 0) for row in side] for side in (tokens, rows))
            if any(mine) and any(ours):
                raise Refused(f"coordinate {c} holds tokens and rows at once")
            if any(mine):
                contents.append(Content(TOKEN, tuple(map(sure, mine))))
            else:
                contents.append(Content(ROW, tuple(map(sure, ours))) if any(ours) else EMPTY)
        return contents

    def renamed(self, contents: Contents, held: Mapping[int, Held], meaning: Meaning) -> Contents:
        """Coordinates as functions of other cells: equal in every situation, or refused."""
        result = list(contents)
        for c, claim in held.items():
            result[c] = self._settled(claim, [(contents[c], UNIT)], meaning)
            if any(not x.within(sure(x.code)) for x in result[c].numbers):
                raise Refused(f"coordinate {c} does not hold what the plan says at the beginning")
        return result

    def _settled(self, held: Held, parts: list[tuple[Content, int]], meaning: Meaning | None = None) -> Content:
        """The content of a coordinate that is a sum of others, as a function of the cell that the plan names."""
        meaning = meaning or self.meaning
        names = sorted({n for n in (held.cell, *(content.cell for content, _ in parts)) if n is not None})
        made = [([term(w, x) for x in content.numbers], content.cell) for content, w in parts]
        if held.cell is not None and len(meaning.cell(held.cell).domain) != len(held.codes):
            raise Refused(f"the plan has {len(held.codes)} codes for the cell {held.cell!r}")

        def number(places: Mapping[str, int] | None) -> Number:
            if places is None:
                return self.run.total(gathered(term(w, content.start) for content, w in parts))
            return self.run.total(gathered(own[0 if name is None else places[name]] for own, name in made))

        return settled(held, names, meaning.situations(names), number)

    def forms(self, contents: Contents, weights: list[dict[int, int]], bias: Mapping[int, int]) -> list[Form]:
        return [Form(contents, column, bias.get(i, 0)) for i, column in enumerate(weights)]

    def attention(self, block: int, contents: Contents, step: Step, rows: Sequence[int]) -> Contents:
        """The sub-layer of attention; `rows`: those that the claim speaks of from here on."""
        attention, name, width = (
            self.config["blocks"][block]["attention"],
            f"blocks.{block}.attention",
            self.config["width"],
        )
        heads = [(g, h) for g, group in enumerate(attention["heads"]) for h in range(group["count"])]
        if len(heads) != len(step.links):
            raise Refused(f"block {block} does not have the {len(step.links)} heads of the plan")
        added: dict[int, list[tuple[Content, int]]] = {}
        for (g, h), named in zip(heads, step.links, strict=True):
            group, here = attention["heads"][g], f"{name}.groups.{g}"
            sides = []
            for side, size in (("query", group["key"]), ("key", group["key"]), ("value", group["value"])):
                bias = self.weights.rows(f"{here}.{side}_bias")[h] if attention["bias"] else {}
                sides.append(self.forms(contents, columns(self.weights.head(f"{here}.{side}", h), size), bias))
            forms = Projections(sides[0], sides[1], sides[2], attention["mask"] == "causal")
            if named not in self.meaning.links:
                raise Refused(f"the plan speaks of {named!r}, by which no row looks at another")
            link = self.meaning.links[named]
            gap, shares = fetched(self.run, self.meaning, link, forms, rows)
            self.gap = gap if self.gap is None else smaller(self.gap, gap)
            self.leak = larger(self.leak, shares.leak).upper()
            out = self.weights.head(f"{here}.output", h)
            for form, targets in zip(forms.values, out, strict=True):
                cell, numbers = column(self.run, self.meaning, link, form, shares)
                for c, weight in targets.items():
                    added.setdefault(c, []).append((Content(cell, tuple(numbers)), weight))
        shift = self.weights.vector(f"{name}.output_bias") if attention["bias"] else {}
        for c, x in shift.items():
            added.setdefault(c, []).append((Content(None, (sure(x),)), UNIT))
        result = list(contents)
        for c in sorted({*added, *step.held}):
            held = step.held.get(c, Held(None, (0,)))
            if width <= c:
                raise Refused(f"the plan speaks of coordinate {c}")
            result[c] = self._settled(held, [(contents[c], UNIT), *added.get(c, ())])
        return result

    def units(self, block: int, contents: Contents, step: Step) -> Contents:
        """The sub-layer of hidden units."""
        name, ffn = f"blocks.{block}.ffn", self.config["blocks"][block]["ffn"]
        incoming = columns(self.weights.rows(f"{name}.up"), ffn["width"])
        bias, shift = self.weights.vector(f"{name}.up_bias"), self.weights.vector(f"{name}.down_bias")
        triples = [
            (row, bias.get(u, 0), out)
            for u, (row, out) in enumerate(zip(incoming, self.weights.rows(f"{name}.down"), strict=True))
        ]
        layer = Sublayer(self.run, self.meaning, contents, triples, shift)
        after = layer.after(step.held)
        if layer.margin is not None:
            self.margin = layer.margin if self.margin is None else min(self.margin, layer.margin)
        return after

    def looped(
        self, before: Contents, steps: Sequence[Step], rows: Sequence[int], later: Mapping[str, str]
    ) -> Contents:
        """What holds before and after every pass; `later` names the cells of a pass after it."""
        for _ in range(WIDENINGS):
            after = self.passed(before, steps, rows)
            after = [x._replace(cell=later.get(x.cell or "", x.cell)) for x in after]
            if all(a.within(b) for a, b in zip(after, before, strict=True)):
                return before
            before = [
                b if a.within(b) else _widened(a, b, c) for c, (a, b) in enumerate(zip(after, before, strict=True))
            ]
        raise Refused("what the coordinates hold before a pass is not what they hold after it")

    def passed(self, contents: Contents, steps: Sequence[Step], rows: Sequence[int]) -> Contents:
        """One pass of all blocks."""
        parts = [
            (b, part) for b, block in enumerate(self.config["blocks"]) for part in ("attention", "ffn") if block[part]
        ]
        if len(parts) != len(steps):
            raise Refused(f"the transformer does not have the {len(steps)} sub-layers of the plan")
        for (b, part), step in zip(parts, steps, strict=True):
            attends = part == "attention"
            contents = self.attention(b, contents, step, rows) if attends else self.units(b, contents, step)
        return contents

    def require_outputs(self, contents: Contents, held: Sequence[Held], meaning: Meaning) -> None:
        """Output n is exactly the code that `held[n]` has for the value of its cell, in every situation."""
        rows, bias = self.weights.rows("readout.weight"), self.weights.vector("readout.bias")
        if len(held) != self.config["outputs"]:
            raise Refused(f"the transformer has {self.config['outputs']} outputs instead of {len(held)}")
        forms = self.forms(contents, columns(rows, len(held)), bias)
        for number, (form, (cell, codes, _)) in enumerate(zip(forms, held, strict=True)):
            names = sorted(set(form.cells) | ({cell} if cell else set()))
            for case in meaning.situations(names):
                places = dict(zip(names, case, strict=True))
                output, wanted = self.run.total(form.at(places)), codes[places[cell] if cell else 0]
                if (output.low, output.high) != (wanted, wanted):
                    raise Refused(f"output {number} is not what the table says: the {cell} may be another one")

    def read_out(self, contents: Contents, cell: str) -> list[list[Number]]:
        """All outputs for every value of the cell that they are read from."""
        rows, bias = self.weights.rows("readout.weight"), self.weights.vector("readout.bias")
        forms = self.forms(contents, columns(rows, self.config["outputs"]), bias)
        names = sorted({cell, *(name for form in forms for name in form.cells)})
        found: list[list[Number] | None] = [None] * len(self.meaning.cell(cell).domain)
        for case in self.meaning.situations(names):
            places = dict(zip(names, case, strict=True))
            outputs = [self.run.total(form.at(places)) for form in forms]
            old = found[places[cell]]
            found[places[cell]] = outputs if old is None else [a.hull(b) for a, b in zip(old, outputs, strict=True)]
        return [[] if x is None else x for x in found]


def _widened(after: Content, before: Content, c: int) -> Content:
    if after.cell != before.cell or len(after.numbers) != len(before.numbers):
        raise Refused(f"coordinate {c} does not hold after a pass what it held before it")
    return before.hull(after)
