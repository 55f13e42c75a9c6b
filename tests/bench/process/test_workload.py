"""The benchmark compares equal work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from diet_mt.bench.process.workload import Case, Decoding, Workload
from diet_mt.bench.systems import STOCK

from .jobs import COMMON, small_job

KINDS = ("train", "forward", "decode")


@pytest.fixture(scope="module")
def cases() -> dict[str, dict[str, Case]]:
    works = {name: Workload(small_job(name)) for name in (STOCK, "diet_rel", "diet_abs")}
    return {name: {kind: work.case(kind) for kind in KINDS} for name, work in works.items()}


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_stock_has_our_size(size: str) -> None:
    # Without any positions there is nothing but fairseq's own parameters.
    counts = []
    for name in (STOCK, "none"):
        model = Workload(small_job(name, size)).model()
        counts.append(sorted((name, tuple(p.shape)) for name, p in model.named_parameters()))
    ours = [entry for entry in counts[1] if not _dead_in_stock(entry[0])]
    assert [entry for entry in counts[0] if not _dead_in_stock(entry[0])] == ours


def _dead_in_stock(name: str) -> bool:
    """Copies of encoder weights that only stock fairseq's fused layer has."""
    parent, _, leaf = name.rpartition(".")
    fused = {"in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"}
    fused |= {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    return leaf in fused and parent.startswith("encoder.layers.")


def test_all_systems_get_the_same_work(cases: dict[str, dict[str, Case]]) -> None:
    for kind in KINDS:
        first, *others = (case[kind].data for case in cases.values())
        assert len(first) == COMMON["batches"]
        for other in others:
            for one, two in zip(first, other, strict=True):
                for name, tensor in one["net_input"].items():
                    assert torch.equal(tensor, two["net_input"][name])
    data = cases[STOCK]["train"].data
    tokens = [batch["net_input"]["src_tokens"].numel() for batch in data]
    assert max(tokens) <= COMMON["train_tokens"]


def test_the_same_words_make_the_same_weights() -> None:
    one, other = (dict(Workload(small_job(STOCK)).model().named_parameters()) for _ in range(2))
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_training_step_trains(cases: dict[str, dict[str, Case]]) -> None:
    for name, case in cases.items():
        before = {key: value.clone() for key, value in case["train"].model.named_parameters()}
        case["train"]()
        after = dict(case["train"].model.named_parameters())
        moved = {key for key in before if not torch.equal(before[key], after[key])}
        live = {key for key in before if not _dead_in_stock(key)}
        # The bias of keys shifts a whole row of logits, which softmax ignores.
        assert {key for key in live - moved if not key.endswith("k_proj.bias")} == set(), name
        assert case["train"].model.training


def test_the_forward_pass_needs_no_gradients(
    cases: dict[str, dict[str, Case]], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases["diet_rel"]["forward"]
    seen = []
    monkeypatch.setattr(
        type(case.model),
        "forward",
        lambda self, **batch: seen.append((self.training, torch.is_grad_enabled(), *batch)),
    )
    case()
    assert [entry[:2] for entry in seen] == [(False, False)] * COMMON["batches"]
    assert {"src_tokens", "prev_output_tokens"} <= set(seen[0][2:])


def test_every_hypothesis_has_the_length_asked_for(cases: dict[str, dict[str, Case]]) -> None:
    for case in cases.values():
        assert {len(tokens) for tokens in case["decode"].outputs().values()} == {4}
    # The check is able to fail: what was asked for is another number than what was written.
    decoding = cases["diet_rel"]["decode"]
    assert isinstance(decoding, Decoding)
    decoding.length = 3
    with pytest.raises(AssertionError, match=r"of \[5\] tokens, not 4"):
        decoding()


def test_no_batches_asked_for_means_the_whole_data_set() -> None:
    case = Workload(small_job(STOCK, batches=0, decode_tokens=9000)).case("decode")
    assert case.sentences == 4000


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="train: only 1 batches"):
        Workload(small_job(STOCK, train_tokens=10**6)).case("train")
    with pytest.raises(ValueError, match=r"nowhere\.pt: no such checkpoint"):
        Workload(small_job(STOCK, checkpoint="nowhere.pt")).case("train")
    with pytest.raises(ValueError, match="no data made by fairseq-preprocess"):
        Workload(small_job(STOCK, data=str(Path(__file__).parent)))
