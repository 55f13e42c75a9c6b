"""Stages from GLUE's and XNLI's official files to data for diet_sentence_prediction.

raw -> pieces -> input0, [input1,] label

The model reads ``<s> A </s>`` or ``<s> A </s> </s> B </s>``. Examples that are too long are
truncated as in BERT (Devlin et al. 2018): one subword at a time, at the end of the longer sentence.
Special tokens are never removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path

from ..corpora.binarized import UNKNOWN, count_in, need_fairseq, parts, preprocess, shown
from ..system.engine import Count, Preparation, Stage
from ..system.errors import UserError
from ..system.files import copy, lines_in, lines_of, make_folder, plain_or_gz, writing
from ..system.process import in_order
from ..system.progress import say, ticking
from . import glue
from .settings import LabelledSettings
from .tokenizer import checksum_of, file_of, load, say_unknown

MARKS = 2  # special tokens of each sentence
SHORTEST = 2 * (MARKS + 1)  # tokens: room for a subword of each sentence


def preparation_of_glue(
    out: Path, task: glue.Task, folder: Path, given: LabelledSettings
) -> Preparation:
    """The preparation of a GLUE task: ``folder/TASK/*.tsv`` -> ``out``."""
    if not (out / "raw").exists():
        for file in task.files:
            plain_or_gz(folder / task.name, file.name)
    make_raw = partial(glue.write_glue, folder, task, bad_rows=given.bad_rows)
    raw = Stage("raw", f"{task.name} from {folder}", make_raw)
    return _preparation(out, task.name, raw, len(task.sentences), task.labels.is_score, given)


def preparation_of_xnli(
    out: Path, folder: Path, mnli: Path, given: LabelledSettings
) -> Preparation:
    """The preparation of XNLI: its dev and test files, MNLI's training file -> ``out``."""
    if not (out / "raw").exists():
        for kind in glue.XNLI_SPLITS.values():
            glue.xnli_files(folder, kind)
        plain_or_gz(mnli / glue.MNLI, "train.tsv")
    make_raw = partial(glue.write_xnli, folder, mnli, bad_rows=given.bad_rows)
    raw = Stage("raw", f"{folder}, and {glue.MNLI} from {mnli}", make_raw)
    return _preparation(out, glue.XNLI, raw, 2, False, given)


def _preparation(
    out: Path, name: str, raw: Stage, sentences: int, scores: bool, given: LabelledSettings
) -> Preparation:
    """``sentences``: number of them in an example; ``scores``: whether labels are numbers."""
    need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    tokenizer, checksum = file_of(given.vocab), checksum_of(given.vocab)
    raw_text, pieces, dictionary = out / "raw", out / "pieces", given.vocab / "dict.txt"

    def split(to: Path) -> None:
        split_folder(raw_text, to, given.vocab, given.max_length, given.workers)

    def copy_scores(to: Path) -> None:
        make_folder(to)
        for file in sorted(raw_text.glob("*.label")):
            copy(file, to / file.name)

    does = f"subwords, at most {given.max_length} tokens"
    stages = [raw, Stage("pieces", does, split)]
    for part in (f"input{number}" for number in range(sentences)):
        stages.append(_binarized(out, part, pieces, dictionary, given.workers))
    if scores:  # fairseq reads them as text
        stages.append(Stage("label", "the scores", copy_scores))
    else:
        labels = raw_text / "labels.txt"
        stages.append(_binarized(out, "label", raw_text, labels, given.workers))
    # The folder itself defines how its pieces become text.
    stages.append(Stage(tokenizer.name, "the tokenizer", partial(copy, tokenizer)))
    words = f"{name} MAX_LENGTH={given.max_length} BAD_ROWS={given.bad_rows} vocabulary={checksum}"
    return Preparation(out, words, stages, partial(_counts, out), text="train.input0")


def _binarized(out: Path, part: str, text: Path, dictionary: Path, workers: int) -> Stage:
    """The stage that binarizes ``text/SPLIT.PART`` of all splits."""

    def files() -> list[Path]:
        return sorted(text.glob(f"*.{part}"))

    def options() -> list[object]:
        texts = ",".join(map(str, files())) or text / f"SPLIT.{part}"
        own = ["--only-source", "--srcdict", dictionary]
        return [*own, "--workers", parts(workers), "--testpref", texts]

    def make(to: Path) -> None:
        preprocess(options(), to, out / f"preprocess.{part}.log", f"fairseq-preprocess {part}")
        # fairseq names them test, test1, test2, ...; a split may have such a name, too.
        named = to / "named"
        named.mkdir()
        for number, file in enumerate(files()):
            for end in ("bin", "idx"):
                (to / f"test{number or ''}.{end}").rename(named / f"{file.stem}.{end}")
        for file in named.iterdir():
            file.rename(to / file.name)
        named.rmdir()

    # fairseq cannot resume.
    return Stage(part, shown(options(), out / part), make, restarts=True)


def _counts(out: Path) -> Iterator[Count]:
    for file in sorted((out / "raw").iterdir()):
        split, _, part = file.name.partition(".")
        if not part.startswith(("input", "label")) or file.name == "labels.txt":
            continue
        index, text = out / part / f"{split}.idx", out / part / file.name
        count = lines_in(text) if text.exists() else count_in(index)
        yield f"{split}, {part}", count, lines_in(file)


def shortened(sentences: Sequence[Sequence[str]], max_length: int) -> list[list[str]]:
    """Subwords of one or two sentences, truncated to ``max_length`` tokens, special ones included:
    one by one at the end of the longer sentence, of the second if both are equally long.
    """
    room = max_length - MARKS * len(sentences)
    if len(sentences) == 1:
        return [list(sentences[0][:room])]
    first, second = sentences
    half, rest = room // 2, room - room // 2
    if len(first) + len(second) > room:
        if len(second) <= half:
            first = first[: room - len(second)]
        elif len(first) <= rest:
            second = second[: room - len(first)]
        else:
            first, second = first[:rest], second[:half]
    return [list(first), list(second)]


def split_examples(
    lines: list[tuple[str, ...]], tokenizer: Path, max_length: int
) -> list[tuple[bool, tuple[str, ...]]]:
    """Whether each example was truncated, and the subwords of its sentences, joined by spaces.
    Raises UserError for a subword with white space.
    """
    split = load(tokenizer).pieces
    examples = []
    for sentences in lines:
        pieces = [split(sentence) for sentence in sentences]
        cut = shortened(pieces, max_length)
        texts = tuple(map(" ".join, cut))
        for subwords, text in zip(cut, texts, strict=True):
            if len(text.split()) != len(subwords):  # fairseq splits at white space
                raise UserError(f"{tokenizer}: a subword of '{text[:60]}' contains white space")
        examples.append((cut != pieces, texts))
    return examples


def split_folder(raw: Path, out: Path, tokenizer: Path, max_length: int, workers: int) -> None:
    """Writes missing ``out/SPLIT.input0`` and ``input1``. Raises UserError if there is no split."""
    make_folder(out)
    function = partial(split_examples, tokenizer=tokenizer, max_length=max_length)
    splits = sorted(path.name.removesuffix(".input0") for path in raw.glob("*.input0"))
    if not splits:
        raise UserError(f"{raw}: holds no *.input0; remove it and prepare it again")
    for split in splits:
        inputs = sorted(raw.glob(f"{split}.input?"))
        if all((out / path.name).exists() for path in inputs):
            say(f"{split}: done before")
            continue
        lines = zip(*map(lines_of, inputs), strict=True)
        examples = ticking(chain.from_iterable(in_order(function, lines, workers)), split)
        cut = subwords = unknown = 0
        with ExitStack() as stack:
            files = [stack.enter_context(writing(out / path.name)) for path in inputs]
            for was_cut, texts in examples:
                cut += was_cut
                for file, text in zip(files, texts, strict=True):
                    words = text.split(" ")
                    subwords += len(words)
                    unknown += words.count(UNKNOWN)
                    file.write(text + "\n")
        say(f"{split}: {cut:,} examples of more than {max_length} tokens were truncated")
        say_unknown(split, unknown, subwords)
