"""A model decodes sentences that are longer than its tables, where it is told how."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .runner import Done
from .test_bad_input import assert_one_line
from .transcript import texts
from .workshop import MAX_SOURCE, MAX_TARGET, SEARCH, USER_DIR, Workshop


@pytest.fixture(scope="module")
def long(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Binarized sentences of 60 words, and a checkpoint from before there was such an option."""
    folder = tmp_path_factory.mktemp("long")
    words = " ".join(workshop.lines()).split()
    assert len(words) > 120
    assert max(MAX_SOURCE, MAX_TARGET) < 60
    (folder / "test.src").write_text("".join(" ".join(words[n : n + 60]) + "\n" for n in (0, 60)))
    only = ("--only-source", "--srcdict", workshop.bin / "dict.src.txt")
    languages = ("--source-lang", "src", "--target-lang", "tgt")
    where = ("--testpref", folder / "test", "--destdir", folder / "bin")
    workshop.run("preprocess", *languages, *only, *where).ok()
    (folder / "bin" / "dict.tgt.txt").write_bytes((workshop.bin / "dict.tgt.txt").read_bytes())
    return folder


@pytest.mark.parametrize(("encoding", "older"), [("diet-rel", True), ("linformer", False)])
def test_it_translates_what_it_refuses_otherwise(
    workshop: Workshop, long: Path, tmp_path: Path, encoding: str, older: bool
) -> None:
    state = torch.load(workshop.checkpoint(encoding), weights_only=False)
    kept = state["cfg"]["model"]
    assert (kept if isinstance(kept, dict) else vars(kept))["beyond_table"] == "refuse"
    if older:
        (kept if isinstance(kept, dict) else vars(kept)).pop("beyond_table")
    torch.save(state, tmp_path / "checkpoint.pt")

    def generate(*more: str) -> Done:
        where = ("--path", tmp_path / "checkpoint.pt", *USER_DIR, *SEARCH)
        return workshop.run("generate", long / "bin", *where, "--max-len-b", "80", *more)

    assert_one_line(generate(), "invalid")
    wrong = generate("--model-overrides", "{'beyond_table': 'cut'}")
    assert_one_line(wrong, "--beyond-table cut: choose from refuse, clip, repeat")
    for how in ("clip", "repeat"):
        done = generate("--model-overrides", f"{{'beyond_table': '{how}'}}").ok()
        assert len(texts(done.stdout)) == 2
