"""Layouts of torch's own transformer and of published torch code, against those models as they run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.read import evaluate
from audit.read.contract import write
from certiformer.audit.read import blocks, heads, read_checkpoint

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")

# Everything runs in float64: what is left are sums in another order.
CLOSE, FAR = 1e-10, 1e-2
WIDTH, HEADS, TOKENS = 24, 4, 7


def randomised(model):
    torch.manual_seed(1)
    model = model.double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.3 if weight.ndim > 1 else 1.0))
    return model


def saved(model, folder, config=None, **given):
    tensors = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
    return read_checkpoint(write(folder, tensors, config), **given)


def tokens():
    return torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(2)).double()


def compare(attention, run, x) -> tuple[float, float]:
    """How far weights and outputs are from those of the running attention."""
    with torch.no_grad():
        out, shares = run(x)
    x, out, shares = x.numpy(), out.numpy(), shares.numpy()
    weights = np.abs(evaluate.weights(attention, x) - shares).max()
    return float(weights), float(np.abs(evaluate.output(attention, shares, x) - out).max())


def from_torch(module):
    """torch's attention with a causal mask, as a function of tokens."""
    mask = torch.ones(TOKENS, TOKENS).triu(1).bool()

    def run(x):
        batch = 0 if module.batch_first else 1
        x = x.unsqueeze(batch)
        out, shares = module(x, x, x, attn_mask=mask, average_attn_weights=False)
        return out.squeeze(batch), shares[0]

    return run


def check_layers(checkpoint, attentions, hiddens) -> None:
    assert all(layer.heads_known for layer in checkpoint.layers) and len(checkpoint.layers) == len(attentions)
    for layer, attend, hidden in zip(checkpoint.layers, attentions, hiddens, strict=True):
        assert max(compare(layer.attention[0], attend, tokens())) < CLOSE
        with torch.no_grad():
            theirs = hidden(tokens()).numpy()
        assert np.abs(evaluate.hidden(layer.ffn[0], tokens().numpy()) - theirs).max() < CLOSE


def test_torch_encoder(tmp_path):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 48, norm_first=True, batch_first=True)
    model = randomised(nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(WIDTH)))
    checkpoint, coverage = saved(model, tmp_path, heads=HEADS, norm_first=True, causal=True)
    assert coverage.accounted == coverage.total and checkpoint.norm_place == "pre"
    relu = [lambda x, m=m: m.linear2(torch.relu(m.linear1(x))) for m in model.layers]
    checkpoint = replace(checkpoint, layers=tuple(_relu(each) for each in checkpoint.layers))
    check_layers(checkpoint, [from_torch(m.self_attn) for m in model.layers], relu)
    # The whole stack with the norms where the reader puts them.
    x = evaluate_stack(checkpoint, tokens().numpy())
    with torch.no_grad():
        theirs = model(tokens()[None], mask=torch.ones(TOKENS, TOKENS).triu(1).bool())[0].numpy()
    assert np.abs(x - theirs).max() < CLOSE


def _relu(layer):
    return replace(layer, ffn=tuple(replace(ffn, activation="relu") for ffn in layer.ffn))


def evaluate_stack(checkpoint, x: np.ndarray) -> np.ndarray:
    """Norms before the parts, residuals around them, a norm at the end; torch's epsilon is in no file."""
    eps = lambda norm: replace(norm, epsilon=1e-5)  # noqa: E731
    for layer in checkpoint.layers:
        seen = evaluate.normed(eps(layer.norms["attention"]), x)
        x = x + evaluate.output(layer.attention[0], evaluate.weights(layer.attention[0], seen), seen)
        x = x + evaluate.hidden(layer.ffn[0], evaluate.normed(eps(layer.norms["ffn"]), x))
    return evaluate.normed(eps(checkpoint.final_norm), x)


def test_a_model_around_a_torch_encoder(tmp_path):
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.fc = nn.Embedding(9, WIDTH), nn.Linear(WIDTH, 3)
            self.my_stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 48), 2)

    checkpoint, coverage = saved(randomised(Around()), tmp_path)
    assert coverage.accounted == coverage.total and not checkpoint.layers[0].heads_known
    assert checkpoint.norm_place is None and set(checkpoint.others) == {"fc.weight", "fc.bias"}


def test_torch_rows_interleaved_by_head_fail(tmp_path, monkeypatch):
    model = randomised(nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 48), 1))
    rule = heads.fused_rows
    monkeypatch.setattr(blocks, "fused_rows", lambda found, layout: rule(found, "groups"))
    checkpoint, _ = saved(model, tmp_path, heads=HEADS, causal=True)
    far = compare(checkpoint.layers[0].attention[0], from_torch(model.layers[0].self_attn), tokens())
    assert min(far) > FAR


def test_torch_encoder_and_decoder(tmp_path):
    model = randomised(nn.Transformer(WIDTH, HEADS, 1, 1, 48))
    checkpoint, coverage = saved(model, tmp_path, heads=HEADS, causal=True)
    assert coverage.accounted == coverage.total
    assert [layer.name for layer in checkpoint.layers] == ["encoder.layers.0", "decoder.layers.0"]
    assert [attention.cross for attention in checkpoint.layers[1].attention] == [False, True]
    cross = model.decoder.layers[0].multihead_attn
    attention = replace(checkpoint.layers[1].attention[1], causal=True)
    assert max(compare(attention, from_torch(cross), tokens())) < CLOSE


def test_torch_attention_to_tokens_of_another_width(tmp_path):
    model = randomised(nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 48), 1))
    model.layers[0].self_attn = randomised(nn.MultiheadAttention(WIDTH, HEADS, kdim=10, vdim=14))
    checkpoint, coverage = saved(model, tmp_path, heads=HEADS)
    assert coverage.accounted == coverage.total
    attention = checkpoint.layers[0].attention[0]
    assert (attention.key.shape, attention.value.shape) == ((HEADS, 6, 10), (HEADS, 6, 14))
    x, keys, values = tokens(), torch.randn(5, 10).double(), torch.randn(5, 14).double()
    with torch.no_grad():
        out, shares = model.layers[0].self_attn(x[:, None], keys[:, None], values[:, None], average_attn_weights=False)
    assert np.abs(evaluate.weights(attention, x.numpy(), keys.numpy()) - shares[0].numpy()).max() < CLOSE
    v = np.einsum("hed,td->hte", attention.value.read(), values.numpy()) + evaluate.by_head(attention.value_bias)
    mixed = np.einsum("hde,hte->td", attention.output.read(), shares[0].numpy() @ v) + attention.output_bias.read()
    assert np.abs(mixed - out[:, 0].numpy()).max() < CLOSE


def test_nanogpt(tmp_path):
    from audit.read.torch_models import NanoGPT

    model = randomised(NanoGPT(WIDTH, HEADS))
    checkpoint, coverage = saved(model, tmp_path, {"n_head": HEADS})
    parameters = sum(weight.numel() for weight in model.parameters())  # torch counts a tied matrix once
    assert coverage.accounted == coverage.total == parameters and coverage.copies == ("lm_head.weight",)
    blocks_ = model.transformer["h"]
    check_layers(checkpoint, [block.attn for block in blocks_], [block.hidden for block in blocks_])


def test_sasrec(tmp_path):
    from audit.read.torch_models import SASRec

    model = randomised(SASRec(WIDTH, HEADS))
    checkpoint, coverage = saved(model, tmp_path, heads=HEADS)
    assert coverage.accounted == coverage.total and checkpoint.context == 16
    check_layers(checkpoint, [from_torch(each) for each in model.attention_layers], list(model.forward_layers))


def test_gsasrec(tmp_path):
    from audit.read.torch_models import GSASRec

    model = randomised(GSASRec(WIDTH, HEADS))
    checkpoint, coverage = saved(model, tmp_path, {"num_heads": HEADS})
    assert coverage.accounted == coverage.total and checkpoint.layers[0].attention[0].output is None
    blocks_ = model.transformer_blocks
    check_layers(checkpoint, [block.multihead_attention for block in blocks_], [block.hidden for block in blocks_])


def test_recbole(tmp_path):
    from audit.read.torch_models import RecBoleSASRec

    model = randomised(RecBoleSASRec(WIDTH, HEADS))
    checkpoint, coverage = saved(model, tmp_path, {"n_heads": HEADS, "hidden_act": "gelu"})
    assert coverage.accounted == coverage.total
    layers = model.trm_encoder["layer"]
    check_layers(checkpoint, [layer.multi_head_attention for layer in layers], [layer.hidden for layer in layers])


def test_timm(tmp_path):
    timm = pytest.importorskip("timm")
    sizes = {"img_size": 8, "patch_size": 4, "embed_dim": WIDTH, "depth": 2, "num_heads": HEADS, "num_classes": 3}
    model = randomised(timm.models.vision_transformer.VisionTransformer(**sizes))
    checkpoint, coverage = saved(model, tmp_path, heads=HEADS)
    assert coverage.accounted == coverage.total
    for layer, block in zip(checkpoint.layers, model.blocks, strict=True):
        x = tokens()
        with torch.no_grad():
            out, hidden = block.attn(x[None])[0].numpy(), block.mlp(x).numpy()
        attention = layer.attention[0]
        mine = evaluate.output(attention, evaluate.weights(attention, x.numpy()), x.numpy())
        assert np.abs(mine - out).max() < CLOSE
        assert np.abs(evaluate.hidden(layer.ffn[0], x.numpy()) - hidden).max() < CLOSE


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_parametrised_weights_are_rebuilt(kind, old, tmp_path):
    from audit.read.torch_models import RecBoleSASRec

    model = randomised(RecBoleSASRec(WIDTH, HEADS))
    place = nn.utils if old else nn.utils.parametrizations
    changed = [layer.multi_head_attention.query for layer in model.trm_encoder["layer"]]
    changed += [layer.feed_forward["dense_1"] for layer in model.trm_encoder["layer"]]
    for module in changed:
        getattr(place, kind)(module)
    for module in changed:  # power iterations happen in training; the estimates of a fresh module are crude
        module.train()(torch.randn(3, WIDTH).double())
        with torch.no_grad():
            for name, weight in module.named_parameters():
                if name.endswith(("_g", "original0")):
                    weight.mul_(torch.rand_like(weight) + 0.5)
        module.eval()(torch.randn(3, WIDTH).double())
    checkpoint, coverage = saved(model, tmp_path, {"n_heads": HEADS, "hidden_act": "gelu"})
    assert coverage.accounted == coverage.total == sum(weight.numel() for weight in model.parameters())
    assert len(coverage.buffers) == (8 if kind == "spectral_norm" else 0)
    layers = model.trm_encoder["layer"]
    check_layers(checkpoint, [layer.multi_head_attention for layer in layers], [layer.hidden for layer in layers])
    source = checkpoint.layers[0].attention[0].query.source
    assert source.made.startswith("g v / |v|" if kind == "weight_norm" else "v / (a . V b)")
    stored = checkpoint.layers[0].attention[0].query.read().reshape(WIDTH, WIDTH)
    raw = model.state_dict()[source.tensor].numpy()
    assert np.abs(stored - raw).max() > FAR  # the wrong rule takes the stored matrix as it is
