"""Can gold answers be said in subwords? From characters to pieces and back, for whole files.

    python -m tools.round_trip --out results/qa/round-trip.md xquad.*.json.gz

An answer of a model begins and ends with a piece, so a gold answer that begins or ends within one
comes back with some characters more. Each gold answer is mapped to its pieces, which are mapped
back; what does not come back is listed with its cause, in a file of tab-separated values beside
the report. Tokenizers are those of ``--vocab NAME=FOLDER``, or learnt from the files themselves.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diet_mt.bert import tokenizer, wordpiece
from diet_mt.bert.answer_scores import squad_scores
from diet_mt.bert.questions.features import make_features
from diet_mt.bert.questions.spans import Extent, extents_of, pieces_at, text_at
from diet_mt.bert.questions.squad import Answer, Question, read_squad
from diet_mt.bert.questions.windows import WindowSizes
from diet_mt.bert.tokenizer import UNKNOWN, Span, Tokenizer
from diet_mt.command_line import run
from diet_mt.corpora import pieces
from diet_mt.errors import UserError
from diet_mt.files import make_folder, write_lines, writing

_HEAD = """# Gold answers, from characters to subwords and back

Every gold answer of every question is mapped to the pieces that hold it, and these back to
characters. Same: the very text of the answer. Normalized: the same by SQuAD's exact match (case,
English articles, ASCII punctuation). Whole: held by one window of 512 tokens, of which the next one
begins 128 later.
"""


@dataclass(frozen=True)
class Miss:
    """A gold answer that its pieces do not give back."""

    tokenizer: str
    file: str
    question: str
    gold: str
    found: str
    normalised: bool  # whether it is the same after SQuAD's normalization
    cause: str


@dataclass
class Count:
    """Of one file and one tokenizer."""

    file: str
    tokenizer: str
    answers: int = 0
    lost: int = 0  # that no window of the usual sizes holds as a whole
    misses: list[Miss] = field(default_factory=list)

    @property
    def same(self) -> int:
        return self.answers - len(self.misses)

    @property
    def same_normalised(self) -> int:
        return self.answers - sum(not miss.normalised for miss in self.misses)


def round_trip(questions: Sequence[Question], name: str, file: str, tokens: Tokenizer) -> Count:
    """Maps every gold answer to pieces and back."""
    count = Count(file, name)
    context, spans, extents = "", [], []  # type: str, list[Span], list[Extent]
    for question in questions:
        if question.context != context:
            context = question.context
            spans = tokens.spans(context)
            extents = extents_of(context, spans)
        for answer in question.answers:
            count.answers += 1
            found, cause = _back(answer, context, spans, extents)
            if found != answer.text:
                same = squad_scores(found, [answer.text], version_2=False)[0] == 1
                miss = Miss(name, file, question.id, answer.text, found, same, cause)
                count.misses.append(miss)
    count.lost = make_features(questions, tokens, {}, WindowSizes())[1]
    return count


def _back(
    answer: Answer, context: str, spans: Sequence[Span], extents: Sequence[Extent]
) -> tuple[str, str]:
    """The text of the pieces of an answer, and why it is another one, if it is."""
    held = pieces_at(extents, answer.start, answer.end)
    if held is None:
        return "", "no piece stands for it"
    (begin, _), (_, end) = extents[held[0]], extents[held[1]]
    causes = []
    if answer.text != answer.text.strip():
        causes.append("white space around the gold answer")
    gold_begin = answer.start + len(answer.text) - len(answer.text.lstrip())
    gold_end = answer.start + len(answer.text.rstrip())
    for place, border, side in ((begin, gold_begin, "begins"), (end, gold_end, "ends")):
        if place != border:
            piece, first, last = spans[held[0] if side == "begins" else held[1]]
            if first <= border <= last and piece == UNKNOWN:
                causes.append(f"{side} inside a word without pieces {context[first:last]!r}")
            elif first <= border <= last:
                causes.append(f"{side} inside the piece {piece!r} ({context[first:last]!r})")
            else:
                causes.append(f"{side} with characters that no piece stands for")
    return text_at(context, begin, end), "; ".join(causes)


def learn(questions: Iterable[Question], folder: Path, size: int) -> dict[str, Path]:
    """Learns a tokenizer of each kind from contexts and questions; returns their folders."""
    texts = dict.fromkeys(
        " ".join(text.split()) for each in questions for text in (each.context, each.text)
    )
    lines = folder / "text"
    write_lines(lines, texts)
    folders = {name: folder / name for name in ("WordPiece", "WordPiece, cased", "SentencePiece")}
    for name, place in folders.items():
        make_folder(place)
        if name == "SentencePiece":
            pieces.learn([lines], place / tokenizer.SENTENCEPIECE, size)
        else:
            out = place / tokenizer.WORDPIECE
            wordpiece.learn([lines], out, size, cased="cased" in name)
    return folders


def report(counts: Sequence[Count], misses: str, command: str) -> Iterator[str]:
    """The report's lines, in Markdown."""
    yield from _HEAD.split("\n")
    yield "| file | tokenizer | answers | same | normalized | whole |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for each in counts:
        shares = (each.same, each.same_normalised, each.answers - each.lost)
        shown = " | ".join(f"{100 * share / each.answers:.2f}%" for share in shares)
        yield f"| {each.file} | {each.tokenizer} | {each.answers} | {shown} |"
    yield ""
    total = [miss for each in counts for miss in each.misses]
    yield f"{len(total)} answers come back otherwise. All are in `{misses}`, one line each, with"
    yield "the pieces that are to blame. By cause:"
    yield ""
    yield "| tokenizer | cause | answers | of these, the same normalized |"
    yield "| --- | --- | ---: | ---: |"
    kinds = Counter((miss.tokenizer, _kind(miss.cause)) for miss in total)
    mild = Counter((miss.tokenizer, _kind(miss.cause)) for miss in total if miss.normalised)
    for (name, kind), number in sorted(kinds.items()):
        yield f"| {name} | {kind} | {number} | {mild[name, kind]} |"
    yield ""
    yield f"Made by `{command}`."


def _kind(cause: str) -> str:
    """A cause without the pieces."""
    return "; ".join(part.split(" '")[0].split(' "')[0] for part in cause.split("; "))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools.round_trip", description="answers and pieces")
    parser.add_argument("files", type=Path, nargs="+", help="SQuAD's JSON, plain or gzipped")
    parser.add_argument("--out", type=Path, required=True, help="report to write, .md")
    parser.add_argument(
        "--vocab", action="append", default=[], metavar="NAME=FOLDER", help="a tokenizer's folder"
    )
    parser.add_argument(
        "--size",
        type=int,
        default=16000,
        help="pieces of tokenizers that are learnt (default 16000)",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        logging.getLogger("fairseq").setLevel(logging.WARNING)
        sets = {file.name: read_squad(file) for file in args.files}
        for name, questions in sets.items():
            if not any(each.answers for each in questions):
                raise UserError(f"{name}: no gold answers")
        with tempfile.TemporaryDirectory() as temporary:
            folders = {}
            for given in args.vocab:
                name, sign, folder = given.partition("=")
                if not sign:
                    raise UserError(f"--vocab {given}: expected NAME=FOLDER")
                folders[name] = Path(folder)
            every = [each for questions in sets.values() for each in questions]
            folders = folders or learn(every, Path(temporary), args.size)
            counts = [
                round_trip(questions, name, file, tokenizer.load(folder))
                for file, questions in sets.items()
                for name, folder in folders.items()
            ]
        _write(args.out, counts, args)

    return run(body)


def _write(out: Path, counts: Sequence[Count], args: argparse.Namespace) -> None:
    make_folder(out.parent)
    misses = out.with_suffix(".misses.tsv")
    with writing(misses) as file:
        file.write("tokenizer\tfile\tquestion\tgold\tfound\tsame normalized\tcause\n")
        for miss in (miss for each in counts for miss in each.misses):
            row = (miss.tokenizer, miss.file, miss.question, miss.gold, miss.found)
            same = "yes" if miss.normalised else "no"
            cells = (" ".join(cell.split()) for cell in (*row, same, miss.cause))
            file.write("\t".join(cells) + "\n")
    names = " ".join(file.name for file in args.files)
    options = "".join(f" --vocab {name.partition('=')[0]}=..." for name in args.vocab)
    options = options or f" --size {args.size}"
    command = f"python -m tools.round_trip --out {out.name}{options} {names}"
    write_lines(out, report(counts, misses.name, command))
    for each in counts:
        share = 100 * each.same_normalised / each.answers
        print(f"{each.file}\t{each.tokenizer}\t{each.answers}\t{share:.2f}% normalized")


if __name__ == "__main__":
    sys.exit(main())
