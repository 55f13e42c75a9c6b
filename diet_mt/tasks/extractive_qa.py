"""The task ``extractive_qa``: answers are spans of the context that a question is about."""

import contextlib
import logging
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from fairseq import models
from fairseq.data import (
    Dictionary,
    FairseqDataset,
    IdDataset,
    NestedDictionaryDataset,
    NumelDataset,
    NumSamplesDataset,
    RawLabelDataset,
    RightPadDataset,
    SortDataset,
    data_utils,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING, OmegaConf, open_dict
from torch import Tensor

from ..bert.answer_scores import score, scoring_of
from ..bert.answers import MAX_ANSWER, Candidate
from ..bert.squad import Question, read_squad
from ..bert.windows import About, Features, read_about, read_features
from ..corpora.binarized import MASK
from ..system.errors import UserError
from .diet_sentence_prediction import SegmentDataset

logger = logging.getLogger(__name__)


class WindowTokens(FairseqDataset):
    """Token ids of windows: (S,) int64 each."""

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.features = features
        self.sizes = np.asarray(features.column("tokens"))

    def __getitem__(self, index: int) -> Tensor:
        tokens = self.features.tokens[self.features.slice_of(index)]
        return torch.from_numpy(tokens.astype(np.int64))

    def __len__(self) -> int:
        return len(self.features)


@dataclass
class QuestionSet:
    """One prepared split.

    Attributes:
        folder: the folder of the split, by ``diet-mt prepare qa``.
        about: its description.
        features: its windows.
        first: index of its first window among the windows of all splits.
    """

    folder: Path
    about: About
    features: Features
    first: int

    @cached_property
    def questions(self) -> List[Question]:
        return read_squad(self.folder / "squad.json")

    @cached_property
    def is_version_2(self) -> bool:
        """Whether some questions cannot be answered."""
        return any(question.impossible for question in self.questions)

    def question_of(self, window: int) -> int:
        """Index of the question of a window, both within this set."""
        return int(self.features.column("question")[window])

    def scores(self, answers: np.ndarray) -> Dict[str, float]:
        """F1 and exact match over all questions of the set, 0 to 100; see ``answer_scores``.

        Args:
            answers: (windows, 6) float64: index of the window among the windows of all splits,
                begin and end of its best answer in characters of the context, the start and end
                logits of that answer, and the score of no answer (the sum of the logits of <s>).
        """
        best_of: Dict[int, Tuple[Candidate, float]] = {}
        for window, begin, end, start_logit, end_logit, nothing in answers.tolist():
            number = self.question_of(int(window) - self.first)
            best = Candidate(int(begin), int(end), start_logit, end_logit)
            if number in best_of:
                other, least = best_of[number]
                best, nothing = min(best, other, key=lambda each: each.order), min(nothing, least)
            best_of[number] = best, nothing
        texts = {}
        for number, (best, nothing) in best_of.items():
            question = self.questions[number]
            unanswered = self.is_version_2 and nothing > best.score
            texts[question.id] = "" if unanswered else best.text_in(question.context)
        kind = scoring_of(self.about.scoring, self.about.language, self.questions)
        return score(self.questions, texts, kind).summary()


@dataclass
class ExtractiveQAConfig(FairseqDataclass):
    """Options of the task."""

    data: str = field(default=MISSING, metadata={"help": "folder made by diet-mt prepare qa"})
    max_positions: int = field(default=512, metadata={"help": "maximum number of window tokens"})
    max_answer: int = field(
        default=MAX_ANSWER, metadata={"help": "maximum number of subwords in a predicted answer"}
    )
    no_shuffle: bool = field(default=False, metadata={"help": "do not shuffle the questions"})
    seed: int = II("common.seed")


@register_task("extractive_qa", dataclass=ExtractiveQAConfig)
class ExtractiveQATask(FairseqTask):
    """Extractive question answering over the windows of contexts.

    Batches have ``net_input`` with ``src_tokens`` (B, S), ``src_lengths`` (B,) and ``segment_ids``
    (B, S), 0 for <s> and the question, 1 from the </s> before the context on; and

        context     (B,) column where the context begins; it ends before the last </s>
        start, end  (B,) columns of the first and the last token of the answer; 0, <s>, for none
        window      (B,) index of the window among the windows of all splits that are loaded

    Validation logs ``f1`` and ``exact_match`` of whole questions, over all of a split.
    """

    def __init__(self, cfg: ExtractiveQAConfig, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary
        self.sets: Dict[str, QuestionSet] = {}
        self._scored: Tuple[bytes, Dict[str, float]] = (b"", {})

    @classmethod
    def setup_task(cls, cfg: ExtractiveQAConfig, **kwargs: Any) -> "ExtractiveQATask":
        file = os.path.join(cfg.data, "dict.txt")
        if not os.path.isfile(file):
            raise UserError(f"{file}: no such file; give a folder made by diet-mt prepare qa")
        if cfg.max_answer < 1:
            raise UserError(f"--max-answer {cfg.max_answer}: must be at least 1")
        dictionary = Dictionary.load(file)
        dictionary.add_symbol(MASK)  # as masked_lm does
        logger.info("dictionary: %d types", len(dictionary))
        return cls(cfg, dictionary)

    def load_dataset(self, split: str, combine: bool = False, **kwargs: Any) -> Any:
        group = self.question_set(split, Path(self.cfg.data) / split)
        self.datasets[split] = self.windows_of(group)
        logger.info(
            "%s: %d questions, %d windows", split, group.about.questions, group.about.windows
        )
        return self.datasets[split]

    def question_set(self, name: str, folder: Path) -> QuestionSet:
        """The set ``name``, read from ``folder`` the first time.

        Raises :class:`UserError` for longer windows than ``--max-positions``, and for tokens that
        the dictionary lacks.
        """
        if name not in self.sets:
            first = sum(len(group.features) for group in self.sets.values())
            group = QuestionSet(folder, read_about(folder), read_features(folder), first)
            if group.about.max_tokens > self.cfg.max_positions:
                raise UserError(
                    f"{folder}: windows of {group.about.max_tokens} tokens, but --max-positions "
                    f"{self.cfg.max_positions}; prepare shorter ones (--max-tokens)"
                )
            if int(group.features.tokens.max()) >= len(self.dictionary):
                raise UserError(
                    f"{folder}: tokens that are not in {self.cfg.data}/dict.txt; prepare it again"
                )
            self.sets[name] = group
        return self.sets[name]

    def windows_of(self, group: QuestionSet) -> Any:
        """The windows of a set, as fairseq batches them."""
        features = group.features
        tokens = WindowTokens(features)
        context = features.column("context")
        # The second </s> before the context belongs to its segment, as in sentence prediction.
        segments = SegmentDataset(tokens.sizes, np.asarray(context) - 1)
        numbers: List[int] = (group.first + np.arange(len(features))).tolist()
        nested = NestedDictionaryDataset(
            {
                "id": IdDataset(),
                "net_input": {
                    "src_tokens": RightPadDataset(tokens, pad_idx=self.dictionary.pad()),
                    "src_lengths": NumelDataset(tokens, reduce=False),
                    "segment_ids": RightPadDataset(segments, pad_idx=0),
                },
                "context": RawLabelDataset(context.tolist()),
                "start": RawLabelDataset(features.column("start").tolist()),
                "end": RawLabelDataset(features.column("end").tolist()),
                "window": RawLabelDataset(numbers),
                "nsentences": NumSamplesDataset(),
                "ntokens": NumelDataset(tokens, reduce=True),
            },
            sizes=[tokens.sizes],
        )
        if self.cfg.no_shuffle:
            return nested
        with data_utils.numpy_seed(self.cfg.seed):
            shuffle = np.random.permutation(len(tokens))
        return SortDataset(nested, sort_order=[shuffle])

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        with open_dict(cfg) if OmegaConf.is_config(cfg) else contextlib.nullcontext():
            cfg.max_positions = self.cfg.max_positions
        model = models.build_model(cfg, self, from_checkpoint)
        model.register_span_head()  # of diet_roberta
        return model

    def set_of(self, window: int) -> QuestionSet:
        """The set of a window, given by its index among the windows of all splits.

        Raises IndexError beyond them.
        """
        for group in self.sets.values():
            if group.first <= window < group.first + len(group.features):
                return group
        raise IndexError(window)

    def extents_of(self, window: int) -> np.ndarray:
        """Begin and end of each token of a window, in characters of the context: (S, 2)."""
        group = self.set_of(window)
        return np.asarray(group.features.extents[group.features.slice_of(window - group.first)])

    def scores(self, answers: np.ndarray) -> Dict[str, float]:
        """Scores over all questions of a split; ``answers`` as for :meth:`QuestionSet.scores`.

        Raises :class:`UserError` for answers to several splits.
        """
        windows = answers[:, 0].astype(int).tolist()
        groups = {id(group): group for group in map(self.set_of, windows)}
        if len(groups) > 1:
            raise UserError("--combine-valid-subsets: each set has its own scores; leave it out")
        # fairseq computes each logged score separately.
        key = answers.tobytes()
        if self._scored[0] != key:
            self._scored = key, next(iter(groups.values())).scores(answers)
        return self._scored[1]

    def reduce_metrics(self, logging_outputs: List[Dict[str, Any]], criterion: Any) -> None:
        """Logs fairseq's metrics, then the scores of answers, by the criterion of this task."""
        super().reduce_metrics(logging_outputs, criterion)
        if hasattr(criterion, "log_scores"):
            criterion.log_scores(logging_outputs)

    def max_positions(self) -> int:
        return int(self.cfg.max_positions)

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.dictionary
