"""Whether fairseq-train would take a command, before anything is written."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable
from pathlib import Path

from ..command_line import unknown
from ..corpora.binarized import indices
from ..errors import UserError
from ..evaluation.fairseq_options import import_fairseq, read_options
from ..evaluation.records import SIZES
from .build import Training
from .options import as_words, one


def check(training: Training, own: Iterable[str] = ()) -> None:
    """Reads the options as fairseq-train does, and as the model does those of its encoding.

    ``own``: options of the command that the user gave them to, for the nearest name. Raises
    UserError where there is no such option, architecture or value.
    """
    import_fairseq()
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.options import get_training_parser

    arch = one(training.options, "arch")
    if arch not in ARCH_MODEL_REGISTRY:
        sizes = [f"{arch}_{size}" for size in SIZES if f"{arch}_{size}" in ARCH_MODEL_REGISTRY]
        if sizes:
            raise UserError(f"architecture {arch}: its size is missing; choose {', '.join(sizes)}")
        raise UserError(unknown("architecture", arch, ARCH_MODEL_REGISTRY))
    words = [str(training.data), *as_words(training.options), *training.launch]
    args = read_options(get_training_parser(), words, own)
    _check_model(args)
    for name in training.options:
        if name.endswith("-betas"):
            _check_betas(name, one(training.options, name))
    for name in ("restore-file", "finetune-from-model"):
        file = one(training.options, name)
        if name in training.options and not Path(file).is_file():
            raise UserError(f"--{name} {file}: no such checkpoint")


def need_splits(training: Training) -> None:
    """Raises UserError where the data have no such part to train or to validate on."""
    held = {path.name.split(".")[0] for path in indices(training.data)}
    held |= {path.name for path in training.data.iterdir() if path.is_dir()}  # of questions
    for name in ("train", "valid"):
        if name == "valid" and "disable-validation" in training.options:
            continue
        for split in one(training.options, f"{name}-subset", name).split(","):
            if split not in held:
                raise UserError(
                    f"--{name}-subset {split}: no such part of {training.data}, which has "
                    f"{', '.join(sorted(held))}"
                )


def _check_model(args: argparse.Namespace) -> None:
    """Raises UserError for options of an encoding that it does not have."""
    if not hasattr(args, "position_encoding"):
        return
    from fairseq.models import ARCH_MODEL_REGISTRY

    from ..models._options import NestedConfig, nested_config
    from ..models._roberta_options import plain_options, sentence_config
    from ..models.diet_transformer import DietTransformerModel

    if issubclass(ARCH_MODEL_REGISTRY[args.arch], DietTransformerModel):
        nested_config(args, NestedConfig)
    else:
        sentence_config(plain_options(args))


def _check_betas(name: str, text: str) -> None:
    """fairseq reads them only once it has begun."""
    try:
        first, second = (float(beta) for beta in ast.literal_eval(text))
        is_right = 0 <= first < 1 and 0 <= second < 1
    except (ValueError, TypeError, SyntaxError):
        is_right = False
    if not is_right:
        raise UserError(f"--{name} '{text}': expected two numbers below 1, as in '(0.9, 0.98)'")
