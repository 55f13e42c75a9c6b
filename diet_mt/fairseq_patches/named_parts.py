"""A checkpoint may only name parts of fairseq that are known to be harmless.

fairseq builds the task, the model and (``fairseq-validate``) the criterion that a checkpoint names,
with its options; some load other files, or import code. Allowed are those below, which were read
(``docs/security.md`` has the reasons), and all that does not come from fairseq itself: it was
imported on purpose. Optimizer, schedule and scorer come from the command line; bpe, tokenizer and
``dataset_impl`` are harmless, all that fairseq has. Replaced:
``checkpoint_utils._upgrade_state_dict``, by a function that looks first and then calls it; and
``FastaDataset._build_index``, which runs a shell command with a path in it, for plain paths alone.
"""

from __future__ import annotations

import functools
import os
import shlex
from argparse import Namespace
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

from fairseq import checkpoint_utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data.fasta_dataset import FastaDataset, fasta_file_path
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from ..errors import UserError
from .confined import section

# Names that the user allows beside ours, separated by commas.
VARIABLE = "DIET_MT_ALLOW"

# Part of the configuration -> names of fairseq's own that it may have.
ALLOWED: Mapping[str, Tuple[str, ...]] = {
    "model": (
        *("bart", "camembert", "gottbert", "masked_lm", "roberta", "xlmr", "xmod"),
        *("transformer", "transformer_align", "multilingual_transformer"),
        *("fconv", "lightconv", "lstm"),
        *("fconv_lm", "lightconv_lm", "lstm_lm", "transformer_lm"),
        *("cmlm_transformer", "insertion_transformer", "iterative_nonautoregressive_transformer"),
        *("levenshtein_transformer", "nacrf_transformer", "nonautoregressive_transformer"),
    ),
    "task": (
        *("translation", "translation_from_pretrained_bart", "translation_from_pretrained_xlm"),
        *("translation_lev", "translation_multi_simple_epoch", "multilingual_translation"),
        *("online_backtranslation", "semisupervised_translation"),
        *("denoising", "multilingual_denoising", "span_masked_lm"),
        *("masked_lm", "multilingual_masked_lm", "legacy_masked_lm", "cross_lingual_lm"),
        *("language_modeling", "multilingual_language_modeling"),
        *("sentence_prediction", "sentence_prediction_adapters", "sentence_ranking"),
    ),
    "criterion": (
        *("adaptive_loss", "cross_entropy", "label_smoothed_cross_entropy"),
        "label_smoothed_cross_entropy_with_alignment",
        "label_smoothed_cross_entropy_with_ctc",
        "label_smoothed_cross_entropy_with_rdrop",
        "latency_augmented_label_smoothed_cross_entropy",
        *("legacy_masked_lm_loss", "masked_lm", "model", "nat_loss"),
        *("sentence_prediction", "sentence_prediction_adapters", "sentence_ranking"),
    ),
}
_REGISTRIES: Mapping[str, Mapping[str, Any]] = {
    "model": MODEL_REGISTRY,
    "task": TASK_REGISTRY,
    "criterion": CRITERION_REGISTRY,
}


def names_in(state: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """(part, name) of all that a checkpoint's configuration names; in its old form or the new."""
    for config in (state.get("args"), state.get("cfg")):
        yield from _names(config)


def _names(config: Any) -> Iterator[Tuple[str, str]]:
    """Of a configuration and all that are nested in it, whichever of its names fairseq takes."""
    for key, value in _entries(config).items():
        part = "model" if key == "arch" else key
        entries = _entries(value)
        if part in ALLOWED and entries:
            name = entries.pop("_name", None)
            # Without a name, fairseq takes the only key for one; others are found among options.
            unnamed = () if entries.keys() & {"arch", part} else entries
            yield from ((part, str(each)) for each in ([name] if name else unnamed))
        elif part in ALLOWED and value not in (None, "", {}):
            yield part, str(value)
        yield from _names(entries)


def _entries(config: Any) -> Dict[str, Any]:
    """Of a Namespace, a dictionary or omegaconf's, where nothing is looked up; else none."""
    if OmegaConf.is_config(config):
        config = OmegaConf.to_container(config, resolve=False)
    if isinstance(config, Namespace):
        config = vars(config)
    return dict(config) if isinstance(config, Mapping) else {}


def refusal(part: str, name: str) -> Optional[str]:
    """Why a checkpoint may not name this, or None."""
    known = ARCH_MODEL_NAME_REGISTRY.get(name, name) if part == "model" else name
    owner = _REGISTRIES[part].get(known)
    own = owner is not None and owner.__module__.partition(".")[0] != "fairseq"
    if own or known in ALLOWED[part] or name in os.environ.get(VARIABLE, "").split(","):
        return None
    return f"untrusted {part} {name}; set {VARIABLE}={name} to load it anyway"


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
        options: Any
        for options in (state.get("args"), section(state, "criterion")):
            if getattr(options, "save_predictions", None):  # sentence_ranking would write it
                options.save_predictions = None
        return upgrade(state, *args, **kwargs)

    return wrapped


def of_plain_paths(build_index: Callable[..., Any]) -> Callable[..., Any]:
    """``build_index(dataset, path)``; UserError for a path that a shell would not take as it is."""

    @functools.wraps(build_index)
    def wrapped(dataset: FastaDataset, path: str) -> Any:
        if shlex.quote(path) != path:
            raise UserError(f"{fasta_file_path(path)!r}: rename, a shell would run its name")
        return build_index(dataset, path)

    return wrapped


checkpoint_utils._upgrade_state_dict = look_first(checkpoint_utils._upgrade_state_dict)
FastaDataset._build_index = of_plain_paths(FastaDataset._build_index)
