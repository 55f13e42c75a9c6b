"""CTranslate2 translates with stock fairseq's weights, and as stock fairseq does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.bench.process import workload
from diet_mt.bench.process.workload import Decoding, Workload
from diet_mt.bench.systems import CTRANSLATE2, STOCK

from .jobs import small_job

pytest.importorskip("ctranslate2")

from diet_mt.bench.process import ctranslate2_decoding
from diet_mt.bench.process.ctranslate2_decoding import CTranslate2Decoding, _layouts


def _sharp(work: Workload) -> Any:
    """The model with larger weights: hypotheses are no ties, and some end early."""
    model = work.model()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weight") and "layer_norm" not in name:
                parameter.mul_(3.0)
        # Towards the end mark, so that it is found among the words.
        end = model.decoder.embed_tokens.weight[work.task.target_dictionary.eos()]
        model.decoder.layers[-1].final_layer_norm.bias.copy_(1.1 * end)
    return model


def test_the_translations_are_those_of_fairseq(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a length that is asked for: also where they end, and so the length penalty."""
    for module in (workload, ctranslate2_decoding):
        monkeypatch.setattr(module, "LONGEST_OUTPUT", 12)
    job = small_job(STOCK, batches=0, decode_tokens=150, decode_length=0)
    work = Workload(job)
    data = work.batches("test", job.decode_tokens)[:2]
    ours = CTranslate2Decoding(work.task, _sharp(work), data, job)
    expected = Decoding(work.cfg, work.task, _sharp(work), data, job).outputs()
    found = ours.outputs()
    assert found.keys() == expected.keys()
    assert len({len(tokens) for tokens in expected.values()}) > 1
    equal = sum(found[number] == expected[number] for number in expected)
    # At the longest length fairseq adds the end mark and its score, CTranslate2 only stops.
    assert equal >= 0.9 * len(expected)


def test_it_makes_as_many_steps_as_fairseq() -> None:
    case = Workload(small_job(CTRANSLATE2)).case("decode")
    assert isinstance(case, CTranslate2Decoding)
    # fairseq writes four words and the end; all steps here are words.
    assert {len(tokens) for tokens in case.outputs().values()} == {5}
    assert "inter_threads 1, intra_threads 1" in case.setting


def test_both_layouts_of_threads_are_tried() -> None:
    assert {(one.inter_threads, one.intra_threads) for one in _layouts(3)} == {(1, 3), (3, 1)}
    assert {(one.inter_threads, one.intra_threads) for one in _layouts(1)} == {(1, 1)}
    assert {one.batch_type for one in _layouts(1)} == {"examples", "tokens"}
