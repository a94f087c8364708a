"""Transformers that are built, not trained, at the sizes of the studies, each with the bound that is proved for it.

`sines`: the ridge construction (`construct.ridge`) with a given number of hidden units, half of them for each sine, the
bound certified by `search.prove`; and the construction with sigmoid heads, whose bound its theorem gives in advance.

`graph`: f^ interpolates every phi_k at equally spaced knots, u hidden units making u + 1 pieces (shared by all k); the
query is sigma_k phi_k, the key phi_k, for the first `key` terms, the value is x. With
e_k = sqrt(2) (pi k)^2 / (8 (u + 1)^2) the interpolation error of phi_k, |phi_k| <= sqrt(2) and the same for its
interpolant, the scores are off by at most

    sup |Delta| <= sum_{k <= key} 2 sqrt(2) sigma_k e_k + sum_{k > key} 2 sigma_k,

and since a change Delta of the scores moves the outputs by at most osc(x) tanh(osc(Delta) / 4), osc(x) <= 1 and
osc(Delta) <= 2 sup |Delta|, the error is at most tanh(sup |Delta| / 2). Rank 2, alpha 1, u = 63: 0.0018.

Several heads. One head of key size `key` does the truncated kernel and the others nothing: that is the proved model. In
first order in the scores a softmax of a sum is the sum of the softmaxes less the uniform one, so `split` gives each
head its own terms and one head the mean; its error is measured, no bound is proved.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from certiformer.construct import ridge, sigmoid_heads
from certiformer.construct.method import Task
from certiformer.construct.share_tolerance import Profile
from certiformer.kernel import Refused
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs
from certiformer.model.transformer import Transformer
from certiformer.rates.size_models import Tensors, padded
from certiformer.rates.size_targets import BOX, FORMULA, SizeTarget
from certiformer.search.job import prove
from certiformer.target import Target, parse_domain, parse_formula, ridge_split

SINE_PIECES = 4.793 / 4  # a sine over one period takes this / sqrt(tolerance) pieces (construct.piecewise_linear)
PROOF_ROOM = 1.01  # over the error that planning samples: proofs by pieces stop within 0.2 % of the error


def sines() -> Target:
    """sin(x1) + sin(x2) on its box."""
    return Target(FORMULA, parse_formula(FORMULA), parse_domain(BOX))


def built_sines(units: int) -> tuple[Transformer, float]:
    """The one-block ridge transformer with so many hidden units, and the certified bound of its error."""
    target, profile = sines(), Profile(np.sin, 0.0, 2 * math.pi)
    paths = [profile.best(n + 1, (SINE_PIECES / (n + 1)) ** 2) for n in (units // 2, units - units // 2)]
    split = ridge_split(target.program, 0)
    if split is None:
        raise ValueError("sin(x1) + sin(x2) is a sum of ridges")
    plan = ridge.Plan(Task.of(target, Fraction(1)), [ridge.Output(split, paths, 0.0)], None)
    model = plan.realise().model
    run = prove(model, FORMULA, on=BOX, eps=PROOF_ROOM * plan.bound)
    return model, float(run.certificate.upper or math.inf)


def built_sines_in(config: Config) -> tuple[Tensors, float]:
    """The ridge transformer in the shape of a `size_config` of any depth, its units shared among the blocks.

    Every later block adds its units to the same coordinate and its attention adds nothing, so the function is that of one
    block with all units.
    """
    widths = [block.ffn.width for block in config.blocks if block.ffn is not None]
    model, bound = built_sines(sum(widths))
    tensors = {name: np.asarray(t) for name, t in model.tensors.items()}
    bias, none = tensors["blocks.0.ffn.up_bias"], tensors["blocks.0.ffn.down_bias"]
    one = replace(_unit_scale(model.config).blocks[0], ffn=config.blocks[0].ffn)
    small = {n: t for n, t in tensors.items() if not n.startswith("blocks.0.ffn")}
    start = 0
    shape = replace(model.config, blocks=(one,) * len(widths))
    for index, width in enumerate(widths):
        part, name = slice(start, start + width), f"blocks.{index}.ffn"
        small |= {f"{name}.up": tensors["blocks.0.ffn.up"][:, part], f"{name}.down": tensors["blocks.0.ffn.down"][part]}
        small |= {f"{name}.up_bias": bias[part], f"{name}.down_bias": none}
        start += width
    for name, spec in tensor_specs(shape).items():
        small.setdefault(name, np.zeros(spec.shape))
    return padded(shape, small, replace(config, dtype="float64"))[0], bound


def built_sink_in(config: Config) -> tuple[Tensors, float]:
    """Sigmoid heads in the shape of a `sink_config`, with the smallest bound found, and that bound of their theorem.

    The tolerance is searched by bisection; `Refused` where the theorem has nothing better than no heads to offer. Heads
    and columns of the keys that it does not need stay zero.
    """
    attention = config.blocks[0].attention
    most = 0 if attention is None else attention.heads[0].count
    tolerances = [2.0 * 0.8**step for step in range(60)]  # 2 down to 3.8e-6, each four fifths of the one before

    def planned(step: int) -> sigmoid_heads.Plan | None:
        plan = sigmoid_heads.plan(Task.of(sines(), Fraction(str(tolerances[step]))))
        return plan if 0 < plan.size().heads <= most else None

    low, high = 0, len(tolerances)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if planned(middle) is not None else (low, middle)
    best = planned(low)
    if best is None:
        raise Refused(f"{most} sigmoid heads are too few for a bound below {tolerances[0]:g}")
    model = best.realise().model
    tensors = {name: np.asarray(t) for name, t in model.tensors.items()}
    return padded(_unit_scale(model.config), tensors, replace(config, dtype="float64"))[0], best.bound + best.room


def _unit_scale(config: Config) -> Config:
    """The configuration with scale "unit", which is the same for key size 1."""
    blocks = tuple(replace(b, attention=b.attention and replace(b.attention, scale="unit")) for b in config.blocks)
    return replace(config, blocks=blocks)


def built_graph_in(target: SizeTarget, config: Config, split: bool = False) -> tuple[Tensors, float | None]:
    """The built transformer of `graph` in the shape of a `size_config`, and its bound (None for `split`).

    >>> from certiformer.rates.size_models import size_config
    >>> target = SizeTarget("graph")
    >>> config = size_config(target, units=63, heads=1, key=2)
    >>> round(built_graph_in(target, config)[1], 4)
    0.0018
    """
    last = len(config.blocks) - 1
    layers = [(index, block.ffn.width) for index, block in enumerate(config.blocks[:last]) if block.ffn is not None]
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    knots = np.linspace(0.0, 1.0, sum(width for _, width in layers) + 2)
    slopes = np.diff(target.features(knots), axis=0) / np.diff(knots)[:, None]
    rank, out = target.rank, target.rank + 1
    tensors["embed.weight"][0, 0] = 1.0
    tensors["embed.weight"][0, 1:out], tensors["embed.bias"][1:out] = slopes[0], target.features(knots[0])
    start = 0
    for index, width in layers:
        part = slice(start, start + width)
        tensors[f"blocks.{index}.ffn.up"][0] = 1.0
        tensors[f"blocks.{index}.ffn.up_bias"][:] = -knots[1:-1][part]
        tensors[f"blocks.{index}.ffn.down"][:, 1:out] = np.diff(slopes, axis=0)[part]
        start += width
    key = _attend(target, config, tensors, last, out, split)
    tensors["readout.weight"][out, 0] = 1.0
    interpolation = math.sqrt(2) * (math.pi * np.arange(1, rank + 1)) ** 2 / (8 * (len(knots) - 1) ** 2)
    largest = 2 * math.sqrt(2) * (target.sigma * interpolation)[:key].sum() + 2 * target.sigma[key:].sum()
    return tensors, None if split else math.tanh(largest / 2)


def _attend(target: SizeTarget, config: Config, tensors: Tensors, last: int, out: int, split: bool) -> int:
    """Fill in the heads of the last layer; the number of terms of one head."""
    attention = config.blocks[last].attention
    if attention is None:
        raise ValueError("the last block of a size_config attends")
    group, name = attention.heads[0], f"blocks.{last}.attention.groups.0"
    terms = np.array_split(np.arange(target.rank), range(group.key, target.rank, group.key))
    used = terms[: group.count - 1] if split and len(terms) > 1 and group.count > 2 else terms[:1]
    for head, mine in enumerate(used):
        tensors[f"{name}.query"][head, 1 + mine, np.arange(len(mine))] = target.sigma[mine]
        tensors[f"{name}.key"][head, 1 + mine, np.arange(len(mine))] = 1.0
        tensors[f"{name}.value"][head, 0, 0] = tensors[f"{name}.output"][head, 0, out] = 1.0
    if len(used) > 1:
        tensors[f"{name}.value"][len(used), 0, 0] = 1.0
        tensors[f"{name}.output"][len(used), 0, out] = -float(len(used) - 1)
    return group.key
