"""Multi30k, from a folder and from the web."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from ..corpora.server import serving
from .conftest import SIZES
from .runner import killed_at, only_error, run, sentences_in, stages_of, state

STAGES = ["raw", "tok", "bpe.codes", "bpe", "bin"]


def _multi30k(
    original: Path, out: Path, *arguments: str, **settings: object
) -> subprocess.CompletedProcess[str]:
    given = {"OUT": out, "MULTI30K_DIR": original, "MULTI30K_MANIFEST": original / "manifest"}
    return run("multi30k", *arguments, **{**given, **settings})


def test_what_the_recipe_leaves(original: Path, prepared: Path) -> None:
    names = {path.name for path in prepared.iterdir()}
    assert names == {*STAGES, "settings", "stages.tsv", "preprocess.log"}
    assert (prepared / "settings").read_text() == "en-de BPE_MERGES=150\n"
    for split in SIZES:
        for lang in ("en", "de"):
            made = (original / "made" / f"{split}.{lang}").read_bytes()
            assert (prepared / "raw" / f"{split}.{lang}").read_bytes() == made
    assert (prepared / "tok" / "test.de").read_text().endswith((" .\n", " ?\n"))
    assert "@@ " in (prepared / "bpe" / "test.de").read_text()
    assert (prepared / "bpe.codes").read_text().count("\n") == 151  # a line of version first
    assert (prepared / "bin" / "bpe.codes").read_bytes() == (prepared / "bpe.codes").read_bytes()
    dictionaries = [(prepared / "bin" / f"dict.{lang}.txt").read_bytes() for lang in ("en", "de")]
    assert dictionaries[0] == dictionaries[1]
    assert stages_of(prepared) == STAGES
    lines = [row.split("\t")[2] for row in (prepared / "stages.tsv").read_text().split("\n")[:-1]]
    assert lines == ["300", "300", "151", "300", "0"]


def test_fairseq_reads_what_was_binarised(prepared: Path) -> None:
    for split, size in SIZES.items():
        lines = (prepared / "bpe" / f"{split}.de").read_text(encoding="utf-8").split("\n")[:-1]
        assert len(lines) == size
        assert sentences_in(prepared / "bin", "en-de", split, "de") == lines


def test_the_second_run_does_nothing(original: Path, prepared: Path) -> None:
    before = state(prepared)
    result = _multi30k(original, prepared)
    assert result.returncode == 0
    assert result.stderr.count("done before") == len(STAGES)
    assert "train.en: 300 sentences, expected 300" in result.stderr
    assert result.stderr.endswith(f"ready: {prepared}/bin\n")
    assert state(prepared) == before


def test_a_folder_of_an_earlier_version_is_completed(
    original: Path, prepared: Path, tmp_path: Path
) -> None:
    shutil.copytree(prepared, tmp_path / "out")
    (tmp_path / "out" / "bin" / "bpe.codes").unlink()
    assert _multi30k(original, tmp_path / "out").returncode == 0
    codes = (prepared / "bpe.codes").read_bytes()
    assert (tmp_path / "out" / "bin" / "bpe.codes").read_bytes() == codes


def _until_tok(original: Path, out: Path, **settings: object) -> str:
    """Runs until the text is there; what follows takes time, and is no matter here."""
    stop = killed_at("open", "tok.part/train.en.part")
    return _multi30k(original, out, **{**stop, **settings}).stderr


def test_the_files_come_from_the_web_without_a_folder(original: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in original.glob("*.gz")}
    out = tmp_path / "out"
    with serving(content) as server:
        said = _until_tok(original, out, MULTI30K_DIR="", MULTI30K_URL=server.url)
        assert "train.de: " in said
        assert len(server.requests) == 6
    for split in SIZES:
        made = (original / "made" / f"{split}.de").read_bytes()
        assert (out / "raw" / f"{split}.de").read_bytes() == made
    assert not (out / "fetched").exists()


def test_a_download_that_breaks_off_is_continued(original: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in original.glob("*.gz")}
    out = tmp_path / "out"
    with serving(content) as server:
        settings = {"MULTI30K_DIR": "", "MULTI30K_URL": server.url, "FETCH": "--tries 1"}
        server.cut = 500
        message = only_error(_multi30k(original, out, **settings))
        assert "train.en.gz: download failed" in message
        assert "run again to continue" in message
        assert not (out / "raw").exists()
        server.cut = None
        _until_tok(original, out, **settings)
        assert server.requests[:2] == ["", "bytes=500-"]
    assert (out / "raw" / "test.de").exists()


def test_a_missing_file_is_one_line(original: Path, tmp_path: Path) -> None:
    message = only_error(_multi30k(original, tmp_path / "out", MULTI30K_DIR=tmp_path))
    assert message == f"error: {tmp_path}: holds neither train.en nor train.en.gz"
    assert not (tmp_path / "out" / "raw").exists()


def test_a_changed_file_is_one_line(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "changed")
    (tmp_path / "changed" / "val.de").write_text("Etwas anderes.\n")
    message = only_error(_multi30k(original, tmp_path / "out", MULTI30K_DIR=tmp_path / "changed"))
    assert f"{tmp_path}/changed/val.de: not the expected text" in message
    assert not (tmp_path / "out" / "raw").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"Eins.\n" * 20, "valid.en: more lines than"),
        (b"Eins.\n" * 20 + b"\n", "valid.de, line 21: empty"),
        (b"Eins.\n" * 20 + b"\xff\n", "valid.de, line 21: not valid UTF-8"),
        (b"\xef\xbb\xbf" + b"Eins.\n" * 21, "valid.de, line 1: starts with a byte order mark"),
        (b"Eins.\r\n" * 21, "valid.de, line 1: Windows line end"),
        (b"", "valid.en: more lines than"),
    ],
    ids=["unequal", "empty line", "invalid", "mark", "windows", "empty"],
)
def test_bad_text_is_one_line(original: Path, tmp_path: Path, text: bytes, what: str) -> None:
    """Even where the manifest asks for it: what is pinned may be wrong, too."""
    changed = tmp_path / "changed"
    shutil.copytree(original, changed)
    (changed / "val.de").write_bytes(text)
    lines = (original / "manifest").read_text().split("\n")
    kept = [line for line in lines if not line.startswith("val.de")]
    kept.append(f"val.de\t{len(text)}\t{hashlib.sha256(text).hexdigest()}")
    (changed / "manifest").write_text("\n".join(kept))
    settings = {"MULTI30K_DIR": changed, "MULTI30K_MANIFEST": changed / "manifest"}
    message = only_error(_multi30k(original, tmp_path / "out", **settings))
    assert what in message
    assert not (tmp_path / "out" / "raw").exists()


@pytest.mark.parametrize("pair", ["en", "en-fr", "de-de", "en-de-cs"])
def test_an_unknown_pair_is_one_line(original: Path, tmp_path: Path, pair: str) -> None:
    message = only_error(_multi30k(original, tmp_path / "out", pair))
    assert message.startswith(f"error: language pair '{pair}': give two of en, de, cs")
    assert not (tmp_path / "out").exists()
