"""Every family keeps the contract, under any wrapper; and a reader that is wrong in one place does not."""

from __future__ import annotations

import pytest

from audit.read import synthetic as one
from audit.read import synthetic_more as two
from audit.read.contract import check_reader
from certiformer.audit.read import blocks, heads

MADE = {
    "bert": one.bert,
    "bert-bare": lambda: one.bert(""),
    "bert-mlm": one.bert_mlm,
    "roberta": one.roberta,
    "distilbert": one.distilbert,
    "albert": one.albert,
    "gpt2": lambda: one.gpt2(True),
    "nanogpt": lambda: one.gpt2(False),
    "llama": one.llama,
    "mistral": lambda: one.llama("mistral"),
    "qwen2": lambda: one.llama("qwen2", bias=True),
    "qwen3": lambda: one.llama("qwen3", inner_norms=True),
    "gemma": lambda: one.llama("gemma"),
    "gemma2": lambda: one.llama("gemma2", around=True),
    "gemma3": lambda: one.llama("gemma3", inner_norms=True, around=True),
    "mixtral": lambda: one.llama("mixtral", experts=3),
    "phi3": one.phi3,
    "neox": one.neox,
    "bloom": one.bloom,
    "falcon-new": lambda: one.falcon(True),
    "falcon-multi-query": lambda: one.falcon(False),
    "opt": two.opt,
    "gptj": two.gptj,
    "t5": lambda: two.t5(False),
    "t5-gated": lambda: two.t5(True),
    "vit": two.vit,
    "timm": two.timm,
    "torch-encoder": two.torch_encoder,
    "sasrec": two.sasrec,
    "recbole-sasrec": lambda: two.recbole(False),
    "recbole-bert4rec": lambda: two.recbole(True),
    "gsasrec": two.gsasrec,
}


@pytest.mark.parametrize("name", MADE)
def test_a_family_keeps_the_contract(name, tmp_path):
    _, coverage = check_reader(MADE[name](), tmp_path)
    assert coverage.accounted == coverage.total


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "model._orig_mod.", "net.backbone."])
@pytest.mark.parametrize("name", ["bert-mlm", "gpt2", "llama", "gemma", "opt", "t5", "sasrec", "torch-encoder"])
def test_wrappers_are_stripped_whatever_they_are_called(name, wrapper, tmp_path):
    _, coverage = check_reader(MADE[name](), tmp_path, wrapper)
    assert coverage.accounted == coverage.total


def test_the_contract_sees_blocks_taken_for_groups(monkeypatch, tmp_path):
    rule = heads.fused_rows
    monkeypatch.setattr(blocks, "fused_rows", lambda found, layout: rule(found, "blocks"))
    with pytest.raises(AssertionError):
        check_reader(MADE["neox"](), tmp_path)


def test_the_contract_sees_a_third_that_is_read_twice(monkeypatch, tmp_path):
    rule = heads.fused_rows
    monkeypatch.setattr(blocks, "fused_rows", lambda *a: rule(*a)._replace(value=rule(*a).key))
    with pytest.raises(AssertionError):
        check_reader(MADE["timm"](), tmp_path)


def test_the_contract_sees_a_forgotten_tensor(monkeypatch, tmp_path):
    monkeypatch.setattr(blocks, "output_map", lambda names, name, found, width, turned=False: (None, None))
    with pytest.raises(AssertionError):
        check_reader(MADE["gptj"](), tmp_path)


def test_the_contract_sees_a_square_map_that_was_not_turned(monkeypatch, tmp_path):
    rule = blocks.output_map
    monkeypatch.setattr(
        blocks, "output_map", lambda names, name, found, width, turned=False: rule(names, name, found, width)
    )
    with pytest.raises(AssertionError):
        check_reader(MADE["gpt2"](), tmp_path)
