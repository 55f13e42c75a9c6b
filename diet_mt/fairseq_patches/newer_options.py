"""An option that is newer than a checkpoint can be given in ``--model-overrides`` all the same.

fairseq changes only options that the checkpoint lists, and drops others without a word. Replaced:
``checkpoint_utils.load_checkpoint_to_cpu``, by a function that calls it.
"""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any, Callable, Dict, Optional

from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import open_dict


def with_newer_options(load: Callable[..., Dict[str, Any]]) -> Callable[..., Dict[str, Any]]:
    """``load(path, arg_overrides, ...)``; what the model has for an option is then set, too."""

    @functools.wraps(load)
    def wrapped(
        path: str, arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any
    ) -> Dict[str, Any]:
        state = load(path, arg_overrides, *args, **kwargs)
        model: Any = getattr(state.get("cfg"), "model", None)
        name = getattr(model, "_name", None)
        known = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name, name))
        if arg_overrides and known is not None:
            newer = {field.name for field in fields(known)} - set(model)
            with open_dict(model):
                for option in newer & arg_overrides.keys():
                    model[option] = arg_overrides[option]
        return state

    return wrapped


checkpoint_utils.load_checkpoint_to_cpu = with_newer_options(
    checkpoint_utils.load_checkpoint_to_cpu
)
