"""What a shell completes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import shtab

from diet_mt.cli.main import COMMANDS, tree


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ([], {name.split(" ")[0] for name in COMMANDS}),
        (["prepare"], {name.split(" ")[1] for name in COMMANDS if name.startswith("prepare ")}),
        (["leaderboard", "--format"], {"text", "markdown", "html", "svg"}),
    ],
)
def test_bash_completes_commands_and_values(
    tmp_path: Path, words: list[str], known: set[str]
) -> None:
    (tmp_path / "completion").write_text(shtab.complete(tree(), shell="bash"), encoding="utf-8")
    line = " ".join(words)
    program = f"""
        . {tmp_path}/completion
        COMP_WORDS=(diet-mt {line} '') COMP_CWORD={len(words) + 1}
        _shtab_diet_mt
        echo "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) == known
