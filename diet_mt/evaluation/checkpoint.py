"""What a checkpoint and its data say about a training."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..command_line import need_file
from ..corpora.binarized import language_pair
from ..errors import UserError, printable
from ..fairseq_patches.one_line_errors import one_line
from ..models._options import DietTransformerConfig
from .options import Options
from .records import model_options, positions_of


@dataclass(frozen=True)
class Trained:
    """Facts about one checkpoint, under the names of ``records.Result``."""

    arch: str
    positions: Options
    model: Options
    seed: int
    updates: int
    epoch: int
    parameters: int
    averaged: int
    train_tokens: int


def read_training(checkpoint: Path, data: Path) -> Trained:
    """Loads a checkpoint as fairseq does; ``data``: its binarized folder, for the dictionaries.

    Raises UserError where the file is missing, is no checkpoint of a training, or holds more than
    fairseq stores.
    """
    with reading(checkpoint):
        # Beside a state that is given, the function that builds the model takes no overrides.
        state = load_state(checkpoint, data=str(data))
        cfg, history = state["cfg"], state["optimizer_history"]
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], state=state)
        return Trained(
            arch=str(cfg["model"]["_name"]),
            positions=positions_of(str(getattr(models[0], "signature", ""))),
            model=model_options(_beyond_the_architecture(cfg["model"])),
            seed=int(cfg["common"]["seed"]),
            updates=int(history[-1]["num_updates"]),
            # fairseq stores the epoch that comes next.
            epoch=int(state["extra_state"]["train_iterator"]["epoch"]) - 1,
            parameters=sum(parameter.numel() for parameter in models[0].parameters()),
            averaged=len(state.get("averaged", ())) or 1,
            train_tokens=_tokens(state["extra_state"], int(history[-1]["num_updates"])),
        )


def _beyond_the_architecture(options: Mapping[str, Any]) -> dict[str, object]:
    """Options of a model, with dashes, whose value is not the one that its architecture has."""
    usual = {**vars(DietTransformerConfig()), **vars(preset_of(options["_name"]))}
    return unusual(options, usual)


def unusual(options: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``options``, with dashes, whose value is not the one in ``usual``, in its order."""
    return {
        name.replace("_", "-"): options[name]
        for name, value in usual.items()
        if name in options and options[name] != value
    }


def preset_of(arch: str) -> Namespace:
    """The options that a registered architecture sets."""
    preset = Namespace()
    ARCH_CONFIG_REGISTRY[arch](preset)
    return preset


def direction_of(checkpoint: Path, data: Path, subset: str) -> tuple[str, str]:
    """Source and target language that ``checkpoint`` was trained for.

    Raises UserError as ``read_training`` and ``language_pair``, and where ``data`` is of other
    languages.
    """
    own = language_pair(data, subset)
    with reading(checkpoint):
        task = task_of(checkpoint, load_state(checkpoint))
        # None: fairseq took them from the names of the files, and would again.
        trained = (str(task["source_lang"] or own[0]), str(task["target_lang"] or own[1]))
    if set(trained) != set(own):
        raise UserError(
            f"{checkpoint} translates {'-'.join(trained)}, but {data} holds {'-'.join(own)}; give "
            "the data folder that it was trained on"
        )
    return trained


def load_state(checkpoint: Path, **overrides: str) -> dict[str, Any]:
    state: dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint), overrides)
    return state


def task_of(checkpoint: Path, state: Mapping[str, Any]) -> Any:
    """The options of its task. Raises UserError for one that fairseq keeps as a Namespace: those of
    several languages, which only its own commands know.
    """
    task = state["cfg"]["task"]
    if isinstance(task, Namespace):
        raise UserError(f"{checkpoint}: trained with --task {task.task}; use fairseq-generate")
    return task


def load_with_task(checkpoint: Path, data: Path | None) -> tuple[Any, Any, Any]:
    """Model in evaluation mode, the configuration of its training, and fairseq's task over the
    folder ``data``; None: the folder of its training. Raises UserError where the checkpoint cannot
    be read, or not with this data.
    """
    overrides = {} if data is None else {"data": str(data)}
    with reading(checkpoint, data):
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(checkpoint)], arg_overrides=overrides
        )
    return models[0].eval(), cfg, task


@contextmanager
def reading(checkpoint: Path, data: Path | None = None) -> Iterator[None]:
    """Any error of torch or fairseq becomes a :class:`UserError` that names the file, and the
    ``data`` that it is read with.
    """
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
    """Target subwords, end marks included, that the updates were made of; 0 if it was not noted.

    fairseq's meter ``wpb`` (words per batch) averages them over the updates of all processes. Of
    its sets of meters, ``default`` alone is never reset while training goes on: ``train`` is at
    each end of an epoch. A training that continues where an epoch ended begins it anew, so the sum
    may lack what came before; the mean times the updates does not.
    """
    for _, name, _, state in extra_state.get("metrics", {}).get("default", ()):
        if name == "wpb" and state["count"]:
            return round(float(state["sum"]) / float(state["count"]) * updates)
    return 0


def device(words: Sequence[str]) -> str:
    """Where fairseq runs with these options: ``cpu``, or the name of the GPU."""
    if "--cpu" in words or not torch.cuda.is_available():
        return "cpu"
    return str(torch.cuda.get_device_name(0))
