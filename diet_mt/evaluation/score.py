"""Scores what fairseq-generate printed and keeps the result; called by ``scripts/evaluate.sh``.

What the model wrote becomes text again as the subword model beside the data says (Moses tokens for
byte-pair encoding, plain text for SentencePiece), and is compared with the untouched references by
SacreBLEU. Prints one line with the scores and their signatures.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
from importlib import metadata
from pathlib import Path

from ..command_line import run
from ..corpora.detokenize import to_text
from ..corpora.parallel import read_lines
from ..corpora.subwords import kind_of
from ..decoding.penalty import PENALTIES
from .bleu import interval, score
from .checkpoint import Training, direction_of, language_pair, portable, read_training, system_of
from .decoded import Decoded, read_decoded
from .decoding_facts import Facts, read_facts
from .generation_options import mark_of
from .records import Result, put_result, sha256

# What a hypothesis file's name does not mention.
USUAL = {
    "subset": "test",
    "checkpoint": "checkpoint_best.pt",
    "beam": 10,
    "lenpen": 0.6,
    "length_penalty": "fairseq",
    "direction": "",  # as the data folder has the pair
    "options": "",  # the mark of others
}


def words_per_second(sentences: list[str], decoded: Decoded) -> float:
    """Words of the text, split at spaces, for each second of decoding."""
    words = sum(len(sentence.split()) for sentence in sentences)
    return round(words / len(sentences) * decoded.sentences_per_second, 2)


def hypotheses_name(corpus: str, name: str, seed: int, **how: str | int | float) -> str:
    """Path of a hypothesis file, seen from the results folder; ``how`` with the keys of USUAL."""
    unusual = [
        f".{key}-{str(how[key]).removesuffix('.pt')}" for key in USUAL if how[key] != USUAL[key]
    ]
    return f"{corpus}/{name}.{seed}{''.join(unusual)}.hyp.txt"


def make_result(
    args: argparse.Namespace,
    training: Training,
    decoded: Decoded,
    facts: Facts,
    pair: tuple[str, str],
) -> tuple[Result, str]:
    """The record of one evaluation and the text of its hypotheses file; ``pair``: from, into."""
    references = args.references or args.data.absolute().parent / "raw" / f"{args.subset}.{pair[1]}"
    subwords = args.subwords or kind_of(args.data)
    sentences = [to_text(line, pair[1], subwords) for line in decoded.hypotheses]
    expected = list(read_lines(references))
    scores = score(sentences, expected)
    bleu_mean, bleu_ci = interval(sentences, expected)
    text = "".join(line + "\n" for line in sentences)
    system = args.system or system_of(training.arch)
    corpus = args.data.absolute().parent.name
    how = {
        "subset": args.subset,
        "checkpoint": args.checkpoint.name,
        "beam": args.beam,
        "lenpen": args.lenpen,
        "length_penalty": args.length_penalty,
        "direction": "" if pair == language_pair(args.data, args.subset) else "-".join(pair),
        "options": mark_of(facts.options),
    }
    result = Result(
        system=system,
        arch=training.arch,
        positions=training.positions,
        model=training.model,
        seed=training.seed,
        corpus=corpus,
        direction="-".join(pair),
        test_set=args.test_set or f"{corpus} {args.subset}",
        sentences=len(sentences),
        bleu=scores.bleu,
        bleu_signature=scores.bleu_signature,
        chrf=scores.chrf,
        chrf_signature=scores.chrf_signature,
        beam=args.beam,
        lenpen=args.lenpen,
        checkpoint=args.checkpoint.name,
        checkpoint_sha256=sha256(args.checkpoint),
        updates=training.updates,
        epoch=training.epoch,
        parameters=training.parameters,
        sentences_per_second=decoded.sentences_per_second,
        tokens_per_second=decoded.tokens_per_second,
        sacrebleu=metadata.version("sacrebleu"),
        train_command=portable(_beside(args.checkpoint, "command")),
        train_revision=_beside(args.checkpoint, "revision"),
        generate_command=portable(args.generate_command.read_text(encoding="utf-8")),
        hypotheses=hypotheses_name(
            corpus,
            args.system or training.arch,
            training.seed,
            **how,
        ),
        hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
        references_sha256=sha256(references),
        bleu_mean=bleu_mean,
        bleu_ci=bleu_ci,
        length_penalty=args.length_penalty,
        averaged=training.averaged,
        train_tokens=training.train_tokens,
        words_per_second=words_per_second(sentences, decoded),
        subwords=subwords,
        **vars(facts),
    )
    return result, text


def _beside(checkpoint: Path, name: str) -> str:
    """What ``scripts/train.sh`` wrote beside the checkpoint; empty if another command trained."""
    file = checkpoint.parent / name
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.evaluation.score", description="score and record"
    )
    parser.add_argument("data", type=Path, help="folder made by fairseq-preprocess")
    parser.add_argument("checkpoint", type=Path, help="the checkpoint that was decoded")
    parser.add_argument("decoded", type=Path, help="standard output of fairseq-generate")
    parser.add_argument("log", type=Path, help="its standard error")
    parser.add_argument(
        "--generate-command", type=Path, required=True, help="file with the command that made it"
    )
    parser.add_argument(
        "--facts",
        type=Path,
        required=True,
        help="file with what diet_mt.evaluation.decoding_facts said of it",
    )
    parser.add_argument("--beam", type=int, required=True, help="that it was decoded with")
    parser.add_argument("--lenpen", type=float, required=True, help="that it was decoded with")
    parser.add_argument(
        "--length-penalty",
        choices=sorted(PENALTIES),
        default="fairseq",
        help="that it was decoded with (default fairseq)",
    )
    parser.add_argument(
        "--subwords",
        choices=("bpe", "spm"),
        help="of the data (default: by the model in its folder, bpe.codes or spm.model)",
    )
    parser.add_argument("--subset", default="test", help="decoded part of the data (default test)")
    parser.add_argument(
        "--references", type=Path, help="raw references (default DATA/../raw/SUBSET.TARGET)"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="default results")
    parser.add_argument("--test-set", help="its name in the record (default: folder and subset)")
    parser.add_argument("--system", help="name in the record (default: of the architecture)")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    logging.getLogger("fairseq").setLevel(logging.WARNING)

    def body() -> None:
        pair = direction_of(args.checkpoint, args.data, args.subset)
        decoded = read_decoded(args.decoded, args.log)
        training = read_training(args.checkpoint, args.data)
        facts = read_facts(args.facts)
        result, text = make_result(args, training, decoded, facts, pair)
        rows = put_result(args.results, result, text)
        print(
            f"{result.system}\tseed {result.seed}\tBLEU {result.bleu:.2f} "
            f"({result.bleu_mean:.2f} ± {result.bleu_ci:.2f}) {result.bleu_signature}"
            f"\tchrF {result.chrf:.2f} {result.chrf_signature}\t-> {rows}"
        )

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
