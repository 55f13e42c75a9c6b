"""Moses tokens, byte-pair codes, SentencePiece models, and their inverses."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import pytest

from diet_mt.corpora import pieces, subwords
from diet_mt.corpora.binarized import write_dictionary
from diet_mt.system.errors import UserError

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
    """A raw sentence through ``--tokenizer moses`` looks like the training data; the faster sets of
    characters change nothing.
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


def test_files_are_tokenized_in_order(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f"Line {n}, it's here.\n" for n in range(4500)), encoding="utf-8")
    for workers in (1, 2):
        count = subwords.tokenize_file(source, tmp_path / f"out{workers}", "en", workers)
        assert count == 4500
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes()
    assert (tmp_path / "out1").read_text().split("\n")[1700] == "Line 1700 , it &apos;s here ."
    source.write_bytes(b"fine\n\x01\x02\n")
    with pytest.raises(UserError, match=r"in, line 2: "):
        subwords.tokenize_file(source, tmp_path / "none", "en", 1)
    assert not (tmp_path / "none").exists()


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


def test_the_kind_is_that_of_the_model_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "spm.model").touch()
    assert subwords.kind_of(tmp_path) == "spm"
    (tmp_path / "bpe.codes").touch()
    with pytest.raises(UserError, match=r"bpe\.codes, spm\.model"):
        subwords.kind_of(tmp_path)


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


def _learn(folder: Path, out: Path) -> None:
    for lang in ("en", "de"):
        text = "".join(s[lang] + "\n" for s in sentences(200, seed=3))
        (folder / lang).write_text(text, encoding="utf-8")
    pieces.learn([folder / "en", folder / "de"], out, 120, sample=150)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spm")
    _learn(folder, folder / "model")
    return folder / "model"


def test_sentencepiece_changes_only_white_space(model: Path) -> None:
    lines = [
        "The old woman reads, because „Größe“ matters …",
        "½ ﬁne ² Ⅳ ~ @@ &amp; <s> <unk> x",  # no compatibility forms are folded
        "unbekannt: 漢字 и ещё",
        "a",
    ]
    split = pieces.split(lines, model)
    assert [pieces.join(line) for line in split] == lines
    assert all("  " not in line for line in split)
    (split,) = pieces.split(["a\u0085b \u2028 c\u00a0d"], model)
    assert pieces.join(split) == "a b c d"
    assert not any(c.isspace() and c != " " for c in split)  # fairseq would split there


def test_the_model_depends_on_the_text_alone(tmp_path: Path, model: Path) -> None:
    _learn(tmp_path, tmp_path / "another")
    assert (tmp_path / "another").read_bytes() == model.read_bytes()
    assert str(model.parent).encode() not in model.read_bytes()


def test_the_dictionary_is_the_models(model: Path, tmp_path: Path) -> None:
    from fairseq.data import Dictionary

    write_dictionary(pieces.symbols(model), tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) % 8 == 0
    processor = pieces.load(model)
    assert dictionary[4] == processor.id_to_piece(3)  # <unk>, <s> and </s> are fairseq's own
    known = {processor.id_to_piece(n) for n in range(processor.get_piece_size())}
    assert known <= set(dictionary.symbols)
    assert all(s.startswith("madeupword") for s in set(dictionary.symbols) - known - {"<pad>"})
    (split,) = pieces.split(["The old woman"], model)
    assert dictionary.unk() not in dictionary.encode_line(split, add_if_not_exist=False)


@pytest.mark.parametrize(("size", "bound"), [(5, r"5 vs (\d+)"), (9999, r"a value <= (\d+)")])
def test_the_possible_size_is_named(tmp_path: Path, size: int, bound: str) -> None:
    text = tmp_path / "text"
    text.write_text("".join(s["en"] + "\n" for s in sentences(200, seed=3)), encoding="utf-8")
    with pytest.raises(UserError, match=f"^{size} .*{bound}") as error:
        pieces.learn([text], tmp_path / "model", size)
    assert not (tmp_path / "model").exists()
    named = re.search(bound, str(error.value))
    assert named
    pieces.learn([text], tmp_path / "model", int(named[1]))
