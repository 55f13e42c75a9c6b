"""Words, folders, disks and archives that are wrong: one line each, status 2, and nothing
half-made."""

from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from diet_mt.stages import engine

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
    ("words", "what"),
    [
        # Names and values; what argparse refuses of any command is in tests/cli.
        ("multi30k de-de", "argument PAIR: unknown value de-de; did you mean"),
        ("newstest de-en", "argument PAIR: unknown value de-en; choose from en-de, en-cs"),
        ("glue Cola --from . --vocab .", "unknown value Cola; did you mean CoLA?"),
        ("bitext de --from {t}", "argument PAIR: de: "),
        ("bitext de-de --from {t}", "argument PAIR: de-de: "),
        ("demo --bpe-merge 9", "unknown option --bpe-merge; did you mean --bpe-merges?"),
        ("demo --train-pairs 0", "argument --train-pairs: 0: "),
        ("demo --test-pairs 501", "--test-pairs 501: the demo corpus has 500"),
        ("demo --ratio wide", "argument --ratio: wide: "),
        ("demo --subwords spm --bpe-merges 9", "--bpe-merges: of --subwords bpe, not spm"),
        ("demo --spm-size=9", "--spm-size: of --subwords spm, not bpe"),
        ("demo --spm-coverage 7", "argument --spm-coverage: 7: "),
        ("multi30k --pause nan", "argument --pause: nan: "),
        (NEWS + " --train-years 2008-2016", "newstest2016: "),
        (NEWS + " --train-years 2009-2008", "'2009-2008' is no list of years"),
        (MLM + " --max-length 2", "--max-length 2: "),
        ("glue CoLA --from {t}/glue --vocab {v} --max-length 5", "--max-length 5: "),
        (QA + " --max-question 500", "8 are left for the context, fewer than the stride 128"),
        # Files and folders that are not there, or are others.
        ("multi30k --from {t}/none", "{t}/none: there is no such folder"),
        ("multi30k --from {t}/empty", "{t}/empty: holds neither train.en nor train.en.gz"),
        ("multi30k --from {t}/empty --manifest {t}/none", "{t}/none: cannot be read"),
        ("bitext de-fr --from {t}/none", "{t}/none: there is no such folder"),
        ("bitext de-fr --from {t}/empty", "{t}/empty: holds neither train.de nor train.de.gz"),
        ("wmt18 de-en --from {t}/empty", "{t}/empty: holds neither training-parallel-europarl"),
        (NEWS, "{t}/empty: holds neither newstest2008.en-de.en nor newstest2008.en-de.en.gz"),
        (GLUE, "{t}/empty/CoLA: holds neither train.tsv nor train.tsv.gz"),
        ("glue CoLA --from {t}/glue --vocab {t}/none", "{t}/none: holds neither wordpiece.json"),
        ("xnli --from {t}/empty --mnli {t} --vocab {v}", "{t}/empty: holds no *.dev.tsv"),
        ("mlm --train {t}/none --valid {t}/text", "{t}/none: no such file"),
        ("mlm --train {t}/* --valid de:{t}/text", "{t}/text: in --train and in --valid"),
        ("qa --vocab {v} --train {t}/none --valid {t}/text", "{t}/none: no such file"),
        ("qa --vocab {v} --train {t}/text --valid {t}/text", "in --train and in --valid"),
        (QA + " --xquad {t}/none", "{t}/none: no file is named as xquad names its test sets"),
    ],
)
def test_refused_before_anything_is_made(
    vocabulary: Path, tmp_path: Path, words: str, what: str, monkeypatch: pytest.MonkeyPatch
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
    assert what.format(t=tmp_path) in only_error(prepare(*given))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "what"),
    [
        ("{t}/file", "{t}/file: the folder cannot be made (File exists)"),
        ("{t}/file/out", "{t}/file/out: the folder cannot be made (Not a directory)"),
        # Read-only for root, too, who may write anywhere else.
        ("/proc/sys", "/proc/sys: cannot be written ("),
        ("{t}/co,mma", "fairseq-preprocess allows no comma in a path; give another --out"),
    ],
)
def test_a_folder_that_cannot_be_written(tmp_path: Path, out: str, what: str) -> None:
    (tmp_path / "file").touch()
    message = only_error(prepare(*DEMO.split(), "--out", out.format(t=tmp_path)))
    assert what.format(t=tmp_path) in message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"Gro\xdfe\n", "other, line 1: not valid UTF-8"),
        (b"One.\nTw\0o.\n", "other, line 2: a NUL byte; this is no text, or not in UTF-8"),
        (b"One.\n" + b"x" * 10_001, "other, line 2: a word of 10,001 characters, of which 10,000"),
        (b"\n\n", "valid.en: its files hold no text; give others"),
    ],
)
def test_text_that_is_none(tmp_path: Path, text: bytes, what: str) -> None:
    (tmp_path / "text").write_text("Some text.\n")
    (tmp_path / "other").write_bytes(text)
    words = ("--train", tmp_path / "text", "--valid", tmp_path / "other")
    assert what in only_error(prepare("mlm", *words, "--out", tmp_path / "out", "--workers", 1))
    assert not (tmp_path / "out").exists()


def test_a_bad_row_is_refused_with_file_and_line(vocabulary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "glue" / "WNLI"
    folder.mkdir(parents=True)
    for name in ("train", "dev", "test"):
        text = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t7\n"
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    given = ("--from", tmp_path / "glue", "--vocab", vocabulary, "--out", tmp_path / "out")
    message = only_error(prepare("glue", "WNLI", *given))
    assert "train.tsv, line 2: unknown label '7'; it must be one of 0, 1" in message
    assert message.endswith("; mend the row, or give --bad-rows skip")
    assert not (tmp_path / "out" / "raw").exists()


def _without(made: Path, out: Path, *stages: str) -> None:
    shutil.copytree(made, out)
    for stage in stages:
        shutil.rmtree(out / stage)


@pytest.mark.parametrize(
    ("size", "stage"), [(10_000, "extracted"), (20_000, "raw"), (25_000, "bpe")]
)
def test_no_space_left_is_one_line_and_nothing_looks_complete(
    archives: Path, downloaded: Path, tmp_path: Path, size: int, stage: str
) -> None:
    out = tmp_path / "out"
    if stage == "bpe":
        _without(downloaded, out, "bpe", "bin")
    words = of_wmt18("de-en", archives, out, "--from", archives)
    message = only_error(prepare(*words, file_bytes=size))
    assert message.startswith(f"{out}/{stage}.part/")
    assert message.endswith(": cannot be written (File too large); make room and run again")
    assert not (out / stage).exists()
    assert not list((out / f"{stage}.part").glob("*.part"))


def test_no_space_left_for_fairseq(archives: Path, downloaded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _without(downloaded, out, "bin")
    message = only_error(prepare(*of_wmt18("de-en", archives, out), file_bytes=10_000))
    full = f"no space is left for {out}/bin; make room and run again"
    assert message == f"fairseq-preprocess failed: {full} (all of it in {out}/preprocess.log)"
    assert not (out / "bin").exists()


def test_too_little_room_is_said_beforehand(
    archives: Path, downloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")(9999 << 20, 9997 << 20, 2 << 20)
    monkeypatch.setattr(engine.shutil, "disk_usage", lambda path: usage)
    out = tmp_path / "out"
    _without(downloaded, out, "clean", "tok", "bpe", "bin")
    with open(out / "raw" / "train.de", "ab") as file:
        file.write(b"x" * (10 << 20))
    assert only_error(prepare(*of_wmt18("de-en", archives, out))) == (
        f"{out}: clean needs about 11 MiB, but only 2 MiB are free; "
        "make room, or give another --out"
    )


def _changed(
    archives: Path, folder: Path, archive: str, change: Callable[[dict[str, bytes]], None]
) -> None:
    """A copy of the archives, one of them with other members; the manifest says it is right."""
    folder.mkdir()
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    members = wmt18.members()[archive]
    change(members)
    content[archive] = wmt18.tar(members)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "manifest").write_text(wmt18.manifest(content, "http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("archive", "member", "content", "what"),
    [
        (EUROPARL, "training/europarl-v7.de-en.en", None, "holds no training/europarl-v7.de-en.en"),
        (
            EUROPARL,
            "training/europarl-v7.de-en.en",
            b"One.\n",
            "but {out}/extracted/europarl-v7.de-en.en has 1",
        ),
        ("test.tgz", "test/newstest2018-deen-ref.en.sgm", b"<seg id='1'>a</seg>\n", "has 1"),
    ],
    ids=["missing", "unequal", "test unequal"],
)
def test_archives_that_do_not_hold_what_they_should(
    archives: Path, tmp_path: Path, archive: str, member: str, content: bytes | None, what: str
) -> None:
    def change(members: dict[str, bytes]) -> None:
        if content is None:
            del members[member]
        else:
            members[member] = content

    changed, out = tmp_path / "changed", tmp_path / "out"
    _changed(archives, changed, archive, change)
    message = only_error(prepare(*of_wmt18("de-en", changed, out, "--from", changed)))
    assert what.replace("{out}", str(out)) in message
    assert not (out / "raw").exists()


def test_members_stay_in_the_folder(archives: Path, tmp_path: Path) -> None:
    """Whatever an archive calls them, and links among them are not followed."""

    def change(members: dict[str, bytes]) -> None:
        members["../../outside"] = members["/tmp/absolute.diet-mt"] = b"x"

    _changed(archives, tmp_path / "changed", EUROPARL, change)
    out = tmp_path / "below" / "out"
    given = ("--from", tmp_path / "changed")
    (tmp_path / "sacrebleu").touch()  # so far, and no further
    only_error(prepare(*of_wmt18("de-en", tmp_path / "changed", out, *given)))
    assert len(list((out / "extracted").iterdir())) == 8
    assert not list(tmp_path.rglob("outside"))
    assert not Path("/tmp/absolute.diet-mt").exists()
