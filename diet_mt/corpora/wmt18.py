"""WMT18 news translation, German or Czech with English: the training data of the paper's Table 4.

Europarl v7, Common Crawl and News Commentary v13 to train on; newstest2017 to validate, and
newstest2018, as SacreBLEU has it, to test.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..files import write_lines
from ..stages.engine import Preparation, Stage, room_for
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
    names = [*_TRAINING, _DEV]
    if not testset.cached(TEST_SET, "-".join(text.pair)):
        names.append(_TEST)
    if not (out / "archives").exists() and not (out / "raw").exists():
        origin.items(names)
    pair, (source, target) = "-".join(text.pair), text.pair
    stem = f"dev/newstest2017-{source}{target}"
    dev = [f"{stem}-src.{source}.sgm", f"{stem}-ref.{target}.sgm"]
    archives, extracted, raw = out / "archives", out / "extracted", out / "raw"

    def paths() -> dict[str, Path]:
        """Name -> where it is."""
        rows = archives.read_text(encoding="utf-8").split("\n")
        found = (row.partition("\t") for row in rows)
        return {name: Path(path) for name, tab, path in found if tab}  # it may be cut

    def make_archives(to: Path) -> None:
        found = fetch(origin, names, downloads)
        write_lines(to, (f"{name}\t{path.absolute()}" for name, path in found.items()))

    def forget_lost(file: Path) -> None:
        """Removes the list if an archive is needed and no longer where it was."""
        found = {**dict.fromkeys((*_TRAINING, _DEV), Path()), **paths()}
        lost = [name for name, path in found.items() if not path.is_file()]
        if lost and not raw.exists():
            say(f"{lost[0]} is not where it was; looking for it again")
            file.unlink()

    def extract_all(to: Path) -> None:
        for archive, stem in _TRAINING.items():
            extract(paths()[archive], to, [f"{stem}.{pair}.{lang}" for lang in text.pair])
        extract(paths()[_DEV], to, dev)

    def make_raw(to: Path) -> None:
        stems = [extracted / f"{Path(stem).name}.{pair}" for stem in _TRAINING.values()]
        pairs = gather(stems, text.pair, to)
        valid = development([extracted / Path(name).name for name in dev], text.pair, to)
        say(f"train: {pairs:,} pairs; valid: {valid:,} pairs")
        path = paths().get(_TEST)
        md5 = read_manifest(origin.manifest)[_TEST].checksum if path else None
        written = testset.write(TEST_SET, pair, to / "test", path, md5)
        for name, count in written.items():
            say(f"{name}: {count:,} pairs, from SacreBLEU's {TEST_SET}")

    where = f"{', '.join(names)} from {origin.folder or 'the web'}"
    first = [
        Stage("archives", where, make_archives, check=forget_lost),
        Stage(
            "extracted",
            "their files of this pair",
            extract_all,
            lambda: room_for(75, *paths().values()),
        ),
        Stage(
            "raw",
            "all training text; newstest2017 and 2018",
            make_raw,
            partial(room_for, 105, extracted),
        ),
    ]
    return prepared(out, first, text)
