"""The beam search of this package with the interface of fairseq's generators.

The environment variable ``DIET_MT_SEARCH`` selects a search: ``own`` (unsupported options are an
error) or ``fairseq``. By default (``auto``), ``own`` is used if it supports all options.
"""

from __future__ import annotations

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import torch
from fairseq.models.fairseq_decoder import FairseqDecoder
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from ..layers.decoder import DietDecoder, source_of
from ..layers.int8 import Int8Linear
from ..layers.run import DecodingRun, is_method, is_product
from ..layers.stack import Dropout
from ..nn.precision import autocasts
from ..system.errors import UserError
from ..system.options import flag
from . import fixed_search
from .candidates import Limits, Vocabulary
from .length_penalty import GnmtGenerator, Penalty, fairseq_penalty, gnmt_penalty
from .replay import Replays
from .search import BeamSearch, Hypothesis, SearchOptions

VARIABLE = "DIET_MT_SEARCH"
CHOICES = ("auto", "own", "fairseq")

# Options of fairseq's generation that change its beam search, and their neutral values.
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


class BeamSearchGenerator(SequenceGenerator):
    """Beam search with the options, hypotheses and scores of fairseq's generator."""

    _replays: Optional[Replays] = None

    def divisor(self) -> Optional[Penalty]:
        """The length penalty, or None for sums as scores (``--unnormalized``)."""
        return fairseq_penalty if self.normalize_scores else None

    @torch.no_grad()
    def _generate(
        self,
        sample: Dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
        bos_token: Optional[int] = None,
    ) -> List[List[Dict[str, Tensor]]]:
        """Hypotheses of each sentence, best first, in the format of fairseq's generator.

        ``sample["net_input"]["src_tokens"]``: (B, S). ``prefix_tokens``: (B, P), right-padded, or
        None. A hypothesis has ``tokens`` (T,), ``score``, ``positional_scores`` (T,), and an empty
        ``attention`` and ``alignment``. Raises UserError for a sentence without hypotheses.
        """
        ended = prefix_tokens is not None and bool(prefix_tokens.eq(self.eos).any())
        if constraints is not None or ended:  # after an end in the prefix, all beams are equal
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        tokens: Tensor = sample["net_input"]["src_tokens"]
        options = self._search_options(tokens.size(1), bos_token)
        model = self.model.single_model
        vocabulary = Vocabulary(model.decoder.output_projection)
        empty = torch.empty(0)
        if prefix_tokens is None and self._in_fixed_shapes(tokens, options):
            encoded = source_of(model.encoder(src_tokens=tokens, src_lengths=None))
            assert self._replays is not None
            search = fixed_search.FixedSearch(
                model.decoder, vocabulary, options, self._replays, encoded
            )
            return [[_as_fairseq(each, empty) for each in one] for one in search.hypotheses()]
        lengths = tokens.ne(self.pad).sum(1).clamp_(min=1)  # an empty source has one column

        def search_part(part: Tensor) -> List[List[Hypothesis]]:
            with torch.no_grad():  # threads do not inherit it
                sources = _trimmed(tokens[part], self.pad, int(lengths[part].max()))
                encoded = model.encoder(src_tokens=sources, src_lengths=lengths[part])
                run = DecodingRun(model.decoder, *source_of(encoded), len(part))
                prefix = None if prefix_tokens is None else prefix_tokens[part]
                own = copy.copy(vocabulary)  # with the same weights and a separate buffer
                return BeamSearch(model.decoder, run, own, options, prefix).hypotheses()

        results: List[List[Dict[str, Tensor]]] = [[] for _ in range(tokens.size(0))]
        parts = _parts(tokens)
        for part, sentences in zip(parts, _in_threads(search_part, parts), strict=True):
            for number, hypotheses in zip(part.tolist(), sentences, strict=True):
                results[number] = [_as_fairseq(each, empty) for each in hypotheses]
        return results

    def _in_fixed_shapes(self, tokens: Tensor, options: SearchOptions) -> bool:
        """Whether steps are captured and replayed: on a GPU, outside of autocast, for a model that
        fairseq has prepared for inference, so that memory may be retained between batches.
        """
        device, model = tokens.device, self.model.single_model
        if (
            not captures(device)
            or not model._is_generation_fast
            or autocasts(device)
            or not fixed_search.serves(model.decoder, options, tokens.size(1))
        ):
            return False
        if self._replays is None or self._replays.store.device != device:
            self._replays = Replays(device)
        return True

    def _search_options(self, source_len: int, bos: Optional[int]) -> SearchOptions:
        """Options for a batch of sources of up to ``source_len`` tokens, from fairseq's.

        Raises :class:`UserError` if ``--min-len`` exceeds the longest translation.
        """
        longest = min(int(self.max_len_a * source_len + self.max_len_b), self.max_len - 1)
        if self.min_len > longest:
            raise UserError(
                f"--min-len {self.min_len} is longer than the longest translation, {longest} "
                f"tokens for sources of {source_len}; change --min-len, --max-len-a or --max-len-b"
            )
        suppressed = self.token_indices_to_suppress
        blocker = self.repeat_ngram_blocker
        return SearchOptions(
            beam=self.beam_size,
            max_len=longest,
            min_len=self.min_len,
            eos=self.eos,
            bos=self.eos if bos is None else bos,
            limits=Limits(self.pad, self.unk, self.unk_penalty),
            alpha=self.len_penalty,
            divisor=self.divisor(),
            no_repeat_ngram_size=0 if blocker is None else blocker.no_repeat_ngram_size,
            suppressed=() if suppressed is None else tuple(suppressed.tolist()),
        )


class GnmtBeamSearchGenerator(BeamSearchGenerator, GnmtGenerator):
    """:class:`BeamSearchGenerator` with the length penalty of Wu et al. 2016
    (``--length-penalty gnmt``), also for batches that fairseq's search decodes.
    """

    def divisor(self) -> Optional[Penalty]:
        return gnmt_penalty if self.divides_scores else None


# Generators by length penalty.
GENERATORS = {"fairseq": BeamSearchGenerator, "gnmt": GnmtBeamSearchGenerator}


def own_generator(
    models: Sequence[nn.Module], args: Any, penalty: str, extra: Mapping[str, Any]
) -> Any:
    """Generator class for fairseq's generation options ``args``, or None for fairseq's own.

    ``penalty``: ``fairseq`` or ``gnmt``. ``extra``: further arguments of ``build_generator``, such
    as a language model. Raises :class:`UserError` for options that are invalid or unsupported.
    """
    choice = os.environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise UserError(f"{VARIABLE}={choice}: choose from {', '.join(CHOICES)}")
    if getattr(args, "beam", 5) < 1:  # the compiled loops would read outside of their rows
        raise UserError(f"--beam {args.beam}: must be at least 1")
    if choice == "fairseq":
        return None
    reasons = list(_unsupported(models, args, extra))
    if reasons and choice == "own":
        raise UserError(f"{VARIABLE}=own: does not support {'; '.join(reasons)}")
    return None if reasons else GENERATORS[penalty]


def _unsupported(models: Sequence[nn.Module], args: Any, extra: Mapping[str, Any]) -> Iterator[str]:
    """Names of features in use that this package's search does not support."""
    if len(models) != 1:
        yield "ensembles"
    for name, neutral in _OTHER_SEARCHES.items():
        if (getattr(args, name, None) or neutral) != neutral:
            yield flag(name)
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
        yield "other models"
        return
    if not _is_plain(decoder):
        yield "a decoder with overridden methods or hooks"
    output = decoder.output_projection
    if decoder.adaptive_softmax is not None or not (
        is_product(output) or isinstance(output, Int8Linear)
    ):
        yield "this output layer"
    elif output.out_features <= 2 * getattr(args, "beam", 5) + 1:
        yield "a vocabulary with fewer entries than candidates"
    if any(isinstance(m, Dropout) and m.apply_during_inference for m in models[0].modules()):
        yield "--retain-dropout"


def _is_plain(decoder: DietDecoder) -> bool:
    """Whether a decoder has no hooks and overrides no method that the search bypasses."""
    known = (
        (decoder.forward, TransformerDecoderBase.forward),
        (decoder.extract_features, TransformerDecoderBase.extract_features),
        (decoder.extract_features_scriptable, DietDecoder.extract_features_scriptable),
        (decoder.output_layer, TransformerDecoderBase.output_layer),
        (decoder.get_normalized_probs, FairseqDecoder.get_normalized_probs),
    )
    hooks = decoder._forward_hooks or decoder._forward_pre_hooks
    return not hooks and all(is_method(*pair) for pair in known)


def captures(device: torch.device) -> bool:
    """Whether steps on ``device`` are captured, since Python limits their speed."""
    return device.type == "cuda"


def _as_fairseq(hypothesis: Hypothesis, empty: Tensor) -> Dict[str, Tensor]:
    """fairseq's dictionary of a hypothesis, without attention."""
    return {
        "tokens": hypothesis.tokens,
        "score": hypothesis.score,
        "attention": empty,
        "alignment": empty,
        "positional_scores": hypothesis.positional_scores,
    }


def _trimmed(tokens: Tensor, pad: int, longest: int) -> Tensor:
    """``tokens`` (B, S), padded on either side, cut to the ``longest`` sentence: (B, S')."""
    if tokens.size(1) == longest:
        return tokens
    left = bool(tokens[:, 0].eq(pad).any())
    trimmed = tokens[:, tokens.size(1) - longest :] if left else tokens[:, :longest]
    # If rows are padded on different sides, all columns remain.
    return trimmed if bool(trimmed.ne(pad).sum().eq(tokens.ne(pad).sum())) else tokens


def _parts(tokens: Tensor) -> List[Tensor]:
    """Indices of the sentences of ``tokens`` (B, S) for each search, one per thread.

    Separate searches wait less than threads that share the products of one search. More searches
    would be slower: each ends with a few long sentences, whose steps read all weights for few rows.
    A search gets every n-th sentence, because neighbours have similar lengths. On a GPU, and under
    autocast, which is a setting of each thread, there is one search.
    """
    numbers = torch.arange(tokens.size(0), device=tokens.device)
    one = tokens.device.type != "cpu" or autocasts(tokens.device)
    searches = min(1 if one else torch.get_num_threads(), tokens.size(0))
    return [numbers[first::searches] for first in range(searches)]


def _in_threads(search: Any, parts: List[Tensor]) -> List[List[List[Hypothesis]]]:
    """Results of ``search`` for each part, in threads with one processor core each.

    Other Python threads that start to compute meanwhile also use one core: torch has one number for
    all new threads, and restoring it earlier would give the products of these searches more cores.
    """
    if len(parts) < 2:
        return [search(part) for part in parts]
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(len(parts), "beam search", torch.set_num_threads, (1,)) as pool:
            return list(pool.map(search, parts))
    finally:
        torch.set_num_threads(threads)
