"""The fairseq commands that README.md and then user_dir_readme.md print run as they are printed.

Only the places differ: the toy corpus for the reader's, a scratch folder for the checkpoints, and
two updates of training for fifteen epochs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from .runner import ROOT
from .transcript import texts
from .workshop import Workshop

PAGES = ("README.md", "user_dir_readme.md")
# One command, over all of its lines, in an indented block.
COMMAND = re.compile(r"^    fairseq-([a-z-]+) ((?:.*\\\n)*.*)$", re.MULTILINE)
BRIEFLY = {
    "train": ["--max-update", "2", "--warmup-updates", "1"],
    "hydra-train": ["optimization.max_update=2"],
}


def commands(*pages: str) -> list[tuple[str, list[str]]]:
    """Name and arguments of each command that a reader can run: no dots, no capitals."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    found = COMMAND.findall(text)
    return [
        (name, shlex.split(text.replace("\\\n", " ")))
        for name, text in found
        if "..." not in text and "BIN" not in text
    ]


def placed(word: str, workshop: Workshop, scratch: Path) -> str:
    """A word of a command, with the folders of this test for those of the page."""
    word = word.replace("$PWD/", "")
    word = re.sub(r"data/[\w.-]+/bin", str(workshop.bin), word)
    word = re.sub(r"checkpoints/\w+", str(scratch) + r"/\g<0>", word)
    word = re.sub(r"(?<![\w/])(diet_mt|config/hydra)$", rf"{ROOT}/\1", word)
    return word


def test_the_commands_run_one_after_the_other(workshop: Workshop, tmp_path: Path) -> None:
    sentences = tmp_path / "sentences.en"
    sentences.write_text("".join(f"{line}\n" for line in workshop.lines()[:3]), encoding="utf-8")
    ran = []
    for name, words in commands(*PAGES):
        piped = "<" in words
        words = words[: words.index("<")] if piped else words
        arguments = [placed(word, workshop, tmp_path) for word in words]
        stdin = sentences.read_text(encoding="utf-8") if piped else ""
        arguments += BRIEFLY.get(name, [])
        done = workshop.run(name, *arguments, stdin=stdin, cwd=tmp_path).ok()
        if name in ("generate", "interactive"):
            expected = len(workshop.lines()) if name == "generate" else 3
            assert len(texts(done.stdout)) == expected
        ran.append(name)
    assert set(ran) == {"train", "generate", "interactive", "validate", "hydra-train"}
