"""Every layout rule against the running model that wrote the file, and against a wrong rule that keeps every shape.

Tiny random models of `transformers` are saved by it and read by us. Hooks record what goes into the first map of a part
and comes out of the last; the canonical form must give the same attention weights, outputs and hidden units. Rotations
are switched off in the running model (cosine 1, sine 0), since the form has none; ALiBi and relative biases are added."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from audit.read import evaluate
from audit.read.transformer_cases import CASES, HEADS, TOKENS, WIDTH
from certiformer.audit.read import blocks, heads, read_checkpoint

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

# Models run in float64, but some of them round scores, norms or biases to float32 on the way.
CLOSE, FAR = 1e-6, 1e-2


class Running:
    """A saved model, what it computed, and our reading of it."""

    def __init__(self, name: str, folder) -> None:
        case = self.case = CASES[name]
        torch.manual_seed(0)
        config = getattr(transformers, case.config)(**case.sizes, attn_implementation="eager")
        self.model = getattr(transformers, case.model)(config).double().eval()
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.copy_(torch.randn_like(weight) * (0.3 if weight.ndim > 1 else 1.0))
        self.model.save_pretrained(folder)
        self.folder = folder
        self.went_in, self.came_out = {}, {}
        for place, module in self.model.named_modules():
            module.register_forward_hook(self._recorder(place))
            if type(module).__name__.endswith("RotaryEmbedding"):
                module.register_forward_hook(lambda m, i, o: (torch.ones_like(o[0]), torch.zeros_like(o[1])))
            if hasattr(module, "embed_positions") and torch.is_tensor(
                module.embed_positions
            ):  # GPT-J: sines, then cosines
                half = module.embed_positions.shape[-1] // 2
                module.embed_positions[:, :half], module.embed_positions[:, half:] = 0.0, 1.0
        inputs = torch.randn(1, 3, 8, 8).double() if name == "vit" else torch.randint(2, 40, (1, TOKENS))
        self.inputs = inputs
        with torch.no_grad():
            self.result = self.model(inputs, output_attentions=True)

    def _recorder(self, place: str):
        def record(module, args, output):
            # The first time: layers that are applied again see other tokens, with the same weights.
            if place not in self.went_in and args and torch.is_tensor(args[0]):
                # A copy: Falcon adds to what a map gave in place.
                self.went_in[place] = args[0].detach().double().clone().numpy()
                first = output[0] if isinstance(output, tuple) else output
                self.came_out[place] = first.detach().double().clone().numpy() if torch.is_tensor(first) else None

        return record

    def tokens(self, place: str, index: int, side: str = "went_in") -> np.ndarray:
        found = getattr(self, side)[place.format(i=index)]
        return found.reshape(-1, found.shape[-1])

    def differences(self, share: str = "//") -> dict[str, float]:
        """How far our reading is from what the model computed, by part, relative where numbers exceed one."""
        checkpoint, coverage = read_checkpoint(self.folder)
        assert coverage.accounted == coverage.total and not coverage.missing
        far: dict[str, float] = {}

        def note(part: str, mine: np.ndarray, theirs: np.ndarray) -> None:
            assert mine.shape == theirs.shape
            size = max(1.0, float(np.abs(theirs).max()))
            far[part] = max(far.get(part, 0.0), float(np.abs(mine - theirs).max()) / size)

        first_uses = np.cumsum([0, *(layer.repeats for layer in checkpoint.layers)])
        for i, layer in enumerate(checkpoint.layers):
            attention = layer.attention[0]
            x = self.tokens(self.case.attention[0], i)
            mine = evaluate.weights(attention, x, bias=self._alibi(checkpoint, len(x)), share=share)
            theirs = self.result.attentions[first_uses[i]][0].double().numpy()
            note("weights", mine, theirs)
            note(
                "output",
                evaluate.output(attention, theirs, x, share),
                self.tokens(self.case.attention[1], i, "came_out"),
            )
            if self.case.hidden is not None:
                x = self.tokens(self.case.hidden[0], i)
                note("hidden", evaluate.hidden(layer.ffn[0], x), self.tokens(self.case.hidden[1], i, "came_out"))
            for key, place in self.case.norms.items():
                note(
                    "norms", evaluate.normed(layer.norms[key], self.tokens(place, i)), self.tokens(place, i, "came_out")
                )
        assert self.case.norms.keys() == {key for key in checkpoint.layers[0].norms if key in self.case.norms}
        return far

    def _alibi(self, checkpoint, tokens: int) -> np.ndarray | float:
        """Slopes 2 ** (-8 (h + 1) / H) times the place of the key, for a number of heads that is a power of two."""
        if checkpoint.positions != "alibi":
            return 0.0
        slopes = 2.0 ** (-8.0 * np.arange(1, HEADS + 1) / HEADS)
        return slopes[:, None, None] * np.arange(tokens)[None, None, :]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    made: dict[str, Running] = {}

    def get(name: str) -> Running:
        if name not in made:
            made[name] = Running(name, tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.mark.parametrize("name", CASES)
def test_the_form_computes_what_the_model_computes(name, running):
    far = running(name).differences()
    assert far.keys() >= {"weights", "output"}
    assert max(far.values()) < CLOSE, far


@pytest.mark.parametrize("name", ["neox", "bloom", "falcon-new", "falcon-old", "phi3"])
def test_the_other_layout_of_fused_rows_fails(name, running, monkeypatch):
    rule = heads.fused_rows
    other = {"blocks": "groups", "groups": "blocks"}
    monkeypatch.setattr(blocks, "fused_rows", lambda found, layout: rule(found, other[layout]))
    far = running(name).differences()
    assert far["weights"] > FAR and far["output"] > FAR


def test_keys_before_queries_fail_for_multi_query(running, monkeypatch):
    rule = heads.fused_rows

    def wrong(found, layout):
        key, value, query = np.split(np.arange((found.count + 2) * found.size), (found.size, 2 * found.size))
        return rule(found, layout)._replace(
            query=query.reshape(found.count, -1), key=key.reshape(1, -1), value=value.reshape(1, -1)
        )

    monkeypatch.setattr(blocks, "fused_rows", wrong)
    far = running("falcon-multi-query").differences()
    assert far["weights"] > FAR and far["output"] > FAR


@pytest.mark.parametrize(
    "name", ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "mixtral", "phi3", "falcon-new"]
)
def test_heads_that_share_keys_in_turn_fail(name, running):
    far = running(name).differences(share="%")
    assert far["weights"] > FAR and far["output"] > FAR


def test_the_square_map_of_gpt2_untransposed_fails(running, monkeypatch):
    rule = blocks.output_map
    monkeypatch.setattr(
        blocks, "output_map", lambda names, name, found, width, turned=False: rule(names, name, found, width)
    )
    far = running("gpt2").differences()
    assert far["weights"] < CLOSE and far["output"] > FAR


@pytest.mark.parametrize("name", ["bert", "distilbert", "albert", "opt", "gptj", "vit", "qwen2"])
def test_interleaved_heads_fail(name, running, monkeypatch):
    rule = blocks.separate

    def wrong(names, maps, found, width, seen=None):
        def turned(weight):
            count, size, wide = weight.shape
            return replace(weight, load=lambda: weight.read().reshape(size, count, wide).transpose(1, 0, 2))

        right = rule(names, maps, found, width, seen)
        return replace(right, query=turned(right.query), key=turned(right.key), value=turned(right.value))

    import certiformer.audit.read as package

    for module in ("bert", "distilbert", "albert", "opt", "gptj", "vit", "decoder"):
        monkeypatch.setattr(getattr(package, module), "separate", wrong)
    far = running(name).differences()
    assert far["weights"] > FAR and far["output"] > FAR


@pytest.mark.parametrize("name", ["gemma", "gemma2", "gemma3"])
def test_gains_and_embeddings_of_gemma(name, running):
    ran = running(name)
    checkpoint, _ = read_checkpoint(ran.folder)
    x = ran.tokens("model.norm", 0)
    out = ran.tokens("model.norm", 0, "came_out")
    norm = checkpoint.final_norm
    assert norm is not None and norm.gain is not None
    assert np.abs(evaluate.normed(norm, x) - out).max() < CLOSE
    as_stored = replace(norm, gain=replace(norm.gain, load=lambda: norm.gain.read() - 1.0))
    assert np.abs(evaluate.normed(as_stored, x) - out).max() > FAR
    table = checkpoint.embeddings["word"].read()[ran.inputs[0].numpy()]
    first = ran.tokens("model.layers.0.input_layernorm", 0)
    # The factor is rounded to the type of the weights, and to float32 on the way.
    assert np.abs(checkpoint.embedding_scale * table - first).max() < CLOSE
    assert np.abs(table - first).max() > FAR


def test_gate_and_map_up_exchanged_fail(running):
    for name in ("llama", "phi3"):
        ran = running(name)
        checkpoint, _ = read_checkpoint(ran.folder)
        ffn = checkpoint.layers[0].ffn[0]
        assert ran.case.hidden is not None and ffn.gate is not None
        x, out = ran.tokens(ran.case.hidden[0], 0), ran.tokens(ran.case.hidden[1], 0, "came_out")
        assert np.abs(evaluate.hidden(ffn, x) - out).max() < CLOSE
        assert np.abs(evaluate.hidden(replace(ffn, gate=ffn.up, up=ffn.gate), x) - out).max() > FAR


def test_experts_and_router_of_mixtral(running):
    ran = running("mixtral")
    checkpoint, _ = read_checkpoint(ran.folder)
    layer = checkpoint.layers[0]
    x, out = ran.tokens("model.layers.0.mlp", 0), ran.tokens("model.layers.0.mlp", 0, "came_out")

    def mixed(experts) -> np.ndarray:
        """The two best experts of each token, weighted by their share of the two."""
        scores = x @ layer.others["router"].read().T
        total = np.zeros_like(x)
        for token, row in enumerate(scores):
            best = np.argsort(row)[-2:]
            shares = np.exp(row[best] - row[best].max())
            for share, expert in zip(shares / shares.sum(), best, strict=True):
                total[token] += share * evaluate.hidden(experts[expert], x[token])
        return total

    assert np.abs(mixed(layer.ffn) - out).max() < CLOSE
    assert np.abs(mixed([replace(ffn, gate=ffn.up, up=ffn.gate) for ffn in layer.ffn]) - out).max() > FAR


@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
def test_t5_with_unscaled_scores_and_one_table_of_biases(kind, tmp_path):
    torch.manual_seed(0)
    sizes = {
        "d_model": WIDTH,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "num_heads": HEADS,
        "vocab_size": 40,
    }
    config = transformers.T5Config(**sizes, feed_forward_proj=kind, attn_implementation="eager")
    model = transformers.T5ForConditionalGeneration(config).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.3 if weight.ndim > 1 else 1.0))
    model.save_pretrained(tmp_path)
    seen = {}
    for place, module in model.named_modules():

        def record(module, args, output, place=place):
            seen.setdefault(place, (args[0] if args else None, output[0] if isinstance(output, tuple) else output))

        module.register_forward_hook(record)
    ids = torch.randint(2, 40, (1, TOKENS))
    with torch.no_grad():
        result = model(ids, decoder_input_ids=ids[:, :5], output_attentions=True)
    checkpoint, coverage = read_checkpoint(tmp_path)
    assert coverage.accounted == coverage.total
    tokens = lambda place, side=0: seen[place][side][0].double().numpy()  # noqa: E731
    memory = result.encoder_last_hidden_state[0].numpy()
    found = {"encoder": result.encoder_attentions, "decoder": result.decoder_attentions}
    for number, layer in enumerate(checkpoint.layers):
        stack, index = ("encoder", number) if number < 2 else ("decoder", number - 2)
        at = f"{stack}.block.{index}.layer"
        # The table of the first block serves every block of its stack.
        length = len(tokens(f"{at}.0.SelfAttention.q"))
        bias = getattr(model, stack).block[0].layer[0].SelfAttention.compute_bias(length, length)[0].detach().numpy()
        assert ("relative_bias" in layer.others) == (index == 0)
        x, attention = tokens(f"{at}.0.SelfAttention.q"), layer.attention[0]
        theirs = found[stack][index][0].numpy()
        assert np.abs(evaluate.weights(attention, x, bias=bias) - theirs).max() < CLOSE
        assert np.abs(evaluate.weights(replace(attention, scale=8**-0.5), x, bias=bias) - theirs).max() > FAR
        assert np.abs(evaluate.weights(attention, x) - theirs).max() > FAR
        assert np.abs(evaluate.output(attention, theirs, x) - tokens(f"{at}.0.SelfAttention.o", 1)).max() < CLOSE
        if stack == "decoder":
            cross, y = layer.attention[1], tokens(f"{at}.1.EncDecAttention.q")
            theirs = result.cross_attentions[index][0].numpy()
            assert cross.cross and np.abs(evaluate.weights(cross, y, memory) - theirs).max() < CLOSE
            mine = np.einsum("hts,hse->hte", theirs, np.einsum("hed,sd->hse", cross.value.read(), memory))
            mine = np.einsum("hde,hte->td", cross.output.read(), mine)
            assert np.abs(mine - tokens(f"{at}.1.EncDecAttention.o", 1)).max() < CLOSE
        last = f"{at}.{len(layer.attention)}.DenseReluDense"
        first = "wi" if kind == "relu" else "wi_0"
        assert np.abs(evaluate.hidden(layer.ffn[0], tokens(f"{last}.{first}")) - tokens(f"{last}.wo", 1)).max() < CLOSE
        norm = evaluate.normed(layer.norms["ffn"], tokens(f"{at}.{len(layer.attention)}.layer_norm"))
        assert np.abs(norm - tokens(f"{at}.{len(layer.attention)}.layer_norm", 1)).max() < CLOSE


def test_shared_layers_are_applied_as_often_as_the_reader_says(running):
    ran = running("albert")
    checkpoint, _ = read_checkpoint(ran.folder)
    calls = dict.fromkeys(range(5), 0)
    for index in calls:
        module = ran.model.albert.encoder.albert_layer_groups[index].albert_layers[0]
        module.register_forward_hook(lambda m, i, o, index=index: calls.__setitem__(index, calls[index] + 1))
    with torch.no_grad():
        ran.model(ran.inputs)
    assert [layer.repeats for layer in checkpoint.layers] == list(calls.values()) == [2, 1, 2, 1, 1]


def test_heads_are_tied_when_the_running_model_ties_them(running):
    for name, ran in ((name, running(name)) for name in CASES):
        table, last = ran.model.get_input_embeddings(), ran.model.get_output_embeddings()
        if name == "vit" or last is None:
            continue
        checkpoint, _ = read_checkpoint(ran.folder)
        tied = table.weight.data_ptr() == last.weight.data_ptr()
        assert checkpoint.head_tied == tied, name
        assert (checkpoint.head is None) == tied, name
        assert math.prod(table.weight.shape) == checkpoint.embeddings["word"].count
