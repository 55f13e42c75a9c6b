"""from_pretrained takes a folder, a checkpoint or a harmless archive, and writes nowhere else."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from fairseq import file_utils, hub_utils

from diet_mt.fairseq_patches.archives import from_pretrained
from diet_mt.system.errors import UserError

from ..corpora.server import serving

pytestmark = pytest.mark.hostile


def packed(path: Path, *names: str, kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 4 if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/passwd"
            archive.addfile(member, io.BytesIO(b"text"))
    return path


def test_an_archive_is_unpacked_elsewhere_and_stays(tmp_path: Path) -> None:
    archive = packed(tmp_path / "model.tar.gz", "model/dict.txt", "model/model.pt")
    before = archive.read_bytes()
    folder = Path(str(file_utils.load_archive_file(str(archive))))
    assert sorted(path.name for path in folder.iterdir()) == ["dict.txt", "model.pt"]
    assert archive.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.tar.gz"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("../outside", tarfile.REGTYPE), ("a/../../outside", tarfile.REGTYPE)),
        *(("ABSOLUTE", tarfile.REGTYPE), ("link", tarfile.SYMTYPE), ("link", tarfile.LNKTYPE)),
        ("pipe", tarfile.FIFOTYPE),
    ],
)
def test_an_archive_that_would_write_elsewhere_is_refused(
    name: str, kind: bytes, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    name = name.replace("ABSOLUTE", str(tmp_path / "outside"))
    archive = packed(inside / "model.tar.gz", "fine", name, kind=kind)
    with pytest.raises(UserError, match=r"model\.tar\.gz: refused"):
        file_utils.load_archive_file(str(archive))
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "model.tar.gz"]


def test_nothing_is_downloaded(tmp_path: Path) -> None:
    """fairseq would unpack it as it unpacks a file; as model, and as data."""
    body = packed(tmp_path / "bad.tar.gz", "../outside").read_bytes()
    with serving({"bad.tar.gz": body}) as server:
        address = f"{server.url}/bad.tar.gz"
        for given in ((address,), (str(tmp_path), "x.pt", address), (f"{tmp_path}/gone",)):
            with pytest.raises(UserError, match=r"bad\.tar\.gz|gone"):
                hub_utils.from_pretrained(*given)
        assert server.addresses == []


def test_what_is_no_archive_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "model.tar.gz"
    file.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(UserError, match=r"model\.tar\.gz"):
        file_utils.load_archive_file(str(file))
    assert file.exists()


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert file_utils.load_archive_file(str(tmp_path)) == str(tmp_path)


def test_a_checkpoint_names_its_folder_and_itself(tmp_path: Path) -> None:
    def load(path: str, checkpoint_file: str = "model.pt", data: str = ".", **more: Any) -> Any:
        return path, checkpoint_file, data, more

    file = tmp_path / "checkpoint_best.pt"
    file.write_bytes(b"PK")
    folder, name = str(tmp_path), file.name
    for given, expected in (
        ((file, "model.pt", "bin"), (folder, name, "bin", {})),
        ((str(file),), (folder, name, ".", {})),
        ((tmp_path, "b.pt"), (folder, "b.pt", ".", {})),
    ):
        assert from_pretrained(load, *given) == expected
