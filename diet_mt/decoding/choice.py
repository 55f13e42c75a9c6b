"""Which generator serves what is asked for: this package's search, or fairseq's.

``DIET_MT_SEARCH`` in the environment forces one: ``own`` (an error where it cannot serve) or
``fairseq``. Otherwise (``auto``) the package's search serves whenever it can.
"""

from __future__ import annotations

import os
from typing import Any, Iterator, Mapping, Sequence

from fairseq.models.fairseq_decoder import FairseqDecoder
from fairseq.models.transformer import TransformerDecoderBase
from torch import nn

from ..errors import UserError
from ..layers.decoder import DietDecoder
from ..layers.run import is_method, is_product
from ..layers.stack import Dropout
from .generator import BeamSearchGenerator, GnmtBeamSearchGenerator

VARIABLE = "DIET_MT_SEARCH"
CHOICES = ("auto", "own", "fairseq")
# By length penalty.
GENERATORS = {"fairseq": BeamSearchGenerator, "gnmt": GnmtBeamSearchGenerator}

# Options of fairseq's generation that ask for something else than plain beam search, and the value
# that asks for nothing.
_OTHER_SEARCHES = {
    "sampling": False,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "match_source_len": False,
    "constraints": None,
    "prefix_allowed_tokens_fn": None,
    "retain_dropout": False,
    "score_reference": False,
    "print_alignment": None,
}


def own_generator(
    models: Sequence[nn.Module], args: Any, penalty: str, extra: Mapping[str, Any]
) -> Any:
    """The class of our generator for ``args``, fairseq's options of generation, or None where
    fairseq's serves. ``penalty``: ``fairseq`` or ``gnmt``; ``extra``: further arguments that the
    generator or the task's ``build_generator`` gets, such as a language model.

    Raises UserError for a value of ``DIET_MT_SEARCH`` that there is not, or where it forces a
    search that cannot serve.
    """
    wish = os.environ.get(VARIABLE) or "auto"
    if wish not in CHOICES:
        raise UserError(f"{VARIABLE}={wish}: choose from {', '.join(CHOICES)}")
    if wish == "fairseq":
        return None
    reasons = list(hindrances(models, args, extra))
    if reasons and wish == "own":
        raise UserError(f"{VARIABLE}=own: this search does not support {'; '.join(reasons)}")
    if reasons:
        return None
    return GENERATORS[penalty]


def hindrances(models: Sequence[nn.Module], args: Any, extra: Mapping[str, Any]) -> Iterator[str]:
    """What this package's search does not do, a few words each."""
    if len(models) != 1:
        yield "ensembles"
    for name, nothing in _OTHER_SEARCHES.items():
        if (getattr(args, name, None) or nothing) != nothing:
            yield f"--{name.replace('_', '-')}"
    if extra.get("lm_model") is not None:
        yield "a language model"
    if extra.get("prefix_allowed_tokens_fn") is not None:
        yield "prefix_allowed_tokens_fn"
    if getattr(args, "temperature", 1.0) != 1.0:
        yield "--temperature"
    if getattr(args, "no_repeat_ngram_size", 0) == 1:
        yield "--no-repeat-ngram-size 1"
    decoder = getattr(models[0], "decoder", None)
    if not isinstance(decoder, DietDecoder):
        yield "a model of another kind"
        return
    if not _goes_our_way(decoder):
        yield "a decoder with another way to its scores, or with hooks"
    if decoder.adaptive_softmax is not None or not is_product(decoder.output_projection):
        yield "an output layer that is no plain product"
    elif decoder.output_projection.weight.size(0) <= 2 * getattr(args, "beam", 5) + 1:
        yield "a vocabulary with fewer entries than candidates"
    if any(isinstance(m, Dropout) and m.apply_during_inference for m in models[0].modules()):
        yield "--retain-dropout"


def _goes_our_way(decoder: DietDecoder) -> bool:
    """Whether what the search leaves out of a decoder's forward pass is as we know it."""
    known = (
        (decoder.forward, TransformerDecoderBase.forward),
        (decoder.extract_features, TransformerDecoderBase.extract_features),
        (decoder.extract_features_scriptable, DietDecoder.extract_features_scriptable),
        (decoder.output_layer, TransformerDecoderBase.output_layer),
        (decoder.get_normalized_probs, FairseqDecoder.get_normalized_probs),
    )
    hooks = decoder._forward_hooks or decoder._forward_pre_hooks
    return not hooks and all(is_method(*pair) for pair in known)
