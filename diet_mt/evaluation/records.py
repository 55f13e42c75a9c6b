"""Rows of results: an evaluation of one trained model is one JSON line.

A results folder holds one file for each corpus, ``CORPUS.jsonl``, with a folder ``CORPUS`` of
hypotheses, and in ``tasks`` one for each task, ``TASK.jsonl``. Commands that evaluate write the
rows; the same evaluation again replaces its row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..system.errors import UserError
from .json_rows import Kind, Row, locked, read_rows, write_rows, wrong_field
from .options import Option, Options, assignments, comparable, difference, number

# Options of fairseq-train that define a Transformer or an encoder, or how it decodes, without those
# of the encoding and those of training, such as dropout.
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
ENCODING = "encoding"  # in Evaluation.positions
# Fields that must be equal in a row and in the one that replaces it; with another checkpoint, also
# those of the model and the options of its training.
_SAME_TEST = ("subwords", "references_sha256", "source_mended")
_SAME_MODEL = ("arch", "positions", "model", "parameters", "averaged")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class Evaluation(Row):
    """One trained model on one test set."""

    system: str  # in tables: diet_rel, sinusoidal, ...
    arch: str  # fairseq's --arch
    positions: Options = field(hash=False)  # "encoding" and its options; empty: stock
    model: Options = field(hash=False)  # MODEL_OPTIONS beyond the architecture's
    seed: int
    parameters: int  # trained numbers, shared ones counted once
    updates: int = 0  # of this checkpoint
    checkpoint_sha256: str
    training: Options = field(hash=False)  # fairseq-train; empty: unknown
    evaluation: Options = field(hash=False)  # the command that evaluated
    date: str  # of the evaluation, UTC, YYYY-MM-DD
    revision: str  # git describe, of the evaluation; empty outside a repository
    versions: dict[str, str] = field(hash=False)  # of fairseq, torch, sacrebleu, ...

    @property
    def encoding(self) -> str:
        """``diet-rel sharing=none scale=head``."""
        return encoding_text(self.positions)

    @property
    def file(self) -> str:
        """Name of the file of rows, without its suffix."""
        raise NotImplementedError


def encoding_text(positions: Mapping[str, object]) -> str:
    """Text of ``positions``, as in ``Evaluation.encoding``."""
    rest = {name: value for name, value in positions.items() if name != ENCODING}
    return f"{positions.get(ENCODING, '')} {assignments(rest)}".strip()


@dataclass(frozen=True, kw_only=True)
class Result(Evaluation):
    """Scores of the translations of a test set. BLEU and chrF from 0 to 100."""

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
    length_penalty: str = "fairseq"  # length^lenpen; or "gnmt": ((5 + length) / 6)^lenpen
    # Options of fairseq-generate beyond those that diet-mt sets; of --model-overrides apart.
    options: Options = field(default_factory=dict, hash=False)
    overrides: dict[str, Option] = field(default_factory=dict, hash=False)
    checkpoint: str  # the file's name
    averaged: int = 1  # checkpoints whose weights were averaged
    epoch: int  # epochs complete in this checkpoint
    train_tokens: int = 0  # target subwords, with end marks, in all updates
    train_revision: str = ""  # git describe, of the training's beginning
    subwords: str = "bpe"  # or "spm"
    sentences_per_second: float  # decoding alone, with the batches of the command
    tokens_per_second: float  # subwords of the best hypotheses
    words_per_second: float = 0.0  # of detokenized text
    threads: int
    device: str
    hypotheses: str  # path of the detokenized hypotheses within the results folder
    hypotheses_sha256: str
    references_sha256: str
    length_ratio: float  # words over those of the references
    precisions: str  # of BLEU, in percent: 1-grams/2-grams/3-grams/4-grams
    # If lenpen was tuned: every value, with its BLEU on the validation set.
    lenpen_tried: str = ""
    # Number of source lines changed by the normalization of the training text.
    source_mended: str = ""  # 3 lines, rules 1
    roles: float | None = None  # role accuracy, 0 to 100; None: the test set has no twins

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("bleu", "chrf", "roles"):
            if not 0 <= (getattr(self, name) or 0) <= 100:
                raise wrong_field(name, getattr(self, name), "0 to 100")
        if self.corpus in ("", ".", "..") or "/" in self.corpus:
            raise wrong_field("corpus", self.corpus, "the name of a file")
        if not {"", ".", ".."}.isdisjoint(self.hypotheses.split("/")):
            raise wrong_field("hypotheses", self.hypotheses, "a path within the results folder")

    @property
    def key(self) -> str:
        """Key of the row: its file of hypotheses."""
        return self.hypotheses

    @property
    def file(self) -> str:
        return self.corpus


@dataclass(frozen=True, kw_only=True)
class TaskResult(Evaluation):
    """A fine-tuned model on one split of one task."""

    task: str  # CoLA, MNLI, XNLI, XQuAD, ...
    split: str  # valid, valid1, test_sw, ...: the name in the prepared data
    language: str  # of the split: en, sw, ...
    segments: str  # value of --segment-encoding: none, input or per-head
    metrics: dict[str, float] = field(hash=False)  # from 0 to 100, correlations times 100
    main_metric: str  # the one of them that the paper reports
    pretrained_sha256: str  # of the pretrained checkpoint; empty: none
    pretrain_updates: int  # of the pretrained checkpoint
    pretrain_perplexity: float  # of its best validation; 0: unknown
    lr: float  # peak
    epochs: int  # as requested
    batch: int  # sentences or windows in one update
    examples: int = 0  # of the split, in the metrics; 0: not counted
    train_examples: int = 0  # 0: not counted
    chosen_by: str = ""  # how the checkpoint was selected: "valid accuracy"
    predictions: str = ""  # their file, relative to the working directory; empty: not saved
    notes: list[str] = field(default_factory=list, hash=False)  # shown with the table

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.main_metric not in self.metrics:
            raise wrong_field("main_metric", self.main_metric, f"one of {sorted(self.metrics)}")
        if not _NAME.fullmatch(self.task):
            raise wrong_field("task", self.task, "letters, digits, points and dashes")

    @property
    def score(self) -> float:
        """The main metric, 0 to 100."""
        return self.metrics[self.main_metric]

    @property
    def key(self) -> Hashable:
        """Key of the row, equal for evaluations of the same model on the same split."""
        model = json.dumps([self.arch, self.positions, self.model], sort_keys=True)
        return (
            *(self.task, self.split, self.language, self.system, self.segments, model),
            *(self.parameters, self.pretrained_sha256, self.seed),
            *(self.lr, self.epochs, self.batch),
        )

    @property
    def file(self) -> str:
        return self.task


def read_results(path: Path) -> list[Result]:
    """All translation results of a file, in order."""
    return read_rows(Result, path)


def read_task_results(path: Path) -> list[TaskResult]:
    """All task results of a file, in order."""
    return read_rows(TaskResult, path)


def system_of(arch: str) -> str:
    """``diet_rel_tiny`` -> ``diet_rel``; other architectures unchanged."""
    name, _, size = arch.rpartition("_")
    return name if name and size in SIZES else arch


def positions_of(signature: str) -> Options:
    """``Evaluation.positions`` of a model with this signature."""
    encoding, *words = signature.split() or [""]
    pairs = (word.partition("=") for word in words)
    return {
        **({ENCODING: encoding} if encoding else {}),
        **{name: number(value) if equals else True for name, equals, value in pairs},
    }


def model_data(given: Mapping[str, object]) -> Options:
    """``Evaluation.model``: the options of the model among ``given``, flags with "" or True."""
    options: Options = {}
    for name in sorted(MODEL_OPTIONS & given.keys()):
        value = given[name]
        plain = isinstance(value, (str, int, float)) or value is None
        options[name] = True if value == "" else value if plain else str(value)  # type: ignore[assignment]
    return options


def put_row(folder: Path, result: Evaluation) -> Path:
    """Adds ``result`` to its file in ``folder``, in place of the row with its key."""
    path = folder / f"{result.file}.jsonl"
    with locked(folder):
        refuse_another(path, type(result), result.key, vars(result))
        rows = {row.key: row for row in saved_rows(type(result), path)}
        write_rows(path, {**rows, result.key: result}.values())
    return path


def saved_rows(kind: type[Kind], path: Path) -> list[Kind]:
    """The rows of a file, which need not exist."""
    return read_rows(kind, path) if path.exists() else []


def refuse_another(
    path: Path, kind: type[Evaluation], key: Hashable, new: Mapping[str, Any]
) -> None:
    """Raises UserError if the row of ``path`` with this key is of another training or test set than
    the row ``new``.
    """
    for old in saved_rows(kind, path):
        same_checkpoint = old.checkpoint_sha256 == new["checkpoint_sha256"]
        sides = (_identity(row, with_model=not same_checkpoint) for row in (vars(old), new))
        if old.key == key and (what := difference(*sides)):
            which = f"{new['system']}, seed {new['seed']}"
            hint = "give this one another name: --system or, with --source, --test-set-name"
            raise UserError(f"{path}: {which}: another training or test set ({what}); {hint}")


def _identity(row: Mapping[str, Any], *, with_model: bool) -> dict[str, object]:
    """Fields that a replacing row must share."""
    names = (*_SAME_TEST, *_SAME_MODEL) if with_model else _SAME_TEST
    values = {name: row[name] for name in names if name in row}
    texts = {n: encoding_text(v) if isinstance(v, dict) else str(v) for n, v in values.items()}
    trained = comparable(row["training"]) if with_model else {}
    if "pretrained_sha256" in row:  # part of the key
        trained.pop("--finetune-from-model", None)
    return {**texts, **trained}
