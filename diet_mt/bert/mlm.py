"""Stages from plain text to the corpus of a masked language model.

    sentences -> sample -> wordpiece.json or spm.model -> pieces -> bin

``bin`` also contains the tokenizer, for ``--vocab`` of fine-tuning data.

The text has a paragraph per line and an empty line between documents. Sentences are split by
``sentencex`` (Wikimedia), which has rules and abbreviations for some 300 languages and no model to
download; pysbd does not support Czech, and other libraries need trained models. The text is changed
by ``tidy`` only. In ``pieces``, an empty line ends each document, as fairseq's
``--sample-break-mode`` requires.

Shares of languages are smoothed (Lample and Conneau 2019, arXiv:1901.07291, section 3.1): a
language with a share p of all sentences is drawn with a probability proportional to p ** alpha,
alpha = 0.5, for vocabulary and training. Here, n of c items are selected evenly instead of drawn,
repeatedly if n > c, so that the same text always gives the same corpus.
"""

from __future__ import annotations

import glob
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import sentencex

from ..corpora import binarized, pieces
from ..corpora.clean import tidy
from ..system.engine import Count, Preparation, Stage
from ..system.errors import UserError
from ..system.files import copy, lines_in, make_folder, text_lines, write_lines, writing
from ..system.process import apart, in_order
from ..system.progress import Progress, say
from . import tokenizer as tokenizers
from .settings import MlmSettings

SPLITS = ("train", "valid")
PARAGRAPHS = 200  # of one call of a worker
_LANGUAGE = re.compile(r"([a-z]{2,3}(?:-[a-z0-9]+)*):(.+)")
_RUN = 50  # sentences; parts of the text are repeated in runs
_MARKS = 2  # <s> and </s> of a sequence with one sentence
SHORTEST = _MARKS + 1  # sequence


def inputs(words: Iterable[str], language: str) -> dict[str, list[Path]]:
    """``LANGUAGE:FILE`` or ``FILE``, also patterns -> the existing files of each language;
    ``language``: that of files without LANGUAGE.
    """
    by_language: dict[str, list[Path]] = {}
    for word in words:
        match = _LANGUAGE.fullmatch(word)
        lang, name = match.groups() if match else (language, word)
        files = [name] if Path(name).is_file() else sorted(glob.glob(name))
        if not files:
            raise UserError(f"{name}: no such file; give FILE or LANGUAGE:FILE, as in cs:text.gz")
        by_language.setdefault(lang, []).extend(map(Path, files))
    return by_language


def need_text(files: Iterable[Path], name: str, *, whole: bool) -> None:
    """Raises UserError for files without text. ``whole``: reads to the end of the files."""
    lines = chain.from_iterable(map(read_documents, files))
    if not any(tidy(line, Counter()) for line in lines):
        raise UserError(f"{name}: no text in its files; give other files")
    if whole:
        deque(lines, maxlen=0)


def read_documents(file: Path) -> Iterator[str]:
    """The lines of a file, with an empty line after the last document."""
    for _, line in text_lines(file):
        yield line
    yield ""


def sentences_in(file: Path) -> Iterator[str]:
    """All lines except the empty ones."""
    return (line for line in read_documents(file) if line)


def sentences(lines: list[str], language: str) -> tuple[list[str], Counter[str]]:
    """Sentences of paragraphs, an empty one for each line without text, and counts of changes."""
    mended: Counter[str] = Counter()
    result: list[str] = []
    for line in lines:
        paragraph = tidy(line, mended)
        parts = (part.strip() for part in sentencex.segment(language, paragraph))
        result.extend([part for part in parts if part] or [""])
    return result, mended


def write_sentences(files: Iterable[Path], out: Path, language: str, workers: int = 1) -> None:
    """Writes the sentences of all files to ``out``; the end of a file ends a document."""
    paragraphs = chain.from_iterable(map(read_documents, files))
    progress, mended = Progress(out.name, "sentences"), Counter[str]()
    count, documents, between = 0, 0, True
    with writing(out) as file:
        split = partial(sentences, language=language)
        for part, changes in in_order(split, paragraphs, workers, PARAGRAPHS):
            mended += changes
            previous = count
            for sentence in part:
                if sentence:
                    if between:
                        file.write("\n" if documents else "")
                        documents += 1
                    file.write(sentence + "\n")
                    count += 1
                between = not sentence
            progress.add(count - previous)
    progress.done()
    kinds = [f"{number:,} {name}" for name, number in sorted(mended.items()) if number]
    say(f"{out.name}: {documents:,} documents, {count:,} sentences")
    say(f"{out.name}: normalized lines: {', '.join(kinds) or 'none'}")


def prepare_sentences(
    files: Mapping[str, Mapping[str, list[Path]]], folder: Path, workers: int = 1
) -> None:
    """Writes missing {train,valid}.LANGUAGE; ``files``: by split and language."""
    make_folder(folder)
    for split, by_language in files.items():
        for lang, paths in by_language.items():
            out = folder / f"{split}.{lang}"
            if out.exists():
                say(f"{out.name}: done before")
            else:
                write_sentences(paths, out, lang, workers)


def files_of(folder: Path, split: str) -> dict[str, Path]:
    """The files of one split by language, in alphabetical order; at least one."""
    files = {path.name.split(".", 1)[1]: path for path in sorted(folder.glob(f"{split}.*"))}
    if not files:
        raise UserError(f"{folder}: holds no {split}.LANGUAGE; remove it and prepare it again")
    return files


def shares(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """The share of each language from its number of sentences; ``alpha`` 0: equal shares."""
    total = sum(counts.values())
    weights = {lang: (count / total) ** alpha for lang, count in counts.items()}
    return {lang: weight / sum(weights.values()) for lang, weight in weights.items()}


def times(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """Repetitions of each language for these shares; the smallest is 1."""
    return {lang: (max(counts.values()) / count) ** (1 - alpha) for lang, count in counts.items()}


def copies(number: int, count: int, total: int) -> int:
    """Copies of item ``number``, from 0, of ``count`` items for a ``total`` number of copies."""
    return (number + 1) * total // count - number * total // count


def write_sample(folder: Path, out: Path, size: int, alpha: float) -> int:
    """Writes ``size`` training sentences of all languages, or all if there are fewer."""
    files = files_of(folder, "train")
    counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
    size = min(size, sum(counts.values()))

    def chosen() -> Iterator[str]:
        for lang, share in shares(counts, alpha).items():
            wanted = round(share * size)
            say(f"sample: {wanted:,} sentences of {lang}, from {counts[lang]:,}")
            for number, sentence in enumerate(sentences_in(files[lang])):
                for _ in range(copies(number, counts[lang], wanted)):
                    yield sentence

    return write_lines(out, chosen())


def cut(pieces: list[str], limit: int, begins_word: Callable[[str], bool]) -> list[list[str]]:
    """Pieces in parts of at most ``limit``, as long as possible, cut where a word begins."""
    parts = []
    while len(pieces) > limit:
        ends = (end for end in range(limit, 0, -1) if begins_word(pieces[end]))
        end = next(ends, limit)
        parts.append(pieces[:end])
        pieces = pieces[end:]
    return [*parts, pieces] if pieces else parts


def split_lines(lines: list[str], tokenizer: Path, limit: int) -> tuple[list[str], int, int, int]:
    """Lines of at most ``limit`` pieces, and the numbers of cut lines, pieces and unknown pieces.

    Empty lines remain; sentences without pieces (control characters only) are dropped.
    """
    loaded = tokenizers.load_file(tokenizer)
    out: list[str] = []
    long = total = unknown = 0
    for line in lines:
        pieces = loaded.pieces(line)
        parts = cut(pieces, limit, loaded.begins_word)
        long += len(parts) > 1
        total += len(pieces)
        unknown += pieces.count(binarized.UNKNOWN)
        out.extend([" ".join(part) for part in parts] if line else [""])
    return out, long, total, unknown


def runs(file: Path) -> Iterator[list[str]]:
    """Runs of at most _RUN sentences; an empty line ends the last run of each document."""
    run: list[str] = []
    for line in read_documents(file):
        if len(run) == _RUN and line:
            yield run
            run = []
        run.append(line)
        if not line:
            yield run
            run = []
    if run:
        yield run


def repeated(file: Path, factor: float) -> Iterator[str]:
    """The text of a file ``factor`` times: complete passes, then one over evenly selected runs;
    a document ends at an omitted run. Documents of any length are read as a stream.
    """
    if factor <= 1:
        yield from read_documents(file)
        return
    count = sum(1 for _ in runs(file))
    wanted = round(count * factor)
    for turn in range(-(-wanted // count)):
        open_document = False
        for number, some in enumerate(runs(file)):
            if copies(number, count, wanted) > turn:
                yield from some
                open_document = bool(some[-1])
            elif open_document:
                yield ""
                open_document = False


def write_pieces(
    sentences: Path, folder: Path, tokenizer: Path, max_length: int, alpha: float, workers: int = 1
) -> None:
    """Writes missing {train,valid}. ``max_length``: special tokens included."""
    make_folder(folder)
    limit = max_length - _MARKS
    split_some = partial(split_lines, tokenizer=tokenizer, limit=limit)
    for split in SPLITS:
        out = folder / split
        if out.exists():
            say(f"{split}: done before")
            continue
        files = files_of(sentences, split)
        factors = dict.fromkeys(files, 1.0)
        if split == "train" and len(files) > 1:
            counts = {lang: sum(1 for _ in sentences_in(file)) for lang, file in files.items()}
            factors = times(counts, alpha)
        progress, long, total, unknown = Progress(split), 0, 0, 0
        with writing(out) as text:
            for lang, file in files.items():
                if len(files) > 1:
                    say(f"{split}: {lang}, {factors[lang]:.2f} times")
                lines = repeated(file, factors[lang])
                for part, cuts, pieces, unknowns in in_order(split_some, lines, workers):
                    text.writelines(f"{line}\n" for line in part)
                    long, total, unknown = long + cuts, total + pieces, unknown + unknowns
                    progress.add(len(part))
        progress.done()
        tokenizers.say_unknown(split, unknown, total)
        say(f"{split}: {long:,} sentences of more than {limit} pieces were cut")


def preparation(
    out: Path, train: Sequence[str], valid: Sequence[str], given: MlmSettings
) -> Preparation:
    """``train``, ``valid``: [LANGUAGE:]FILE or patterns, without files in common."""
    binarized.need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    text = {
        split: inputs(words, given.language)
        for split, words in (("train", train), ("valid", valid))
    }
    _refuse_same(text)
    sentences, sample, ids = out / "sentences", out / "sample", out / "pieces"
    if not sentences.exists():
        for part, by_language in text.items():
            for language, files in by_language.items():
                # Only validation texts are short enough to be read completely.
                need_text(files, f"{part}.{language}", whole=part == "valid")
    is_wordpiece = given.subwords == "wordpiece"
    tokenizer = out / (tokenizers.WORDPIECE if is_wordpiece else tokenizers.SENTENCEPIECE)

    def learn(to: Path) -> None:
        if is_wordpiece:
            trainer = partial(tokenizers.learn_wordpiece, cased=given.cased)
            apart("WordPiece", trainer, [sample], to, given.vocab_size, grows=to)
        else:
            trainer = partial(pieces.learn, sample=given.vocab_sample, coverage=given.spm_coverage)
            # Two of fairseq's special symbols, <pad> and <mask>, are not in the model.
            apart("SentencePiece", trainer, [sample], to, given.vocab_size - 2, grows=to)

    def split(to: Path) -> None:
        length, alpha = given.max_length, given.alpha
        write_pieces(sentences, to, tokenizer, length, alpha, given.workers)

    options = [
        *("--only-source", "--srcdict", out / "dict.txt"),
        *("--workers", binarized.parts(given.workers)),
        *("--trainpref", ids / "train", "--validpref", ids / "valid"),
    ]

    def binarize(to: Path) -> None:
        tokenizers.write_dictionary_of(tokenizers.load_file(tokenizer), out / "dict.txt")
        binarized.preprocess(options, to, out / "preprocess.log")
        copy(tokenizer, to / tokenizer.name)
        write_lines(to / "max-length", [str(given.max_length)])

    def counts() -> Iterator[Count]:
        for name in SPLITS:
            yield name, binarized.count_in(out / "bin" / f"{name}.idx"), lines_in(ids / name)

    size, alpha = given.vocab_sample, given.alpha
    make_text = partial(prepare_sentences, text, workers=given.workers)
    make_sample = partial(write_sample, sentences, size=size, alpha=alpha)
    vocabulary, own = f"vocabulary of {given.vocab_size}", given.of_vocabulary()
    stages = [
        Stage("sentences", "one sentence per line, empty lines between documents", make_text),
        Stage("sample", f"at most {size} sentences", make_sample),
        Stage(tokenizer.name, vocabulary, learn, settings=own),
        Stage("pieces", "all sentences in pieces", split, settings=own),
        # fairseq cannot resume.
        Stage("bin", binarized.shown(options, out / "bin"), binarize, settings=own, restarts=True),
    ]
    words = f"TRAIN='{' '.join(train)}' VALID='{' '.join(valid)}' {given.words()}"
    first = next(iter(text["train"]))
    return Preparation(out, words, stages, counts, text=f"train.{first}", result="bin")


def _refuse_same(text: dict[str, dict[str, list[Path]]]) -> None:
    files = {
        split: {path.resolve(): path for paths in by_language.values() for path in paths}
        for split, by_language in text.items()
    }
    if common := files["train"].keys() & files["valid"].keys():
        raise UserError(f"{files['valid'][min(common)]}: in --train and in --valid; give others")
