"""Files as users have them, of made sentences: what ``diet-mt prepare ... --from`` reads."""

from __future__ import annotations

import gzip
from pathlib import Path

from diet_mt.corpora import recipes

from ..corpora import wmt18
from ..corpora.server import manifest

SIZES = {"train": 300, "valid": 21, "test": 13}
ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def write_multi30k(folder: Path) -> None:
    """Files for ``prepare multi30k --from``, and their ``manifest``."""
    texts = {}
    recipes.write_demo(folder / "made", SIZES)
    for split, name in ORIGINAL.items():
        for lang in ("en", "de"):
            text = (folder / "made" / f"{split}.{lang}").read_bytes()
            (folder / f"{name}.{lang}.gz").write_bytes(gzip.compress(text))
            texts[f"{name}.{lang}"] = text
    (folder / "manifest").write_text(manifest("multi30k", texts, "http://127.0.0.1:9"))


def write_news(folder: Path) -> None:
    """Files for ``prepare newstest en-cs --from``, with six lines that U+0085 would split."""
    sentences = wmt18.sentences(300, seed=6)
    for number, year in enumerate(range(2008, 2018)):
        some = sentences[number * 30 : number * 30 + 30]
        for lang in ("en", "cs"):
            lines = [s[lang] for s in some]
            if (year, lang) == (2009, "cs"):
                lines[:6] = [line.replace(",", ",\u0085") for line in lines[:6]]
            text = "".join(line + "\n" for line in lines)
            (folder / f"newstest{year}.en-cs.{lang}").write_text(text, encoding="utf-8")
