"""A checkpoint may only name parts of fairseq that are known to be harmless.

A checkpoint's configuration names the model, task, criterion and so on that fairseq then builds
with its options. Some of fairseq's run options as code or load other files (``lstm``, ``fconv``,
``wav2vec2``, tasks of speech). Allowed are those below, which were read for this, and everything
that does not come from fairseq itself: it was imported on purpose. Replaced:
``checkpoint_utils._upgrade_state_dict``, by a function that looks first and then calls it.
"""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from ..errors import UserError

# Names that the user allows beside ours, separated by commas.
VARIABLE = "DIET_MT_ALLOW"

_SCHEDULES = "cosine fixed inverse_sqrt pass_through polynomial_decay reduce_lr_on_plateau"
# Part of the configuration -> names of fairseq's own that it may have.
ALLOWED: Mapping[str, Tuple[str, ...]] = {
    "model": ("roberta", "transformer"),
    "task": ("masked_lm", "sentence_prediction", "translation"),
    "criterion": (
        "cross_entropy",
        "label_smoothed_cross_entropy",
        "label_smoothed_cross_entropy_with_alignment",
        "masked_lm",
        "sentence_prediction",
    ),
    "optimizer": ("adadelta", "adafactor", "adagrad", "adam", "adamax", "lamb", "nag", "sgd"),
    "lr_scheduler": (*_SCHEDULES.split(), "step", "tri_stage", "triangular"),
    "bpe": ("bytes", "characters", "sentencepiece", "subword_nmt"),
    "tokenizer": ("moses", "space"),
    "scoring": ("bleu", "chrf", "sacrebleu"),
    "dataset_impl": ("cached", "lazy", "mmap", "raw"),
}


# Options that name a part, beside those that are called as it is.
_OPTIONS = {"arch": "model", "eval_bleu_detok": "tokenizer"}


def names_in(state: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """(part, name) of all that a checkpoint's configuration names; in its old form or the new."""
    for config in (state.get("args"), state.get("cfg")):
        yield from _names(config)


def _names(config: Any) -> Iterator[Tuple[str, str]]:
    """Of a configuration and all that are nested in it, whichever of its names fairseq takes."""
    for key, value in _entries(config).items():
        part = _OPTIONS.get(key, key)
        section = _entries(value)
        if part in ALLOWED and section:
            name = section.pop("_name", None)
            # Without a name, fairseq takes the only key for one; others are found among options.
            unnamed = () if section.keys() & {"arch", part} else section
            yield from ((part, str(each)) for each in ([name] if name else unnamed))
        elif part in ALLOWED and value not in (None, "", {}):
            yield part, str(value)
        yield from _names(section)


def _entries(config: Any) -> Dict[str, Any]:
    """Of a Namespace, a dictionary or omegaconf's, where nothing is looked up; else none."""
    if OmegaConf.is_config(config):
        config = OmegaConf.to_container(config, resolve=False)
    if isinstance(config, Namespace):
        config = vars(config)
    return dict(config) if isinstance(config, Mapping) else {}


def _registry(part: str) -> Mapping[str, Any]:
    """What fairseq and others have registered: name -> class."""
    if part == "task":
        return TASK_REGISTRY
    found: Mapping[str, Any] = REGISTRIES.get(part, {}).get("registry", {})
    return found


def refusal(part: str, name: str) -> Optional[str]:
    """Why a checkpoint may not name this, or None."""
    if name in os.environ.get(VARIABLE, "").split(","):
        return None
    if part == "model":
        owner = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name)
        known = ARCH_MODEL_NAME_REGISTRY.get(name, name)
    else:
        owner, known = _registry(part).get(name), name
    own = owner is not None and owner.__module__.partition(".")[0] != "fairseq"
    if own or known in ALLOWED[part]:
        return None
    return (
        f"refused, for its {part} is {name}, which is not known to be harmless; if you trust this "
        f"file, set {VARIABLE}={name}"
    )


def look_first(upgrade: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Callable[..., Any]:
    """``upgrade(state)`` for states that name nothing but what is allowed; else UserError, as for
    one that names nothing at all.
    """

    @functools.wraps(upgrade)
    def wrapped(state: Dict[str, Any], *args: Any, **kwargs: Any) -> Dict[str, Any]:
        if not (isinstance(state, dict) and (state.get("cfg") or state.get("args"))):
            raise UserError("not a checkpoint of fairseq-train, for it has no configuration")
        for part, name in names_in(state):
            fault = refusal(part, name)
            if fault:
                raise UserError(fault)
        return upgrade(state, *args, **kwargs)

    return wrapped


checkpoint_utils._upgrade_state_dict = look_first(checkpoint_utils._upgrade_state_dict)
