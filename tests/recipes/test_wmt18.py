"""WMT18, on archives of the true layout: both pairs, both kinds of subwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import clean, subwords, tidy

from ..corpora import wmt18
from ..corpora.server import serving
from .runner import only_error, prepare, run, sentences_in, stages_of, state

STAGES = {
    "bpe": ["archives", "extracted", "raw", "clean", "tok", "bpe.codes", "bpe", "bin"],
    "spm": ["archives", "extracted", "raw", "clean", "spm.model", "spm", "bin"],
}
TRAIN = sum(wmt18.SIZES[name] for name in ("europarl", "commoncrawl", "news"))


@pytest.fixture(params=["de-en bpe", "cs-en spm"])
def made(request: pytest.FixtureRequest) -> tuple[str, str, Path]:
    """(pair, kind of subwords, folder): one pair downloaded, the other from a folder."""
    pair, kind = request.param.split()
    return pair, kind, request.getfixturevalue("downloaded" if kind == "bpe" else "offline")


def test_what_the_recipe_leaves(made: tuple[str, str, Path]) -> None:
    _, kind, out = made
    assert stages_of(out) == STAGES[kind]
    logs = {"bpe": set(), "spm": {"spm.log", "spm.dict"}}[kind]
    rest = {"settings", "stages.tsv", "clean.tsv", "preprocess.log"}
    assert {path.name for path in out.iterdir()} == {*STAGES[kind], *rest, *logs}
    assert subwords.kind_of(out / "bin") == kind
    model = subwords.MODELS[kind]
    assert (out / "bin" / model).read_bytes() == (out / model).read_bytes()


def test_nothing_is_copied_from_a_folder_of_archives(made: tuple[str, str, Path]) -> None:
    _, kind, out = made
    downloads = {path.name for path in (out.parent / "downloads").iterdir()}
    names = {f"training-parallel-{name}.tgz" for name in ("europarl-v7", "commoncrawl", "nc-v13")}
    stamps = {f"{name}.verified" for name in (*names, "dev.tgz", "test.tgz")}
    assert downloads - stamps == ({*names, "dev.tgz", "test.tgz"} if kind == "bpe" else set())


def test_every_filter_has_found_its_pair(made: tuple[str, str, Path]) -> None:
    pair, _, out = made
    rows = [row.split("\t") for row in (out / "clean.tsv").read_text().split("\n")[:-1]]
    found = {what: int(count) for _, what, count in rows}
    dirt = [what for what, _ in wmt18.dirt(pair[:2])]
    assert found["read"] == TRAIN + len(dirt)
    for what in clean.DROPPED:
        assert found[what] == dirt.count(what), what
    assert found["kept"] == found["read"] - sum(found[what] for what in clean.DROPPED)
    assert found[tidy.BYTE_ORDER_MARK] == found[tidy.CARRIAGE_RETURN] == 1
    source, target = (
        (out / "clean" / f"train.{lang}").read_text().split("\n")[:-1] for lang in pair.split("-")
    )
    same = {s[pair[:2]]: s["en"] for s in wmt18.sentences(300, seed=4)}
    strange = [pair for pair in zip(source, target, strict=True) if same.get(pair[0]) != pair[1]]
    assert len(strange) == 2  # to whose two sides something was added
    assert len(source) == found["kept"]


def test_the_data_are_whole_and_of_both_directions(made: tuple[str, str, Path]) -> None:
    pair, kind, out = made
    # The two directions of the German test set differ in the tests, as they might.
    tests = ("test", "test1") if pair == "de-en" else ("test",)
    kept = len((out / "clean" / "train.en").read_text().split("\n")) - 1
    counts = {"train": kept, "valid": wmt18.SIZES["valid"], "test": wmt18.SIZES["test"]}
    for split in ("train", "valid", *tests):
        for lang in pair.split("-"):
            sentences = sentences_in(out / "bin", pair, split, lang)
            assert len(sentences) == counts.get(split, wmt18.SIZES["test"] - 1)
            text = (out / kind / f"{split}.{lang}").read_text().split("\n")[:-1]
            known = [sentence for sentence in sentences if "<unk>" not in sentence]
            assert set(known) <= set(text)
    assert not list((out / "bin").glob("test1*")) or len(tests) == 2


def test_validation_text_has_its_entities_replaced(made: tuple[str, str, Path]) -> None:
    _, _, out = made
    lines = (out / "raw" / "valid.en").read_text().split("\n")[:-1]
    assert len(lines) == wmt18.SIZES["valid"]
    assert all(line.endswith(" A & B") for line in lines)


def test_pieces_become_the_text_again(made: tuple[str, str, Path]) -> None:
    pair, kind, out = made
    if kind == "bpe":
        pytest.skip("Moses tokens are normalised; tests/data/test_moses.py looks at them")
    for split in ("train", "valid", "test"):
        for lang in pair.split("-"):
            pieces = (out / "spm" / f"{split}.{lang}").read_text().split("\n")
            text = (out / "clean" / f"{split}.{lang}").read_text().split("\n")
            assert [subwords.join(line, kind) for line in pieces] == text


def test_the_second_run_does_nothing(made: tuple[str, str, Path], archives: Path) -> None:
    pair, kind, out = made
    before = state(out.parent)
    result = prepare(archives, out, pair, "--subwords", kind)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("done before") == len(STAGES[kind])
    assert state(out.parent) == before


def test_the_other_pair_fetches_nothing_again(archives: Path, tmp_path: Path) -> None:
    """Downloads are shared, and remembered as checked."""
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    with serving(content) as server:
        (tmp_path / "manifest").write_text(wmt18.manifest(content, server.url))
        for pair in ("de-en", "cs-en"):
            settings = {"WMT18_MANIFEST": tmp_path / "manifest", "SACREBLEU": "/dev/null/x"}
            said = only_error(prepare(archives, tmp_path / pair, pair, **settings))
            assert "SacreBLEU could not take" in said  # so far, and no further
        assert len(server.requests) == 5


def test_the_usage(tmp_path: Path) -> None:
    result = run("wmt18", "-h", OUT=tmp_path / "out")
    assert result.returncode == 0
    assert "PAIR [--subwords bpe|spm] [--archives DIR]" in result.stdout
    assert "Licence  of the corpora" in result.stdout
    assert "set -euo" not in result.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "language pair '': give de-en or cs-en"),
        (("en-de",), "language pair 'en-de': give de-en or cs-en; one preparation serves both"),
        (("de-en", "cs-en"), "cs-en: not understood; -h shows the usage"),
        (("--subword", "bpe", "de-en"), "--subword: not understood"),
        (("de-en", "--archives"), "--archives needs a value"),
        (("de-en", "--archives", ""), "--archives needs a value"),
        (("de-en", "--subwords", "words"), "SUBWORDS 'words': choose bpe or spm"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], what: str
) -> None:
    assert what in only_error(run("wmt18", *arguments, OUT=tmp_path / "out"))
    assert not (tmp_path / "out").exists()
