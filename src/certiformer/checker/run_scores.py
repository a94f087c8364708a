"""The scores of one head as they are run: their real values, and how far off a run may be.

s_ij = f sum_c q_ic k_jc + B_ij has K products (as many as are not identically zero), the factor f (none, a
power of two, or a rounded constant and one product), and B. The part of the error that comes from the error of the
query is (e_q . k_j); up to the common (e_q . k_ref) it is e_q . (k_j - k_ref), and softmax and argmax see nothing
else.
"""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

from certiformer.checker.run_attention import Scores
from certiformer.kernel import stream, taylor
from certiformer.kernel.balls import ONE, ZERO, larger, smaller
from certiformer.kernel.rounding import Format, no_overflow
from certiformer.kernel.rounding.operations import Rounded, relu
from certiformer.kernel.stream import Stream


class ScoreTable:
    """The scores of one head: forms of q_i . k_j, and what the run may add to them."""

    def __init__(self, form: Format, q: Rounded, k: Rounded, attention: dict[str, Any], key: int):
        self.form, self.q, self.k = form, q, k
        self.products = stream.contract(q.value, stream.transpose(k.value))
        self.sizes = q.reach * k.reach.transpose()
        self.factor = ONE if attention["scale"] == "unit" else arb(key).rsqrt()
        used = sum(1 for c in range(key) if not (_idle(q.reach, c) or _idle(k.reach, c)))
        # 1/sqrt(key) is exact for powers of four; otherwise it is a rounded constant and one more product.
        exact_factor = attention["scale"] == "unit" or key in (4**i for i in range(16))
        self.roundings = used + (0 if exact_factor else 3)
        self.no_query_error = stream.is_zero(q.error)
        self.key_part = q.reach * k.error.transpose()
        self.key_sums = k.reach * arb_mat(key, 1, [ONE] * key)

    def forms(self, row: int, allowed: list[int], extra: list[arb]) -> list[taylor.Form]:
        tab = self.q.value.table
        return [
            taylor.add(taylor.scale(self.products.form(row, j), self.factor), taylor.constant(tab, b))
            for j, b in zip(allowed, extra, strict=True)
        ]

    def relative(self, row: int, allowed: list[int], extra: list[arb]) -> Scores:
        """Scores minus the score of the key that is best at the centre, and the errors up to a common one."""
        lines = {i: [m[row, j] for j in allowed] for i, m in self.products.coef.items()}
        zero = [ZERO] * len(allowed)
        centre = [self.factor * c + b for c, b in zip(lines.pop(0, zero), extra, strict=True)]
        reference = max(range(len(allowed)), key=lambda j: float(centre[j]))
        rest = [self.products.rem[row, j] for j in allowed]
        spans = [r + rest[reference] for r in rest]
        for line in lines.values():
            spans = [s + abs(c - line[reference]) for s, c in zip(spans, line, strict=True)]
        spans[reference] = ZERO
        middle = [c - centre[reference] for c in centre]
        middle[reference] = ZERO
        low = [(m - self.factor * s).lower() for m, s in zip(middle, spans, strict=True)]
        high = [(m + self.factor * s).upper() for m, s in zip(middle, spans, strict=True)]
        return Scores(reference, low, high, self._errors(row, allowed, extra, allowed[reference]))

    def nearest(self, row: int, allowed: list[int], extra: list[arb]) -> Scores:
        """The same for the scores -|s_j|, which move by no more than s_j; nothing cancels between two of them."""
        ends = [taylor.bounds(form) for form in self.forms(row, allowed, extra)]
        low = [-larger(abs(a), abs(b)) for a, b in ends]
        high = [-smaller(abs(a), abs(b)) if a > 0 or b < 0 else ZERO for a, b in ends]
        reference = max(range(len(allowed)), key=lambda j: float(low[j]) + float(high[j]))
        errors, own = self._errors(row, allowed, extra, None), low[reference]
        top, slip = high[reference], errors[reference]
        low, high = [(a - top).lower() for a in low], [(b - own).upper() for b in high]
        low[reference] = high[reference] = ZERO
        moved = [(e + slip).upper() for e in errors]
        moved[reference] = ZERO
        return Scores(reference, low, high, moved)

    def _errors(self, row: int, allowed: list[int], extra: list[arb], reference: int | None) -> list[arb]:
        """The rule of the module docstring; `reference` None keeps the common part."""
        form, width = self.form, self.q.shape[1]
        query_part = self._query_part(row, allowed, reference)
        q_sum = sum((self.q.reach[row, c] for c in range(width)), ZERO)
        rounded = {plain: form.gamma(self.roundings + (0 if plain else 1)) for plain in (True, False)}
        result = []
        for place, (j, b) in enumerate(zip(allowed, extra, strict=True)):
            size = self.sizes[row, j]
            if (
                size.is_zero()
            ):  # 0 + B is exact, except for a B that is flushed; what is common to the others is missing
                flushed = form.tiny if abs(b) > 0 and abs(b) < form.tiny else ZERO
                result.append((self.factor * query_part[place] + flushed).upper())
                continue
            gamma = rounded[b.is_zero()]
            whole = self.factor * size + abs(b)
            no_overflow(form, (size + whole) * 2 * (1 + gamma))
            operands = q_sum + self.key_sums[j, 0]
            total = self.factor * (self.key_part[row, j] + query_part[place]) + gamma * whole
            result.append((total + 4 * form.tiny * (3 * width + 4 + operands)).upper())
        return result

    def _query_part(self, row: int, allowed: list[int], reference: int | None) -> list[arb]:
        """e_q . |k_j - k_ref| for every key."""
        if self.no_query_error:
            return [ZERO] * len(allowed)
        keys = self.k.value.rows(allowed)
        apart = stream.size(keys) + keys.rem
        if reference is not None:
            ones = arb_mat(len(allowed), 1, [ONE] * len(allowed))
            base = self.k.value.rows([reference])
            moved = {i: m - ones * base.coef[i] for i, m in keys.coef.items()}
            apart = stream.size(Stream(keys.table, moved, keys.rem)) + keys.rem + ones * base.rem
        error = arb_mat(self.q.shape[1], 1, [self.q.error[row, c] for c in range(self.q.shape[1])])
        return (apart * error).entries()

    def weighted(self, kind: str, row: int, allowed: list[int], extra: list[arb], v: Rounded) -> Rounded:
        """sum_j s_j v_j, or with relu(s_j): a sum of products whose factors both have errors."""
        form, tab, count = self.form, v.value.table, len(allowed)
        forms = self.forms(row, allowed, extra)
        s = Rounded(stream.from_forms(tab, [forms]), arb_mat(1, count, self._errors(row, allowed, extra, None)))
        if kind == "relu":
            s = relu(s)
        value = stream.contract(s.value, v.value)
        error = s.size * v.error + s.error * v.reach + (s.reach * v.reach) * form.gamma(count)
        faint = [
            sum((v.reach[j, c] for j in range(count)), sum(s.reach.entries(), arb(3 * count)))
            for c in range(v.shape[1])
        ]
        entries = [(e + 2 * form.tiny * f).upper() for e, f in zip(error.entries(), faint, strict=True)]
        for size in (s.reach * v.reach).entries():
            no_overflow(form, size * 2)
        return Rounded(value, arb_mat(1, v.shape[1], entries))


def _idle(sizes: arb_mat, column: int) -> bool:
    return all(sizes[r, column].is_zero() for r in range(sizes.nrows()))
