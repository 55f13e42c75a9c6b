"""What a pretrained encoder is: the options that build it again, and how good it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY

from ..errors import UserError
from ..files import sha256
from ..models._roberta_options import DietRobertaConfig, plain_options
from .checkpoint import load_state, preset_of, reading

# Options that do not shape the model, or that fine-tuning has its own values for.
_NOT_ITS_SHAPE = ("_name", "segment_encoding", "max_positions", "load_checkpoint_heads")
_NOT_ITS_SHAPE_IF = ("dropout", "layerdrop", "min_params", "reg_scale")


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
    usual = plain_options(preset_of(arch))
    found = ["--arch", arch]
    for field in dataclasses.fields(DietRobertaConfig):
        name, value = field.name, values.get(field.name)
        if name in _NOT_ITS_SHAPE or any(part in name for part in _NOT_ITS_SHAPE_IF):
            continue
        if value is None or value == getattr(usual, name):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is False:
            raise UserError(
                f"{checkpoint}: made without {option}; fine-tune it by a command of yours"
            )
        found += [option] if value is True else [option, str(value)]
    # The longest input is that of the model.
    return [*found, "--max-positions", str(values["max_source_positions"])]
