"""Test sets of SacreBLEU: the text that ``sacrebleu -t wmt18 --echo src`` prints.

SacreBLEU stores them in the folder named by the environment variable SACREBLEU, or in ~/.sacrebleu,
and downloads missing ones. Such downloads cannot be resumed, so a verified archive can be given.
"""

from __future__ import annotations

from pathlib import Path

from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.base import Dataset
from sacrebleu.utils import SACREBLEU_DIR

from ..system.errors import UserError
from ..system.files import lines_of
from ..system.options import unknown
from .parallel import SECOND_TEST, paired, write_pairs


def dataset_of(name: str, pair: str) -> Dataset:
    """SacreBLEU's test set. Raises :class:`UserError` if it does not have this direction."""
    if name not in DATASETS or pair not in DATASETS[name].langpairs:
        known = [known for known, dataset in DATASETS.items() if pair in dataset.langpairs]
        hint = "; see sacrebleu --list"
        raise UserError(unknown(f"test set of SacreBLEU for {pair}:", name, known, hint))
    return DATASETS[name]


def cached(name: str, pair: str) -> bool:
    """Whether SacreBLEU's cache has a test set in both directions."""
    return all(_unpacked(name, direction) for direction in (pair, _reversed(pair)))


def _unpacked(name: str, pair: str) -> bool:
    files = [_raw_folder(name) / file for file in dataset_of(name, pair).langpairs[pair][:2]]
    return all(file.is_file() for file in files)


def _raw_folder(name: str) -> Path:
    return Path(SACREBLEU_DIR) / name / "raw"


def _reversed(pair: str) -> str:
    return "-".join(reversed(pair.split("-")))


def sentences(name: str, pair: str, archive: Path | None = None) -> tuple[list[str], list[str]]:
    """Sources and references of a test set. ``pair``: source and target, such as de-en;
    ``archive``: a verified copy of SacreBLEU's file. Raises UserError if the set is unavailable.
    """
    dataset = dataset_of(name, pair)
    usual = dataset.data or [], dataset.md5
    if archive is not None:
        dataset.data, dataset.md5 = [archive.resolve().as_uri()], None
    try:
        if not _unpacked(name, pair):
            # SacreBLEU assumes that an existing archive is unpacked, even after an interruption.
            for url in usual[0]:
                tarball = f"{name.replace('/', '_')}.{Path(url).name}"
                (_raw_folder(name) / tarball).unlink(missing_ok=True)
        source, reference, *_ = dataset.get_files(pair)  # type: ignore[no-untyped-call]
    except (SystemExit, OSError, EOFError) as error:
        what = f"{archive or usual[0][0]}: SacreBLEU cannot take the test set {name} from it"
        raise UserError(f"{what} ({error or 'see above'})") from None
    finally:
        dataset.data, dataset.md5 = usual
    # SacreBLEU has normalized white space, so each line is one segment.
    files = Path(source), Path(reference)
    pairs = list(paired(*files, lines_of))
    return [source for source, _ in pairs], [reference for _, reference in pairs]


def write(name: str, pair: str, out: Path, archive: Path | None = None) -> None:
    """Writes ``out/test.LANG``, and ``test1.LANG`` if the reverse direction has another set."""
    source, target = pair.split("-")
    pairs = [*zip(*sentences(name, pair, archive), strict=True)]
    write_pairs(out, "test", (source, target), pairs)
    other = [(b, a) for a, b in zip(*sentences(name, _reversed(pair), archive), strict=True)]
    if other != pairs:
        write_pairs(out, SECOND_TEST, (source, target), other)
