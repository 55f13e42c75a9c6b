"""Parallel corpora from their sources to binaries, on generated sentences."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from diet_mt.corpora import archives as of_archives
from diet_mt.corpora import download, recipes, subwords, testset
from diet_mt.corpora.download import Source
from diet_mt.corpora.recipes import write_demo
from diet_mt.corpora.settings import DEMO_SIZES, TextSettings
from diet_mt.system.engine import Preparation
from diet_mt.system.errors import UserError
from diet_mt.system.files import sha256

from ..corpora import wmt18
from ..corpora.server import manifest, serving
from ..corpora.test_archives import translations
from .conftest import of_wmt18
from .running import (
    SIZES,
    SMALL,
    Outcome,
    killed,
    lines_of,
    only_error,
    prepare,
    sentences_in,
    stages_of,
    state,
    write_news,
)

STAGES = {
    "multi30k": ["raw", "tok", "bpe.codes", "bpe", "bin"],
    "bpe": ["extracted", "raw", "clean", "tok", "bpe.codes", "bpe", "bin"],
    "spm": ["extracted", "raw", "clean", "spm.model", "spm", "bin"],
}


def raw_of(preparation: Preparation) -> Path:
    """The raw text of a corpus; its other stages are those of any corpus."""
    (stage,) = (stage for stage in preparation.stages if stage.name == "raw")
    stage.make(preparation.out / "raw")
    return preparation.out / "raw"


def _words(original: Path, out: Path, *more: object) -> tuple[object, ...]:
    return ("multi30k", "--out", out, "--manifest", original / "manifest", *SMALL, *more)


def _prepare(original: Path, out: Path, *more: object) -> Outcome:
    return prepare(*_words(original, out, "--from", original, *more))


def test_results_of_multi30k(original: Path, prepared: Path) -> None:
    stages = STAGES["multi30k"]
    assert (prepared / "settings").read_text() == "en-de BPE_MERGES=150\n"
    for split, size in SIZES.items():
        for lang in ("en", "de"):
            made = (original / "made" / f"{split}.{lang}").read_bytes()
            assert (prepared / "raw" / f"{split}.{lang}").read_bytes() == made
        lines = lines_of(prepared / "bpe" / f"{split}.de")
        assert len(lines) == size
        assert sentences_in(prepared / "bin" / f"{split}.en-de.de", "dict.de.txt") == lines
    assert (prepared / "tok" / "test.de").read_text().endswith((" .\n", " ?\n"))
    assert "@@ " in (prepared / "bpe" / "test.de").read_text()
    assert len(lines_of(prepared / "bpe.codes")) == 151  # a line of version first
    assert (prepared / "bin" / "bpe.codes").read_bytes() == (prepared / "bpe.codes").read_bytes()
    dictionaries = [(prepared / "bin" / f"dict.{lang}.txt").read_bytes() for lang in ("en", "de")]
    assert dictionaries[0] == dictionaries[1]
    rows = [row.split("\t") for row in lines_of(prepared / "stages.tsv")]
    lines = [(row[0], row[2]) for row in rows]
    assert lines == list(zip(stages, ("300", "300", "151", "300", "0"), strict=True))


def test_a_second_run_does_nothing_and_other_settings_are_refused(
    original: Path, prepared: Path, tmp_path: Path
) -> None:
    before = state(prepared)
    printed = prepare(*_words(original, prepared, "--from", "nowhere")).ok()
    assert printed.count("done before") == 5
    assert "train.en: 300, expected 300" in printed
    assert printed.endswith(f"ready: {prepared}/bin\n")
    for more in (("--bpe-merges", 151), ("de-en",), ("--bpe-words", 5, "--dry-run")):
        message = only_error(_prepare(original, prepared, *more))
        assert str(more[0]) in message.removeprefix(str(prepared))
    assert _prepare(original, prepared, "--dry-run").out.count("done before") == 5
    assert state(prepared) == before
    plan = _prepare(original, tmp_path / "out", "--dry-run")
    assert (plan.status, plan.err, plan.out.count("to do")) == (0, "", 5)
    assert not (tmp_path / "out").exists()


def test_a_start_that_failed_can_be_repeated_with_other_settings(
    original: Path, tmp_path: Path
) -> None:
    (tmp_path / "out" / "raw.part").mkdir(parents=True)
    (tmp_path / "out" / "raw.part" / "train.en").write_text("of another pair\n")
    (tmp_path / "out" / "settings").write_text("cs-en BPE_MERGES=150\n")
    words = _words(original, tmp_path / "out", "--from", original)
    killed("open", "tok.part/train.en.part", *words)
    assert (tmp_path / "out" / "settings").read_text() == "en-de BPE_MERGES=150\n"
    made = (original / "made" / "train.en").read_bytes()
    assert (tmp_path / "out" / "raw" / "train.en").read_bytes() == made


def test_captions_are_joined_line_by_line(original: Path, tmp_path: Path) -> None:
    """Test sets of two and three captions, each caption once and in its order; and training text
    of one, two and three in turn. An incomplete last line is left out.
    """
    source, text = Source("multi30k", original, original / "manifest"), TextSettings(("en", "de"))
    what, made = recipes.multi30k(tmp_path, text, source, 3, in_training=True), original / "made"
    raw = raw_of(what)
    assert what.settings == "en-de BPE_MERGES=6000 joined=3+training"
    for lang in ("en", "de"):
        test, train = lines_of(made / f"test.{lang}"), lines_of(made / f"train.{lang}")
        assert lines_of(raw / f"test.{lang}") == test
        for count in (2, 3):
            joined = lines_of(raw / f"test{count}.{lang}")
            assert len(joined) == len(test) // count
            assert " ".join(joined) == " ".join(test[: len(joined) * count])
        joined = lines_of(raw / f"train.{lang}")
        assert joined[:3] == [train[0], " ".join(train[1:3]), " ".join(train[3:6])]
        assert " ".join(joined) == " ".join(train)  # 300 captions are 50 times 1 + 2 + 3
        assert len(joined) == 150


def test_news(tmp_path: Path) -> None:
    news, out = tmp_path / "news", tmp_path / "out"
    news.mkdir()
    write_news(news)
    words = ("newstest", "en-cs", "--from", news, "--out", out, *SMALL)
    printed = prepare(*words).ok()
    for line in ("train.cs: 240, expected 240", "valid.en: 30, ex", "test.cs: 30, ex"):
        assert line in printed
    for split, years in (("train", range(2008, 2016)), ("valid", [2017]), ("test", [2016])):
        given = b"".join((news / f"newstest{year}.en-cs.cs").read_bytes() for year in years)
        assert (out / "raw" / f"{split}.cs").read_bytes() == given
    assert "\u0085" in (out / "raw" / "train.cs").read_text()
    english, czech = (lines_of(out / "clean" / f"train.{lang}") for lang in ("en", "cs"))
    same = {s["en"]: s["cs"] for s in wmt18.sentences(300, seed=6)}
    assert [same[line] for line in english] == [line.replace("…", "") for line in czech]
    assert "mended\tWindows-1252 characters\t6\n" in (out / "clean.tsv").read_text()
    (news / "newstest2009.en-cs.cs").write_text("one\n")
    with pytest.raises(UserError, match=r"newstest2009\.en-cs\.en: 30 .*\.cs .*1"):
        raw_of(recipes.newstest(tmp_path / "other", TextSettings(("en", "cs")), news, YEARS))


YEARS = {"train": "2008-2009,2014", "valid": "2017", "test": "2016"}


def test_news_from_sacrebleu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testset, "sentences", lambda name, pair: ([name], [pair]))
    raw = raw_of(recipes.newstest(tmp_path, TextSettings(("en", "cs")), None, YEARS))
    assert (raw / "train.en").read_text() == "wmt08\nwmt09\nwmt14/full\n"
    assert (raw / "test.cs").read_text() == "en-cs\n"
    assert recipes.years_in("2008-2010,2012") == [2008, 2009, 2010, 2012]
    for wrong in ("all", "2009-2008", "", "2008,"):
        with pytest.raises(UserError, match=f"'{wrong}'"):
            recipes.years_in(wrong)


ARCHIVE = "translations.tar.xz"


def _manifest(folder: Path, texts: dict[str, bytes]) -> Path:
    content = {**texts, **{path.name: path.read_bytes() for path in folder.glob("*.xz")}}
    own = {"archive": ARCHIVE, "held_out": {"de": {"test": [0], "valid": [2]}}}
    (folder / "manifest").write_text(manifest("office", content, "http://127.0.0.1:9", **own))
    return folder / "manifest"


@pytest.fixture
def office(tmp_path: Path) -> dict[str, bytes]:
    """Texts of three blocks; ``packed`` has the archive of them, and ``plain`` themselves."""
    files = {
        f"de/{name}.po": [(f"{name} is text {n} here", f"{name} ist hier {n}") for n in range(60)]
        for name in "abc"
    }
    made = {}
    for split, name in (("train", "b"), ("valid", "c"), ("test", "a")):
        for side, lang in enumerate(("en", "de")):
            lines = [pair[side] for pair in files[f"de/{name}.po"]]
            made[f"en-de.{split}.{lang}"] = "".join(f"{line}\n" for line in lines).encode()
    for folder in ("packed", "plain"):
        (tmp_path / folder).mkdir()
    translations(tmp_path / "packed" / ARCHIVE, files)
    _manifest(tmp_path / "packed", made)
    for name, text in made.items():
        (tmp_path / "plain" / name).write_bytes(text)
    _manifest(tmp_path / "plain", made)
    return made


def test_office_from_its_archive_and_from_texts(office: dict[str, bytes], tmp_path: Path) -> None:
    for folder, pair in (("packed", ("en", "de")), ("plain", ("de", "en"))):
        source = Source("office", tmp_path / folder, tmp_path / folder / "manifest")
        raw = raw_of(of_archives.office(tmp_path / f"out {folder}", TextSettings(pair), source))
        for name, text in office.items():
            assert (raw / name.removeprefix("en-de.")).read_bytes() == text
    changed = _manifest(tmp_path / "packed", {**office, "en-de.valid.de": b"Etwas anderes.\n"})
    given = ("--from", tmp_path / "packed", "--manifest", changed, "--out", tmp_path / "out")
    message = only_error(prepare("office", *given, *SMALL))
    assert ARCHIVE in message
    assert "en-de.valid.de" in message
    assert not (tmp_path / "out" / "raw").exists()


def test_mixed(
    office: dict[str, bytes], original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three corpora one after the other; a second run needs none of them."""
    given, text = tmp_path / "given", TextSettings(("en", "de"))
    shutil.copytree(original, given / "multi30k")
    shutil.copytree(tmp_path / "plain", given / "office")
    entries = download.corpora()
    for folder in (original, tmp_path / "plain"):
        for corpus, entry in download.corpora(folder / "manifest").items():
            entries[corpus] |= entry
    (tmp_path / "corpora.yaml").write_text(yaml.safe_dump(entries))
    monkeypatch.setattr(download, "CORPORA", tmp_path / "corpora.yaml")
    (given / "news").mkdir()
    news = (("en", "in {} some news\n"), ("de", "neues aus {} hier\n"))
    for year in range(2008, 2018):
        for lang, line in news:
            file = given / "news" / f"newstest{year}.en-de.{lang}"
            file.write_text(line.format(year))
    raw = raw_of(recipes.mixed(tmp_path / "out", text, given))
    for split, years in (("train", range(2008, 2015)), ("valid", [2015]), ("test", [2016, 2017])):
        for lang, line in news:
            captions = (original / "made" / f"{split}.{lang}").read_bytes()
            middle = "".join(line.format(year) for year in years).encode()
            program = office[f"en-de.{split}.{lang}"]
            assert (raw / f"{split}.{lang}").read_bytes() == captions + middle + program
            if split == "test":
                for name, part in (("captions", captions), ("news", middle), ("office", program)):
                    assert (raw / f"{name}.{lang}").read_bytes() == part
    assert not [path for path in raw.iterdir() if path.is_dir()]
    assert not (tmp_path / "out" / "fetched").exists()
    recipes.mixed(tmp_path / "out", text, tmp_path / "nowhere")


@pytest.fixture
def bitext(tmp_path: Path) -> Path:
    """German and English, half of it packed; two training pairs are there twice."""
    folder = tmp_path / "mine"
    write_demo(folder, SIZES)
    for lang in ("de", "en"):
        train, test = folder / f"train.{lang}", folder / f"test.{lang}"
        lines = train.read_bytes().splitlines(keepends=True)
        train.write_bytes(b"".join([*lines, *lines[:2]]))
        (folder / f"test.{lang}.gz").write_bytes(gzip.compress(test.read_bytes()))
        test.unlink()
    return folder


def of_bitext(folder: Path, *more: object) -> Outcome:
    words = ("bitext", "de-en", "--from", folder, "--out", folder.parent / "out")
    return prepare(*words, *SMALL, *more)


def test_parallel_text_of_the_user(bitext: Path) -> None:
    out = bitext.parent / "out"
    printed = of_bitext(bitext).ok()
    pairs = int((out / "clean.tsv").read_text().split("pairs\tkept\t")[1].split("\n")[0])
    assert SIZES["train"] / 2 < pairs <= SIZES["train"]
    assert "dropped\tduplicate pair\t" in (out / "clean.tsv").read_text()
    for split, count in {**SIZES, "train": pairs}.items():
        assert f"{split}.de: {count}, expected {count}" in printed
    given = gzip.decompress((bitext / "test.en.gz").read_bytes())
    assert (out / "raw" / "test.en").read_bytes() == given
    assert (out / "settings").read_text().endswith(f" from={bitext}\n")
    # The folder is not needed again, and another one is not taken for it.
    moved = bitext.rename(bitext.parent / "other")
    before = state(out)
    assert of_bitext(bitext).ok().count("done before") == 6
    assert f"from={moved}" in only_error(of_bitext(moved))
    assert state(out) == before


def twice(folder: Path) -> None:
    (folder / "valid.en").unlink()
    (folder / "valid.en").symlink_to(folder / "train.en")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "train.de").write_text("Eins.\n"), "train.en: 302 lines"),
        (lambda folder: (folder / "valid.de").write_bytes(b"Ja.\n\xff\n"), "valid.de, line 2: "),
        (twice, "valid.en: given more than once, as "),
    ],
)
def test_invalid_text_is_named_where_it_stands(
    bitext: Path, change: Callable[[Path], object], named: str
) -> None:
    change(bitext)
    assert f"{bitext}/{named}" in only_error(of_bitext(bitext))
    assert not (bitext.parent / "out" / "raw").exists()


def test_held_out_pairs_in_the_training_text_are_counted(
    bitext: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for lang in ("de", "en"):
        train = (bitext / f"train.{lang}").read_bytes().splitlines(keepends=True)
        # The last of them without the end of its line.
        (bitext / f"valid.{lang}").write_bytes(b"".join([*train[:2], *train[5:7]])[:-1])
    text = TextSettings(("de", "en"))
    raw_of(recipes.bitext(bitext.parent / "out", text, bitext))
    printed = capsys.readouterr().err
    assert "valid: 4 pairs, 4 of them also in train" in printed
    assert f"test: {SIZES['test']} pairs, 0 of them also in train" in printed
    # Text that is not cleaned must be valid.
    for lang, line in (("de", "\n"), ("en", "One.\n")):
        with (bitext / f"train.{lang}").open("a") as file:
            file.write(line)
    with pytest.raises(UserError, match=f"{bitext}/train.de, line 303"):
        raw_of(recipes.bitext(bitext.parent / "other", text, bitext))


def test_an_unknown_language(bitext: Path) -> None:
    for german in bitext.glob("*.de*"):
        german.rename(bitext / german.name.replace(".de", ".xx"))
    words = ("bitext", "xx-en", "--from", bitext, "--out", bitext.parent / "out")
    assert "language xx: " in only_error(prepare(*words))
    prepare(*words, "--certainty", 2, "--dry-run").ok()


def test_the_demo(tmp_path: Path) -> None:
    # fairseq-preprocess has more processes than a file has sentences, and gives some of them none.
    sizes = ("--train-pairs", 200, "--valid-pairs", 5, "--test-pairs", 5, "--workers", 2)
    own = ("--clean", "--certainty", 2, "--subwords", "spm", "--spm-size", 150)
    words = ("demo", "--out", tmp_path / "out", *sizes, *own)
    printed = prepare(*words).ok()
    assert "test.de: 5, expected 5" in printed
    assert printed.endswith(f"ready: {tmp_path}/out/bin\n")
    assert stages_of(tmp_path / "out") == ["raw", "clean", "spm.model", "spm", "bin"]
    assert "pairs=200+5+9" in only_error(prepare(*words, "--test-pairs", 9))


def test_the_shipped_corpus(tmp_path: Path) -> None:
    """Its bytes, on which published scores rest; and no sentence on two lines."""
    write_demo(tmp_path, DEMO_SIZES)
    lines = {path.name: lines_of(path) for path in tmp_path.iterdir()}
    named = {f"{split}.{lang}": n for split, n in DEMO_SIZES.items() for lang in ("en", "de")}
    assert {name: len(text) for name, text in lines.items()} == {**named, "test.twins.de": 500}
    for lang in ("en", "de"):
        every = [line for split in DEMO_SIZES for line in lines[f"{split}.{lang}"]]
        assert len(set(every)) == len(every)
    digests = (f"{path.name} {sha256(path)}\n" for path in sorted(tmp_path.iterdir()))
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == (
        "b747974afa6a778be390245b10365090d059037f49fa84d7af19ca1fef429793"
    )


@pytest.fixture(params=["de-en bpe", "cs-en spm"])
def made(request: pytest.FixtureRequest) -> tuple[str, str, Path]:
    """(pair, kind of subwords, folder) of WMT18: one pair downloaded, the other from a folder."""
    pair, kind = request.param.split()
    return pair, kind, request.getfixturevalue("downloaded" if kind == "bpe" else "offline")


def test_results_of_wmt18(made: tuple[str, str, Path], archives: Path) -> None:
    pair, kind, out = made
    assert stages_of(out) == STAGES[kind]
    assert subwords.kind_of(out / "bin") == kind
    # Nothing is copied from a folder of archives.
    downloads = {path.name for path in (out.parent / "downloads").glob("*.tgz")}
    assert downloads == ({path.name for path in archives.glob("*.tgz")} if kind == "bpe" else set())
    before = state(out.parent)
    other = "-".join(reversed(pair.split("-")))
    printed = prepare(*of_wmt18(other, archives, out, "--subwords", kind)).ok()
    assert printed.count("done before") == len(STAGES[kind])
    assert state(out.parent) == before
    # The two directions of the German test set differ in the tests, as they might.
    tests = ("test", "test1") if pair == "de-en" else ("test",)
    pairs = len(lines_of(out / "clean" / "train.en"))
    counts = {"train": pairs, "valid": wmt18.SIZES["valid"], "test": wmt18.SIZES["test"]}
    for split in ("train", "valid", *tests):
        for lang in pair.split("-"):
            sentences = sentences_in(out / "bin" / f"{split}.{pair}.{lang}", f"dict.{lang}.txt")
            assert len(sentences) == counts.get(split, wmt18.SIZES["test"] - 1)
            text = lines_of(out / kind / f"{split}.{lang}")
            assert {sentence for sentence in sentences if "<unk>" not in sentence} <= set(text)
    assert not list((out / "bin").glob("test1*")) or len(tests) == 2
    valid = lines_of(out / "raw" / "valid.en")
    assert len(valid) == wmt18.SIZES["valid"]
    assert all(line.endswith(" A & B") for line in valid)  # &amp; in the archive


def test_the_other_pair_shares_the_downloads(archives: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    with serving(content) as server:
        (tmp_path / "manifest").write_text(wmt18.manifest(content, server.url))
        (tmp_path / "sacrebleu").touch()  # where its folder would be: so far, and no further
        for pair in ("de-en", "cs-en"):
            only_error(prepare(*of_wmt18(pair, tmp_path, tmp_path / pair)))
        assert len(server.requests) == 5
