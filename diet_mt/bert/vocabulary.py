"""What tells one vocabulary from another, and whether it is one of the text at hand."""

from __future__ import annotations

import zlib
from pathlib import Path

from ..errors import UserError
from ..stages.progress import say
from .tokenizer import file_of

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
# Text of the language that a vocabulary was made for has far fewer unknown pieces.
_STRANGE = 0.05


def say_unknown(name: str, unknown: int, pieces: int) -> None:
    """Says how many pieces the vocabulary lacks; warns where it must be one of other text."""
    say(f"{name}: {pieces:,} pieces, {unknown:,} of them unknown")
    if unknown > _STRANGE * pieces:
        say(
            f"warning: {unknown / pieces:.0%} of the pieces of {name} are unknown; is the "
            "vocabulary one of this language?"
        )


def checksum_of(folder: Path) -> str:
    """Of the dictionary and the tokenizer, as ``cat ... | cksum`` has it: CRC-SIZE.

    A folder of the same name may hold others. Raises UserError where the folder does not hold both.
    """
    dictionary = folder / "dict.txt"
    if not dictionary.is_file():
        raise UserError(f"{folder}: no dict.txt; give the bin folder that diet-mt prepare mlm made")
    files = (dictionary, file_of(folder))
    return posix_cksum(b"".join(file.read_bytes() for file in files))


def posix_cksum(data: bytes) -> str:
    """``CRC-SIZE``. zlib's CRC has the same polynomial, but the bits of each byte reversed."""
    length = len(data).to_bytes(8, "little").rstrip(b"\0")
    crc = zlib.crc32((data + length).translate(_REVERSED), 0xFFFFFFFF)
    return f"{int(f'{crc:032b}'[::-1], 2)}-{len(data)}"
