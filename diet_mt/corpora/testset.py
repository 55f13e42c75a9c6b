"""Test sets as SacreBLEU gives them out: the text that ``sacrebleu -t wmt18 --echo src`` prints.

SacreBLEU keeps them in the folder that the environment variable SACREBLEU names, or in
~/.sacrebleu, and fetches what is not there. Its own download cannot be continued and is not checked
again, so an archive that was fetched otherwise can be handed to it, which it checks and unpacks.
"""

from __future__ import annotations

from pathlib import Path

from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.base import Dataset
from sacrebleu.utils import SACREBLEU_DIR

from ..command_line import unknown
from ..errors import UserError
from ..files import decoded_lines, write_lines
from .parallel import paired


def cached(name: str, pair: str) -> bool:
    """Whether SacreBLEU has a test set in both directions without fetching anything."""
    return all(_unpacked(name, direction) for direction in (pair, _reversed(pair)))


def _unpacked(name: str, pair: str) -> bool:
    files = [_raw_folder(name) / file for file in dataset_of(name, pair).langpairs[pair][:2]]
    return all(file.is_file() for file in files)


def _raw_folder(name: str) -> Path:
    return Path(SACREBLEU_DIR) / name / "raw"


def dataset_of(name: str, pair: str) -> Dataset:
    """Raises UserError where SacreBLEU does not know the test set in this direction."""
    if name not in DATASETS or pair not in DATASETS[name].langpairs:
        known = [each for each, dataset in DATASETS.items() if pair in dataset.langpairs]
        hint = "; see sacrebleu --list"
        raise UserError(unknown(f"test set of SacreBLEU for {pair}:", name, known, hint))
    return DATASETS[name]


def sentences(
    name: str, pair: str, archive: Path | None = None, md5: str | None = None
) -> tuple[list[str], list[str]]:
    """Sources and references of a test set. Raises UserError where SacreBLEU does not know the set,
    cannot fetch it, or finds it damaged; or the two sides differ in length.

    Args:
        pair: "de-en" is German to English.
        archive: What SacreBLEU would fetch; used if it has not unpacked that yet.
        md5: Its checksum; None: the one that SacreBLEU knows.
    """
    dataset = dataset_of(name, pair)
    usual = dataset.data or [], dataset.md5
    if archive is not None:
        dataset.data = [archive.resolve().as_uri()]
        dataset.md5 = [md5] if md5 else dataset.md5
    try:
        if not _unpacked(name, pair):
            # An archive that is there counts as unpacked for SacreBLEU, even if it was interrupted.
            for url in usual[0]:
                tarball = f"{name.replace('/', '_')}.{Path(url).name}"
                (_raw_folder(name) / tarball).unlink(missing_ok=True)
        found = dataset.get_files(pair)  # type: ignore[no-untyped-call]
        files = Path(found[0]), Path(found[1])
    except (SystemExit, OSError, EOFError) as error:
        what = f"{archive or usual[0][0]}: SacreBLEU could not take the test set {name} from it"
        raise UserError(f"{what} ({error or 'see above'})") from None
    finally:
        dataset.data, dataset.md5 = usual
    # SacreBLEU has brought white space into order, so each of these is what one seg held.
    pairs = list(paired(*files, lambda file: (line for _, line in decoded_lines(file))))
    return [source for source, _ in pairs], [reference for _, reference in pairs]


def _reversed(pair: str) -> str:
    return "-".join(reversed(pair.split("-")))


def write(
    name: str, pair: str, stem: Path, archive: Path | None = None, md5: str | None = None
) -> dict[str, int]:
    """Writes a test set for a corpus of ``pair``; returns the pairs of each file stem written."""
    langs = pair.split("-")
    sets = [sentences(name, pair, archive, md5)]
    other = sentences(name, _reversed(pair), archive, md5)[::-1]
    if other != sets[0]:
        sets.append((other[0], other[1]))
    written = {}
    for number, sides in enumerate(sets):
        place = stem.with_name(f"{stem.name}{number or ''}")
        for lang, side in zip(langs, sides, strict=True):
            write_lines(place.with_name(f"{place.name}.{lang}"), side)
        written[place.name] = len(sides[0])
    return written
