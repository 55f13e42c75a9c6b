"""A copy of a checkpoint appears when it is whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.fairseq_patches.whole_copies import copy_whole


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

    says = copy_whole(copy)(str(source), str(target), overwrite=True)
    assert (says, seen, target.read_bytes()) == ("what copy says", [b"old"], b"new and longer")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint_last.pt", "new.pt"]


def test_a_copy_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint_last.pt"
    target.write_bytes(b"old")

    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> None:
        Path(dst_path).write_bytes(b"ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        copy_whole(copy)("source", str(target), overwrite=True)
    assert target.read_bytes() == b"old"
