"""Systems get equal work, in processes of their own: stock fairseq's without the plugin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from diet_mt.bench import worker
from diet_mt.bench.speed import STOCK, Worker, model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA, Job, System
from diet_mt.decoding.generator import VARIABLE
from diet_mt.layers.int8 import Int8Linear
from diet_mt.models.architectures import SIZES

KINDS = ("train", "forward", "decode")
PEER = "diet_rel:fairseq"
FIELDS: dict[str, Any] = {
    "vocabulary": 60,
    "batches": 2,
    "decode_length": 4,
    "beam": 10,
    "lenpen": 0.6,
    "threads": 1,
}
LOAD = {"train": {"tokens": 120}, "forward": {"tokens": 120}, "decode": {"tokens": 60}}


def words_of(name: str) -> list[str]:
    return [RANDOM_DATA, *model_words(name, SIZES["tiny"]), *training_words(0.1)]


def small_system(name: str, **fields: Any) -> System:
    return System(Job(words=words_of(name), user_dir=None, **{**FIELDS, **fields}))


def prepared(name: str, kind: str, tokens: int = 0, **fields: Any) -> System:
    system = small_system(name, **fields)
    system.prepare(kind, **({"tokens": tokens} if tokens else LOAD[kind]))
    return system


@pytest.fixture(scope="module")
def systems() -> dict[str, dict[str, System]]:
    return {name: {kind: prepared(name, kind) for kind in KINDS} for name in (STOCK, "diet_rel")}


def test_stock_has_our_size() -> None:
    # Without any positions there is nothing but fairseq's own parameters.
    stock, ours = (
        sorted(
            (name, tuple(parameter.shape))
            for name, parameter in small_system(system).new_model().named_parameters()
            if not _dead_in_stock(name)
        )
        for system in (STOCK, "none")
    )
    assert stock == ours


def _dead_in_stock(name: str) -> bool:
    """Copies of encoder weights that only stock fairseq's fused layer has."""
    parent, _, leaf = name.rpartition(".")
    fused = {"in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"}
    fused |= {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    return leaf in fused and parent.startswith("encoder.layers.")


def test_all_systems_get_the_same_work(systems: dict[str, dict[str, System]]) -> None:
    for kind in KINDS:
        first, *others = (system[kind].data for system in systems.values())
        assert len(first) == FIELDS["batches"]
        for other in others:
            for one, two in zip(first, other, strict=True):
                for name, tensor in one["net_input"].items():
                    assert torch.equal(tensor, two["net_input"][name])
    data = systems[STOCK]["train"].data
    assert max(batch["net_input"]["src_tokens"].numel() for batch in data) <= 120


def test_the_same_words_make_the_same_weights() -> None:
    one, other = (dict(small_system(STOCK).new_model().named_parameters()) for _ in range(2))
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_training_step_trains(systems: dict[str, dict[str, System]]) -> None:
    for name, system in systems.items():
        model = system["train"].model
        before = {key: value.clone() for key, value in model.named_parameters()}
        system["train"].turn()
        after = dict(model.named_parameters())
        still = {key for key in before if torch.equal(before[key], after[key])}
        # The bias of keys shifts a whole row of logits, which softmax ignores.
        unused = {key for key in still if not (_dead_in_stock(key) or key.endswith("k_proj.bias"))}
        assert unused == set(), name
        assert model.training


def test_the_forward_pass_needs_no_gradients(
    systems: dict[str, dict[str, System]], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = systems["diet_rel"]["forward"]
    calls = []
    monkeypatch.setattr(
        type(system.model),
        "forward",
        lambda self, **batch: calls.append((self.training, torch.is_grad_enabled(), *batch)),
    )
    system.turn()
    assert [call[:2] for call in calls] == [(False, False)] * FIELDS["batches"]
    assert {"src_tokens", "prev_output_tokens"} <= set(calls[0][2:])


def test_every_hypothesis_has_the_given_length(systems: dict[str, dict[str, System]]) -> None:
    for system in systems.values():
        assert {len(tokens) for tokens in system["decode"].outputs().values()} == {4}


def test_no_batches_means_the_whole_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_SENTENCES", 70)
    (batch,) = prepared(STOCK, "decode", batches=0, tokens=9000, beam=1).data
    assert len(batch["id"]) == 70


def test_batches_of_given_lengths_and_of_so_many_sentences() -> None:
    system = small_system(STOCK, batches=1)
    ragged, short = system.batches("train", tokens=300, lengths=[(15, 10), (4, 400)])
    sources, targets = ragged["net_input"]["src_tokens"], ragged["target"]
    assert (sources.shape, targets.shape) == ((16, 15), (16, 10))
    assert sources[:, 0].eq(1).any()  # padded on the left, as by default
    assert {len(row[row != 1]) for row in sources} <= set(range(12, 16))
    assert short["net_input"]["src_tokens"].shape == (1, 4)
    sizes = [len(system.batches("test", sentences=number)[0]["id"]) for number in (8, 3)]
    assert sizes == [8, 3]


def test_our_models_in_int8() -> None:
    system = prepared("diet_rel:int8", "decode")
    assert type(system.model.decoder.output_projection) is Int8Linear
    assert {len(tokens) for tokens in system.outputs().values()} == {4}


# CTranslate2


@pytest.mark.parametrize(("length", "kind"), [(0, "float32"), (4, "int8")])
def test_the_translations_of_ctranslate2(
    length: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of fairseq with the same weights; with a length only as many steps are."""
    pytest.importorskip("ctranslate2")
    monkeypatch.setattr(worker, "LONGEST_OUTPUT", 12)
    make = System.new_model

    def sharp(system: System) -> Any:
        """With larger weights: hypotheses are no ties, and some end early."""
        model = make(system)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("weight") and "layer_norm" not in name:
                    parameter.mul_(3.0)
            # Towards the end mark, so that some words are nearer to it.
            end = model.decoder.embed_tokens.weight[system.task.target_dictionary.eos()]
            model.decoder.layers[-1].final_layer_norm.bias.copy_(1.1 * end)
        return model

    monkeypatch.setattr(System, "new_model", sharp)
    fields = {"tokens": 150, "decode_length": length}
    ours = prepared(STOCK, "decode", engine="ctranslate2", compute_type=kind, **fields)
    theirs = prepared(STOCK, "decode", **fields)
    translations, expected = ours.outputs(), theirs.outputs()
    assert translations.keys() == expected.keys()
    assert "inter_threads 1, intra_threads 1" in ours.setting
    if length:  # fairseq writes four words and the end; all steps here are words
        assert {len(tokens) for tokens in translations.values()} == {5}
    else:
        assert len({len(tokens) for tokens in expected.values()}) > 1
        equal = sum(translations[number] == expected[number] for number in expected)
        # At the longest length fairseq adds the end mark and its score, CTranslate2 only stops.
        assert equal >= 0.9 * len(expected)


# Processes


@pytest.fixture(scope="module")
def peer() -> Iterator[Worker]:
    # Two threads, so that there is one that could spin.
    with Worker(PEER, words_of(PEER), **{**FIELDS, "threads": 2}) as worker:
        yield worker


def test_plugin_and_search_are_those_of_the_name(peer: Worker) -> None:
    """That of stock is tested whenever it is measured."""
    assert peer.ask("prepare", kind="decode", **LOAD["decode"])["plugin"]
    text = Path(f"/proc/{peer.process.pid}/environ").read_text(encoding="utf-8")
    assert f"{VARIABLE}=fairseq" in text.split("\0")


def test_waiting_takes_no_processor_time(peer: Worker) -> None:
    peer.ask("prepare", kind="train", **LOAD["train"])
    assert peer.turn() > 0
    time.sleep(0.5)  # threads that wait for more work give up soon
    process = psutil.Process(peer.process.pid)
    before = sum(process.cpu_times()[:2])
    time.sleep(1.0)
    assert sum(process.cpu_times()[:2]) - before <= 0.03
