"""Scores predictions in SQuAD's format: F1 and exact match, equal to the official evaluations.

    python -m diet_mt.evaluation.score_answers dev-v1.1.json predictions.json
    python -m diet_mt.evaluation.score_answers --scoring mlqa --language de mlqa.json predictions.json

SQuAD's scoring serves XQuAD and TyDiQA-GoldP too; that of version 2.0 is used where a question is
impossible. Prints one JSON object. A question without a prediction counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from ..bert.answer_scores import best_thresholds, score, scoring_of
from ..bert.questions.predictions import read_null_odds, read_predictions
from ..bert.questions.prepare import SCORINGS
from ..bert.questions.squad import read_squad
from ..command_line import run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.evaluation.score_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("gold", type=Path, help="SQuAD's JSON, plain or gzipped")
    parser.add_argument("predictions", type=Path, help="predictions.json: texts by ids")
    parser.add_argument("--scoring", choices=SCORINGS, default="squad", help="default squad")
    parser.add_argument("--language", default="", help="of the gold answers, for --scoring mlqa")
    parser.add_argument(
        "--null-odds", type=Path, help="null_odds.json of SQuAD 2.0: adds the best thresholds"
    )
    args = parser.parse_args(argv)
    logging.getLogger("fairseq").setLevel(logging.WARNING)

    def body() -> None:
        questions = read_squad(args.gold)
        texts = read_predictions(args.predictions)
        found = score(questions, texts, scoring_of(args.scoring, args.language, questions))
        shown = found.summary()
        if args.null_odds:
            shown |= best_thresholds(found, texts, read_null_odds(args.null_odds))
        missing = len(questions) - len(found.by_id)
        if missing:
            print(f"{missing} of {len(questions)} questions have no prediction", file=sys.stderr)
        print(json.dumps({"total": len(questions)} | shown))

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
