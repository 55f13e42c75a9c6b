"""The recipes in data-prep/, run for real on a corpus of a few hundred sentences."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.data import word_order

from .data.server import serving

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"train": 300, "valid": 21, "test": 13}
ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
STAGES = ["raw", "tok", "bpe.codes", "bpe", "bin"]


def _run(recipe: str, *arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MULTI30K")
    }
    environment |= {"PYTHON": sys.executable, "WORKERS": "1", "BPE_MERGES": "150"}
    environment |= {name: str(value) for name, value in settings.items()}
    command = ["bash", str(ROOT / "data-prep" / f"prepare-{recipe}.sh"), *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    """Of every file and folder: when it was changed, and its size."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


def _texts(folder: Path) -> dict[str, bytes]:
    """What is in every file, less the logs, which hold times and paths."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".log"
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the one that MULTI30K_DIR names, and the manifest of its files."""
    folder = tmp_path_factory.mktemp("original")
    word_order.generate(folder / "made", SIZES, seed=5)
    manifest = []
    for split, name in ORIGINAL.items():
        for lang in ("en", "de"):
            text = (folder / "made" / f"{split}.{lang}").read_bytes()
            (folder / f"{name}.{lang}.gz").write_bytes(gzip.compress(text))
            manifest.append(f"{name}.{lang}\t{len(text)}\t{hashlib.sha256(text).hexdigest()}\n")
    (folder / "manifest").write_text("".join(manifest))
    return folder


def _multi30k(original: Path, out: Path, *arguments: str, **settings: object):  # type: ignore[no-untyped-def]
    given = {
        "OUT": out,
        "MULTI30K_DIR": original,
        "MULTI30K_MANIFEST": original / "manifest",
        "MULTI30K_PAIRS": "300 21 13",
    }
    return _run("multi30k", *arguments, **{**given, **settings})


@pytest.fixture(scope="module")
def prepared(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("multi30k") / "with a space"
    result = _multi30k(original, out)
    assert result.returncode == 0, result.stderr
    return out


def _stopping_python(folder: Path, module: str) -> Path:
    """A PYTHON that writes half of what ``module`` should and dies there, as if it were killed."""
    program = folder / "python"
    program.write_text(
        "#!/usr/bin/env bash\n"
        f'case " $* " in *" {module} "*)\n'
        '  for word in "$@"; do case $word in *.part)\n'
        '    mkdir -p "$word" && echo half >"$word/train.en" ;; esac; done\n'
        "  exit 137 ;; esac\n"
        f'exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return program


def test_what_a_recipe_leaves(original: Path, prepared: Path) -> None:
    names = {path.name for path in prepared.iterdir()}
    assert names == {*STAGES, "settings", "preprocess.log"}
    for split in SIZES:
        for lang in ("en", "de"):
            made = (original / "made" / f"{split}.{lang}").read_bytes()
            assert (prepared / "raw" / f"{split}.{lang}").read_bytes() == made
    assert (prepared / "tok" / "test.de").read_text().endswith((" .\n", " ?\n"))
    assert "@@ " in (prepared / "bpe" / "test.de").read_text()
    assert (prepared / "bpe.codes").read_text().count("\n") == 151  # a line of version first
    dictionaries = [(prepared / "bin" / f"dict.{lang}.txt").read_bytes() for lang in ("en", "de")]
    assert dictionaries[0] == dictionaries[1]


def test_fairseq_reads_what_was_binarised(prepared: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(prepared / "bin" / "dict.de.txt"))
    for split, size in SIZES.items():
        path = prepared / "bin" / f"{split}.en-de.de"
        data = data_utils.load_indexed_dataset(str(path), dictionary)
        assert len(data) == size
        lines = (prepared / "bpe" / f"{split}.de").read_text(encoding="utf-8").split("\n")
        assert dictionary.string(data[3]) == lines[3]


def test_the_second_run_does_nothing(original: Path, prepared: Path) -> None:
    before = _state(prepared)
    result = _multi30k(original, prepared)
    assert result.returncode == 0
    assert result.stderr.count("done before") == len(STAGES)
    assert "train.en: 300 sentences, expected 300" in result.stderr
    assert _state(prepared) == before


@pytest.mark.parametrize(
    ("module", "first_missing"),
    [("corpus", "raw"), ("moses", "tok"), ("apply", "bpe"), ("fairseq_cli.preprocess", "bin")],
)
def test_an_interrupted_stage_leaves_nothing_that_looks_complete(
    original: Path, prepared: Path, tmp_path: Path, module: str, first_missing: str
) -> None:
    out = tmp_path / "out"
    shutil.copytree(prepared, out)
    for stage in STAGES[STAGES.index(first_missing) :]:
        (shutil.rmtree if (out / stage).is_dir() else os.unlink)(out / stage)
    result = _multi30k(original, out, PYTHON=_stopping_python(tmp_path, module))
    assert result.returncode != 0
    assert (out / f"{first_missing}.part" / "train.en").read_text() == "half\n"
    assert not (out / first_missing).exists()
    if first_missing != "bpe":  # once is enough: then to the end, and as if nothing had happened
        return
    result = _multi30k(original, out)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("done before") == 3
    assert _texts(out) == _texts(prepared)
    assert not list(out.rglob("*.part"))


def test_the_demo_recipe(tmp_path: Path) -> None:
    settings = {"TRAIN_PAIRS": 200, "VALID_PAIRS": 10, "TEST_PAIRS": 10, "CORPUS_SEED": 2}
    first = _run("demo", OUT=tmp_path / "out", **settings)
    assert first.returncode == 0, first.stderr
    assert "test.de: 10 sentences, expected 10" in first.stderr
    assert first.stderr.endswith(f"ready: {tmp_path}/out/bin\n")
    before = _state(tmp_path / "out")
    second = _run("demo", OUT=tmp_path / "out", **settings)
    assert second.returncode == 0
    assert second.stderr.count("done before") == len(STAGES)
    assert _state(tmp_path / "out") == before
    other = _run("demo", OUT=tmp_path / "out", **{**settings, "CORPUS_SEED": 3})
    assert "was made with 'en-de BPE_MERGES=150 pairs=200+10+10 seed=2'" in _only_error(other)


def _only_error(result: subprocess.CompletedProcess[str]) -> str:
    """The message of a run that failed: one line, after the lines that tell how far it came."""
    assert result.returncode == 2, result.stderr
    errors = [line for line in result.stderr.split("\n") if not line.startswith(("==", "  "))]
    assert errors[-1] == ""
    assert len(errors) == 2, result.stderr
    assert errors[0].startswith("error: ")
    return errors[0]


def test_the_files_come_from_the_web_without_a_folder(original: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in original.glob("*.gz")}
    out, stop = tmp_path / "out", _stopping_python(tmp_path, "moses")
    with serving(content) as server:
        settings = {"MULTI30K_DIR": "", "MULTI30K_URL": server.url, "PYTHON": stop}
        result = _multi30k(original, out, **settings)
        assert "train.de: " in result.stderr
        assert len(server.requests) == 6
    for split in SIZES:
        made = (original / "made" / f"{split}.de").read_bytes()
        assert (out / "raw" / f"{split}.de").read_bytes() == made
    assert not (out / "fetched").exists()


def test_a_download_that_breaks_off_is_continued(original: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in original.glob("*.gz")}
    out, stop = tmp_path / "out", _stopping_python(tmp_path, "moses")
    with serving(content) as server:
        settings = {"MULTI30K_DIR": "", "MULTI30K_URL": server.url, "PYTHON": stop}
        server.cut = 500
        message = _only_error(_multi30k(original, out, **settings))
        assert "train.en.gz: download failed" in message
        assert "run again to continue" in message
        assert not (out / "raw").exists()
        server.cut = None
        _multi30k(original, out, **settings)
        assert server.requests[:2] == ["", "bytes=500-"]
    assert (out / "raw" / "test.de").exists()


def test_a_missing_file_is_one_line(original: Path, tmp_path: Path) -> None:
    message = _only_error(_multi30k(original, tmp_path / "out", MULTI30K_DIR=tmp_path))
    assert message == f"error: {tmp_path}: holds neither train.en nor train.en.gz"
    assert not (tmp_path / "out" / "raw").exists()


def test_a_changed_file_is_one_line(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "changed")
    (tmp_path / "changed" / "val.de").write_text("Etwas anderes.\n")
    message = _only_error(_multi30k(original, tmp_path / "out", MULTI30K_DIR=tmp_path / "changed"))
    assert f"{tmp_path}/changed/val.de: not the expected text" in message
    assert not (tmp_path / "out" / "raw").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Eins.\n" * 20, "valid.en: more lines than"),
        ("Eins.\n" * 20 + "\n", "valid.de, line 21: empty"),
        ("Eins.\n" * 20 + "\udcff\n", "valid.de, line 21: not valid UTF-8"),
    ],
    ids=["unequal", "empty", "invalid"],
)
def test_bad_text_is_one_line(original: Path, tmp_path: Path, text: str, what: str) -> None:
    """Even where the manifest asks for it: what is pinned may be wrong, too."""
    changed = tmp_path / "changed"
    shutil.copytree(original, changed)
    content = text.encode("utf-8", "surrogateescape")
    (changed / "val.de").write_bytes(content)
    lines = (original / "manifest").read_text().split("\n")
    kept = [line for line in lines if not line.startswith("val.de")]
    kept.append(f"val.de\t{len(content)}\t{hashlib.sha256(content).hexdigest()}")
    (changed / "manifest").write_text("\n".join(kept))
    settings = {"MULTI30K_DIR": changed, "MULTI30K_MANIFEST": changed / "manifest"}
    message = _only_error(_multi30k(original, tmp_path / "out", **settings))
    assert what in message
    assert not (tmp_path / "out" / "raw").exists()


@pytest.mark.parametrize("pair", ["en", "en-fr", "de-de", "en-de-cs"])
def test_an_unknown_pair_is_one_line(original: Path, tmp_path: Path, pair: str) -> None:
    message = _only_error(_multi30k(original, tmp_path / "out", pair))
    assert message.startswith(f"error: language pair '{pair}': give two of en, de, cs")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("BPE_MERGES", "many", "BPE_MERGES must be a positive number, got 'many'"),
        ("WORKERS", "0", "WORKERS must be a positive number, got '0'"),
        ("PYTHON", "/nowhere/python", "/nowhere/python: not found"),
    ],
)
def test_bad_settings_are_one_line(
    original: Path, tmp_path: Path, name: str, value: str, what: str
) -> None:
    result = _multi30k(original, tmp_path / "out", **{name: value})
    assert what in _only_error(result)
