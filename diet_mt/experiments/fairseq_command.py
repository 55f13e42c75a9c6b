"""The fairseq-train command of a recipe and of the options given with it.

Options are mappings such as ``{"lr": ["0.005"], "share-all-embeddings": []}``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from ..bert.glue import ENGLISH, XNLI, Task, split_name
from ..corpora.binarized import bin_folder, language_pair
from ..evaluation.fairseq_options import import_fairseq, read_options
from ..evaluation.options import options_of
from ..evaluation.records import system_of
from ..system.errors import UserError
from ..system.files import PLUGIN, lines_in
from ..system.options import unknown
from .devices import Machines, place_of, split_update
from .recipes import Recipe

Options = dict[str, list[str]]

# Options of recipes and command lines that are not options of fairseq-train.
OWN = ("tokens-per-update", "sequences-per-update", "max-tokens-per-device", "warmup", "precision")
# Options of fairseq-train that do not determine the result and are not stored in ``command``.
_WHERE = ("stop-time-hours", "num-workers")
# Option that users cannot give, because it is set here -> hint.
_REFUSED = {
    **dict.fromkeys(
        ("arch", "user-dir", "log-format", "required-batch-size-multiple", "tpu"),
        "set by this command; leave it out",
    ),
    **dict.fromkeys(("fp16", "bf16"), "give --precision"),
    **dict.fromkeys(
        ("cpu", "distributed-world-size", "distributed-rank", "distributed-init-method"),
        "give --gpus, --nodes, --node-rank and --master",
    ),
}
_SQUAD = "SQuAD"
_ANY_ENCODER = "roberta_learned_base"  # for the options of a plan without a checkpoint


@dataclass(frozen=True)
class TrainingRequest:
    """Recipe, options, folder and devices of a training."""

    recipe: Recipe
    save: Path
    seed: int = 1
    given: Options = field(default_factory=dict)  # override those of the recipe
    machines: Machines = field(default_factory=lambda: Machines(precision=""))
    planned: bool = False  # a dry run: data and checkpoints may not exist yet


@dataclass(frozen=True)
class Training:
    """A run of fairseq-train: ``options`` determine the result, ``launch`` only its execution."""

    data: Path
    options: Options
    launch: list[str]
    save: Path
    node_rank: int = 0
    note: str = ""  # on devices and batches, for the user
    pending: str = ""  # options that depend on data and checkpoints that do not exist yet

    def words(self) -> list[str]:
        """The command as stored next to the checkpoints, without ``launch``."""
        return ["fairseq-train", str(self.data), "--user-dir", str(PLUGIN), *as_words(self.options)]

    def command(self) -> str:
        """The complete shell command."""
        return shlex.join([*self.words(), *self.launch])


def parse(words: Iterable[str]) -> Options:
    """Options of a command line; the last value counts. Raises :class:`UserError` for others."""
    options = options_of(words)
    if stray := options.pop("", None):
        raise UserError(f"unexpected argument '{stray[0]}'; options begin with --")
    return {name.lstrip("-"): values for name, values in options.items()}


def as_words(options: Mapping[str, list[str]]) -> list[str]:
    """The inverse of :func:`parse`."""
    return [word for name, values in options.items() for word in (f"--{name}", *values)]


def one(options: Options, name: str, default: str = "") -> str:
    """The value of an option, or ``default``."""
    return " ".join(options[name]) if name in options else default


def whole(options: Options, name: str, default: int = 0) -> int:
    """The value of an option, or ``default``. Raises :class:`UserError` unless it is 1 or more."""
    text = one(options, name, str(default))
    if name in options and not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UserError(f"--{name} {text}: expected a whole number of at least 1")
    return int(text)


def translation(data: Path, arch: str, request: TrainingRequest) -> Training:
    """Training of ``arch`` on ``data`` or ``data/bin``. Raises UserError for invalid options.

    If the data does not exist yet, the name of the folder determines the kind of subwords.
    """
    if arch.startswith("roberta_"):
        raise UserError(f"{arch} is an encoder-only model; see diet-mt pretrain --help")
    missing = request.planned and not data.exists()
    folder = data if missing else bin_folder(data)
    target = "" if missing else language_pair(folder)[1]
    options = _merged(request, system_of(arch), {"arch": [arch], "log-format": ["simple"]})
    if ("source-lang" in options) != ("target-lang" in options):  # fairseq would ignore it
        raise UserError("--source-lang, --target-lang: give both, or none")
    if "eval-bleu" in options:
        from ..corpora.subwords import kind_of  # imports sacremoses and subword_nmt

        target = one(options, "target-lang", target)
        if not target:
            raise UserError(f"{data}: no such folder yet; give --target-lang")
        subwords = ("spm" if ".spm" in str(data) else "bpe") if missing else kind_of(folder)
        moses = {"eval-bleu-remove-bpe": [], "eval-bleu-detok": ["moses"]}
        moses["eval-bleu-detok-args"] = [json.dumps({"target_lang": target})]
        pieces = {"eval-bleu-remove-bpe": ["sentencepiece"]}
        options |= (pieces if subwords == "spm" else moses) | options
    if updates := whole(options, "max-update"):
        _warm_up(options, updates)
    most = whole(options, "max-tokens-per-device") or whole(options, "max-tokens", 4096)
    return placed(folder, options, request, ("tokens", "max-tokens", most))


def masked_lm(data: Path, system: str, size: str, request: TrainingRequest) -> Training:
    """Pretraining of ``roberta_SYSTEM_SIZE`` on ``data``. Raises UserError for invalid options."""
    folder = data if request.planned and not data.exists() else bin_folder(data)
    system = system.replace("-", "_")
    fixed = {"arch": [f"roberta_{system}_{size}"], "log-format": ["json"]}
    options = _merged(request, system, fixed)
    length = whole(options, "tokens-per-sample", 512)
    positions = whole(options, "max-source-positions", length)
    if length > positions:  # fairseq would leave out longer sequences
        raise UserError(f"--tokens-per-sample {length}: exceeds --max-source-positions {positions}")
    longest = folder / "max-length"
    if longest.is_file() and int(pieces := longest.read_text(encoding="utf-8")) > length:
        what = f"{folder} has sentences of up to {pieces.strip()} pieces"
        raise UserError(f"--tokens-per-sample {length}: {what}; prepare shorter ones")
    updates = whole(options, "max-update")
    if not updates:
        raise UserError("--max-update: missing; it is the end of a pretraining")
    _warm_up(options, updates)
    if "lamb" in options.get("optimizer", ()):
        for part in ("betas", "eps"):
            if (values := options.pop(f"adam-{part}", None)) is not None:
                options.setdefault(f"lamb-{part}", values)
    most = max(whole(options, "max-tokens-per-device", 32768) // length, 1)
    return placed(folder, options, request, ("sequences", "batch-size", most))


def fine_tuning(
    data: Path, pretrained: Path, request: TrainingRequest, *, task: str = "", system: str = ""
) -> Training:
    """The fine-tuning of a checkpoint on the folder of a task.

    ``task``: CoLA, XNLI, SQuAD, ... (default: the name of ``data``); ``system``: required encoding
    (default: any). In a dry run, missing data is assumed to have the official number of examples.
    """
    from ..evaluation.checkpoint import model_options
    from ..evaluation.requests import specification

    questions, name = data / "train" / "about.json", task or data.resolve().name
    missing = request.planned and not data.exists()
    examples = 0 if missing else _examples(data, questions)
    if questions.is_file() or (missing and name == _SQUAD):
        head = {"task": ["extractive_qa"], "criterion": ["extractive_qa"]}
        head |= {"best-checkpoint-metric": ["f1"]}
        task = task or _SQUAD
    else:
        task, about = name, specification(name)
        head, examples = _classification(about), examples or about.official[0]
    # For zero-shot transfer, training and validation use English only.
    if task == XNLI:
        head["valid-subset"] = [split_name("valid", ENGLISH)]
    later = request.planned and not pretrained.exists()
    model = {} if later else parse(model_options(pretrained, system))
    fixed = {"finetune-from-model": [str(pretrained)], **head, **model}
    fixed |= {"maximize-best-checkpoint-metric": [], "log-format": ["simple"]}
    arch = one(model, "arch", system)
    options = _merged(request, system_of(arch.removeprefix("roberta_")), fixed)
    batch = whole(options, "batch-size", 32) * whole(options, "update-freq", 1)
    updates = -(-examples // batch) * whole(options, "max-epoch", 1)
    if updates := whole(options, "max-update", updates):
        _warm_up(options, updates)
    pending = [] if updates else ["--total-num-update and --warmup-updates"]
    pending += [f"--arch and other options of {pretrained}"] if later else []
    training = replace(placed(data, options, request, None), pending=" and ".join(pending))
    # One process, because runs are small and executed in parallel.
    training.options["distributed-world-size"] = ["1"]
    return training


def _merged(request: TrainingRequest, system: str, fixed: Options) -> Options:
    """``fixed`` options, overridden by those of the recipe, and these by the given ones.

    Given updates replace the recipe's epochs, and given epochs its updates.
    """
    values = request.recipe.values_of(system)
    options = {
        name: [] if value is True else [str(value)]
        for name, value in values.items()
        if value is not None and value is not False
    }
    for end, other in (("max-update", "max-epoch"), ("max-epoch", "max-update")):
        if end in request.given and other not in request.given:
            options.pop(other, None)
    options |= request.given
    for name in options:
        if name in _REFUSED:
            raise UserError(f"--{name}: {_REFUSED[name]}")
    options = {
        name: [value.replace("{save-dir}", str(request.save)) for value in values]
        for name, values in options.items()
    }
    # Results are comparable only with the same batches, which depend on this multiple.
    own = {"seed": [str(request.seed)], "save-dir": [str(request.save)]}
    return fixed | options | {"required-batch-size-multiple": ["1"]} | own


def _warm_up(options: Options, updates: int) -> None:
    """Sets fairseq's options for warm-up (``warmup``: share of ``updates``) and linear decay."""
    if share := options.pop("warmup", None):
        options.setdefault("warmup-updates", [str(int(updates * Decimal(share[0])))])
    if one(options, "lr-scheduler") == "polynomial_decay":
        options.setdefault("total-num-update", [str(updates)])


def placed(
    data: Path, options: Options, request: TrainingRequest, share: tuple[str, str, int] | None
) -> Training:
    """The training on the devices of the identical machines; changes ``options`` in place.

    ``share``: for dividing the recipe's update: unit ("tokens"), fairseq's option for the size of a
    batch ("max-tokens"), and the maximum on a device. Raises UserError for conflicting options.
    """
    machines = request.machines
    precision = machines.precision or one(options, "precision", "auto")
    unit, option, most = share or ("", "", 0)
    total = whole(options, f"{unit}-per-update")
    if not total and "max-tokens-per-device" in request.given:
        raise UserError("--max-tokens-per-device: no update size in the recipe; give --max-tokens")
    for name in OWN:
        options.pop(name, None)
    launch = as_words({name: options.pop(name) for name in _WHERE if name in options})
    if not total and precision != "auto" and (machines.gpus, machines.nodes) == ("auto", 1):
        # All visible GPUs.
        return Training(data, options | _flags(precision), launch, request.save)
    here = place_of(replace(machines, precision=precision))
    note = ""
    if total:
        for name in (option, "update-freq"):
            if name in request.given:
                raise UserError(f"--{name}: give --{unit}-per-update and --max-tokens-per-device")
        batches = split_update(total, most, here.processes)
        options |= {option: [str(batches.tokens)], "update-freq": [str(batches.per_update)]}
        where = f"{machines.nodes} x {here.gpus} GPUs" if here.gpus else f"{here.processes} x CPU"
        note = (
            f"{where}, {here.precision}, {batches.per_update} x {batches.tokens} {unit} on each: "
            f"{batches.total} {unit} for an update"
        )
    options |= {"distributed-world-size": [str(here.processes)]} | _flags(here.precision)
    rank = machines.node_rank if machines.nodes > 1 else 0
    return Training(data, options, launch + here.launch, request.save, rank, note)


def _flags(precision: str) -> Options:
    return {} if precision == "fp32" else {precision: []}


def _examples(data: Path, questions: Path) -> int:
    """Number of training examples, or of windows for question answering."""
    ids = data / "raw" / "train.id"
    if questions.is_file():
        from ..bert.windows import read_about

        return read_about(questions.parent).windows
    if ids.is_file():
        return lines_in(ids)
    raise UserError(f"{data}: not made by diet-mt prepare glue, xnli or qa")


def _classification(task: Task) -> Options:
    """Options of fairseq's task and criterion for classification and regression."""
    return {
        "task": ["diet_sentence_prediction"],
        "criterion": ["diet_sentence_prediction"],
        "init-token": ["0"],
        "separator-token": ["2"],
        "num-classes": [str(task.classes)],
        **({"regression-target": []} if task.labels.is_score else {}),
        "metrics": [" ".join(task.metrics)],
        "best-checkpoint-metric": [task.main_metric],
    }


def check(training: Training, own: Iterable[str] = ()) -> None:
    """Raises :class:`UserError` for invalid options; ``own``: of diet-mt, for suggestions."""
    import_fairseq()
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.options import get_training_parser

    options = {"arch": [_ANY_ENCODER], **training.options}
    if (arch := one(options, "arch")) not in ARCH_MODEL_REGISTRY:
        raise UserError(unknown("architecture", arch, ARCH_MODEL_REGISTRY))
    words = [str(training.data), *as_words(options), *training.launch]
    read_options(get_training_parser(), words, own)
    file = one(training.options, "restore-file")
    if file and not Path(file).is_file():  # fairseq would start from scratch
        raise UserError(f"--restore-file {file}: no such checkpoint")
