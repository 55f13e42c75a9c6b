"""A prepared corpus with two checkpoints, for what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import subwords

from ..checkpoints import write_checkpoint
from ..commands.runner import Runner


@pytest.fixture(scope="session")
def place(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared corpus, data/toy.en-de/{raw,bin}, and untrained models, run/ and back/.

    The test set of back/, from German, is another one: test1.
    """
    folder = tmp_path_factory.mktemp("evaluate")
    raw, data = folder / "data" / "toy.en-de" / "raw", folder / "data" / "toy.en-de" / "bin"
    raw.mkdir(parents=True)
    # Not a multiple of eight: one distribution of fairseq is tempted to drop five of them.
    sides = {"en": ["red dog", "old cat", "a man"] * 5, "de": ["ein Hund", "die Katze", "Mann"] * 5}
    for lang, lines in sides.items():
        for split in ("train", "valid", "test"):
            (raw / f"{split}.{lang}").write_text("".join(f"{x}\n" for x in lines[:13]))
        (raw / f"test1.{lang}").write_text("".join(f"{x}\n" for x in lines[:11]))
    command = ["--source-lang", "en", "--target-lang", "de"]
    command += ["--joined-dictionary", "--destdir", str(data)]
    for split, names in {"train": "train", "valid": "valid", "test": "test test1"}.items():
        command += [f"--{split}pref", ",".join(str(raw / name) for name in names.split())]
    runner("preprocess", command).ok()
    # So many merges that each word is one subword.
    subwords.learn_bpe([raw / "train.en", raw / "train.de"], data / "bpe.codes", 60)
    plain = folder / "data" / "plain.en-de" / "bin"
    plain.mkdir(parents=True)
    for name in ("dict.cs.txt", "test.cs-en.cs.idx"):
        (plain / name).touch()
    write_checkpoint(data, folder / "run", "-s", "en", "-t", "de")
    write_checkpoint(data, folder / "back", "-s", "de", "-t", "en")
    return folder
