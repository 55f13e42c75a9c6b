"""WMT18 news translation, German or Czech with English: the training data of the paper's Table 4.

Europarl v7, Common Crawl and News Commentary v13 to train on; newstest2017 to validate, and
newstest2018, as SacreBLEU has it, to test.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..stages.engine import MIB, Preparation, Stage, room_for
from ..stages.progress import say
from . import testset
from .extract import extract
from .fetch import Origin, fetch
from .gather import development, gather
from .manifest import read_manifest
from .settings import TextSettings
from .shared_stages import prepared

MANIFEST = Path(__file__).with_suffix(".manifest")
TEST_SET, _TEST = "wmt18", "test.tgz"
# Archive -> its files of a pair, in the order in which the training text is put together.
_TRAINING = {
    "training-parallel-europarl-v7.tgz": "training/europarl-v7",
    "training-parallel-commoncrawl.tgz": "commoncrawl",
    "training-parallel-nc-v13.tgz": "training-parallel-nc-v13/news-commentary-v13",
}
_DEV = "dev.tgz"


def preparation(out: Path, text: TextSettings, origin: Origin, downloads: Path) -> Preparation:
    """Archives -> ``out/bin``; what is downloaded is in ``downloads``, for both pairs. Raises
    UserError where the user's folder lacks an archive.
    """
    pair, (source, target) = "-".join(text.pair), text.pair
    extracted, raw = out / "extracted", out / "raw"
    names = [*_TRAINING, _DEV] if not extracted.exists() else []
    tests = [_TEST] if not testset.cached(TEST_SET, pair) else []
    archives = origin.items([*names, *tests]) if not raw.exists() else []
    stem = f"dev/newstest2017-{source}{target}"
    dev = [f"{stem}-src.{source}.sgm", f"{stem}-ref.{target}.sgm"]

    def extract_all(to: Path) -> None:
        # The test set, too: what cannot be downloaded is better known before the rest begins.
        found = fetch(origin, [*names, *tests], downloads)
        for archive, stem in _TRAINING.items():
            extract(found[archive], to, [f"{stem}.{pair}.{lang}" for lang in text.pair])
        extract(found[_DEV], to, dev)

    def make_raw(to: Path) -> None:
        stems = [extracted / f"{Path(stem).name}.{pair}" for stem in _TRAINING.values()]
        pairs = gather(stems, text.pair, to)
        valid = development([extracted / Path(name).name for name in dev], text.pair, to)
        say(f"train: {pairs:,} pairs; valid: {valid:,} pairs")
        path = fetch(origin, tests, downloads).get(_TEST)
        md5 = read_manifest(origin.manifest)[_TEST].checksum if path else None
        written = testset.write(TEST_SET, pair, to / "test", path, md5)
        for name, count in written.items():
            say(f"{name}: {count:,} pairs, from SacreBLEU's {TEST_SET}")

    does = f"files of {', '.join([*_TRAINING, _DEV])} from {origin.folder or 'the web'}"

    def room_mib() -> float:
        """Of the extracted files, and of what is still to be downloaded."""
        total = 0.0
        for item in archives:
            is_here = origin.folder is not None or (downloads / item.name).exists()
            total += (0.75 if is_here else 1.75) * (item.size or 0)
        return total / MIB

    room = partial(room_for, 105, extracted)
    first = [
        Stage("extracted", does, extract_all, room_mib),
        Stage("raw", "all training text; newstest2017 and 2018", make_raw, room),
    ]
    return prepared(out, first, text)
