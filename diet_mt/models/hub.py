"""fairseq's hub interfaces: translation models with scoring, and RoBERTa with segments."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union, overload

import torch
import torch.nn.functional as F
from fairseq import hub_utils, utils
from fairseq.data import LanguagePairDataset, encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.translation import TranslationTask
from omegaconf import open_dict
from torch import Tensor

from ..bert.tokenizer import SENTENCEPIECE, WORDPIECE
from ..corpora.binarized import MASK, MULTIPLE
from ..corpora.settings import MODELS
from ..encoders import WordPieceBPE, WordPieceConfig
from ..system.errors import UserError

# Maximum tokens of a batch on its longer side, padding included.
MAX_TOKENS = 4096


class PreparedText:
    """Subwords of text by the model that ``diet-mt prepare`` writes to a data folder."""

    def __init__(self, folder: Path, source: str, target: str) -> None:
        from ..corpora import subwords  # imports sacremoses and subword_nmt

        self.kind = subwords.kind_of(folder)
        self.folder, self.source, self.target = folder, source, target

    def encode(self, sentence: str) -> str:
        """Subwords of a sentence of the source language, separated by spaces."""
        from ..corpora.subwords import from_text

        return from_text([sentence], self.source, self.folder)[0]

    def decode(self, subwords: str) -> str:
        """The sentence of subwords of the target language."""
        from ..corpora.subwords import to_text

        return to_text(subwords, self.target, self.kind)


class TranslationHub(hub_utils.GeneratorHubInterface):
    """One or more translation models with their dictionaries and subwords, in evaluation mode.

    A ``torch.nn.Module``: ``.to("cuda")``, ``.half()`` and ``.bfloat16()`` work as usual.
    ``split``: whether text is already split into subwords.
    """

    tokenizer: Any
    bpe: Any

    def __init__(self, cfg: Any, task: Any, models: List[Any], split: bool = False) -> None:
        super().__init__(cfg, task, models)
        self.max_tokens = MAX_TOKENS
        # Limits of the models alone: the task does not know --beyond-table.
        self.max_positions = utils.resolve_max_positions(*(m.max_positions() for m in models))
        options = getattr(task, "args", None) or task.cfg
        source: Any = getattr(options, "source_lang", None)
        target: Any = getattr(options, "target_lang", None)
        folder = Path(str(options.data).split(os.pathsep)[0])
        prepared = (
            source and target and any(Path(folder, name).is_file() for name in MODELS.values())
        )
        # Targets are split like sources, but by the rules of the target language.
        self.target_tokenizer, self.target_bpe = self.tokenizer, self.bpe
        if self.tokenizer is None and self.bpe is None and prepared and not split:
            self.bpe = PreparedText(folder, source, target)
            self.target_bpe = PreparedText(folder, target, target)
        elif "source_lang" in (cfg.tokenizer or ()):
            of_targets = deepcopy(cfg.tokenizer)
            with open_dict(of_targets):
                of_targets.source_lang = target
            self.target_tokenizer = encoders.build_tokenizer(of_targets)

    @overload
    def translate(self, sentences: str, beam: int = ..., **search: Any) -> str: ...
    @overload
    def translate(self, sentences: Sequence[str], beam: int = ..., **search: Any) -> List[str]: ...
    def translate(
        self,
        sentences: Union[str, Sequence[str]],
        beam: int = 5,
        verbose: bool = False,
        *,
        max_tokens: int = MAX_TOKENS,
        **search: Any,
    ) -> Union[str, List[str]]:
        """The best translation of each sentence, in order; "" for a blank sentence.

        Args:
            max_tokens: source tokens of a batch, padding included.
            search: generation options of fairseq, such as ``lenpen=0.6``; others raise TypeError.
        """
        if isinstance(sentences, str):
            search |= {"verbose": verbose, "max_tokens": max_tokens}
            return self.translate([sentences], beam, **search)[0]
        known = {each.name for each in fields(GenerationConfig)} | {"prefix_allowed_tokens_fn"}
        if unknown := search.keys() - known:  # fairseq ignores them
            raise TypeError(f"translate() has no option {', '.join(sorted(unknown))}")
        self.max_tokens, sentences = max_tokens, list(sentences)
        filled = [sentence for sentence in sentences if sentence.strip()]
        texts = iter(self.sample(filled, beam, verbose, **search) if filled else [])
        return [next(texts) if sentence.strip() else "" for sentence in sentences]

    @overload
    def score(  # type: ignore[overload-overlap]
        self, sources: str, targets: str, *, max_tokens: int = ...
    ) -> Tensor: ...
    @overload
    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, max_tokens: int = ...
    ) -> List[Tensor]: ...
    def score(
        self,
        sources: Union[str, Sequence[str]],
        targets: Union[str, Sequence[str]],
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> Union[Tensor, List[Tensor]]:
        """Log-probabilities of the tokens of each target, given its source.

        Natural logarithms (T,) in float32 on the CPU, for the T tokens of ``encode_target``. Raises
        :class:`UserError` for other tasks than translation.
        """
        if isinstance(sources, str) and isinstance(targets, str):
            return self.score([sources], [targets], max_tokens=max_tokens)[0]
        if isinstance(sources, str) or isinstance(targets, str) or len(sources) != len(targets):
            raise ValueError("sources and targets must be two sentences, or equally many of both")
        if not isinstance(self.task, TranslationTask):  # others add marks of languages
            raise UserError(f"score: not implemented for the task {type(self.task).__name__}")
        if not sources:
            return []
        self.max_tokens = max_tokens
        of_sources = [self.encode(sentence) for sentence in sources]
        of_targets = [self.encode_target(sentence) for sentence in targets]
        pairs = LanguagePairDataset(
            *(of_sources, [len(tokens) for tokens in of_sources], self.src_dict),
            *(of_targets, [len(tokens) for tokens in of_targets], self.tgt_dict),
            shuffle=False,
        )
        scorer, scores = SequenceScorer(self.tgt_dict), {}
        for batch in self._batches(pairs):
            batch = utils.apply_to_sample(lambda x: x.to(self.device), batch)
            results = scorer.generate(self.models, batch)
            for number, (result,) in zip(batch["id"].tolist(), results, strict=True):
                scores[number] = result["positional_scores"].float().cpu()
        return [scores[number] for number in range(len(scores))]

    def encode_target(self, sentence: str) -> Tensor:
        """Token ids (T,) of a target sentence, ``</s>`` included."""
        for part in (self.target_tokenizer, self.target_bpe):
            sentence = sentence if part is None else part.encode(sentence)
        tokens: Tensor = self.tgt_dict.encode_line(sentence, add_if_not_exist=False).long()
        return tokens

    def _build_batches(self, tokens: List[Tensor], skip_invalid_size_inputs: bool) -> Iterator[Any]:
        sizes = torch.tensor([len(sentence) for sentence in tokens])
        dataset = self.task.build_dataset_for_inference(tokens, sizes)
        return self._batches(dataset, skip_invalid_size_inputs)

    def _batches(self, dataset: Any, skip: bool = False) -> Iterator[Any]:
        batches: Iterator[Any] = self.task.get_batch_iterator(
            dataset=dataset,
            max_tokens=self.max_tokens,
            max_positions=self.max_positions,
            ignore_invalid_inputs=skip,
            disable_iterator_cache=True,
        ).next_epoch_itr(shuffle=False)
        return batches


class DietRobertaHub(RobertaHubInterface):
    """fairseq's RoBERTa interface, with segments.

    ``bpe``: an object that splits text into pieces; None: that of ``cfg.bpe``.
    """

    def __init__(self, cfg: Any, task: Any, model: Any, bpe: Any = None) -> None:
        super().__init__(cfg, task, model)
        if bpe is not None:
            self.bpe = bpe

    def encode_pair(self, first: str, second: str) -> Tuple[Tensor, Tensor]:
        """Tokens ``<s> A </s> </s> B </s>`` (S,) of two sentences, and their segments (S,).

        Segments are those of ``diet_sentence_prediction``: 0 up to the end of A, then 1.
        """
        return self._joined(self.bpe.encode(first), self.bpe.encode(second))

    def _joined(self, *sentences: str) -> Tuple[Tensor, Tensor]:
        """Tokens and segments, (S,) each, of sentences in pieces."""
        begin = ["<s>", *(["</s>"] * (len(sentences) - 1))]
        encode = self.task.source_dictionary.encode_line
        parts = [
            encode(f"{mark} {sentence} </s>", append_eos=False, add_if_not_exist=False).long()
            for mark, sentence in zip(begin, sentences, strict=True)
        ]
        segments = [torch.full_like(part, number) for number, part in enumerate(parts)]
        return torch.cat(parts), torch.cat(segments)

    def extract_features(
        self,
        tokens: Tensor,
        return_all_hiddens: bool = False,
        segment_ids: Optional[Tensor] = None,
    ) -> Union[Tensor, List[Tensor]]:
        """Features (B, S, E) of ``tokens`` (B, S) or (S,).

        ``return_all_hiddens``: a list of the input's and each layer's. Raises :class:`UserError` if
        several sentences have no ``segment_ids`` and the model has segments.
        """
        out, extra = self._run(tokens, segment_ids, True, return_all_hiddens)
        if not return_all_hiddens:
            return out
        return [states.transpose(0, 1) for states in extra["inner_states"]]

    def predict(
        self,
        head: str,
        tokens: Tensor,
        return_logits: bool = False,
        segment_ids: Optional[Tensor] = None,
    ) -> Tensor:
        """Log-probabilities (B, classes) by a classification head of ``tokens`` (B, S) or (S,).

        ``return_logits``: logits, for regression. Raises :class:`UserError` for an unknown head.
        """
        heads = self.model.classification_heads
        if head not in heads:
            raise UserError(
                f"the model has no head {head!r}; it has {', '.join(heads) or 'none'}: heads come "
                "with a checkpoint that was fine-tuned"
            )
        logits: Tensor = heads[head](self.extract_features(tokens, segment_ids=segment_ids))
        return logits if return_logits else F.log_softmax(logits, dim=-1)

    def predict_mask(
        self, tokens: Tensor, topk: int = 5, segment_ids: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """The ``topk`` most probable tokens at M masks, and their probabilities: (M, topk) each.

        ``tokens``: (S,) or (1, S). Raises :class:`UserError` for M = 0 or a wrong ``topk``.
        """
        masked = tokens.view(1, -1).eq(self.task.source_dictionary.index(MASK))
        if not 1 <= topk <= len(self.task.source_dictionary):
            raise UserError(f"topk {topk}: must be 1 to {len(self.task.source_dictionary)}")
        if not bool(masked.any()):
            raise UserError(f"nothing is masked; write {MASK} for the word to fill in")
        with utils.model_eval(self.model), torch.no_grad():
            logits, _ = self._run(tokens, segment_ids, False, False)
        probabilities, words = logits[masked.to(logits.device)].float().softmax(-1).topk(topk)
        return words, probabilities

    def fill_mask(
        self, masked_input: str, topk: int = 5, second: Optional[str] = None
    ) -> List[Tuple[str, float, str]]:
        """(sentence, probability, word) for the ``topk`` most probable words at ``<mask>``.

        A piece that continues a word is joined to the text before the mask. ``second``: the second
        sentence. Raises :class:`UserError` unless exactly one ``<mask>`` is in the first.
        """
        if masked_input.count(MASK) != 1 or MASK in (second or ""):
            raise UserError(
                f"{masked_input!r}: write exactly one {MASK}, and none in the second sentence"
            )
        before, after = masked_input.split(MASK)
        follows = [] if second is None else [self.bpe.encode(second)]
        masked = f"{self.bpe.encode(before)} {MASK} {self.bpe.encode(after)}"
        tokens, segments = self._joined(masked, *follows)
        words, shares = self.predict_mask(tokens, topk, segments)
        tokenizer = getattr(self.bpe, "tokenizer", None)
        filled = []
        for word, share in zip(words[0].tolist(), shares[0].tolist(), strict=True):
            piece = self.task.source_dictionary[word]
            text = str(self.bpe.decode(piece)).strip()
            continues = tokenizer is not None and not tokenizer.begins_word(piece)
            filled.append(((before.rstrip() if continues else before) + text + after, share, text))
        return filled

    def _run(
        self, tokens: Tensor, segment_ids: Optional[Tensor], features: bool, hiddens: bool
    ) -> Tuple[Tensor, Any]:
        """The model's output for ``tokens`` (B, S) or (S,)."""
        tokens = tokens.unsqueeze(0) if tokens.dim() == 1 else tokens
        longest = self.model.max_positions()
        if tokens.size(-1) > longest:
            raise ValueError(f"{tokens.size(-1)} tokens are more than the model takes, {longest}")
        ends = tokens.eq(self.task.source_dictionary.eos()).sum(1)
        if segment_ids is not None:
            segment_ids = segment_ids.view_as(tokens).to(self.device)
        elif self.model.has_segments and bool(ends.gt(1).any()):
            raise UserError(
                "the model has segments, and the tokens are of several sentences: give "
                "segment_ids, which encode_pair makes"
            )
        out: Tuple[Tensor, Any] = self.model(
            tokens.to(self.device),
            features_only=features,
            return_all_hiddens=hiddens,
            segment_ids=segment_ids,
        )
        return out


def find_pieces(folders: List[str], dictionary: Any) -> WordPieceBPE:
    """The first tokenizer in ``folders``. Raises UserError if ``dictionary`` is of another one."""
    kinds = (WORDPIECE, SENTENCEPIECE)
    held = [name for name in folders if any(Path(name, kind).is_file() for kind in kinds)]
    if not held:
        raise UserError(
            f"no tokenizer in {' or '.join(folders)}; give tokenizer=FOLDER, the one that the data "
            "was prepared with (it holds dict.txt, too), or bpe="
        )
    bpe = WordPieceBPE(WordPieceConfig(wordpiece_folder=held[0]))
    symbols = bpe.tokenizer.symbols()
    known = dictionary.symbols[dictionary.nspecial :]
    # Only <mask> and entries that pad the dictionary follow the pieces.
    if known[: len(symbols)] != symbols or len(known) > len(symbols) + MULTIPLE:
        raise UserError(
            f"{held[0]}: the tokenizer has {len(symbols)} pieces that are not, in this order, the "
            f"{len(known)} entries of the model's dictionary; give the tokenizer that the data was "
            "prepared with"
        )
    return bpe
