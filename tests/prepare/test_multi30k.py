"""Multi30k, from a folder and from the web; and what all corpora have in common."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import yaml

from ..corpora.server import serving
from .originals import SIZES
from .running import SMALL, Outcome, killed, only_error, prepare, sentences_in, stages_of, state

STAGES = ["raw", "tok", "bpe.codes", "bpe", "bin"]


def _words(original: Path, out: Path, *more: object) -> tuple[object, ...]:
    return ("multi30k", "--out", out, "--manifest", original / "manifest", *SMALL, *more)


def _prepare(original: Path, out: Path, *more: object) -> Outcome:
    return prepare(*_words(original, out, "--from", original, *more))


def test_what_is_left(original: Path, prepared: Path) -> None:
    names = {path.name for path in prepared.iterdir() if path.name[0] != "."}
    assert names == {*STAGES, "settings", "stages.tsv", "SHA256SUMS", "preprocess.log"}
    assert (prepared / "settings").read_text() == "en-de BPE_MERGES=150\n"
    for split, size in SIZES.items():
        for lang in ("en", "de"):
            made = (original / "made" / f"{split}.{lang}").read_bytes()
            assert (prepared / "raw" / f"{split}.{lang}").read_bytes() == made
        lines = (prepared / "bpe" / f"{split}.de").read_text(encoding="utf-8").split("\n")[:-1]
        assert len(lines) == size
        assert sentences_in(prepared / "bin" / f"{split}.en-de.de", "dict.de.txt") == lines
    assert (prepared / "tok" / "test.de").read_text().endswith((" .\n", " ?\n"))
    assert "@@ " in (prepared / "bpe" / "test.de").read_text()
    assert (prepared / "bpe.codes").read_text().count("\n") == 151  # a line of version first
    assert (prepared / "bin" / "bpe.codes").read_bytes() == (prepared / "bpe.codes").read_bytes()
    dictionaries = [(prepared / "bin" / f"dict.{lang}.txt").read_bytes() for lang in ("en", "de")]
    assert dictionaries[0] == dictionaries[1]
    assert stages_of(prepared) == STAGES
    lines = [row.split("\t")[2] for row in (prepared / "stages.tsv").read_text().split("\n")[:-1]]
    assert lines == ["300", "300", "151", "300", "0"]


def test_the_second_run_does_nothing_and_needs_no_files(original: Path, prepared: Path) -> None:
    before = state(prepared)
    said = prepare(*_words(original, prepared, "--from", "nowhere")).ok()
    assert said.count("done before") == len(STAGES)
    assert "train.en: 300, expected 300" in said
    assert said.endswith(f"ready: {prepared}/bin\n")
    assert state(prepared) == before


def test_other_settings_are_refused_and_named(original: Path, prepared: Path) -> None:
    before = state(prepared)
    for more, what in (
        (("--bpe-merges", 151), "--bpe-merges 150, not --bpe-merges 151"),
        (("de-en",), "en-de, not de-en"),
        (("--bpe-words", 5), "en-de --bpe-merges 150, not --bpe-words 5"),
    ):
        for dry in ((), ("--dry-run",)):
            message = only_error(_prepare(original, prepared, *more, *dry))
            assert message.startswith(f"{prepared} was made with {what}"), message
            assert message.endswith("; remove it, or give another --out")
    assert state(prepared) == before


def test_a_dry_run_says_what_would_be_done(original: Path, prepared: Path, tmp_path: Path) -> None:
    found = _prepare(original, tmp_path / "out", "--dry-run")
    assert (found.status, found.err) == (0, "")
    lines = found.out.split("\n")
    assert lines[0] == f"{tmp_path}/out: en-de BPE_MERGES=150"
    assert [line.split()[:3] for line in lines[1:-1]] == [[name, "to", "do"] for name in STAGES]
    assert "fairseq-preprocess --source-lang en --target-lang de --joined-dictionary" in lines[-2]
    assert f"--destdir {tmp_path}/out/bin" in lines[-2]
    assert not (tmp_path / "out").exists()
    assert _prepare(original, prepared, "--dry-run").out.count("done before") == len(STAGES)


def test_what_failed_at_once_may_be_tried_with_other_settings(
    original: Path, tmp_path: Path
) -> None:
    (tmp_path / "out" / "raw.part").mkdir(parents=True)
    (tmp_path / "out" / "raw.part" / "train.en").write_text("of another pair\n")
    (tmp_path / "out" / "settings").write_text("cs-en BPE_MERGES=150\n")
    _until_tok(original, tmp_path / "out", "--from", original)
    assert (tmp_path / "out" / "settings").read_text() == "en-de BPE_MERGES=150\n"
    made = (original / "made" / "train.en").read_bytes()
    assert (tmp_path / "out" / "raw" / "train.en").read_bytes() == made


def _until_tok(original: Path, out: Path, *more: object) -> str:
    """Runs until the text is there; what follows takes time, and is no matter here."""
    return killed("open", "tok.part/train.en.part", *_words(original, out, *more))


def test_the_files_come_from_the_web_without_a_folder(original: Path, tmp_path: Path) -> None:
    """The first of them breaks off, and is continued."""
    content = {path.name: path.read_bytes() for path in original.glob("*.gz")}
    out, changed = tmp_path / "out", tmp_path / "manifest"
    with serving(content) as server:
        text = (original / "manifest").read_text()
        changed.write_text(text.replace("http://127.0.0.1:9", server.url))
        web = ("--manifest", changed, "--tries", 1)
        server.cut = 500
        message = only_error(prepare(*_words(original, out, *web)))
        assert "train.en.gz: download failed" in message
        assert "run again to continue" in message
        assert not (out / "raw").exists()
        server.cut = None
        assert "train.de: " in _until_tok(original, out, *web)
        assert server.requests == ["", "bytes=500-", *[""] * 5]
    for split in SIZES:
        made = (original / "made" / f"{split}.de").read_bytes()
        assert (out / "raw" / f"{split}.de").read_bytes() == made
    assert not (out / "fetched").exists()


def test_bad_text_is_named(original: Path, tmp_path: Path) -> None:
    """Even where the manifest lists it."""
    changed, text = shutil.copytree(original, tmp_path / "changed"), b"Eins.\n" * 20
    (changed / "val.de").write_bytes(text)
    assert "changed/val.de: not the expected val.de" in only_error(
        _prepare(original, tmp_path / "out", "--from", changed)
    )
    entries = yaml.safe_load((original / "manifest").read_text())
    entries["multi30k"]["files"]["val.de"] = hashlib.sha256(text).hexdigest()
    (changed / "manifest").write_text(yaml.safe_dump(entries))
    assert "valid.en: 21 lines, but " in only_error(_prepare(changed, tmp_path / "out"))
    assert not (tmp_path / "out" / "raw").exists()


def test_captions_are_joined_line_by_line(original: Path, tmp_path: Path) -> None:
    """Test sets of two and three captions, each caption once and in its order; and training text
    of one, two and three in turn. A rest that is too few is left out.
    """

    def lines(folder: Path, name: str) -> list[str]:
        return (folder / name).read_text(encoding="utf-8").split("\n")[:-1]

    out, made = tmp_path / "out", original / "made"
    assert _prepare(original, out, "--join", 3, "--join-training").ok().endswith("bin\n")
    for lang in ("en", "de"):
        test, train = lines(made, f"test.{lang}"), lines(made, f"train.{lang}")
        assert lines(out / "raw", f"test.{lang}") == test
        for count in (2, 3):
            found = lines(out / "raw", f"test{count}.{lang}")
            assert len(found) == len(test) // count
            assert " ".join(found) == " ".join(test[: len(found) * count])
        found = lines(out / "raw", f"train.{lang}")
        assert found[:3] == [train[0], " ".join(train[1:3]), " ".join(train[3:6])]
        assert " ".join(found) == " ".join(train)  # 300 captions are 50 times 1 + 2 + 3
        assert len(found) == len(lines(out / "bpe", f"train.{lang}")) == 150
    assert (out / "settings").read_text() == "en-de BPE_MERGES=150 joined=3+training\n"
    assert "--join-training: also give --join N" in only_error(
        _prepare(original, tmp_path / "other", "--join-training")
    )
