"""Importing the package costs nothing; what fairseq imports of a user dir brings all of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .commands.runner import PLUGIN, ROOT, Runner, run_python

HEAVY = ("torch", "fairseq")

# Each statement in a child of its own that has seen nothing of the plugin; one line for each.
FIRST = """
import argparse, os, sys
import torch, fairseq.checkpoint_utils, fairseq.models.transformer, fairseq.tasks.translation
from fairseq import checkpoint_utils, utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import encoders  # noqa
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY

for statement in {statements!r}:
    sys.stdout.flush()
    if os.fork() == 0:
        exec(statement)
        place = checkpoint_utils.load_checkpoint_to_cpu.__code__.co_filename
        print(
            "diet_rel_tiny" in ARCH_MODEL_REGISTRY,
            "roberta_diet_rel_tiny" in ARCH_MODEL_REGISTRY,
            "diet_translation" in TASK_REGISTRY,
            "extractive_qa" in CRITERION_REGISTRY,
            "diet_wordpiece" in REGISTRIES["bpe"]["registry"],
            place == {place!r},
            statement,
            flush=True,
        )
        os._exit(0)
    assert os.wait()[1] == 0, statement
"""
STATEMENTS = (
    f"utils.import_user_module(argparse.Namespace(user_dir={str(PLUGIN)!r}))",
    "import diet_mt; diet_mt.register()",
    "import diet_mt.models",
    "import diet_mt.tasks.extractive_qa",
    "import diet_mt.criterions",
    "import diet_mt.encoders",
    "import diet_mt.fairseq_patches, diet_mt.models",
    "import diet_mt.evaluation.average",
)


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    modules = "diet_mt, diet_mt.corpora.subwords, diet_mt.cli.main"
    code = f"import {modules}, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert run_python(code, cwd=tmp_path, PYTHONPATH=ROOT).strip() == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_whatever_comes_first_brings_all_of_the_plugin(runner: Runner, tmp_path: Path) -> None:
    place = str(PLUGIN / "fairseq_patches" / "__init__.py")
    code = FIRST.format(statements=STATEMENTS, place=place)
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}", encoding="utf-8")
    printed = runner(str(program)).ok().stdout.strip().split("\n")
    assert printed == [f"True True True True True True {statement}" for statement in STATEMENTS]


def test_without_fairseq_a_line_says_what_is_missing(tmp_path: Path) -> None:
    code = (
        "import importlib.util as util\n"
        "util.find_spec = lambda name: None\n"
        "import diet_mt\n"
        "try:\n    diet_mt.register()\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error)\n"
    )
    printed = run_python(code, cwd=tmp_path, PYTHONPATH=ROOT)
    assert printed.startswith("fairseq diet_mt is a plugin of fairseq, which is not installed here")
