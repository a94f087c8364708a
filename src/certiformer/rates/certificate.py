"""How far the outputs of attention can move when its scores do: the pointwise certificate osc(values) tanh(osc(change)/4).

Statement. Let p and q be the softmax of two rows of scores that differ by Delta, and osc = max - min. Then the total
variation of p and q is at most tanh(osc(Delta)/4), so for all values f

    | sum_s p_s f_s - sum_s q_s f_s |  <=  osc(f) tanh(osc(Delta)/4),

and behind a function F with Lipschitz constant K_F at most K_F times that.

Proof. q_s = p_s e^(Delta_s) / Z. Let S = {q > p} = {Delta > log Z} and x = p(S). With Delta <= a on S and >= b off it,
a - b <= o = osc(Delta), q(S) <= x e^a / (x e^a + (1 - x) e^b) <= x e^o / (x e^o + 1 - x). The difference to x is
largest at x = 1/(1 + e^(o/2)), where it is (e^(o/2) - 1)/(e^(o/2) + 1) = tanh(o/4). Total variation is q(S) - p(S).
Equality: two tokens with scores (0, o/2) before and (o, o/2) after, or the same for two groups of tokens. Last, p f -
q f = (p - q)(f - c) for every c, and with c the middle of f it is at most 2 TV osc(f)/2. QED

In floating point, the bound is multiplied by 1 + 2^-48 and the smallest number is added: two differences, one tanh
(within 4 units in the last place in every C library we know of) and two products err by less. It speaks of the
real-number softmax of the stored scores.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

_UP = 1 + 2.0**-48


def output_change(
    values: Float[np.ndarray, "*rows tokens"],
    before: Float[np.ndarray, "*rows tokens"],
    after: Float[np.ndarray, "*rows tokens"],
    lipschitz: float = 1.0,
) -> Float[np.ndarray, "*rows"]:
    """An upper bound on the change of each row's output when its scores go from `before` to `after`.

    A token that is masked is left out of the arrays. NaN and infinity are refused: they prove nothing.

    >>> bound = output_change(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]))
    >>> round(float(bound), 9), round(float(np.tanh(0.5)), 9)
    (0.462117157, 0.462117157)
    """
    arrays = [np.asarray(each, np.float64) for each in (values, before, after)]
    if any(not np.isfinite(each).all() for each in arrays) or not 0 <= lipschitz < np.inf:
        raise BadInput("a certificate needs finite values, scores and Lipschitz constant")
    values, before, after = arrays
    # The rounding of a difference of scores is proportional to the difference, not to the scores.
    change = _oscillation(after - before) * _UP
    return lipschitz * _oscillation(values) * np.tanh(change / 4) * _UP + np.nextafter(0, 1)


def truncated_change(
    values: Float[np.ndarray, "*rows tokens"], left_out: Float[np.ndarray, "*rows tokens"], lipschitz: float = 1.0
) -> Float[np.ndarray, "*rows"]:
    """The same when scores lose the part `left_out`, a tail of the POD, say."""
    return output_change(values, np.zeros_like(left_out), left_out, lipschitz)


def _oscillation(rows: np.ndarray) -> np.ndarray:
    return rows.max(axis=-1) - rows.min(axis=-1)
