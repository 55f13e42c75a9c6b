"""Checkpoints are read without running code, and what is wrong with a file is one line."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import struct
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from diet_mt.fairseq_patches.safe_load import read
from diet_mt.system.errors import UserError

from ..checkpoints import state_of
from . import hostile
from .hostile import call, data, in_child, name, number, text, tuple_of, zipped

pytestmark = [
    pytest.mark.hostile,
    # hydra (fairseq-fixed) says so for every configuration of fairseq.
    pytest.mark.filterwarnings("ignore:\\s*.config. is validated against:UserWarning"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint.pt"


STORED = {
    "options": argparse.Namespace(arch="diet_rel_tiny", inner=argparse.Namespace(dropout=[0.1])),
    "array": np.arange(6).reshape(2, 3),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "float32": np.array([1.5, 2.5], dtype=np.float32),
    "bool": np.array([True, False]),
    "big-endian": np.arange(3, dtype=">i4"),
    "nested": [(np.array([3], dtype=np.int32), {"sum": np.float64(1.5)})],
    "numbers": [np.float64(1.5), np.int64(3), np.bool_(True), np.float16(0.5)],
    "plain": [1, "two", None, (3.0, True), b"four", 1 << 80],
}


@pytest.mark.parametrize("value", STORED.values(), ids=STORED)
@pytest.mark.parametrize("new", [True, False])
def test_what_fairseq_stores_is_read(file: Path, value: Any, new: bool) -> None:
    torch.save({"inside": value}, file, _use_new_zipfile_serialization=new)
    actual = read(file)["inside"]
    assert repr(actual) == repr(value)
    assert type(actual) is type(value)
    if isinstance(value, np.ndarray):
        assert (actual.dtype, actual.flags.f_contiguous) == (value.dtype, value.flags.f_contiguous)
        actual[0] = 0  # an array of its own


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("new", [True, False])
def test_tensors_share_what_they_shared(file: Path, mapped: bool, new: bool) -> None:
    whole = torch.arange(12.0).view(3, 4)
    model = torch.nn.Linear(2, 2, dtype=torch.bfloat16)
    state = {"a": whole, "b": whole[1:].t(), "c": torch.nn.Parameter(whole), **model.state_dict()}
    state |= {"none": torch.empty(0, 3), "one": torch.tensor(5), "wide": torch.ones(1).expand(1, 1)}
    torch.save(state, file, _use_new_zipfile_serialization=new)
    actual = read(file, mmap=mapped)
    assert all(torch.equal(actual[key], state[key]) for key in state)
    assert actual["b"].untyped_storage().data_ptr() == actual["a"].untyped_storage().data_ptr()
    if not mapped:
        file.write_bytes(bytes(len(file.read_bytes())))  # they no longer depend on it
        assert torch.equal(actual["a"], whole)


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
    assert np.array_equal(read(file)["inside"], np.arange(3))


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
    with pytest.raises(UserError, match=r"checkpoint\.pt: .*mkdir"):
        read(file)
    assert not crater.exists()
    pickle.loads(pickle.dumps(Bomb(os.mkdir, str(crater))))
    assert crater.exists()  # it was no dud


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Unknown(), r"test_safe_load\.Unknown"),
        (Bomb(eval, "1"), r"builtin\w*\.eval"),
        (np.array([object()], dtype=object), "object"),
        (torch.sparse_coo_tensor(torch.tensor([[9]]), [1.0], (10,)), "_rebuild_sparse_tensor"),
        (torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8), "_rebuild_qtensor"),
    ],
    ids=["unknown class", "eval", "array of objects", "sparse", "quantized"],
)
def test_other_types_are_refused_by_name(
    file: Path, value: Any, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with torch's switch against safe loading."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    torch.save({"inside": value}, file)
    for load in (read, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(UserError, match=rf"checkpoint\.pt: .*{named}"):
            load(str(file))


def test_what_a_user_allows_is_read_and_the_list_stays(file: Path) -> None:
    allowed = [Unknown, (np.dtype, "numpy.dtype"), type(np.dtype("f8"))]
    with torch.serialization.safe_globals(allowed):
        before = set(torch.serialization.get_safe_globals())
        torch.save({"inside": Unknown(), "number": np.float64(1.5)}, file)
        actual = read(file)
        assert (type(actual["inside"]), actual["number"]) == (Unknown, 1.5)
        with pytest.raises(UserError):
            read(zipped(file, OF_POINTERS))  # numpy itself all the same is not on it
        assert set(torch.serialization.get_safe_globals()) == before


def saved(zipped: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save({"inside": torch.ones(100)}, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


def compressed() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + text("a" * 100_000) + b".")
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
        compressed(),
    ],
    ids=lambda content: f"{len(content)} {content[:5]!r}",
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")
def test_files_that_are_no_checkpoint(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"checkpoint\.pt: ") as fault:
        read(file)
    assert "weights_only" not in str(fault.value)  # no advice to switch the safety off
    assert len(str(fault.value)) < 300


def test_a_missing_file_is_the_systems_error(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(file)


# A float that holds an object, and an array of them: pointers of the file's choice.
POINTER = tuple_of(call(name("numpy", "dtype"), text("O")), tuple_of(number(1)))
STATE = (number(3), text("<"), POINTER, b"N", b"N", number(-1), number(-1), number(0))
FORGED = call(name("numpy", "dtype"), text("f8"), b"\x89", b"\x88") + tuple_of(*STATE) + b"b"
OF_POINTERS = (
    call(name("numpy", "ndarray"), b")", FORGED, data(struct.pack("<Q", 0x41414140))) + b"."
)
OPTIONS = call(name("argparse", "Namespace"))
FLOATS = name("torch", "FloatStorage")


def storage(numbers: int) -> bytes:
    return tuple_of(text("storage"), FLOATS, text("0"), text("cpu"), number(numbers)) + b"Q"


def tensor(numbers: int, size: int, stride: int) -> bytes:
    function, table = name("torch._utils", "_rebuild_tensor_v2"), name("collections", "OrderedDict")
    shape = (tuple_of(number(each)) for each in (size, stride))
    return call(function, storage(numbers), number(0), *shape, b"\x89", call(table))


def doubled(begin: bytes, step: bytes) -> bytes:
    """60 values, each made of two of the one before it."""
    places = (bytes([place]) for place in range(60))
    return begin + b"".join(b"q" + at + step.replace(b"@", b"h" + at) for at in places)


HOSTILE = {
    "an array of pointers": OF_POINTERS,
    "a number that is a pointer": call(
        name("numpy.core.multiarray", "scalar"), FORGED, data(b"A" * 8)
    ),
    "options become a type": OPTIONS
    + tuple_of(b"N", b"}" + text("__class__") + name("numpy", "dtype") + b"s")
    + b"b",
    "a slow codec": call(name("_codecs", "encode"), text("ü" * 99999), text("punycode")),
    "more numbers than the file": tensor(1 << 30, 1 << 30, 0),
    "more numbers than the record": tensor(4000, 4000, 1),
    "one number many times": tensor(4, 1 << 30, 0),
    "sizes of a tensor as its state": tensor(4, 4, 1)
    + tuple_of(storage(4), number(0), tuple_of(number(1 << 30)), tuple_of(number(0)))
    + b"b",
    "a list in itself": b"]q\0h\0a",
    "a tensor alone": tensor(4, 4, 1),
    "laughs": doubled(b"]", b"](@@e"),
    "a key that is hashed for ages": b"}" + doubled(b")", b"@@\x86") + b"Ns",
    "nested": b"N" + b"\x85" * 200_000,
    "steps": b"N" * 2_000_000,
    "a large pickle": b"X" + struct.pack("<I", 40 << 20) + bytes(40 << 20),
}


def outcome(path: Path) -> str:
    """``read``, or the line that says why not; an error that is no line is none."""
    try:
        repr(checkpoint_utils.load_checkpoint_to_cpu(str(path)))
    except UserError as error:
        line = str(error)
        return "refused" if line.startswith(f"{path}: ") and len(line) < 900 else line
    return "read"


def test_hostile_pickles_are_refused(tmp_path: Path) -> None:
    paths = [
        zipped(tmp_path / f"{number}.pt", pickle + b".", [bytes(16)])
        for number, pickle in enumerate(HOSTILE.values())
    ]
    actual = dict(zip(HOSTILE, in_child(outcome, paths), strict=True))
    assert actual == dict.fromkeys(HOSTILE, "refused")
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_records_have_the_names_that_torch_reads(file: Path) -> None:
    """Since Python 3.12 zipfile takes another name from an extra field, torch does not."""
    records = (
        ("version", "version", b"3\n"),
        ("data.pkl", "data.pkl", b"\x80\x02" + tensor(1000, 1000, 1) + b"."),
        ("data/0", "data/1", bytes(16)),
        ("data/2", "data/0", bytes(4000)),
    )
    with zipfile.ZipFile(file, "w") as archive:
        for name, alias, content in records:
            info = zipfile.ZipInfo(f"archive/{name}")
            text = f"archive/{alias}".encode()
            checksum = zlib.crc32(info.filename.encode())
            info.extra = struct.pack("<HHBL", 0x7075, 5 + len(text), 1, checksum) + text
            archive.writestr(info, content)
    with pytest.raises(UserError, match="wrong sizes"):
        read(file)


def checkpoint() -> dict[str, Any]:
    """All kinds of values that fairseq stores."""
    bleu = [("default", [(1, "bleu", "SumMeter", {"sum": np.array([1, 2]), "n": np.float64(3)})])]
    names = {"model": {"_name": "diet_rel_tiny"}, "task": {"_name": "translation"}, "bpe": None}
    return {**state_of(model=torch.nn.Linear(2, 2), metrics=bleu), "cfg": names}


def fuzzed(folder: Path, seeds: range) -> list[Path]:
    """Files of a pickle that is random, of random objects, or a checkpoint's with changes."""
    torch.save(checkpoint(), folder / "whole.pt")
    with zipfile.ZipFile(folder / "whole.pt") as archive:
        original = archive.read("whole/data.pkl")[2:]
        records = [archive.read(each) for each in archive.namelist() if "/data/" in each]
    kinds = (
        hostile.random_pickle,
        *[hostile.random_objects] * 2,
        partial(hostile.mutated, original),
    )
    files = [zipped(folder / f"{seed}.pt", kinds[seed % 4](seed), records) for seed in seeds]
    return [folder / "whole.pt", *files]


@pytest.mark.parametrize(
    "seeds",
    [range(800), pytest.param(range(800, 20_000), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_fuzzed_checkpoints_do_nothing(tmp_path: Path, seeds: range) -> None:
    """No signal, no hang, no file; each is read, or refused in a line."""
    paths = fuzzed(tmp_path, seeds)
    actual = in_child(outcome, paths)
    pairs = zip(paths, actual, strict=True)
    assert {path.name: what for path, what in pairs if what not in ("read", "refused")} == {}
    assert actual[0] == "read"
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def changed(state: dict[str, Any], *keys: str, value: Any) -> dict[str, Any]:
    inner = state
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return state


HYDRA = r"{_name:space,x:$\{oc.env\:HOME\}}"  # a table, with an interpolation


@pytest.mark.parametrize(
    ("keys", "value", "named"),
    [
        (("cfg",), "model: ${oc.env:HOME}", "table"),
        (("cfg",), ["model"], "table"),
        (("cfg", "bpe"), {"_name": "sentencepiece", "x": "http://host/${oc.env:HOME}"}, "oc.env"),
        (("cfg", "task", "${env:HOME}"), 1, "env:HOME"),
        (("args",), argparse.Namespace(task="${env:HOME}"), "env:HOME"),
        (("cfg", "model", "_name"), "\x1b[31mred", r"\\x1b"),
        (("cfg", "task", "source_lang"), "\u202egnp", r"\\u202e"),
        (("cfg", "task", "source_lang"), "a" * 200_000, "aaaa"),
        (("cfg", "task", "many"), list(range(30_000)), "20000"),
        (("cfg", "model", "encoder_layers"), 1_000_000, "encoder"),
        (("cfg", "model", "max_target_positions"), 1 << 40, "decoder"),
        (("cfg", "model", "position_rank"), 1 << 40, "positions"),
        (("args",), argparse.Namespace(arch="transformer", decoder_embed_dim=99999), "decoder"),
        # Names and forms in which fairseq takes an option, too.
        (("args",), argparse.Namespace(arch="transformer", layers=10**6), "encoder"),
        (("args",), argparse.Namespace(arch="transformer", decoder={"layers": 10**6}), "decoder"),
        (("args",), argparse.Namespace(arch="fconv", encoder_layers="[(1, 3)] * 9999"), "encoder"),
        (("cfg", "model", "encoder_layers"), "0xF4240", "encoder"),
        (("cfg", "task", "lang_dict"), b"/etc/passwd", "passwd"),
        # It gives hydra the names of an old checkpoint as they are.
        (("args",), argparse.Namespace(bpe=HYDRA), "bpe {_name:space"),
        (("args",), argparse.Namespace(seed=argparse.Namespace(scoring=HYDRA)), "scoring {_name"),
    ],
)
def test_a_configuration_only_sets_options(
    keys: tuple[str, ...], value: Any, named: str, file: Path
) -> None:
    torch.save(changed(checkpoint(), *keys, value=value), file)
    with pytest.raises(UserError, match=rf"checkpoint\.pt: .*{named}") as refused:
        checkpoint_utils.load_checkpoint_to_cpu(str(file))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), RuntimeError("out of memory")])
def test_errors_that_do_not_speak_of_the_file_stay(
    file: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(state: Any) -> None:
        raise error

    torch.save(checkpoint(), file)
    monkeypatch.setattr(checkpoint_utils, "_upgrade_state_dict", fail)
    with pytest.raises(type(error)) as same:
        checkpoint_utils.load_checkpoint_to_cpu(str(file))
    assert same.value is error
