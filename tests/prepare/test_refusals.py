"""Invalid arguments, folders and archives, and a full disk: one line, status 2, nothing partial."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diet_mt.corpora import clean

from ..corpora import wmt18
from .conftest import of_wmt18
from .running import only_error, prepare

pytestmark = pytest.mark.hostile

EUROPARL = "training-parallel-europarl-v7.tgz"
DEMO = "demo --train-pairs 5 --valid-pairs 5 --test-pairs 5"
NEWS = "newstest en-de --from {t}/empty"
GLUE = "glue CoLA --from {t}/empty --vocab {v}"
QA = "qa --vocab {v} --train {t}/text --valid {t}/other"
MLM = "mlm --train {t}/text --valid {t}/other"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        # Names and values. Errors of argparse, the same for all commands, are in tests/cli.
        ("bitext de --from {t}", "PAIR: de: "),
        ("bitext de-de --from {t}", "PAIR: de-de: "),
        ("demo --test-pairs 501", "--test-pairs 501: "),
        ("demo --subwords spm --bpe-merges 9", "--bpe-merges: "),
        (NEWS + " --train-years 2008-2016", "newstest2016: "),
        (MLM + " --max-length 2", "--max-length 2: "),
        ("glue CoLA --from {t}/glue --vocab {v} --max-length 5", "--max-length 5: "),
        (QA + " --max-question 500", "leaves 8 tokens for the context"),
        ("multi30k --join-training", "--join-training: "),
        # Missing files, and folders with other files.
        ("multi30k --from {t}/empty", "{t}/empty: holds neither train.en "),
        ("bitext de-fr --from {t}/empty", "{t}/empty: holds neither train.de "),
        ("wmt18 de-en --from {t}/empty", "{t}/empty: holds neither training-parallel-europarl"),
        (NEWS, "{t}/empty: holds neither newstest2008.en-de.en "),
        (GLUE, "{t}/empty/CoLA: holds neither train.tsv "),
        ("glue CoLA --from {t}/glue --vocab {t}/none", "{t}/none: holds neither wordpiece.json"),
        ("xnli --from {t}/empty --mnli {t} --vocab {v}", "{t}/empty: holds no *.dev.tsv"),
        ("mlm --train {t}/none --valid {t}/text", "{t}/none: "),
        ("mlm --train {t}/* --valid de:{t}/text", "{t}/text: in --train and in --valid"),
        ("qa --vocab {v} --train {t}/text --valid {t}/text", "in --train and in --valid"),
        (QA, "{t}/text: not JSON"),
        # Folders that cannot be written.
        (DEMO + " --out {t}/text", "{t}/text: "),
        # Read-only even for root.
        (DEMO + " --out /proc/sys", "/proc/sys: "),
        (DEMO + " --out {t}/co,mma", "{t}/co,mma: "),
    ],
)
def test_refused_before_anything_is_written(
    vocabulary: Path, tmp_path: Path, words: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for task in ("train", "dev", "test"):
        (tmp_path / "glue" / "CoLA").mkdir(parents=True, exist_ok=True)
        (tmp_path / "glue" / "CoLA" / f"{task}.tsv").touch()
    for name in ("text", "other"):
        (tmp_path / name).write_text("Some text.\n")
    before = sorted(tmp_path.rglob("*"))
    given = [word.format(t=tmp_path, v=vocabulary) for word in words.split()]
    assert named.format(t=tmp_path) in only_error(prepare(*given))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"Gro\xdfe\n", "other, line 1: "),
        (b"One.\nTw\0o.\n", "other, line 2: a NUL byte"),
        (b"One.\n" + b"x" * 10_001, "other, line 2: a word of 10,001 characters"),
        (b"\n\n", "valid.en: "),
    ],
)
def test_invalid_text(tmp_path: Path, text: bytes, named: str) -> None:
    (tmp_path / "text").write_text("Some text.\n")
    (tmp_path / "other").write_bytes(text)
    words = ("--train", tmp_path / "text", "--valid", tmp_path / "other")
    assert named in only_error(prepare("mlm", *words, "--out", tmp_path / "out", "--workers", 1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("size", "stage", "gone"),
    [(10_000, "extracted", ()), (25_000, "bpe", ("bpe", "bin")), (10_000, "bin", ("bin",))],
)
def test_a_full_disk_leaves_nothing_that_looks_complete(
    archives: Path, downloaded: Path, tmp_path: Path, size: int, stage: str, gone: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    if gone:
        shutil.copytree(downloaded, out)
    for name in gone:
        shutil.rmtree(out / name)
    words = of_wmt18("de-en", archives, out, "--from", archives)
    clean.need_known(("de", "en"))  # its model is unpacked on disk, once in a process
    message = only_error(prepare(*words, file_bytes=size))
    assert message.startswith(f"{out}/{stage}") or f"{out}/bin" in message
    assert "make room and run again" in message
    assert not (out / stage).exists()


def _changed(
    archives: Path, folder: Path, archive: str, change: Callable[[dict[str, bytes]], None]
) -> None:
    """A copy of the archives with the members of one changed, and a manifest of the result."""
    folder.mkdir()
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    members = wmt18.members()[archive]
    change(members)
    content[archive] = wmt18.tar(members)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "manifest").write_text(wmt18.manifest(content, "http://127.0.0.1:9"))


def test_members_stay_in_the_folder(archives: Path, tmp_path: Path) -> None:
    """Members with names outside of the folder are not extracted."""

    def change(members: dict[str, bytes]) -> None:
        members["../../outside"] = members["/tmp/absolute.diet-mt"] = b"x"

    _changed(archives, tmp_path / "changed", EUROPARL, change)
    out = tmp_path / "below" / "out"
    given = ("--from", tmp_path / "changed")
    (tmp_path / "sacrebleu").touch()  # a file as sacreBLEU's folder: the command stops there
    only_error(prepare(*of_wmt18("de-en", tmp_path / "changed", out, *given)))
    assert len(list((out / "extracted").iterdir())) == 8
    assert not list(tmp_path.rglob("outside"))
    assert not Path("/tmp/absolute.diet-mt").exists()
