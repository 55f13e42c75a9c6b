"""The commands of README.md, user_dir_readme.md and docs/encoders.md run as they are printed.

Only the places differ: the toy corpus for the reader's, a scratch folder for the checkpoints, and
two updates of training.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from diet_mt.bert.qa import prepare

from ..bert.made import coloured
from .encoders import WINDOWS, Encoders
from .runner import PLUGIN, ROOT
from .workshop import Workshop, texts

# One command, over all of its lines, in an indented block.
COMMAND = re.compile(r"^    fairseq-([a-z-]+) ((?:.*\\\n)*.*)$", re.MULTILINE)
BRIEFLY = {
    "train": ["--max-update", "2", "--warmup-updates", "1"],
    "hydra-train": ["optimization.max_update=2"],
}


def commands(*pages: str) -> list[tuple[str, list[str]]]:
    """Name and arguments of each command that a reader can run: no dots, no capitals."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    return [
        (name, shlex.split(words.replace("\\\n", " ")))
        for name, words in COMMAND.findall(text)
        if "..." not in words and "BIN" not in words
    ]


def placed(word: str, workshop: Workshop, scratch: Path) -> str:
    """A word of a command, with the folders of this test for those of the page."""
    word = word.replace("$PWD/", "")
    word = re.sub(r"data/[\w.-]+/bin", str(workshop.bin), word)
    word = re.sub(r"checkpoints/\w+", str(scratch) + r"/\g<0>", word)
    return re.sub(r"(?<![\w/])(diet_mt|config/hydra)$", rf"{ROOT}/\1", word)


def test_the_commands_run_one_after_the_other(workshop: Workshop, tmp_path: Path) -> None:
    ran = set()
    for name, words in commands("README.md", "user_dir_readme.md"):
        stdin = "".join(f"{line}\n" for line in workshop.lines()[:3]) if "<" in words else ""
        words = words[: words.index("<")] if stdin else words
        arguments = [placed(word, workshop, tmp_path) for word in words] + BRIEFLY.get(name, [])
        done = workshop.run(name, *arguments, stdin=stdin, cwd=tmp_path).ok()
        if name in ("generate", "interactive"):
            expected = len(workshop.lines()) if name == "generate" else 3
            assert len(texts(done.stdout)) == expected
        ran.add(name)
    assert ran == {"train", "generate", "interactive", "validate", "hydra-train"}


def test_the_page_of_encoders(encoders: Encoders, tmp_path: Path) -> None:
    page = "docs/encoders.md"
    for place, target in (
        ("data/mlm.en/bin", encoders.vocabulary),
        ("data/glue/MNLI", encoders.pairs),
        ("diet_mt", PLUGIN),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(target)
    for split in ("train", "valid"):
        file = coloured(tmp_path / f"{split}.json", 40, seed=len(split))
        prepare(file, encoders.vocabulary, tmp_path / "data" / "SQuAD" / split, WINDOWS)
    shutil.copy(encoders.vocabulary / "dict.txt", tmp_path / "data" / "SQuAD")
    assert [name for name, _ in commands(page)] == ["train", "train", "train"]
    for name, words in commands(page):
        encoders.run(name, *words, *BRIEFLY[name], cwd=tmp_path).ok()
    text = (ROOT / page).read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    checks = "assert features.shape == (1, len(tokens), 128) and shares.shape == (1, 3)\n"
    script, start = tmp_path / "page.py", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    script.write_text(start + program + checks, encoding="utf-8")
    printed = encoders.run(str(script), cwd=tmp_path).ok().stdout
    filled = [line for line in printed.split("\n") if line.startswith("0.")]
    assert len(filled) == 3
    for line in filled:
        assert re.match(r"0\.\d{3}  The old ?\S+ reads the long letter\.$", line), line
