"""The task diet_translation through fairseq's commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from .rescoring import TOLERANCE
from .runner import Runner
from .transcript import Translation, texts, translations
from .workshop import SEARCH, USER_DIR, Workshop

GNMT = ("--task", "diet_translation", "--length-penalty", "gnmt")


def divided(found: Translation) -> list[float]:
    """The scores that the printed log-probabilities give."""
    return [sum(each) / ((5 + len(each)) / 6) ** 0.6 for each in found.positional]


def test_generate_ranks_the_same_translations_anew(workshop: Workshop) -> None:
    best = ("--nbest", 10)
    found = translations(workshop.generate("diet-rel", *best, *GNMT).ok().stdout)
    theirs = translations(workshop.generate("diet-rel", *best).ok().stdout)
    assert sorted(found) == sorted(theirs) == list(range(len(workshop.lines())))
    for number, one in found.items():
        assert sorted(one.texts) == sorted(theirs[number].texts)
        assert one.scores == sorted(one.scores, reverse=True)
        assert one.scores == pytest.approx(divided(one), abs=TOLERANCE)
    assert any(one.texts != theirs[number].texts for number, one in found.items())


def test_interactive_scores_as_generate_does(workshop: Workshop, runner: Runner) -> None:
    path = ("--path", workshop.checkpoint("diet-rel"), *USER_DIR, *SEARCH, *GNMT)
    lines = "".join(f"{line}\n" for line in workshop.lines()[:5])
    typed = translations(runner("interactive", workshop.bin, *path, stdin=lines).ok().stdout)
    assert len(typed) == 5
    for one in typed.values():
        assert one.scores == pytest.approx(divided(one), abs=TOLERANCE)


def test_checkpoints_of_either_task_serve_the_other(workshop: Workshop, tmp_path: Path) -> None:
    """Trained with gnmt in its validation; decoded by fairseq's task, and the other way round."""
    bleu = ("--eval-bleu", "--eval-bleu-args", json.dumps({"beam": 2, "lenpen": 0.6}))
    short = ("--max-update", 7, "--no-epoch-checkpoints")
    log = workshop.train("diet-rel", tmp_path, *short, *GNMT, *bleu).ok().stdout
    assert re.search(r'"valid_bleu": "[\d.]+"', log)
    saved = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)["cfg"]["task"]
    assert (saved["_name"], saved["length_penalty"]) == ("diet_translation", "gnmt")
    path = ("--path", tmp_path / "checkpoint_last.pt")
    outputs = [workshop.generate("diet-rel", *path, *task).ok().stdout for task in ((), GNMT)]
    assert all(len(texts(output)) == len(workshop.lines()) for output in outputs)
    resumed = workshop.train("diet-rel", tmp_path, "--max-update", 8, "--task", "translation").ok()
    assert "@ 7 updates" in resumed.stdout


def test_what_cannot_be_is_refused_in_one_line(workshop: Workshop) -> None:
    options, complaint = ("--length-penalty", "long"), "--length-penalty long: choose from fairseq"
    done = workshop.generate("diet-rel", "--task", "diet_translation", *options)
    assert done.status == 1
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith(f"error: {complaint}")
