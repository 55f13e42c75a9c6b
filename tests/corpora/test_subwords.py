"""Moses tokens, byte-pair codes and their inverses; the kinds of subwords."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from diet_mt.corpora import pieces, subwords
from diet_mt.corpora.parallel import SPLITS
from diet_mt.errors import UserError

from .wmt18 import sentences

SENTENCES = [
    ("en", "The dog doesn't see the well-known cat."),
    ("en", 'She said "yes" but paid $3.50 (or 4%).'),
    ("en", "Black & white | [or] grey; red: it's all here."),
    ("de", "Die Frau ruft ihn an, weil er möchte."),
    ("de", "Ein grün-weißer Hut für 3,50 Euro!"),
    ("cs", "Pes vidí kočku, která spí."),
]
ENGLISH = "the dog is running and the cat is running\nthe dogs are sleeping\n"
GERMAN = "der Hund läuft und die Katze läuft\ndie Hunde schlafen & warten\n"


@pytest.mark.parametrize(("lang", "text"), SENTENCES)
def test_tokens_are_those_of_moses_and_of_fairseq(lang: str, text: str) -> None:
    """So a raw sentence through ``--tokenizer moses`` looks as the training data did; the quicker
    sets of characters change nothing.
    """
    from fairseq.data import encoders
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    settings = Namespace(
        tokenizer="moses", source_lang=lang, target_lang=lang,
        moses_no_dash_splits=False, moses_no_escape=False,
    )  # fmt: skip
    theirs, tokens = encoders.build_tokenizer(settings), subwords.tokenize(text, lang)
    assert theirs.encode(text) == tokens
    assert theirs.decode(tokens) == subwords.detokenize(tokens, lang) == text
    abbreviated = "Mr. Dr. U.S. bzw. a.m. Nr. 7. resp. no. 5 end. Next ó. é. x."
    for line in (text, abbreviated, text.upper()):
        normal = MosesPunctNormalizer(lang).normalize(line)
        plain = MosesTokenizer(lang).tokenize(normal, aggressive_dash_splits=True, return_str=True)
        assert subwords.tokenize(line, lang) == plain


def test_tokens_are_split_escaped_and_normalized() -> None:
    tokens = subwords.tokenize("The dog's well-known, isn't it?", "en")
    assert tokens == "The dog &apos;s well @-@ known , isn &apos;t it ?"
    assert subwords.tokenize("Er sagt „ja“ – nein…", "de").startswith("Er sagt &quot; ja &quot; -")


def test_several_workers_keep_the_order(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f"Line {n}, it's here.\n" for n in range(4500)), encoding="utf-8")
    for workers in (1, 2):
        count = subwords.tokenize_file(source, tmp_path / f"out{workers}", "en", workers)
        assert count == 4500
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes()
    assert (tmp_path / "out1").read_text().split("\n")[1700] == "Line 1700 , it &apos;s here ."


def test_a_line_of_which_nothing_remains_is_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"fine\n\x01\x02\n")
    with pytest.raises(UserError, match=r"in, line 2: "):
        subwords.tokenize_file(source, tmp_path / "out", "en", 1)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "train.en", tmp_path / "train.de"]
    for path, text in zip(paths, (ENGLISH, GERMAN), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _merges(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[1:-1]


def test_merges_come_most_frequent_first_and_from_both_sides(tmp_path: Path) -> None:
    for name, text in (("en", "ab ab ab xy\n"), ("de", "ab cd cd\nxy\n")):
        (tmp_path / name).write_text(text)
    # ab four times, cd and xy twice (xy once on each side); subword-nmt breaks ties upwards.
    for names in ("en de", "de en"):
        subwords.learn_bpe([tmp_path / name for name in names.split()], tmp_path / "codes", 10)
        assert _merges(tmp_path / "codes") == ["a b</w>", "x y</w>", "c d</w>"]
    (tmp_path / "en").write_text("ab ab ab cd cd cd cd xy xy\n")
    subwords.learn_bpe([tmp_path / "en"], tmp_path / "codes", 10, max_words=2)
    assert _merges(tmp_path / "codes") == ["c d</w>", "a b</w>"]


@pytest.mark.parametrize("merges", [1, 10, 1000])
def test_join_undoes_the_splitting(tmp_path: Path, files: list[Path], merges: int) -> None:
    subwords.learn_bpe(files, tmp_path / "codes", merges)
    lines = [*ENGLISH.split("\n"), "unseen Wörter @-@ e@mail x &apos;s @", "a"]
    split = subwords.split_bpe(lines, tmp_path / "codes")
    assert [subwords.join_bpe(line) for line in split] == lines
    if merges == 1000:  # a frequent word stays whole, a rare one is split
        assert subwords.split_bpe(["running rung"], tmp_path / "codes") == ["running r@@ un@@ g"]


def test_words_are_counted_alike_by_several_workers(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subwords, "_COUNT_CHUNK", 1)
    counts = subwords.count_words(files, workers=2)
    assert counts == subwords.count_words(files)
    assert (counts["running"], counts["und"], counts["der"]) == (2, 1, 1)


def test_the_cache_of_words_is_bounded(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    subwords.learn_bpe(files, tmp_path / "codes", 20)
    monkeypatch.setattr(subwords, "_CACHED", 3)
    lines = [f"run{n} ring{n}" for n in range(20)]
    splits = [split for line in lines for split in subwords.split_bpe([line], tmp_path / "codes")]
    assert len(subwords.load_bpe(tmp_path / "codes").cache) <= 3 + 2
    assert [subwords.join_bpe(line) for line in splits] == lines


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_learning_and_splitting(tmp_path: Path, kind: str) -> None:
    corpus, model = tmp_path / "text", tmp_path / "model"
    corpus.mkdir()
    for split, some in zip(SPLITS, (150, 5, 5), strict=True):
        for lang in ("en", "de"):
            lines = [s[lang] + "\n" for s in sentences(some, seed=3)]
            (corpus / f"{split}.{lang}").write_text("".join(lines), encoding="utf-8")
    files = [corpus / "train.en", corpus / "train.de"]
    if kind == "bpe":
        subwords.learn_bpe(files, model, 100)
    else:
        pieces.learn(files, model, 120)
    for file in corpus.iterdir():
        for workers in (1, 2):
            subwords.split_file(kind, model, file, tmp_path / f"out{workers}", workers)
        split_text = (tmp_path / "out1").read_text(encoding="utf-8")
        assert split_text == (tmp_path / "out2").read_text(encoding="utf-8")
        text = file.read_text(encoding="utf-8")
        assert split_text.count(" ") > text.count(" ")
        assert [subwords.join(line, kind) for line in split_text.split("\n")] == text.split("\n")


def test_the_model_beside_the_data_says_their_kind(tmp_path: Path) -> None:
    for present, kind in (("", None), ("spm.model", "spm"), ("bpe.codes", None)):
        if present:
            (tmp_path / present).touch()
        if kind:
            assert subwords.kind_of(tmp_path) == kind
            continue
        with pytest.raises(UserError, match=r"bpe\.codes, spm\.model"):
            subwords.kind_of(tmp_path)
    (tmp_path / "spm.model").unlink()
    assert subwords.kind_of(tmp_path) == "bpe"


@pytest.mark.parametrize(
    ("kind", "line", "text"),
    [
        (
            "bpe",
            "Der grün @-@ wei@@ ße Hu@@ nd bel@@ lt , &quot; laut &quot; .",
            'Der grün-weiße Hund bellt, "laut".',
        ),
        ("bpe", "", ""),
        ("bpe", "z\u2028wei", "z wei"),
        ("bpe", "<unk> drei", "<unk> drei"),
        # Spaces and signs are those of the text itself, and @@ is two characters of it.
        (
            "spm",
            '\u2581Er \u2581sag t : \u2581" Ja !" \u2581@@ \u2581&apos;',
            'Er sagt: "Ja!" @@ &apos;',
        ),
        ("spm", "", ""),
    ],
)
def test_output_becomes_text(kind: str, line: str, text: str) -> None:
    assert subwords.to_text(line, "de", kind) == text


def test_every_stage_back_and_forth(tmp_path: Path) -> None:
    text = 'Die wohl-bekannte Frau ruft ihn an, weil sie "ihn" braucht!'
    tokens = subwords.tokenize(text, "de")
    (tmp_path / "train").write_text(tokens + "\n" + tokens + "\n", encoding="utf-8")
    subwords.learn_bpe([tmp_path / "train"], tmp_path / "bpe.codes", 10)
    (split,) = subwords.from_text([text], "de", tmp_path)
    assert "@@ " in split
    assert subwords.to_text(split, "de", "bpe") == text
