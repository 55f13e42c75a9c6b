"""Prepared questions, as the task holds them: windows for the model, gold answers for scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor

from ..bert.answer_scores import score, scoring_of
from ..bert.answers import Candidate
from ..bert.squad import Question, read_squad
from ..bert.windows import About, Features, read_about, read_features


class WindowTokens(FairseqDataset):
    """Token numbers of windows: (S,) int64 each."""

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
    """One prepared split. ``first``: the number of its first window among those of all splits."""

    folder: Path
    about: About
    features: Features
    first: int

    @classmethod
    def read(cls, folder: Path, first: int) -> QuestionSet:
        """Raises UserError where ``folder`` holds no prepared questions."""
        about = read_about(folder)
        return cls(folder, about, read_features(folder), first)

    @cached_property
    def questions(self) -> List[Question]:
        return read_squad(self.folder / "squad.json")

    @cached_property
    def is_version_2(self) -> bool:
        """Whether some questions cannot be answered."""
        return any(question.impossible for question in self.questions)

    def question_of(self, window: int) -> int:
        """Number of the question that a window, by its own number in this set, is of."""
        return int(self.features.column("question")[window])

    def scores(self, said: np.ndarray) -> Dict[str, float]:
        """F1 and exact match over all questions of the set, 0 to 100; see ``answer_scores``.

        Args:
            said: (windows, 6) float64, what windows say: number of the window among those of all
                splits, begin and end of its best answer in characters, the two logits of that
                answer, and the score of having no answer.
        """
        answers: Dict[int, Tuple[Candidate, float]] = {}
        for window, begin, end, start_logit, end_logit, nothing in said.tolist():
            number = self.question_of(int(window) - self.first)
            best = Candidate(int(begin), int(end), start_logit, end_logit)
            if number in answers:
                other, least = answers[number]
                best, nothing = min(best, other, key=lambda each: each.order), min(nothing, least)
            answers[number] = best, nothing
        texts = {}
        for number, (best, nothing) in answers.items():
            question = self.questions[number]
            unanswered = self.is_version_2 and nothing > best.score
            texts[question.id] = "" if unanswered else best.text_in(question.context)
        kind = scoring_of(self.about.scoring, self.about.language, self.questions)
        return score(self.questions, texts, kind).summary()
