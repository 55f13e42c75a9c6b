"""What an evaluation leaves behind: one result is one JSON line, and its hypotheses lie beside it.

A results folder holds one file for each corpus, ``CORPUS.jsonl``, and a folder ``CORPUS`` with the
hypotheses. Results are written by ``diet-mt evaluate``, never by hand. A hypothesis file belongs
to exactly one row: evaluating the same training again replaces both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import need_once, sha256, write_text
from .commands import difference, training_options, words_of
from .json_rows import Row, locked, put_row, read_rows, wrong_field

# Options of fairseq-train, without those of the encoding, that say what a Transformer or an encoder
# alone is or how it decodes; how it is trained (dropout and such) is not in it.
MODEL_OPTIONS = frozenset(
    """
    activation-fn adaptive-input adaptive-softmax-cutoff adaptive-softmax-factor base-layers
    base-shuffle base-sublayers beyond-table char-inputs cross-self-attention
    decoder-attention-heads decoder-embed-dim decoder-ffn-embed-dim decoder-input-dim decoder-layers
    decoder-layers-to-keep decoder-learned-pos decoder-normalize-before decoder-output-dim
    decoder-xformers-att-config encoder-attention-heads encoder-embed-dim encoder-ffn-embed-dim
    encoder-layers encoder-layers-to-keep encoder-learned-pos encoder-normalize-before
    encoder-xformers-att-config layernorm-embedding max-source-positions max-target-positions
    merge-src-tgt-embed no-cross-attention no-decoder-final-norm no-scale-embedding
    no-token-positional-embeddings num-segments pooler-activation-fn quant-noise-scalar
    share-all-embeddings share-decoder-input-output-embed tie-adaptive-proj tie-adaptive-weights
    untie-weights-roberta
    """.split()  # noqa: SIM905  (a list would take a line for each)
)
# Of our models; small is an encoder alone.
SIZES = ("tiny", "small", "base", "big")


@dataclass(frozen=True)
class Result(Row):
    """One trained model, decoded and scored. BLEU and chrF from 0 to 100."""

    system: str  # what is compared: diet_rel, sinusoidal, ...
    arch: str  # fairseq's --arch
    positions: str  # the encoding with its options (a rank if one was given); empty: stock fairseq
    seed: int
    corpus: str  # the data folder's name
    direction: str  # en-de
    test_set: str
    sentences: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    beam: int
    lenpen: float
    checkpoint: str  # the file's name
    checkpoint_sha256: str
    updates: int  # that this checkpoint has had
    epoch: int  # epochs complete in this checkpoint
    parameters: int  # trained numbers, shared ones counted once
    sentences_per_second: float  # decoding alone, with the batches of the command
    tokens_per_second: float  # subwords written by the best hypotheses
    threads: int
    device: str
    date: str  # of the decoding, UTC
    revision: str  # git describe, of the decoding; empty outside a repository
    fairseq: str  # distribution and version, of the decoding
    torch: str  # version, of the decoding
    sacrebleu: str  # version, of the scoring
    train_command: str
    generate_command: str
    hypotheses: str  # path of the detokenized hypotheses, seen from the results folder
    hypotheses_sha256: str
    references_sha256: str
    bleu_mean: float  # of SacreBLEU's bootstrap resamples of the test set
    bleu_ci: float  # half of their 95% interval: bleu_mean - bleu_ci to bleu_mean + bleu_ci
    model: str  # MODEL_OPTIONS beyond the architecture's
    train_revision: str = ""  # git describe, of the training's beginning
    length_penalty: str = "fairseq"  # length^lenpen; or "gnmt": ((5 + length) / 6)^lenpen
    averaged: int = 1  # checkpoints whose weights were averaged
    train_tokens: int = 0  # target subwords, with end marks, that the updates saw
    words_per_second: float = 0.0  # of detokenized text, decoding alone
    options: str = ""  # given to fairseq-generate beyond those that diet-mt sets
    subwords: str = "bpe"  # or "spm"
    length_ratio: float | None = None  # words over those of the references; None: not recorded
    precisions: str = ""  # of BLEU, in percent: 1-grams/2-grams/3-grams/4-grams
    # Where the validation set has chosen lenpen: every value tried, with its BLEU there.
    lenpen_tried: str = ""
    # Source lines that differ from the published text, as normalized like those of training.
    source_mended: str = ""  # 3 lines, rules 1
    roles: float | None = None  # role accuracy, 0 to 100; None: the test set has no twins

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self)

    @property
    def key(self) -> str:
        """A hypothesis file belongs to one row."""
        return self.hypotheses


_PERCENT = ("bleu", "bleu_mean", "chrf", "roles")
_SIGNED = ("seed", "lenpen")
_COMMANDS = ("train_command", "generate_command")
_PRECISIONS = re.compile(r"\d+\.?\d*(/\d+\.?\d*){3}")


def _check(result: Result) -> None:
    """Raises UserError for a value of the right type that no evaluation can have written."""
    for name, value in vars(result).items():
        if isinstance(value, (int, float)):
            if name in _PERCENT and not 0 <= value <= 100:
                raise wrong_field(name, value, "0 to 100")
            if value < 0 and name not in _SIGNED:
                raise wrong_field(name, value, "0 or more")
    if result.precisions and not _PRECISIONS.fullmatch(result.precisions):
        raise wrong_field("precisions", result.precisions, "four numbers with / between them")
    for name in _COMMANDS:
        try:
            words_of(getattr(result, name))
        except UserError as error:
            raise UserError(f"field '{name}': {error}") from None
    if result.corpus in ("", ".", "..") or "/" in result.corpus:
        raise wrong_field("corpus", result.corpus, "the name of a file")
    parts = result.hypotheses.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        raise wrong_field("hypotheses", result.hypotheses, "a path within the results folder")


def read_results(path: Path) -> list[Result]:
    """All rows of a file, in order. Raises UserError naming the file and the line."""
    return read_rows(Result, path)


def read_all(files: Iterable[Path]) -> list[tuple[Path, Result]]:
    """The rows of several files, each with its file. Raises UserError also where there are none."""
    files = list(files)
    need_once(files)
    rows = [(path, row) for path in files for row in read_results(path)]
    if not rows:
        raise UserError("the files hold no results; give those that diet-mt evaluate wrote")
    return rows


def system_of(arch: str) -> str:
    """``diet_rel_tiny`` -> ``diet_rel``; an architecture without one of our sizes as it is."""
    name, _, size = arch.rpartition("_")
    return name if name and size in SIZES else arch


def options_in(positions: str) -> dict[str, str]:
    """``diet-rel sharing=none scale=head`` -> its options by name."""
    pairs = (word.partition("=") for word in positions.split())
    return {key: value for key, equals, value in pairs if equals}


def model_text(given: Mapping[str, object]) -> str:
    """``Result.model``: the options of the model among ``given``, flags with "" or True."""
    return " ".join(
        name if given[name] == "" or given[name] is True else f"{name}={given[name]}"
        for name in sorted(MODEL_OPTIONS & given.keys())
    )


def put_result(folder: Path, result: Result, hypotheses: str) -> Path:
    """Keeps ``result`` and the text of its hypotheses in ``folder``; returns the rows' file.

    Takes the place of the row with the same hypothesis file, if there is one; where both are there
    already, nothing is written. Safe to be called by several processes at a time.

    Raises UserError for values that no reader would take, and where that row is of another
    training.
    """
    rows = folder / f"{result.corpus}.jsonl"
    with locked(folder):
        results = read_results(rows) if rows.exists() else []
        text = folder / result.hypotheses
        if result in results and text.is_file() and sha256(text) == result.hypotheses_sha256:
            return rows
        _refuse_another_training(results, vars(result))
        write_text(text, hypotheses)
        put_row(rows, result)
    return rows


def need_place(folder: Path, known: Mapping[str, Any]) -> None:
    """Raises UserError, as :func:`put_result` would, for what is known of a row before it is
    decoded: its fields corpus, hypotheses, checkpoint_sha256, train_command, and those that tell
    one training or test set from another.
    """
    rows = folder / f"{known['corpus']}.jsonl"
    _refuse_another_training(read_results(rows) if rows.exists() else [], known)


# What tells a row from another of the same name: of its evaluation; and of its training, where that
# is another checkpoint, beside the command.
_EVALUATED = ("subwords", "references_sha256", "source_mended")
_TRAINED = ("arch", "positions", "model", "parameters", "averaged")


def _refuse_another_training(results: list[Result], new: Mapping[str, Any]) -> None:
    """Raises UserError if a row with the fields ``new`` would take the place of one that it does
    not measure anew.

    A hypothesis file is named after corpus, architecture, seed and decoding. Trainings that differ
    in anything else would silently replace each other.
    """
    old = next((row for row in results if row.hypotheses == new["hypotheses"]), None)
    if old is None:
        return
    is_another = old.checkpoint_sha256 != new["checkpoint_sha256"]
    names = (*_TRAINED, *_EVALUATED) if is_another else _EVALUATED
    there, here = ({name: str(row[name]) for name in names} for row in (vars(old), new))
    if is_another:
        there |= training_options(old.train_command)
        here |= training_options(new["train_command"])
    if what := difference(there, here):
        raise UserError(
            f"{old.corpus}.jsonl has {old.hypotheses} of another training or test set ({what}); "
            "give --system another name for this one"
        )
