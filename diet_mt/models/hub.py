"""Encoders from Python: fairseq's hub interface of RoBERTa, with segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from fairseq import hub_utils, utils
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from torch import Tensor

from ..bert.tokenizer import SENTENCEPIECE, WORDPIECE
from ..corpora.binarized import MASK, MULTIPLE
from ..encoders import WordPieceBPE, WordPieceConfig
from ..system.errors import UserError

# Where a task of sentence pairs has the folder of its first sentences, with their dictionary.
_FIRST_SENTENCES = "input0"


class DietRobertaHub(RobertaHubInterface):
    """fairseq's interface, whose calls with tokens take their segments, too.

    ``bpe``: what splits text; None: that of ``cfg.bpe``.
    """

    def __init__(self, cfg: Any, task: Any, model: Any, bpe: Any = None) -> None:
        super().__init__(cfg, task, model)
        if bpe is not None:
            self.bpe = bpe

    def encode_pair(self, first: str, second: str) -> Tuple[Tensor, Tensor]:
        """Two sentences -> tokens ``<s> A </s> </s> B </s>`` (S,) and their segments (S,).

        Segments are those of ``diet_sentence_prediction``: 0 up to the end of A, then 1.
        """
        return self._joined(self.bpe.encode(first), self.bpe.encode(second))

    def _joined(self, *sentences: str) -> Tuple[Tensor, Tensor]:
        """Sentences, as pieces -> tokens and segments, (S,) each."""
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
        """``tokens`` (B, S) or (S,) -> features (B, S, E), or those after every layer, the input's
        first.

        A model with segments needs ``segment_ids`` for several sentences.
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
        """``tokens`` (B, S) or (S,) -> log-probabilities (B, classes) of the classification head
        ``head``, or its logits, as a regression needs them.
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
        """``tokens`` (S,) or (1, S) with M masked ones -> the ``topk`` likeliest tokens of each and
        their probabilities, both (M, topk).
        """
        masked = tokens.view(1, -1).eq(self.task.source_dictionary.index(MASK))
        if not 1 <= topk <= len(self.task.source_dictionary):
            raise UserError(f"topk {topk}: from 1 to {len(self.task.source_dictionary)}, the words")
        if not bool(masked.any()):
            raise UserError(f"nothing is masked; write {MASK} for the word to fill in")
        with utils.model_eval(self.model), torch.no_grad():
            logits, _ = self._run(tokens, segment_ids, False, False)
        shares, words = logits[masked.to(logits.device)].float().softmax(-1).topk(topk)
        return words, shares

    def fill_mask(
        self, masked_input: str, topk: int = 5, second: Optional[str] = None
    ) -> List[Tuple[str, float, str]]:
        """A sentence with exactly one ``<mask>`` -> (sentence, probability, word) for each of the
        ``topk`` likeliest words. ``second``: the sentence that follows.

        A piece that continues a word is joined to the text in front of the mask.
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


def load_hub(
    folder: str,
    checkpoint_file: str,
    data_name_or_path: str,
    bpe: Optional[str],
    tokenizer: Optional[str],
    **more: Any,
) -> DietRobertaHub:
    """``DietRobertaModel.from_pretrained``."""
    data = Path(folder, data_name_or_path) if data_name_or_path[:1] == "." else data_name_or_path
    for path in (Path(folder, checkpoint_file), Path(data)):
        if not path.exists():  # fairseq would take the name for an address
            raise UserError(f"{path}: there is no such file or folder")
    if bpe is not None:
        more["bpe"] = bpe
    loaded = hub_utils.from_pretrained(
        folder, checkpoint_file, str(Path(data).resolve()), load_checkpoint_heads=True, **more
    )
    pieces = None
    if bpe is None:
        loaded["args"].bpe = None  # nor one that the checkpoint names: fairseq may download it
        folders = [tokenizer] if tokenizer else [str(data), str(Path(data, _FIRST_SENTENCES))]
        pieces = find_pieces(folders, loaded["task"].source_dictionary)
    hub = DietRobertaHub(loaded["args"], loaded["task"], loaded["models"][0], pieces)
    return hub.eval()


def find_pieces(folders: List[str], dictionary: Any) -> WordPieceBPE:
    """The tokenizer in the first of ``folders`` that has one, if it is that of ``dictionary``."""
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
    # Behind the pieces there are only the mark of a masked word and entries that fill up.
    if known[: len(symbols)] != symbols or len(known) > len(symbols) + MULTIPLE:
        raise UserError(
            f"{held[0]}: the tokenizer has {len(symbols)} pieces that are not, in this order, the "
            f"{len(known)} entries of the model's dictionary; give the tokenizer that the data was "
            "prepared with"
        )
    return bpe
