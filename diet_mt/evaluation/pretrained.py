"""What a pretrained encoder is: the options that build it again, and how good it is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY

from ..errors import UserError
from ..files import read_text, sha256
from ..models._roberta_options import DietRobertaConfig, plain_options
from .checkpoint import load_state, preset_of, reading, unusual
from .provenance import RECORD

# Options that do not shape the model, or that fine-tuning has its own values for.
_NOT_ITS_SHAPE = ("segment-encoding", "max-positions", "load-checkpoint-heads")
_NOT_ITS_SHAPE_IF = ("dropout", "layerdrop", "min-params", "reg-scale")


def pretrained_of(checkpoint: Path, saved: Mapping[str, Any]) -> dict[str, Any]:
    """``read_pretrained`` of the checkpoint that ``checkpoint`` was fine-tuned from.

    It comes from the record of the training, whose options were ``saved``: a path in a checkpoint
    is never opened. Raises UserError without a record, or for a damaged one.
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
    """Fields of :class:`TaskResult` about a pretrained checkpoint; None: there was none. Raises
    UserError where the file is no checkpoint of a training.
    """
    names = ("pretrained_sha256", "pretrain_updates", "pretrain_perplexity")
    if checkpoint is None:
        return dict(zip(names, ("", 0, 0.0), strict=True))
    with reading(checkpoint):
        state = load_state(checkpoint)
        updates = int(state["optimizer_history"][-1]["num_updates"])
        metric = str(state["cfg"]["checkpoint"]["best_checkpoint_metric"])
        value = state["extra_state"].get("val_loss")
    perplexity = 0.0
    if value is not None and metric in ("loss", "ppl"):
        # fairseq's losses are in bits.
        perplexity = round(2 ** float(value) if metric == "loss" else float(value), 4)
    return dict(zip(names, (sha256(checkpoint), updates, perplexity), strict=True))


def model_options(checkpoint: Path, system: str = "") -> list[str]:
    """The options of fairseq-train that build the model of a checkpoint: its architecture, and what
    it was pretrained with beyond that. Segments are left to the fine-tuning.

    Raises UserError where it is no checkpoint of ``diet_roberta``, is not of ``system``, the name
    of an encoding (empty: any), or was made with an option that no command line can repeat.
    """
    with reading(checkpoint):
        saved = load_state(checkpoint)["cfg"]["model"]
    values: Mapping[str, Any] = dict(saved) if isinstance(saved, Mapping) else vars(saved)
    arch = str(values.get("arch") or values.get("_name"))
    if arch not in ARCH_CONFIG_REGISTRY or not arch.startswith("roberta_"):
        raise UserError(f"{checkpoint}: made with --arch {arch}; give a pretrained diet_roberta")
    if system and values["position_encoding"] != system.replace("_", "-"):
        raise UserError(
            f"{checkpoint}: pretrained with {values['position_encoding']}, not {system}; give the "
            "checkpoint of this system"
        )
    found = ["--arch", arch]
    for name, value in beyond_the_architecture(arch, values).items():
        if name in _NOT_ITS_SHAPE or any(part in name for part in _NOT_ITS_SHAPE_IF):
            continue
        option = f"--{name}"
        if value is False:
            raise UserError(
                f"{checkpoint}: made without {option}; fine-tune it by a command of yours"
            )
        found += [option] if value is True else [option, str(value)]
    # The longest input is that of the model.
    return [*found, "--max-positions", str(values["max_source_positions"])]


def beyond_the_architecture(arch: str, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a ``diet_roberta``, with dashes, that ``arch``, its architecture, has not."""
    usual = vars(plain_options(preset_of(arch)))
    names = [each.name for each in dataclasses.fields(DietRobertaConfig) if each.name != "_name"]
    given = {name: value for name, value in saved.items() if value is not None}
    return unusual(given, {name: usual[name] for name in names})
