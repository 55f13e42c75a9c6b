"""Verification of checkpoints and prepared data."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils

from ..corpora.binarized import FIRST, check_prepared, is_prepared
from ..system.errors import UserError, printable
from ..system.files import write_lines
from .checkpoint import load_state, reading, task_of, updates_of
from .options import companion, shell, training_of

# Optimizers without state, or with another state for a vector than for a matrix.
_UNEVEN = ("sgd", "adafactor")


def self_check(paths: Sequence[Path]) -> None:
    """Prints summaries or faults of checkpoints and data folders. Raises UserError for faults."""
    wrong = things = 0
    for path in paths:
        for name, faults, summary in _checked(path):
            things += 1
            wrong += bool(faults)
            print("\n".join(map(printable, faults or [f"{name}: OK, {summary}"])))
    if wrong:
        raise UserError(f"{wrong} of {things} checks failed")


def _checked(path: Path) -> Iterator[tuple[Path, list[str], str]]:
    """Name, faults and summary of each checkpoint or data folder at a path."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if is_prepared(path):
        yield path, *check_prepared(path)
        return
    files = [path] if path.is_file() else sorted(path.glob("*.pt"))
    if not files and (path / "done").exists():
        yield path, [f"{path}: finished, but its checkpoints are gone"], ""
    elif not files:
        raise UserError(f"{path}: holds neither prepared data nor checkpoints")
    for file in files:
        try:
            yield file, [], check_checkpoint(file)
        except UserError as error:
            yield file, [str(error)], ""


def check_checkpoint(path: Path) -> str:
    """A summary of a checkpoint. Raises UserError for a faulty one.

    Checks the checksums within the file, and that all tensors, those of the optimizer included, are
    complete, finite, and of the model's shapes and types. The model is built without data, with
    dictionaries as large as the checkpoint's embeddings.
    """
    with reading(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                # Compressed records, which could unpack for hours, are refused below.
                packed = any(each.compress_type for each in archive.infolist())
                damaged = None if packed else archive.testzip()
            if damaged:
                raise UserError(f"{path}: damaged, in {damaged}; use another checkpoint of the run")
        with tempfile.TemporaryDirectory() as folder:
            return _described(path, load_state(path, data=folder), Path(folder))


def _described(path: Path, state: dict[str, Any], data: Path) -> str:
    """``data``: the folder named in the state, still empty."""
    for name, tensor in (*state["model"].items(), *_of_optimizer(path, state)):
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{path}: {name} is not finite; the training has diverged")
    # fairseq sets a missing epoch to 0; the first is 1.
    if not state["extra_state"]["train_iterator"]["epoch"]:
        raise UserError(f"{path}: incomplete, without its position in the training data")
    task = task_of(path, state)
    languages = [task.get("source_lang"), task.get("target_lang")]
    _write_dictionaries(data, state)
    # It depends on the words, of which only the number is known here.
    state["model"].pop("dictionary_signature", None)
    models, _ = checkpoint_utils.load_model_ensemble([str(path)], state=state)
    # Loading converts integers to floating point and back without an error.
    own = models[0].state_dict()
    for name, tensor in state["model"].items():
        if name in own and own[name].is_floating_point() != tensor.is_floating_point():
            kinds = f"{tensor.dtype}, but the model's is {own[name].dtype}"
            raise UserError(f"{path}: {name} is {kinds}")
    return ", ".join(_summary(path, state, models[0], languages))


def _of_optimizer(path: Path, state: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and value of the optimizer's tensors. Raises UserError for a parameter without them."""
    saved = state.get("last_optimizer_state") or {}
    entries = saved.get("state", {})
    for number, entry in entries.items():
        for name, value in entry.items():
            if torch.is_tensor(value):
                yield f"{name} of the optimizer, parameter {number}", value
    if getattr(state["cfg"].get("optimizer"), "_name", None) in _UNEVEN:
        return
    expected = list(entries)
    if "source_lang" in state["cfg"]["task"]:  # fine-tuning leaves some parameters as they are
        expected = [number for group in saved.get("param_groups", ()) for number in group["params"]]
    usual = max((set(entry) for entry in entries.values()), key=len, default={"any"})
    for number in expected:
        if set(entries.get(number, ())) != usual:
            raise UserError(f"{path}: incomplete state of the optimizer, parameter {number}")


def _summary(
    path: Path, state: Mapping[str, Any], model: Any, languages: Sequence[str | None]
) -> Iterator[str]:
    options = state["cfg"]["model"]
    arch = getattr(options, "arch", None) or options["_name"]
    signature = str(getattr(model, "signature", ""))
    yield f"{arch} ({signature})" if signature else str(arch)
    if all(languages):
        yield "-".join(map(str, languages))
    yield f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters"
    yield f"{updates_of(state):,} updates, seed {int(state['cfg']['common']['seed'])}"
    if parts := state.get("averaged"):
        yield f"the mean of {len(parts)} checkpoints"
    if not state.get("last_optimizer_state"):
        yield "without the optimizer's state, so no training continues from it"
    command = shell(training_of(path))
    revision = companion(path, "revision") if command else ""
    at = f" at revision {revision}" if revision else ""
    yield f"trained{at} by {command or 'an unknown command'}"


def _write_dictionaries(folder: Path, state: Mapping[str, Any]) -> None:
    """Writes dictionaries for the task of a checkpoint, with a word for each of its embeddings.

    The languages in the state become ``source`` and ``target``: a checkpoint may name any file.
    """
    task = state["cfg"]["task"]
    rows = {
        name.split(".")[0]: len(tensor)
        for name, tensor in state["model"].items()
        if name.endswith("embed_tokens.weight")
    }
    if "encoder" not in rows:
        raise ValueError("incomplete, it has no embeddings of words")
    if "source_lang" in task:
        task.update(source_lang="source", target_lang="target")
        sizes = {"dict.source": rows["encoder"], "dict.target": rows.get("decoder")}
    else:
        words = rows["encoder"] - 1  # the task adds its own symbol of a mask
        classes = len(FIRST) + int(task.get("num_classes") or 0)
        sizes = {"dict": words, "input0/dict": words, "label/dict": classes}
    for name, size in sizes.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        count = (size or rows["encoder"]) - len(FIRST)
        write_lines(path, (f"word{number} 1" for number in range(count)))
