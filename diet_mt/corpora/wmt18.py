"""WMT18 news translation, German or Czech with English: the training data of the paper's Table 4.

Europarl v7, Common Crawl and News Commentary v13 to train on; newstest2017 to validate, and
newstest2018, as SacreBLEU has it, to test.
"""

from __future__ import annotations

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

PAIRS = ("de-en", "cs-en")  # one preparation serves both directions
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
    """Archives -> ``out/bin``; what is downloaded is in ``downloads``, for both pairs.

    Raises:
        UserError: the user's folder lacks an archive.
    """
    names = [*_TRAINING, _DEV]
    if not testset.cached(TEST_SET, "-".join(text.pair)):
        names.append(_TEST)
    if not (out / "archives").exists() and not (out / "raw").exists():
        origin.items(names)
    archives = _Archives(out, text.pair, origin)

    def make_archives(to: Path) -> None:
        found = fetch(origin, names, downloads)
        write_lines(to, (f"{name}\t{path.absolute()}" for name, path in found.items()))

    first = [
        Stage(
            "archives",
            f"{', '.join(names)} from {origin.folder or 'the web'}",
            make_archives,
            check=archives.forget_lost,
        ),
        Stage("extracted", "their files of this pair", archives.extract, archives.room),
        Stage("raw", "all training text; newstest2017 and 2018", archives.make_raw, archives.room),
    ]
    return prepared(out, first, text)


class _Archives:
    """What is made of the archives that the file ``out/archives`` lists."""

    def __init__(self, out: Path, pair: tuple[str, str], origin: Origin) -> None:
        self.out, self.pair, self.origin = out, pair, origin
        self.name = "-".join(pair)

    def paths(self) -> dict[str, Path]:
        """Name -> where it is."""
        rows = (self.out / "archives").read_text(encoding="utf-8").split("\n")
        return {
            name: Path(path) for name, tab, path in (row.partition("\t") for row in rows) if tab
        }

    def forget_lost(self, file: Path) -> None:
        """Removes the list if an archive is needed and no longer where it was."""
        if (self.out / "raw").exists():
            return
        found = self.paths()
        lost = [name for name in (*_TRAINING, _DEV) if not found.get(name, Path()).is_file()]
        lost += [name for name, path in found.items() if not path.is_file() and name == _TEST]
        if lost:
            say(f"{lost[0]} is not where it was; looking for it again")
            file.unlink()

    def room(self) -> float:
        if (self.out / "extracted").exists():
            return room_for(105, self.out / "extracted")
        return room_for(75, *self.paths().values())

    def _dev(self) -> list[str]:
        source, target = self.pair
        stem = f"dev/newstest2017-{source}{target}"
        return [f"{stem}-src.{source}.sgm", f"{stem}-ref.{target}.sgm"]

    def extract(self, to: Path) -> None:
        paths = self.paths()
        for archive, stem in _TRAINING.items():
            extract(paths[archive], to, [f"{stem}.{self.name}.{lang}" for lang in self.pair])
        extract(paths[_DEV], to, self._dev())

    def make_raw(self, to: Path) -> None:
        source = self.out / "extracted"
        stems = [source / f"{Path(stem).name}.{self.name}" for stem in _TRAINING.values()]
        pairs = gather(stems, self.pair, to)
        valid = development([source / Path(name).name for name in self._dev()], self.pair, to)
        say(f"train: {pairs:,} pairs; valid: {valid:,} pairs")
        path = self.paths().get(_TEST)
        md5 = read_manifest(self.origin.manifest)[_TEST].checksum if path else None
        written = testset.write(TEST_SET, self.name, to / "test", path, md5)
        for name, count in written.items():
            say(f"{name}: {count:,} pairs, from SacreBLEU's {TEST_SET}")
