"""The task ``diet_sentence_prediction``: fairseq's sentence prediction, with segments."""

import os
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, NestedDictionaryDataset, RightPadDataset, data_utils
from fairseq.tasks import register_task
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from ..system.errors import UserError


class SegmentDataset(FairseqDataset):
    """Segments of the tokens of sentence pairs: 0 in the first sentence, 1 in the second.

    The border is the stored length of the first sentence, not a separator.

    Args:
        lengths: (pairs,) number of tokens of each pair, possibly truncated at the end.
        first: (pairs,) number of tokens of each first sentence, special tokens included.
    """

    def __init__(self, lengths: np.ndarray, first: np.ndarray) -> None:
        super().__init__()
        # Copies: sizes of an indexed dataset are mapped from its file, and crash once it is closed.
        self.sizes, self.first = np.array(lengths), np.array(first)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.arange(int(self.sizes[index])).ge(int(self.first[index])).long()

    def __len__(self) -> int:
        return len(self.sizes)


@register_task("diet_sentence_prediction", dataclass=SentencePredictionConfig)
class DietSentencePredictionTask(SentencePredictionTask):
    """fairseq's sentence prediction, with ``net_input.segment_ids`` (B, S) in batches."""

    def load_dataset(self, split: str, combine: bool = False, **kwargs: Any) -> Any:
        """A split with segments.

        Raises :class:`UserError` for random cropping, which hides the border of the sentences, and
        for examples longer than ``--max-positions``, which fairseq would skip.
        """
        listed = [part for part in self.cfg.shorten_data_split_list.split(",") if part]
        if str(self.cfg.shorten_method) == "random_crop" and (not listed or split in listed):
            raise UserError(
                "--shorten-method random_crop: drops an unknown part of each sentence; use truncate"
            )
        dataset = super().load_dataset(split, combine, **kwargs)
        nested = dataset
        while not isinstance(nested, NestedDictionaryDataset):
            nested = nested.dataset
        tokens = nested.defn["net_input.src_tokens"].dataset
        longest, limit = int(np.max(tokens.sizes, initial=0)), int(self.cfg.max_positions)
        if longest > limit:
            raise UserError(
                f"{self.cfg.data}, {split}: examples of up to {longest} tokens, but "
                f"--max-positions {limit}; prepare shorter ones (--max-length), or give "
                "--shorten-method truncate"
            )
        first = data_utils.load_indexed_dataset(
            os.path.join(self.cfg.data, "input0", split), self.source_dictionary, combine=combine
        )
        special = 0 if self.cfg.init_token is None else 1
        segments = SegmentDataset(tokens.sizes, first.sizes + special)
        nested.defn["net_input.segment_ids"] = RightPadDataset(segments, pad_idx=0)
        return dataset
