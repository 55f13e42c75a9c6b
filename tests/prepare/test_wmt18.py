"""WMT18, on archives of the true layout: both pairs, both kinds of subwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import clean, subwords, tidy

from ..corpora import wmt18
from ..corpora.server import serving
from .conftest import of_wmt18
from .running import only_error, prepare, sentences_in, stages_of, state

STAGES = {
    "bpe": ["extracted", "raw", "clean", "tok", "bpe.codes", "bpe", "bin"],
    "spm": ["extracted", "raw", "clean", "spm.model", "spm", "bin"],
}
TRAIN = sum(wmt18.SIZES[name] for name in ("europarl", "commoncrawl", "news"))


@pytest.fixture(params=["de-en bpe", "cs-en spm"])
def made(request: pytest.FixtureRequest) -> tuple[str, str, Path]:
    """(pair, kind of subwords, folder): one pair downloaded, the other from a folder."""
    pair, kind = request.param.split()
    return pair, kind, request.getfixturevalue("downloaded" if kind == "bpe" else "offline")


def test_what_is_left(made: tuple[str, str, Path]) -> None:
    _, kind, out = made
    assert stages_of(out) == STAGES[kind]
    own = {"bpe": set(), "spm": {"spm.dict"}}[kind]
    rest = {"settings", "stages.tsv", "SHA256SUMS", "clean.tsv", "preprocess.log"}
    names = {path.name for path in out.iterdir() if path.name[0] != "."}
    assert names == {*STAGES[kind], *rest, *own}
    assert subwords.kind_of(out / "bin") == kind
    model = subwords.MODELS[kind]
    assert (out / "bin" / model).read_bytes() == (out / model).read_bytes()
    # Nothing is copied from a folder of archives.
    downloads = {path.name for path in (out.parent / "downloads").glob("*.tgz")}
    names = {f"training-parallel-{name}.tgz" for name in ("europarl-v7", "commoncrawl", "nc-v13")}
    assert downloads == ({*names, "dev.tgz", "test.tgz"} if kind == "bpe" else set())


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
            sentences = sentences_in(out / "bin" / f"{split}.{pair}.{lang}", f"dict.{lang}.txt")
            assert len(sentences) == counts.get(split, wmt18.SIZES["test"] - 1)
            text = (out / kind / f"{split}.{lang}").read_text().split("\n")[:-1]
            known = [sentence for sentence in sentences if "<unk>" not in sentence]
            assert set(known) <= set(text)
    assert not list((out / "bin").glob("test1*")) or len(tests) == 2
    valid = (out / "raw" / "valid.en").read_text().split("\n")[:-1]
    assert len(valid) == wmt18.SIZES["valid"]
    assert all(line.endswith(" A & B") for line in valid)  # &amp; in the archive


def test_the_second_run_does_nothing(made: tuple[str, str, Path], archives: Path) -> None:
    pair, kind, out = made
    before = state(out.parent)
    said = prepare(*of_wmt18(pair, archives, out, "--subwords", kind)).ok()
    assert said.count("done before") == len(STAGES[kind])
    assert state(out.parent) == before


def test_the_other_pair_fetches_nothing_again(archives: Path, tmp_path: Path) -> None:
    """Downloads are shared."""
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    with serving(content) as server:
        (tmp_path / "manifest").write_text(wmt18.manifest(content, server.url))
        (tmp_path / "sacrebleu").touch()  # where its folder would be
        for pair in ("de-en", "cs-en"):
            said = only_error(prepare(*of_wmt18(pair, tmp_path, tmp_path / pair)))
            assert "SacreBLEU cannot take" in said  # so far, and no further
        assert len(server.requests) == 5
