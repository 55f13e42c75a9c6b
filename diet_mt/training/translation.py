"""The training of a translation model."""

from __future__ import annotations

import json
from pathlib import Path

from ..corpora.binarized import bin_folder, language_pair
from ..corpora.subwords import kind_of
from ..errors import UserError
from ..evaluation.records import system_of
from .build import Training, TrainingRequest, merged, placed, warm_up
from .options import Options, one, whole


def translation(
    data: Path, arch: str, request: TrainingRequest, *, planned: bool = False
) -> Training:
    """The fairseq-train of ``arch`` over the folder ``data``, or over ``data/bin``.

    ``planned``: the data may still be missing; the name of their folder then tells their subwords.
    Raises UserError where the data, the options or the devices are not what they should be.
    """
    if arch.startswith("roberta_"):
        raise UserError(f"{arch} is an encoder alone; see diet-mt pretrain --help")
    missing = planned and not data.exists()
    folder = data if missing else bin_folder(data)
    target = "" if missing else language_pair(folder)[1]
    fixed = {"arch": [arch], "log-format": ["simple"]}
    options = merged(request, system_of(arch), fixed)
    if not missing:
        _need_pair(folder, options)
    if "eval-bleu" in options:
        target = one(options, "target-lang", target)
        if not target:
            raise UserError(f"{data}: no such folder yet; give --target-lang")
        named = "spm" if ".spm" in str(data) else "bpe"
        subwords = named if missing else kind_of(folder)
        for name, values in _detokenization(subwords, target).items():
            options.setdefault(name, values)
    if updates := whole(options, "max-update"):
        warm_up(options, updates)
    share = None
    if "tokens-per-update" in options:
        most = whole(options, "max-tokens-per-device") or whole(options, "max-tokens", 4096)
        share = ("tokens", "max-tokens", most)
    return placed(folder, options, request, share)


def _need_pair(folder: Path, options: Options) -> None:
    """Raises UserError for languages that the data do not have. fairseq looks at both or none."""
    own = language_pair(folder)
    names = ("source-lang", "target-lang")
    pair = [one(options, name, lang) for name, lang in zip(names, own, strict=True)]
    held = {path.name.split(".")[1] for path in folder.glob("*.*.*.*")}
    if not held & {"-".join(pair), "-".join(reversed(pair))}:
        raise UserError(
            f"--source-lang {pair[0]} --target-lang {pair[1]}: {folder} holds {'-'.join(own)}; "
            "give both of these, in either order"
        )


def _detokenization(subwords: str, target: str) -> Options:
    """How validation with BLEU makes text of subwords."""
    if subwords == "spm":
        return {"eval-bleu-remove-bpe": ["sentencepiece"]}
    return {
        "eval-bleu-remove-bpe": [],
        "eval-bleu-detok": ["moses"],
        "eval-bleu-detok-args": [json.dumps({"target_lang": target})],
    }
