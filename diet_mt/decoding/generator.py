"""The beam search of this package behind the interface of fairseq's generators.

``DIET_MT_SEARCH`` in the environment forces one: ``own`` (an error where it cannot serve) or
``fairseq``. Otherwise (``auto``) the package's search is used wherever it can be.
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

from ..decoding import fixed_search
from ..layers.decoder import DietDecoder, source_of
from ..layers.int8 import Int8Linear
from ..layers.run import DecodingRun, is_method, is_product
from ..layers.stack import Dropout
from ..nn.precision import autocasts
from ..system.errors import UserError
from ..system.options import flag
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
    """Our search in place of fairseq's generator: the same options, hypotheses and scores."""

    _replays: Optional[Replays] = None

    def divisor(self) -> Optional[Penalty]:
        """The length penalty; None: scores are sums (``--unnormalized``)."""
        return fairseq_penalty if self.normalize_scores else None

    @torch.no_grad()
    def _generate(
        self,
        sample: Dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
        bos_token: Optional[int] = None,
    ) -> List[List[Dict[str, Tensor]]]:
        """``sample["net_input"]["src_tokens"]`` (B, S); ``prefix_tokens`` (B, P), padded behind.

        Returns for each sentence its hypotheses, the best first, as fairseq's generator does:
        ``tokens`` (T,), ``score``, ``positional_scores`` (T,), and empty ``attention`` and
        ``alignment``.
        """
        ended = prefix_tokens is not None and bool(prefix_tokens.eq(self.eos).any())
        if constraints is not None or ended:  # the latter means a sentence of many equal beams
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
        lengths = tokens.ne(self.pad).sum(1).clamp_(min=1)  # an empty source keeps a column

        def searched(part: Tensor) -> List[List[Hypothesis]]:
            with torch.no_grad():  # a setting of each thread
                sources = _trimmed(tokens[part], self.pad, int(lengths[part].max()))
                encoded = model.encoder(src_tokens=sources, src_lengths=lengths[part])
                run = DecodingRun(model.decoder, *source_of(encoded), len(part))
                prefix = None if prefix_tokens is None else prefix_tokens[part]
                own = copy.copy(vocabulary)  # the same weights, memory of its own
                return BeamSearch(model.decoder, run, own, options, prefix).hypotheses()

        results: List[List[Dict[str, Tensor]]] = [[] for _ in range(tokens.size(0))]
        parts = _parts(tokens)
        for part, sentences in zip(parts, _in_threads(searched, parts), strict=True):
            for number, hypotheses in zip(part.tolist(), sentences, strict=True):
                results[number] = [_as_fairseq(each, empty) for each in hypotheses]
        return results

    def _in_fixed_shapes(self, tokens: Tensor, options: SearchOptions) -> bool:
        """Whether steps are captured and replayed: on a GPU, by a model that fairseq has prepared
        for inference, whose memory may be retained between batches.
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
        """fairseq's options, for a batch of sources of up to ``source_len`` tokens."""
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
    """With the length penalty of Wu et al. 2016 (``--length-penalty gnmt``), also where fairseq's
    search takes over.
    """

    def divisor(self) -> Optional[Penalty]:
        return gnmt_penalty if self.divides_scores else None


# By length penalty.
GENERATORS = {"fairseq": BeamSearchGenerator, "gnmt": GnmtBeamSearchGenerator}


def own_generator(
    models: Sequence[nn.Module], args: Any, penalty: str, extra: Mapping[str, Any]
) -> Any:
    """The class of our generator for ``args``, fairseq's options of generation, or None where
    fairseq's serves. ``penalty``: ``fairseq`` or ``gnmt``; ``extra``: further arguments of the
    generator or of the task's ``build_generator``, such as a language model.
    """
    choice = os.environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise UserError(f"{VARIABLE}={choice}: choose from {', '.join(CHOICES)}")
    if choice == "fairseq":
        return None
    reasons = list(_unsupported(models, args, extra))
    if reasons and choice == "own":
        raise UserError(f"{VARIABLE}=own: this search does not support {'; '.join(reasons)}")
    return None if reasons else GENERATORS[penalty]


def _unsupported(models: Sequence[nn.Module], args: Any, extra: Mapping[str, Any]) -> Iterator[str]:
    """Features in use that this package's search does not support, in words."""
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
        yield "a model of another kind"
        return
    if not _is_plain(decoder):
        yield "a decoder with overridden methods or hooks"
    output = decoder.output_projection
    if decoder.adaptive_softmax is not None or not (
        is_product(output) or isinstance(output, Int8Linear)
    ):
        yield "an output layer that is no plain product"
    elif output.out_features <= 2 * getattr(args, "beam", 5) + 1:
        yield "a vocabulary with fewer entries than candidates"
    if any(isinstance(m, Dropout) and m.apply_during_inference for m in models[0].modules()):
        yield "--retain-dropout"


def _is_plain(decoder: DietDecoder) -> bool:
    """Whether the parts of a decoder's forward pass that the search skips are as they were."""
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
    """Whether steps on a device are worth a capture: they wait for Python there."""
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
    """Sources (B, S), padded on either side, without columns that the longest row does not need."""
    if tokens.size(1) == longest:
        return tokens
    left = bool(tokens[:, 0].eq(pad).any())
    trimmed = tokens[:, tokens.size(1) - longest :] if left else tokens[:, :longest]
    # Rows may be padded on different sides; then all columns stay.
    return trimmed if bool(trimmed.ne(pad).sum().eq(tokens.ne(pad).sum())) else tokens


def _parts(tokens: Tensor) -> List[Tensor]:
    """The numbers of the sentences ``tokens`` (B, S), for a search of its own in each thread: that
    takes less waiting than several threads on the products of one search.

    On a GPU, and under autocast, which is a setting of each thread, one search has them all. A
    thread gets every n-th sentence: neighbours are of one length. It has one search and no more,
    for each ends with the few sentences that take longest, and then every step reads the weights of
    all layers for a handful of rows.
    """
    numbers = torch.arange(tokens.size(0), device=tokens.device)
    one = tokens.device.type != "cpu" or autocasts(tokens.device)
    searches = min(1 if one else torch.get_num_threads(), tokens.size(0))
    return [numbers[first::searches] for first in range(searches)]


def _in_threads(search: Any, parts: List[Tensor]) -> List[List[List[Hypothesis]]]:
    """``search`` of every part, in a thread of one processor core each.

    Python threads that first compute while this runs are left with one core, too: torch has one
    number for all that begin, and giving it back at once would give MKL's products of these threads
    more than their core.
    """
    if len(parts) < 2:
        return [search(part) for part in parts]
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(len(parts), "beam search", torch.set_num_threads, (1,)) as pool:
            return list(pool.map(search, parts))
    finally:
        torch.set_num_threads(before)
