"""Facts about a training, from its checkpoint and data."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..corpora.binarized import language_pair
from ..fairseq_patches.error_lines import one_line
from ..models.options import DietTransformerConfig
from ..models.roberta_options import DietRobertaConfig, plain_options
from ..system.errors import UserError, printable
from ..system.files import read_text, sha256
from ..system.options import need_file
from .options import RECORD
from .records import model_data, positions_of

# Options that do not shape the model, or are set by the fine-tuning.
_NOT_ITS_SHAPE = ("segment-encoding", "max-positions", "load-checkpoint-heads")
_NOT_ITS_SHAPE_IF = ("dropout", "layerdrop", "min-params", "reg-scale")


def read_training(checkpoint: Path, data: Path) -> dict[str, Any]:
    """Fields of ``records.Result`` about a checkpoint; ``data``: folder with the dictionaries."""
    with reading(checkpoint):
        # fairseq ignores overrides when it builds the model of a loaded state.
        state = load_state(checkpoint, data=str(data))
        cfg, updates = state["cfg"], updates_of(state)
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], state=state)
        arch = str(cfg["model"]["_name"])
        return {
            "arch": arch,
            "positions": positions_of(str(getattr(models[0], "signature", ""))),
            "model": model_data(beyond_the_architecture(arch, cfg["model"])),
            "seed": int(cfg["common"]["seed"]),
            "updates": updates,
            # fairseq stores the epoch that comes next.
            "epoch": int(state["extra_state"]["train_iterator"]["epoch"]) - 1,
            "parameters": sum(parameter.numel() for parameter in models[0].parameters()),
            "averaged": len(state.get("averaged", ())) or 1,
            "train_tokens": _tokens(state["extra_state"], updates),
        }


def preset_of(arch: str) -> Namespace:
    """The options that a registered architecture sets."""
    preset = Namespace()
    ARCH_CONFIG_REGISTRY[arch](preset)
    return preset


def updates_of(state: Mapping[str, Any]) -> int:
    """The number of updates before a checkpoint."""
    return int(state["optimizer_history"][-1]["num_updates"])


def direction_of(checkpoint: Path, data: Path, subset: str) -> tuple[str, str]:
    """Source and target language of a checkpoint. Raises UserError for data of other languages."""
    own = language_pair(data, subset)
    with reading(checkpoint):
        task = task_of(checkpoint, load_state(checkpoint))
        # None: fairseq derives them from the names of the files.
        trained = (str(task["source_lang"] or own[0]), str(task["target_lang"] or own[1]))
    if set(trained) != set(own):
        sides = f"translates {'-'.join(trained)}, but {data} holds {'-'.join(own)}"
        raise UserError(f"{checkpoint} {sides}; give the data that it was trained on")
    return trained


def load_state(checkpoint: Path, **overrides: str) -> dict[str, Any]:
    """The content of a checkpoint; ``overrides``: options with other values."""
    state: dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint), overrides)
    return state


def task_of(checkpoint: Path, state: Mapping[str, Any]) -> Any:
    """The options of a checkpoint's task. Raises UserError for multilingual tasks."""
    task = state["cfg"]["task"]
    if isinstance(task, Namespace):
        raise UserError(f"{checkpoint}: trained with --task {task.task}; use fairseq-generate")
    return task


def load_with_task(
    checkpoint: Path, data: Path | None, state: dict[str, Any] | None = None
) -> tuple[Any, Any, Any]:
    """Model in evaluation mode, configuration of its training, and fairseq's task over ``data``
    (None: the data of its training). ``state``: content of the checkpoint, if it is loaded.
    """
    with reading(checkpoint, data):
        # fairseq ignores overrides when it builds the model of a loaded state.
        state = state or load_state(checkpoint, **({"data": str(data)} if data else {}))
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(checkpoint)], state=state
        )
    return models[0].eval(), cfg, task


@contextmanager
def reading(checkpoint: Path, data: Path | None = None) -> Iterator[None]:
    """Context that turns errors of torch and fairseq into a UserError that names the file."""
    need_file(checkpoint, "checkpoint; train first")
    try:
        yield
    except UserError as error:
        if printable(str(checkpoint)) in str(error):
            raise
        raise UserError(f"{checkpoint}: {error}") from None
    except Exception as error:  # torch and fairseq each have their own kinds
        why = one_line(error) or str(error).strip().split("\n")[0] or type(error).__name__
        where = f" with {data}, if that is what it was trained on" if data else ""
        raise UserError(f"{checkpoint}: cannot be loaded{where} ({why})") from error


def _tokens(extra_state: dict[str, Any], updates: int) -> int:
    """Target subwords, end marks included, in all updates; 0 if unknown.

    fairseq's meter ``wpb`` (words per batch) averages over the updates of all processes; only that
    of ``default`` is not reset at the end of an epoch. A resumed training may restart it: its mean
    counts, not its sum.
    """
    for _, name, _, state in extra_state.get("metrics", {}).get("default", ()):
        if name == "wpb" and state["count"]:
            return round(float(state["sum"]) / float(state["count"]) * updates)
    return 0


def device(words: Sequence[str]) -> str:
    """The device that fairseq uses with these options: ``cpu``, or the name of the GPU."""
    if "--cpu" in words or not torch.cuda.is_available():
        return "cpu"
    return str(torch.cuda.get_device_name(0))


def pretrained_of(checkpoint: Path, saved: Mapping[str, Any]) -> dict[str, Any]:
    """``read_pretrained`` of the checkpoint that ``checkpoint`` was fine-tuned from, as recorded in
    its folder: the path in its options ``saved`` is not opened. Raises UserError for no record.
    """
    name = saved["checkpoint"].get("finetune_from_model")
    file = checkpoint.parent / RECORD
    if not name:
        return read_pretrained(None)
    if not file.is_file():
        raise UserError(f"{checkpoint}: fine-tuned from {name}; give it as --pretrained")
    try:
        record = json.loads(read_text(file))
        kinds = {key: type(value) for key, value in read_pretrained(None).items()}
        return {key: kind(record[key]) for key, kind in kinds.items()}
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file}: damaged; remove it and give --pretrained") from None


def read_pretrained(checkpoint: Path | None) -> dict[str, Any]:
    """Fields of :class:`records.TaskResult` about a pretrained checkpoint; None: without one."""
    digest, updates, perplexity = "", 0, 0.0
    if checkpoint is not None:
        with reading(checkpoint):
            state = load_state(checkpoint)
            updates = updates_of(state)
            metric = str(state["cfg"]["checkpoint"]["best_checkpoint_metric"])
            value = state["extra_state"].get("val_loss")
        digest = sha256(checkpoint)
        if value is not None and metric in ("loss", "ppl"):
            # fairseq's losses are in bits.
            perplexity = round(2 ** float(value) if metric == "loss" else float(value), 4)
    return {
        "pretrained_sha256": digest,
        "pretrain_updates": updates,
        "pretrain_perplexity": perplexity,
    }


def model_options(checkpoint: Path, system: str = "") -> list[str]:
    """The options of fairseq-train that build the model of a pretrained encoder: architecture and
    shape, without segments. ``system``: required encoding; empty: any. Raises UserError for others.
    """
    with reading(checkpoint):
        saved = load_state(checkpoint)["cfg"]["model"]
    values: Mapping[str, Any] = dict(saved) if isinstance(saved, Mapping) else vars(saved)
    arch = str(values.get("arch") or values.get("_name"))
    if arch not in ARCH_CONFIG_REGISTRY or not arch.startswith("roberta_"):
        raise UserError(f"{checkpoint}: made with --arch {arch}; give a pretrained diet_roberta")
    if system and values["position_encoding"] != system.replace("_", "-"):
        encoding = values["position_encoding"]
        raise UserError(f"{checkpoint}: pretrained with {encoding}, not {system}; give another")
    words = ["--arch", arch]
    for name, value in beyond_the_architecture(arch, values).items():
        if name in _NOT_ITS_SHAPE or any(part in name for part in _NOT_ITS_SHAPE_IF):
            continue
        if value is False:
            raise UserError(f"{checkpoint}: made without --{name}; use fairseq-train")
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    # The longest input is that of the model.
    return [*words, "--max-positions", str(values["max_source_positions"])]


def beyond_the_architecture(arch: str, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a model that differ from its architecture's: name with dashes -> value."""
    preset = preset_of(arch)
    if arch.startswith("roberta_"):
        options = vars(plain_options(preset))
        names = [field.name for field in dataclasses.fields(DietRobertaConfig)]
        usual = {name: options[name] for name in names if name != "_name"}
        saved = {name: value for name, value in saved.items() if value is not None}
    else:
        usual = {**vars(DietTransformerConfig()), **vars(preset)}
    return {
        name.replace("_", "-"): saved[name]
        for name, value in usual.items()
        if name in saved and saved[name] != value
    }
