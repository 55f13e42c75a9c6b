"""The training of an encoder as a masked language model."""

from __future__ import annotations

from pathlib import Path

from ..corpora.binarized import bin_folder
from ..errors import UserError
from .build import Training, TrainingRequest, merged, placed, warm_up
from .options import Options, whole


def masked_lm(data: Path, system: str, size: str, request: TrainingRequest) -> Training:
    """The fairseq-train of ``roberta_SYSTEM_SIZE`` over the folder ``data``, or over ``data/bin``.

    Raises UserError where the data, the options or the devices are not what they should be.
    """
    folder = bin_folder(data)
    if any(folder.glob("train.*-*.idx")):
        raise UserError(f"{folder}: sentence pairs, not plain text; see diet-mt prepare mlm --help")
    system = system.replace("-", "_")
    fixed = {"arch": [f"roberta_{system}_{size}"], "log-format": ["json"]}
    options = merged(request, system, fixed)
    length = whole(options, "tokens-per-sample", 512)
    _check_length(folder, length, options)
    updates = whole(options, "max-update")
    if not updates:
        raise UserError("--max-update: missing; a pretraining ends by updates")
    warm_up(options, updates)
    if "lamb" in options.get("optimizer", ()):
        _rename(options, "adam", "lamb")
    share = None
    if "sequences-per-update" in options:
        most = whole(options, "max-tokens-per-device", 32768) // length
        share = ("sequences", "batch-size", max(most, 1))
    return placed(folder, options, request, share)


def _check_length(folder: Path, length: int, options: Options) -> None:
    given = f"--tokens-per-sample {length}"
    positions = whole(options, "max-source-positions", length)
    if length > positions:
        raise UserError(f"{given}: longer than the {positions} positions of the model")
    longest = folder / "max-length"
    text = longest.read_text(encoding="utf-8").strip() if longest.is_file() else "0"
    if not text.isdecimal():
        raise UserError(f"{longest}: damaged; prepare the text again")
    pieces = int(text)
    if pieces > length:
        raise UserError(
            f"{given}: {folder} has sentences of up to {pieces} pieces; prepare it with "
            f"--max-length {length}"
        )


def _rename(options: Options, old: str, new: str) -> None:
    """The options of one optimizer are those of the other, under its name."""
    for part in ("betas", "eps"):
        values = options.pop(f"{old}-{part}", None)
        if values is not None:
            options.setdefault(f"{new}-{part}", values)
