"""What docs/encoders.md shows runs as it is printed: its commands, then its Python."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from diet_mt.bert.qa import prepare
from diet_mt.bert.windows import WindowSizes

from ..bert.made import coloured
from .encoders import Encoders
from .runner import PLUGIN, ROOT, run_python
from .test_documents import commands

PAGE = "docs/encoders.md"
# Two updates each; masked_lm's corpus is made of sentences here, not of documents.
SIZES = WindowSizes(max_tokens=48, stride=16, max_question=20)
BRIEFLY = ("--max-update", 2, "--warmup-updates", 1)


def test_the_page(encoders: Encoders, tmp_path: Path) -> None:
    for place, target in (
        ("data/mlm.en/bin", encoders.vocabulary),
        ("data/glue/MNLI", encoders.pairs),
        ("diet_mt", PLUGIN),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, tmp_path / place)
    for split in ("train", "valid"):
        file = coloured(tmp_path / f"{split}.json", 40, seed=len(split))
        prepare(file, encoders.vocabulary, tmp_path / "data" / "SQuAD" / split, SIZES)
    shutil.copy(encoders.vocabulary / "dict.txt", tmp_path / "data" / "SQuAD")
    found = commands(PAGE)
    assert [name for name, _ in found] == ["train", "train", "train"]
    for name, words in found:
        encoders.run(name, *words, *BRIEFLY, cwd=tmp_path).ok()
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    checks = "assert features.shape == (1, len(tokens), 128) and shares.shape == (1, 3)\n"
    printed = run_python(program + checks, cwd=tmp_path, PYTHONPATH=ROOT)
    filled = [line for line in printed.split("\n") if line.startswith("0.")]
    assert len(filled) == 3
    for line in filled:
        assert re.match(r"0\.\d{3}  The old ?\S+ reads the long letter\.$", line), line
