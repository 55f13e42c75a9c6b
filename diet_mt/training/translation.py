"""The training of a translation model."""

from __future__ import annotations

import json
from pathlib import Path

from ..corpora.binarized import bin_folder, language_pair
from ..corpora.subwords import kind_of
from .build import Request, Training, merged, placed
from .options import Options, one, whole

_SIZES = ("tiny", "base", "big")


def system_of(arch: str) -> str:
    """``diet_rel_tiny`` -> ``diet_rel``; an architecture without one of our sizes as it is."""
    name, _, size = arch.rpartition("_")
    return name if name and size in _SIZES else arch


def translation(data: Path, arch: str, request: Request) -> Training:
    """The fairseq-train of ``arch`` over the folder ``data``, or over ``data/bin``.

    Raises UserError where the data, the options or the devices are not what they should be.
    """
    folder = bin_folder(data)
    pair = language_pair(folder)
    fixed = {"arch": [arch], "log-format": ["simple"]}
    options = merged(request, system_of(arch), fixed)
    if "eval-bleu" in options:
        target = one(options, "target-lang", pair[1])
        for name, values in _detokenization(kind_of(folder), target).items():
            options.setdefault(name, values)
    share = None
    if "tokens-per-update" in options:
        most = whole(options, "max-tokens-per-device") or whole(options, "max-tokens", 4096)
        share = ("tokens", "max-tokens", most)
    return placed(folder, options, request, share)


def _detokenization(subwords: str, target: str) -> Options:
    """How validation with BLEU makes text of subwords."""
    if subwords == "spm":
        return {"eval-bleu-remove-bpe": ["sentencepiece"]}
    return {
        "eval-bleu-remove-bpe": [],
        "eval-bleu-detok": ["moses"],
        "eval-bleu-detok-args": [json.dumps({"target_lang": target})],
    }
