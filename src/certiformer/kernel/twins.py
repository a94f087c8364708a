"""Rule *twins*: how far two programs of the same build are apart, node by node.

No form of T - P is taken as a whole: remainders of forms do not cancel, so the difference of two networks that agree to
fifteen digits would be enclosed as widely as the networks themselves. T and P are walked together instead. Every node
carries the form of T and an entrywise bound D of |T - P|, valid at every point of the box.

Proofs, node by node (t, p the arguments in T and P, d >= |t - p|; W, b the numbers of T, V, c those of P):

*Linear maps.* t W + b - (p V + c) = [t (W - V) + (b - c)] + (t - p) V: the form of the bracket, and d |V|. `Pool` likewise;
rows, stacks and sums act on D as on the values.

*Scores.* f q k^T - g q' k'^T = (f - g) q k^T + g [(q - q') k^T + q' (k - k')^T], and |q'| <= |q| + d_q. Attention of the
kinds `linear` and `relu` is the same with f = g = 1, because relu is 1-Lipschitz and |relu(s)| <= |s|.

*Activations.* |act(t) - act(p)| <= Lip d; for gelu sup |Phi(x) + x phi(x)| = 1.1289... at x = sqrt 2.

*Softmax.* By the rule *shares* of `kernel.layers`, a mean of values moves by at most (max v - min v) tanh(d/2)
where scores move by at most d; values that differ by at most d_v add max d_v, because weights sum to one.

*Norm.* N(c) = c / rho(c), rho(c)^2 = |c|^2/n + e, has the symmetric Jacobian (I - c c^T/(n rho^2)) / rho with eigenvalues
1/rho and e/rho^3 <= 1/rho; and rho is 1/sqrt(n)-Lipschitz. Centring is a projection. So with delta = |d|_2 over a row,
|N(c_T) - N(c_P)| <= delta / max(sqrt e, min rho(c_T) - delta/sqrt n). Further |N_j| <= sqrt n. QED

Equal numbers and D = 0 give D = 0. Hard attention and `nearest` jump: they are refused unless their scores are equal.
"""

from __future__ import annotations

from flint import arb, arb_mat

from certiformer.kernel import Refused, arrays, taylor
from certiformer.kernel.arrays import (
    Apply,
    ArrayProgram,
    Attend,
    Constant,
    Linear,
    Node,
    Norm,
    Pool,
    Rows,
    Scores,
    Stack,
    Stream,
    Sum,
    absolute,
    arguments,
    node_value,
    point_stream,
    take_rows,
)
from certiformer.kernel.balls import ONE, ZERO, Box, larger, largest
from certiformer.kernel.layers import LIPSCHITZ, shares_moved


def twins(left: ArrayProgram, right: ArrayProgram, box: Box, order: int = 1) -> tuple[Stream, arb_mat]:
    """The form of `left` on the box, and an upper bound of |left - right| for every entry of the result.

    The two programs have the same kinds of nodes, reading the same nodes; `Refused` where they have not.
    """
    if len(left.nodes) != len(right.nodes) or left.source != right.source:
        raise Refused("the two programs are not built alike")
    forms = [point_stream(taylor.table(box.dimension, order), box, left.source)]
    gaps = [arb_mat(*forms[0].shape)]
    for t, p in zip(left.nodes[1:], right.nodes[1:], strict=True):
        if type(t) is not type(p) or arguments(t) != arguments(p):
            raise Refused("the two programs are not built alike")
        forms.append(node_value(t, forms, forms[0].table))
        gap = absolute(_gap(t, p, forms, gaps))
        if (gap.nrows(), gap.ncols()) != forms[-1].shape or not all(entry.is_finite() for entry in gap.entries()):
            raise Refused("the difference of the two programs could not be bounded")
        gaps.append(gap)
    return forms[-1], gaps[-1]


def _gap(t: Node, p: Node, forms: list[Stream], gaps: list[arb_mat]) -> arb_mat:
    """D of the module docstring for one pair of nodes."""
    match t, p:
        case Constant(), Constant():
            return t.matrix - _alike(p.matrix, t.matrix)
        case Linear(), Linear():
            x, step = forms[t.x], t.weight.matrix - _alike(p.weight.matrix, t.weight.matrix)
            bias = [b - c for b, c in zip(_numbers(t), _numbers(p), strict=True)]
            return _sizes(arrays.linear(x, step, absolute(step), bias)) + gaps[t.x] * p.weight.size
        case Pool(), Pool():
            step = t.weights.matrix - _alike(p.weights.matrix, t.weights.matrix)
            return absolute(step) * _sizes(forms[t.x]) + p.weights.size * gaps[t.x]
        case Rows(), Rows() if t.chosen == p.chosen:
            return take_rows(gaps[t.x], list(t.chosen))
        case Stack(), Stack():
            lines = [line for part in t.parts for line in gaps[part].tolist()]
            return arb_mat(lines)
        case Sum(), Sum():
            total = gaps[t.parts[0]]
            for part in t.parts[1:]:
                total = total + gaps[part]
            return total
        case Scores(), Scores():
            q, k, gap = _sizes(forms[t.queries]), _sizes(forms[t.keys]), gaps[t.keys].transpose()
            moved = gaps[t.queries] * k.transpose() + (q + gaps[t.queries]) * gap
            return moved * abs(p.factor) + q * k.transpose() * abs(t.factor - p.factor)
        case Apply(), Apply() if t.name == p.name:
            return gaps[t.x] * LIPSCHITZ[t.name]
        case Attend(), Attend() if (t.kind, t.allowed) == (p.kind, p.allowed):
            lines = [_mixed(t, row, list(keys), forms, gaps) for row, keys in enumerate(t.allowed)]
            return arb_mat(lines)
        case Norm(), Norm() if t.epsilon == p.epsilon:
            return arb_mat(
                [_normed(t, p, forms[t.x].rows([r]), gaps[t.x].tolist()[r]) for r in range(gaps[t.x].nrows())]
            )
    raise Refused("the two programs are not built alike")


def _alike(matrix: arb_mat, other: arb_mat) -> arb_mat:
    if (matrix.nrows(), matrix.ncols()) != (other.nrows(), other.ncols()):
        raise Refused("the two programs are not built alike")
    return matrix


def _numbers(node: Linear) -> list[arb]:
    return [ZERO] * node.weight.matrix.ncols() if node.bias is None else node.bias


def _sizes(x: Stream) -> arb_mat:
    """Entrywise upper bounds of |x| over the box."""
    return arrays.size(x) + x.rem


def _mixed(node: Attend, row: int, keys: list[int], forms: list[Stream], gaps: list[arb_mat]) -> list[arb]:
    """D for one row of an attention."""
    width = forms[node.values].shape[1]
    if not keys:
        return [ZERO] * width
    moved = [gaps[node.scores][row, key] for key in keys]
    columns = take_rows(gaps[node.values], keys).transpose().tolist()
    if node.kind in ("linear", "relu"):
        sizes, weights = _sizes(forms[node.values].rows(keys)), _sizes(forms[node.scores].rows([row])).entries()
        heavy = [weights[key] + gap for key, gap in zip(keys, moved, strict=True)]
        result = (arb_mat([moved]) * sizes).entries()
        return [
            a + b
            for a, b in zip(result, (arb_mat([heavy]) * take_rows(gaps[node.values], keys)).entries(), strict=True)
        ]
    farthest = largest(moved)
    if node.kind != "softmax" and not farthest.is_zero():
        raise Refused(f"attention of kind {node.kind} jumps, so twins need equal scores there")
    shift, result = shares_moved(farthest), []
    for c, column in enumerate(columns):
        ends = [taylor.bounds(forms[node.values].form(key, c)) for key in keys]
        spread = (largest_end(ends) - smallest_end(ends)).upper()
        result.append((ZERO if shift.is_zero() else spread * shift) + largest(column))
    return result


def largest_end(ends: list[tuple[arb, arb]]) -> arb:
    """The largest upper end; nan wins."""
    top = ends[0][1]
    for _, high in ends[1:]:
        top = larger(top, high)
    return top


def smallest_end(ends: list[tuple[arb, arb]]) -> arb:
    """The smallest lower end; nan wins."""
    return -largest_end([(-high, -low) for low, high in ends])


def _normed(t: Norm, p: Norm, row: Stream, gaps: list[arb]) -> list[arb]:
    """D for one row of a norm."""
    count = len(gaps)
    delta, root = sum((gap * gap for gap in gaps), ZERO).sqrt().upper(), arb(count).sqrt()
    share, square = ONE / count, ZERO
    centring = arb_mat(count, count, [(ONE if i == j else ZERO) - share for i in range(count) for j in range(count)])
    centred = arrays.linear(row, centring, absolute(centring))
    for c in range(count):
        low, high = taylor.bounds(centred.form(0, c))
        nearest = low if low > 0 else -high if high < 0 else ZERO
        square = square + nearest * nearest
    radius = larger(t.epsilon.sqrt().lower(), ((square * share + t.epsilon).sqrt() - delta / root).lower())
    if not delta.is_zero() and not radius > 0:
        raise Refused("the variance of a normalised row may vanish, so twins cannot bound the norm there")
    steep = ZERO if delta.is_zero() else delta / radius
    pairs = zip(zip(t.gain, p.gain, strict=True), zip(t.shift, p.shift, strict=True), strict=True)
    return [abs(g) * steep + abs(f - g) * root + abs(a - b) for (f, g), (a, b) in pairs]
