"""``diet-mt`` by ``killing.py``, in forks of a server that has imported all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..commands.runner import Command, Done, Runner, command

# Imported by the commands, besides torch and fairseq.
MODULES = (
    "tests.slow.killing",
    "diet_mt.bert.labelled_stages",
    "diet_mt.corpora.shared_stages",
    "diet_mt.evaluation.evaluate",
    "diet_mt.evaluation.predict",
    "diet_mt.experiments.jobs",
    "diet_mt.experiments.train",
    "sklearn.metrics",
)


def diet_mt(words: str, cwd: Path, journal: Path | None = None, **env: str) -> Command:
    script = Path(__file__).with_name("killing.py")
    return command(str(script), journal or os.devnull, words.split(), cwd=cwd, env=env)


def run(server: Runner, *given: Any, **options: Any) -> Done:
    return server.together(diet_mt(*given, **options))[0]
