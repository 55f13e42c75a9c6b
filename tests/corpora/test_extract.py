"""Taking files out of archives."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest

from diet_mt.corpora import extract
from diet_mt.errors import UserError

from .wmt18 import tar

NOISE = random.Random(1).randbytes(50_000)  # takes as much room packed
CONTENT = {
    "a/one.de": b"eins\n",
    "a/skip.fr": b"x" * 5000,
    "./a/two.de": b"zwei\n",
    "noise": NOISE,
    "last": b"!",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "some.tgz"
    path.write_bytes(tar(CONTENT))
    return path


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_only_the_wanted_files_come_out(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    extract.extract(archive, out, ["a/two.de", "a/one.de"])
    assert _names(out) == ["one.de", "two.de"]
    assert (out / "two.de").read_bytes() == b"zwei\n"


def test_it_stops_at_the_last_of_them(archive: Path, tmp_path: Path) -> None:
    """So what comes behind need not be read: here it cannot be."""
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
    extract.extract(archive, tmp_path, ["a/one.de"])
    assert (tmp_path / "one.de").read_bytes() == b"eins\n"


def test_what_is_there_is_not_taken_out_again(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "one.de").write_bytes(b"whole\n")
    extract.extract(archive, tmp_path, ["a/one.de", "a/two.de"])
    assert (tmp_path / "one.de").read_bytes() == b"whole\n"
    archive.unlink()
    extract.extract(archive, tmp_path, ["a/one.de", "a/two.de"])  # nothing to do


def test_a_missing_member_is_named(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"some\.tgz: holds no a/three\.de; replace it"):
        extract.extract(archive, tmp_path, ["a/one.de", "a/three.de"])


@pytest.mark.parametrize("damage", ["cut", "overwritten", "not packed", "absent"])
def test_a_damaged_archive_is_one_line(archive: Path, tmp_path: Path, damage: str) -> None:
    data = archive.read_bytes()
    if damage == "absent":
        archive.unlink()
    else:
        archive.write_bytes(
            {
                "cut": data[: len(data) // 2],
                "overwritten": data[:60] + b"\0" * (len(data) - 60),
                "not packed": b"<html>",
            }[damage]
        )
    with pytest.raises(UserError, match=r"some\.tgz: cannot be (read|unpacked)") as caught:
        extract.extract(archive, tmp_path, ["last"])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "last").exists()


def test_a_folder_of_that_name_is_no_file(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tgz", "w:gz") as packed:
        packed.add(tmp_path, arcname="a", recursive=False)
    with pytest.raises(UserError, match="holds no a"):
        extract.extract(tmp_path / "x.tgz", tmp_path, ["a"])
