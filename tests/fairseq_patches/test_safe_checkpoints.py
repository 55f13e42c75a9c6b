"""Checkpoints are read without running code, and what is wrong with a file is one line."""

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

from diet_mt.errors import UserError
from diet_mt.fairseq_patches.safe_checkpoints import load_safely

pytestmark = pytest.mark.hostile

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
    read: Any = load_safely(load)(str(file))
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
    read: Any = load_safely(load)(str(file))
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
        load_safely(load)(str(file))
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
        load_safely(load)(str(file))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("value", ["1", "y", "YES", "true"])
def test_the_unsafe_switch_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    torch.save({"inside": 1}, file)
    monkeypatch.setenv(SWITCH, value)
    with pytest.raises(UserError, match=f"{SWITCH} is set"):
        load_safely(load)(str(file))


@pytest.mark.parametrize("switch", ["", "0"])
def test_the_switch_may_be_off(file: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    torch.save({"inside": {"a": 1}}, file)
    monkeypatch.setenv(SWITCH, switch)
    assert load_safely(load)(str(file)) == {"a": 1}


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
        load_safely(load)(str(file))
    assert "\n" not in str(fault.value)
    assert "weights_only" not in str(fault.value)  # no advice to switch the safety off
    assert len(str(fault.value)) < 300


def test_a_checkpoint_without_the_parts_of_one(file: Path) -> None:
    torch.save({"something": 1}, file)
    with pytest.raises(UserError, match=r"not a checkpoint of fairseq, or damaged .*inside"):
        load_safely(load)(str(file))


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), RuntimeError("out of memory")])
def test_errors_that_do_not_speak_of_the_file_stay(file: Path, error: Exception) -> None:
    def fail(path: str) -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)) as same:
        load_safely(fail)(str(file))
    assert same.value is error
