"""Small torch models with the names and the arithmetic of published code that is in no package index.

nanoGPT (Karpathy, 2022), SASRec.pytorch (pmixer, 2020), gSASRec-pytorch (Petrov and Macdonald, 2023) and the layers of
RecBole (Zhao et al., 2021), without dropout and padding. Each attention returns its output and its weights."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


def softmax_attention(q, k, v, heads: int, causal: bool):
    """q, k, v (tokens, width); heads are consecutive columns."""
    tokens, width = q.shape
    split = lambda x: x.view(tokens, heads, width // heads).transpose(0, 1)  # noqa: E731
    scores = split(q) @ split(k).transpose(-1, -2) / math.sqrt(width // heads)
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    shares = scores.softmax(-1)
    return (shares @ split(v)).transpose(0, 1).reshape(tokens, width), shares


class NanoAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        mixed, shares = softmax_attention(*self.c_attn(x).split(x.shape[-1], dim=-1), self.heads, True)
        return self.c_proj(mixed), shares


class NanoBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), NanoAttention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def hidden(self, x):
        return self.mlp["c_proj"](nn.functional.gelu(self.mlp["c_fc"](x)))


class NanoGPT(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        parts = {"wte": nn.Embedding(40, width), "wpe": nn.Embedding(16, width), "ln_f": nn.LayerNorm(width)}
        self.transformer = nn.ModuleDict({**parts, "h": nn.ModuleList([NanoBlock(width, heads) for _ in range(2)])})
        self.lm_head = nn.Linear(width, 40, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight


class PointWise(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(width, width, 1), nn.Conv1d(width, width, 1)

    def forward(self, x):
        return self.conv2(torch.relu(self.conv1(x[None].transpose(-1, -2)))).transpose(-1, -2)[0]


class SASRec(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        norms = lambda: nn.ModuleList([nn.LayerNorm(width, eps=1e-8) for _ in range(2)])  # noqa: E731
        self.item_emb, self.pos_emb = nn.Embedding(40, width), nn.Embedding(17, width)
        self.attention_layernorms, self.forward_layernorms = norms(), norms()
        self.attention_layers = nn.ModuleList([nn.MultiheadAttention(width, heads) for _ in range(2)])
        self.forward_layers = nn.ModuleList([PointWise(width) for _ in range(2)])
        self.last_layernorm = nn.LayerNorm(width, eps=1e-8)


class GSASRecAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_proj, self.key_proj, self.val_proj = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        # The published code cuts columns into chunks and puts the heads side by side again.
        chunks = [m(x).chunk(self.heads, dim=-1) for m in (self.query_proj, self.key_proj, self.val_proj)]
        shares, mixed = [], []
        for q, k, v in zip(*chunks, strict=True):
            scores = (q @ k.T / k.shape[-1] ** 0.5).masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -math.inf)
            shares.append(scores.softmax(-1))
            mixed.append(shares[-1] @ v)
        return torch.cat(mixed, dim=-1), torch.stack(shares)


class GSASRecBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.multihead_attention = GSASRecAttention(width, heads)
        self.dense1, self.dense2 = nn.Linear(width, width), nn.Linear(width, width)

    def hidden(self, x):
        return self.dense2(torch.relu(self.dense1(x)))


class GSASRec(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.item_embedding, self.position_embedding = nn.Embedding(40, width), nn.Embedding(16, width)
        self.transformer_blocks = nn.ModuleList([GSASRecBlock(width, heads) for _ in range(2)])
        self.seq_norm = nn.LayerNorm(width)
        self.output_embedding = nn.Embedding(40, width)


class RecBoleAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        mixed, shares = softmax_attention(self.query(x), self.key(x), self.value(x), self.heads, True)
        return self.dense(mixed), shares


class RecBoleLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.multi_head_attention = RecBoleAttention(width, heads)
        parts = {
            "dense_1": nn.Linear(width, 48),
            "dense_2": nn.Linear(48, width),
            "LayerNorm": nn.LayerNorm(width, eps=1e-12),
        }
        self.feed_forward = nn.ModuleDict(parts)

    def hidden(self, x):
        return self.feed_forward["dense_2"](nn.functional.gelu(self.feed_forward["dense_1"](x)))


class RecBoleSASRec(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.item_embedding, self.position_embedding = nn.Embedding(40, width), nn.Embedding(16, width)
        self.trm_encoder = nn.ModuleDict({"layer": nn.ModuleList([RecBoleLayer(width, heads) for _ in range(2)])})
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)
