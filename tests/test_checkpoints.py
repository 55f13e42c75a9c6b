"""The safe loader, the whole copy and the batches of a run that goes on, function by function."""

from __future__ import annotations

import argparse
import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import FairseqDataset
from fairseq.file_io import PathManager
from fairseq.tasks import FairseqTask

from diet_mt import checkpoints
from diet_mt.errors import UserError

SWITCH = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def load(path: str) -> dict[str, Any]:
    """As fairseq reads a checkpoint, without what it then does with it."""
    loaded: dict[str, Any] = torch.load(path, map_location="cpu")
    return loaded["inside"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "checkpoint.pt"


@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(arch="diet_rel_tiny", dropout=0.1),
        np.arange(6).reshape(2, 3),
        np.array([1.5, 2.5], dtype=np.float32),
        np.array([3], dtype=np.int32),
        np.float64(1.5),
        np.int64(3),
        {"plain": [1, "two", None, (3.0, True)]},
    ],
    ids=repr,
)
def test_what_fairseq_stores_is_read(file: Path, value: Any) -> None:
    torch.save({"inside": value}, file)
    read: Any = checkpoints.load_safely(load)(str(file))
    assert type(read) is type(value)
    assert np.array_equal(read, value) if isinstance(value, np.ndarray) else read == value


@pytest.mark.parametrize("package", ["numpy.core", "numpy._core"])
def test_arrays_of_the_other_numpy_are_read(file: Path, package: str) -> None:
    """numpy 2 calls its functions by another name; checkpoints travel between the two."""
    torch.save({"inside": np.arange(3)}, file, _use_new_zipfile_serialization=False)
    names = (b"numpy._core.multiarray", b"numpy.core.multiarray")
    content = file.read_bytes()
    (present,) = {name for name in names if name in content}
    renamed = f"{package}.multiarray".encode()
    # The pickle is of protocol 2, where a name ends with a line.
    file.write_bytes(content.replace(b"c" + present + b"\n", b"c" + renamed + b"\n"))
    assert renamed in file.read_bytes()
    read: Any = checkpoints.load_safely(load)(str(file))
    assert np.array_equal(read, np.arange(3))


class Bomb:
    def __init__(self, function: Any, *args: Any) -> None:
        self.parts = (function, args)

    def __reduce__(self) -> Any:
        return self.parts


class Unknown:
    """A class that nobody allowed, as a plugin of somebody else might store."""


def test_code_is_refused_and_not_run(file: Path, tmp_path: Path) -> None:
    crater = tmp_path / "crater"
    torch.save({"inside": Bomb(os.mkdir, str(crater))}, file)
    with pytest.raises(UserError, match=r"checkpoint\.pt: refused.*mkdir"):
        checkpoints.load_safely(load)(str(file))
    assert not crater.exists()
    pickle.loads(pickle.dumps(Bomb(os.mkdir, str(crater))))
    assert crater.exists()  # it was no dud


@pytest.mark.parametrize(
    "value",
    [Unknown(), Bomb(eval, "1"), np.array([object()], dtype=object)],
    ids=["unknown class", "eval", "array of objects"],
)
def test_other_types_are_refused_by_name(file: Path, value: Any) -> None:
    torch.save({"inside": value}, file)
    with pytest.raises(UserError, match="refused, for it holds more than tensors") as refusal:
        checkpoints.load_safely(load)(str(file))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("value", ["1", "y", "YES", "true"])
def test_the_unsafe_switch_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    torch.save({"inside": 1}, file)
    monkeypatch.setenv(SWITCH, value)
    with pytest.raises(UserError, match=f"{SWITCH} is set"):
        checkpoints.load_safely(load)(str(file))


@pytest.mark.parametrize("switch", ["", "0"])
def test_the_switch_may_be_off(file: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    torch.save({"inside": {"a": 1}}, file)
    monkeypatch.setenv(SWITCH, switch)
    assert checkpoints.load_safely(load)(str(file)) == {"a": 1}


def saved(zipped: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save({"inside": torch.ones(100)}, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"P",
        saved()[:10],
        saved()[:400],
        saved()[:-10],
        saved(zipped=False)[:-10],
        saved(zipped=False)[:60],
        b"hello world this is text\n",
        "übel".encode(),
        bytes(range(256)),
        pickle.dumps([1, 2]),
    ],
    ids=lambda content: f"{len(content)} {content[:5]!r}",
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")
def test_files_that_are_no_checkpoint(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"checkpoint\.pt: .*not a checkpoint") as fault:
        checkpoints.load_safely(load)(str(file))
    assert "\n" not in str(fault.value)
    assert "weights_only" not in str(fault.value)  # no advice to switch the safety off
    assert len(str(fault.value)) < 300


def test_a_checkpoint_without_the_parts_of_one(file: Path) -> None:
    torch.save({"something": 1}, file)
    with pytest.raises(UserError, match=r"not a checkpoint of fairseq, or damaged .*inside"):
        checkpoints.load_safely(load)(str(file))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), RuntimeError("out of memory")])
def test_errors_that_do_not_speak_of_the_file_stay(file: Path, error: Exception) -> None:
    def fail(path: str) -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)) as same:
        checkpoints.load_safely(fail)(str(file))
    assert same.value is error


def test_a_copy_appears_when_it_is_whole(tmp_path: Path) -> None:
    source, target = tmp_path / "new.pt", tmp_path / "checkpoint_last.pt"
    source.write_bytes(b"new and longer")
    target.write_bytes(b"old")
    seen = []

    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> str:
        Path(dst_path).write_bytes(b"new")
        seen.append(target.read_bytes())
        Path(dst_path).write_bytes(Path(src_path).read_bytes())
        return "what copy says"

    says = checkpoints.copy_whole(copy)(str(source), str(target), overwrite=True)
    assert (says, seen, target.read_bytes()) == ("what copy says", [b"old"], b"new and longer")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint_last.pt", "new.pt"]


def test_a_copy_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint_last.pt"
    target.write_bytes(b"old")

    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> None:
        Path(dst_path).write_bytes(b"ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoints.copy_whole(copy)("source", str(target), overwrite=True)
    assert target.read_bytes() == b"old"


class Dataset:
    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Iterator:
    def __init__(self, batches: str, epoch: int) -> None:
        self.batches, self.epoch = batches, epoch


class Task:
    """fairseq's task, as far as batches go: those of an epoch are named after it."""

    def __init__(self, reuse: bool) -> None:
        self.reuse = reuse
        self.dataset_to_epoch_iter: dict[Dataset, Iterator] = {}

    def can_reuse_epoch_itr(self, dataset: Dataset) -> bool:
        return self.reuse

    def make(self, dataset: Dataset, *, epoch: int = 1, **options: Any) -> Iterator:
        if self.reuse and dataset in self.dataset_to_epoch_iter:
            return self.dataset_to_epoch_iter[dataset]
        dataset.set_epoch(epoch)
        made = self.dataset_to_epoch_iter[dataset] = Iterator(f"batches of {epoch}", epoch)
        return made


@pytest.mark.parametrize(
    ("reuse", "options", "batches"),
    [
        (True, {}, "batches of 1"),  # made once: they must be those of an unbroken run
        (False, {}, "batches of 5"),  # made anew for each epoch, as in an unbroken run
        (True, {"disable_iterator_cache": True}, "batches of 5"),
        (True, {"update_epoch_batch_itr": True}, "batches of 5"),
    ],
)
def test_a_run_that_goes_on_has_the_batches_of_one_that_never_stopped(
    reuse: bool, options: dict[str, bool], batches: str
) -> None:
    task, dataset = Task(reuse), Dataset()
    make = checkpoints.batch_as_at_first(Task.make)
    iterator = make(task, dataset, epoch=5, **options)
    assert (iterator.batches, iterator.epoch, dataset.epoch) == (batches, 5, 5)


class Noisy(FairseqDataset):
    """Four items, each of which is the epoch, as the words that masked_lm hides depend on it."""

    epoch = 0
    can_reuse_epoch_itr_across_epochs = True

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __getitem__(self, index: int) -> int:
        return self.epoch

    def __len__(self) -> int:
        return 4

    def num_tokens(self, index: int) -> int:
        return 1

    def num_tokens_vec(self, indices: Any) -> Any:
        return np.ones(len(indices), dtype=np.int64)

    def collater(self, samples: list[int]) -> list[int]:
        return samples


@pytest.mark.parametrize("workers", [0, 1])
def test_workers_see_the_epoch_that_they_work_in(workers: int) -> None:
    """From the first one on, and from another one on."""
    for start in (1, 3):
        task = FairseqTask(None)
        iterator = task.get_batch_iterator(
            Noisy(), max_sentences=2, epoch=start, num_workers=workers
        )
        for epoch in (start, start + 1):
            assert list(iterator.next_epoch_itr()) == [[epoch, epoch]] * 2


def test_an_iterator_in_use_is_left_alone() -> None:
    task, dataset = Task(reuse=True), Dataset()
    make = checkpoints.batch_as_at_first(Task.make)
    first = make(task, dataset, epoch=1)
    first.epoch = 2  # it counts by itself
    assert make(task, dataset, epoch=3) is first
    assert first.epoch == 2


def test_installed_once() -> None:
    """Importing diet_mt has put everything in place; again changes nothing."""
    functions = (
        checkpoint_utils.load_checkpoint_to_cpu,
        PathManager.copy,
        FairseqTask.get_batch_iterator,
    )
    assert all(hasattr(function, "__wrapped__") for function in functions)
    checkpoints.install()
    assert functions == (
        checkpoint_utils.load_checkpoint_to_cpu,
        PathManager.copy,
        FairseqTask.get_batch_iterator,
    )
    for function in functions:
        assert not hasattr(function.__wrapped__, "__wrapped__")
