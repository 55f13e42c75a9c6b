"""Batches hold every sentence and are those of an unbroken run; further repairs of fairseq."""

from __future__ import annotations

import functools
import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import FairseqDataset
from fairseq.data.data_utils_fast import batch_by_size_vec
from fairseq.distributed import utils as distributed
from fairseq.file_io import PathManager
from fairseq.modules import LearnedPositionalEmbedding
from fairseq.modules.quantization.scalar import ops, quantize_model_
from fairseq.modules.quantization.scalar.modules import IntEmbedding, IntLinear
from fairseq.tasks import FairseqTask
from torch import nn

from diet_mt.fairseq_patches import repairs
from diet_mt.layers.stack import PaddedEmbedding, QuantizedPaddedEmbedding
from diet_mt.models.signature import OPTIONS
from diet_mt.system.errors import UserError

from ..toy import build, collate, position_parameters, sources, targets


class Sentences(FairseqDataset):
    """So many sentences, of 1, 2, ... tokens in turn; collated to their numbers, or to the epoch,
    as words that masked_lm hides depend on it.
    """

    def __init__(
        self,
        count: int,
        shapes: list[tuple[int, int]] | None = None,
        reuse: bool = True,
        by_epoch: bool = False,
    ) -> None:
        self.sizes = np.arange(count, dtype=np.int64) % 7 + 1
        self.shapes, self.by_epoch, self.epoch = shapes, by_epoch, 0
        self.reuse = reuse

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return self.reuse

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __getitem__(self, index: int) -> int:
        return self.epoch if self.by_epoch else index

    def __len__(self) -> int:
        return len(self.sizes)

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: Any) -> Any:
        return self.sizes[indices]

    def get_batch_shapes(self) -> list[tuple[int, int]] | None:
        return self.shapes

    def collater(self, samples: list[int]) -> list[int]:
        return samples


@pytest.mark.parametrize("multiple", [1, 8, 16])
@pytest.mark.parametrize("limits", [(-1, -1), (-1, 3), (30, -1), (70, 12)])
def test_every_sentence_is_in_a_batch(multiple: int, limits: tuple[int, int]) -> None:
    """The batches of stock fairseq, whichever fairseq runs."""
    for count in range(1, 21):
        dataset, indices = Sentences(count), np.arange(count)
        batches = dataset.batch_by_size(indices, *limits, multiple)
        assert [*map(list, batches)] == [
            *map(list, batch_by_size_vec(indices, dataset.sizes, *limits, multiple))
        ]
        assert np.concatenate(batches).tolist() == indices.tolist()


def test_fixed_shapes_and_no_sentences() -> None:
    batches = Sentences(13, [(4, 7)]).batch_by_size(np.arange(13), required_batch_size_multiple=8)
    assert [*map(len, batches)] == [4, 4, 4, 1]
    assert Sentences(0).batch_by_size(np.arange(0), required_batch_size_multiple=8) == []


def test_shards_together_hold_every_sentence() -> None:
    numbers = []
    for shard in range(3):
        iterator = FairseqTask(None).get_batch_iterator(
            Sentences(19),
            max_sentences=4,
            required_batch_size_multiple=8,
            num_shards=3,
            shard_id=shard,
        )
        numbers += [number for batch in iterator.next_epoch_itr() for number in batch]
    assert sorted(numbers) == list(range(19))


@pytest.mark.parametrize(("longest", "counts"), [(5, ("4", "19", "15")), (7, ())])
def test_the_log_counts_sentences_that_are_too_long(
    caplog: pytest.LogCaptureFixture, longest: int, counts: tuple[str, ...]
) -> None:
    with caplog.at_level(logging.WARNING, "diet_mt"):
        iterator = FairseqTask(None).get_batch_iterator(
            Sentences(19), max_positions=longest, ignore_invalid_inputs=True
        )
    lines = [line.getMessage() for line in caplog.records if line.name.startswith("diet_mt")]
    assert [line for line in lines if not all(count in line.split() for count in counts)] == []
    assert len(lines) == bool(counts)
    assert sum(map(len, iterator.next_epoch_itr())) == 19 - 4 * bool(counts)


@pytest.mark.parametrize(
    ("reuse", "options", "of_epoch"),
    [
        (True, {}, 1),  # made once: they must be those of an unbroken run
        (False, {}, 5),  # made anew for each epoch, as in an unbroken run
        (True, {"disable_iterator_cache": True}, 5),
        (True, {"update_epoch_batch_itr": True}, 5),
    ],
)
def test_a_continued_run_has_the_batches_of_an_unbroken_one(
    reuse: bool, options: dict[str, bool], of_epoch: int
) -> None:
    made: list[int] = []

    def make(task: Any, dataset: Any, *, epoch: int = 1, **options: Any) -> Any:
        made.append(epoch)
        dataset.set_epoch(epoch)
        return Namespace(epoch=epoch)

    task, dataset = FairseqTask(None), Sentences(4, reuse=reuse)
    iterator = repairs.get_batch_iterator(make, task, dataset, epoch=5, **options)
    assert (made, iterator.epoch, dataset.epoch) == ([of_epoch], 5, 5)


@pytest.mark.parametrize("workers", [0, 1])
def test_workers_have_the_epoch_that_they_work_in(workers: int) -> None:
    for start in (1, 3):
        task, dataset = FairseqTask(None), Sentences(4, by_epoch=True)
        iterator = task.get_batch_iterator(
            dataset, max_sentences=2, epoch=start, num_workers=workers
        )
        for epoch in (start, start + 1):
            assert list(iterator.next_epoch_itr()) == [[epoch, epoch]] * 2
        assert task.get_batch_iterator(dataset, epoch=9) is iterator


@pytest.mark.parametrize(
    ("given", "driver", "expected"),
    [
        ({"bf16": True, "tpu": True}, None, False),
        ({"bf16": True, "tpu": True}, "torch_xla", True),
        ({"bf16": False, "tpu": True}, None, True),  # --tpu alone: fairseq names what is missing
        ({"tpu": False}, None, False),
    ],
)
def test_bf16_is_for_a_tpu_only_with_its_driver(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, bool], driver: str | None, expected: bool
) -> None:
    monkeypatch.setattr(repairs, "find_spec", lambda _: driver)
    assert repairs.override_module_args(lambda args: args.tpu, Namespace(**given)) is expected


@pytest.mark.parametrize("fails", [False, True])
def test_a_copy_appears_when_it_is_whole(fails: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "new.pt", tmp_path / "checkpoint_last.pt"
    source.write_bytes(b"new and longer")
    target.write_bytes(b"old")

    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        Path(dst_path).write_bytes(b"new")
        assert target.read_bytes() == b"old"
        if fails:
            raise OSError("disk full")
        Path(dst_path).write_bytes(Path(src_path).read_bytes())
        return True

    copied = functools.partial(repairs.copy, copy, str(source), str(target), overwrite=True)
    if fails:
        with pytest.raises(OSError, match="disk full"):
            copied()
        assert target.read_bytes() == b"old"
    else:
        assert copied()
        assert target.read_bytes() == b"new and longer"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint_last.pt", "new.pt"]
    PathManager.copy(str(source), str(target), overwrite=True)
    assert target.read_bytes() == b"new and longer"


def quantized(layer: nn.Module) -> Any:
    """What becomes of ``layer`` as a part of a model."""
    model = nn.ModuleDict({"layer": layer})
    quantize_model_(model, p=0.1, bits=8, update_step=1000)
    return model["layer"]


def test_a_padded_embedding_stays_padded() -> None:
    torch.manual_seed(1)
    layer = PaddedEmbedding.around(nn.Embedding(6, 5, padding_idx=1), 8)
    tokens = torch.tensor([[0, 2, 3], [4, 5, 1]])
    expected = layer(tokens)
    padded = quantized(layer)
    assert type(padded) is QuantizedPaddedEmbedding
    assert padded.weight is layer.weight
    for mode in (True, False):
        rows = padded.train(mode)(tokens)
        assert rows.shape == (2, 3, 8)
        assert rows[..., :5].any()
        assert not rows[..., 5:].any(), "zero also when rounded to 8 bits"
    assert 0 < (rows - expected).abs().max() < 0.05
    padded.train()(tokens).sum().backward()
    assert layer.weight.grad[2].eq(1).all()
    assert type(quantized(nn.Embedding(6, 5))) is IntEmbedding


def test_subclasses_of_layers_are_quantized() -> None:
    """fairseq's learned positions look up the positions of tokens, not the tokens."""

    class Own(nn.Linear): ...

    class Deeper(Own): ...

    class OwnPadded(PaddedEmbedding): ...

    assert type(quantized(Deeper(5, 7))) is IntLinear
    assert type(quantized(OwnPadded.around(nn.Embedding(6, 5), 8))) is QuantizedPaddedEmbedding
    with pytest.raises(UserError, match=r"--quant-noise-scalar: LearnedPositionalEmbedding"):
        quantized(LearnedPositionalEmbedding(9, 4, 1))


def test_scale_and_zero_point_stay_where_the_weights_are() -> None:
    torch.manual_seed(1)
    w = torch.randn(20, 30)
    rounded, scale, zero_point = ops.emulate_int(w, bits=8, method="histogram")
    assert scale.dtype == zero_point.dtype == w.dtype
    assert (rounded - w).abs().max() <= scale / 2 + 1e-6
    assert len((rounded / scale).round().unique()) <= 256
    again, same_scale, same_zero = ops.emulate_int(
        w, bits=8, method="histogram", scale=scale, zero_point=zero_point
    )
    assert torch.equal(again, rounded)
    assert same_scale is scale
    assert same_zero is zero_point


@pytest.mark.parametrize("encoding", ["diet-rel", "tupe-rel", "linformer", "concat"])
def test_tables_of_positions_are_not_quantized(encoding: str) -> None:
    model = build(encoding, encoder_layers=1, decoder_layers=1).float()
    before = position_parameters(model)
    quantize_model_(model, p=0.1, bits=8, update_step=1000)
    assert type(model.encoder.layers[0].fc1) is IntLinear
    after = position_parameters(model)
    assert after.keys() == before.keys()
    assert all(after[name] is table for name, table in before.items())
    model(collate(sources(), "left"), None, collate(targets()))[0].sin().sum().backward()
    assert [
        name for name, table in after.items() if table.grad is None or not table.grad.any()
    ] == []


def test_a_broadcast_checkpoint_has_the_options_of_its_weights(tmp_path: Path) -> None:
    """By which stock checkpoints and tables of other lengths are adapted."""
    place = (tmp_path / "store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    try:
        state = {"model": {"weight": torch.ones(2)}, "cfg": {"model": {"max_source_positions": 7}}}
        group = torch.distributed.group.WORLD
        copy = distributed.broadcast_object(state, src_rank=0, group=group)
    finally:
        torch.distributed.destroy_process_group()
    assert copy["model"]._metadata[OPTIONS] == {"max_source_positions": 7}
    torch.testing.assert_close(copy["model"]["weight"], torch.ones(2))
