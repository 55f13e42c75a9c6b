"""Checks the integrity of data, checkpoints, saved hypotheses and answers.

    diet-mt verify data/multi30k.en-de                  prepared data: the folder, or its bin
    diet-mt verify checkpoints/diet_rel.1 CHECKPOINT.pt
    diet-mt verify results/*.jsonl --references data/multi30k.en-de/raw/test.de
    diet-mt verify predictions.json --references dev-v1.1.json
    diet-mt verify predictions.json --references mlqa.de.json --scoring mlqa --language de

Prepared data: checksums, the number of sentences of text and binarized data, both sides of each
split, every token against its dictionary. Checkpoints: checksums within the file, all tensors of
the model, their shapes and finite values, the optimizer's state. Prints a line with OK, or a line
for each fault.

Rows (.jsonl): sentences, BLEU, its bootstrap interval, length ratio and precisions, chrF, the
signatures, and the n-gram counts of every sentence equal those of the saved hypotheses. References
are matched to rows by checksum.

Answers (.json), anyone's, in SQuAD's format: F1 and exact match, equal to the official evaluations,
as one JSON object. SQuAD's scoring serves XQuAD and TyDiQA-GoldP too; that of version 2.0 is used
where a question is impossible. A question without a prediction counts as wrong.

Tables, pages and pictures are not checked: `make results` makes them again from the rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..bert.squad import SCORINGS
from ..command_line import Parser
from ..errors import UserError


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("kept", type=Path, nargs="+", metavar="PATH", help="prepared data, checkpoints, rows or "
        "answers")  # fmt: skip
    what = "of rows and answers: raw references; gold answers"
    add("--references", type=Path, nargs="+", default=[], metavar="FILE", help=what)
    add("--scoring", choices=SCORINGS, default="squad", help="of answers (default squad)")
    add("--language", default="", metavar="XX", help="of the gold answers, for --scoring mlqa")
    add("--null-odds", type=Path, metavar="FILE", help="of SQuAD 2.0: adds the best thresholds")


def run(args: argparse.Namespace) -> None:
    scored = [path for path in args.kept if path.suffix in (".jsonl", ".json")]
    if not (scored or args.references):
        from ..evaluation.fairseq_options import import_fairseq

        import_fairseq()
        from ..evaluation.verify import self_check

        self_check(args.kept)
        return
    if not args.references:
        raise UserError(f"{scored[0]}: give --references, the texts it was scored with")
    answers = [path for path in args.kept if path.suffix != ".jsonl"]
    if answers:
        if len(args.kept) > 1 or len(args.references) > 1:
            raise UserError("answers: give one FILE and one file of gold answers")
        from ..bert.answer_scores import score_files

        print(
            score_files(
                *(args.references[0], answers[0]),
                scoring=args.scoring,
                language=args.language,
                null_odds=args.null_odds,
            )
        )
        return
    if (args.scoring, args.language, args.null_odds) != ("squad", "", None):
        raise UserError("--scoring, --language and --null-odds: only for answers")
    from ..evaluation.rescore import rescore

    rescore(args.kept, args.references)
