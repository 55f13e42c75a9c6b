"""Files that a checkpoint names are those in its own folder, or in that of its data.

fairseq opens what a checkpoint's options of tokenizers, task and embeddings name, a path or an
address, in the hub and wherever it builds the model. ``safe_checkpoints`` calls :func:`confine` for
every checkpoint. Replaced: ``encoders.build_bpe`` and ``encoders.build_tokenizer``, by functions
that call them.
"""

from __future__ import annotations

import functools
import os
import re
from argparse import Namespace
from typing import Any, Callable, Iterator, Mapping, Sequence, Tuple

from fairseq.data import encoders
from omegaconf import OmegaConf, open_dict

from ..errors import UserError

_SECTIONS = ("model", "task", "bpe", "tokenizer", "generation")
_FILE = re.compile(
    "(^|_)(path|file|folder|codes|merges|vocab|json|dict|dictionary)(_|$)"
    "|sentencepiece_model|replace_unk|weights_from|pretrained.*checkpoint"
)
# Inputs of training alone.
_OF_TRAINING = re.compile("embed_path$|^extra_data$|offline_shard_ratio$")
# Names of languages, which fairseq joins to the data folder.
_LANGUAGES = re.compile("(lang|langs|lang_pairs)$")
# The files of GPT-2's bpe, where the user asks for a bpe; never because a checkpoint names it.
_OF_FAIRSEQ = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/"


def confine(state: Mapping[str, Any], folder: str, given: Mapping[str, Any]) -> None:
    """Makes each option of a checkpoint that names a file, and is not ``given``, name one within
    ``folder``, its own, or the data folders that are given; in ``folder`` where there is none.
    """
    folders = [folder, *str(given.get("data") or folder).split(os.pathsep)]
    for options in (state.get("args"), *(section(state, name) for name in _SECTIONS)):
        for name, value in _files(options):
            is_default = "bpe" in given and value.startswith(_OF_FAIRSEQ)
            if name not in given and not is_default:
                inside = None if _OF_TRAINING.search(name) else _inside(value, folders)
                if isinstance(options, Namespace):
                    setattr(options, name, inside)
                else:
                    with open_dict(options):
                        options[name] = inside
    bpe = section(state, "bpe")
    if OmegaConf.is_dict(bpe) and "bpe" not in given and dict(bpe).get("_name") == "bert":
        # transformers would download one.
        bpe.bpe_vocab_file = bpe.bpe_vocab_file or os.path.join(folder, "vocab.txt")


def section(state: Mapping[str, Any], name: str) -> Any:
    """A part of a checkpoint's configuration, None where there is none."""
    cfg = state.get("cfg") or {}
    return cfg[name] if name in cfg else None  # noqa: SIM401 (omegaconf 2.0's get is an error)


def need_files(build: Callable[..., Any]) -> Callable[..., Any]:
    """``build(cfg)`` of a tokenizer or bpe. Raises UserError where its file is missing."""

    @functools.wraps(build)
    def wrapped(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in _files(cfg):
            if not os.path.exists(value) and "://" not in value:
                raise UserError(f"{value}: no such file; give {name}, or put it there")
        return build(cfg, *args, **kwargs)

    return wrapped


def _files(options: Any) -> Iterator[Tuple[str, str]]:
    """Names and values of the options that name a file, or an address."""
    if OmegaConf.is_dict(options):
        options = OmegaConf.to_container(options, resolve=False)
    found = vars(options) if isinstance(options, Namespace) else options
    for name, value in list(found.items()) if isinstance(found, dict) else ():
        if _LANGUAGES.search(str(name)) and "/" in str(value):
            raise UserError(f"untrusted configuration, {name} {value}: not a language")
        if value and _OF_TRAINING.search(str(name)):
            yield name, str(value)
        elif isinstance(value, str) and value not in ("", "???"):
            names_file = _FILE.search(str(name)) or "://" in value
            yield from [(name, value)] if names_file else []


def _inside(value: str, folders: Sequence[str]) -> str:
    for folder in map(os.path.abspath, folders):
        for name in (value, os.path.basename(value)):
            path = os.path.abspath(os.path.join(folder, name))
            if os.path.exists(path) and os.path.commonpath([path, folder]) == folder:
                return path
    return os.path.join(folders[0], os.path.basename(value))


encoders.build_bpe = need_files(encoders.build_bpe)
encoders.build_tokenizer = need_files(encoders.build_tokenizer)
