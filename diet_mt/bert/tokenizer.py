"""Subword tokenizers of encoders: pieces, and the span of text that each stands for.

The file in a prepared folder determines the kind: ``wordpiece.json``, WordPiece (Wu et al.
2016, arXiv:1609.08144, section 4.1) over words split as BERT splits them (Devlin et al. 2018,
arXiv:1810.04805), and ``spm.model``, SentencePiece. The folder's ``dict.txt`` lists the same pieces
in the same order. An unknown piece is ``<unk>``; no text ever becomes another of fairseq's special
symbols, whatever it looks like.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from ..corpora import pieces
from ..corpora.binarized import FIRST, MASK, UNKNOWN, write_dictionary
from ..corpora.parallel import read_lines
from ..system.errors import UserError
from ..system.files import writing
from ..system.progress import say, ticking

WORDPIECE = "wordpiece.json"
SENTENCEPIECE = "spm.model"
CONTINUES = "##"  # begins a WordPiece that continues a word
_ALPHABET = 1000  # different characters that can be pieces, the default of the library
# Text in a language of the vocabulary has a far smaller share of unknown pieces.
_MOST_UNKNOWN = 0.05
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))

PieceSpan = tuple[str, int, int]  # piece, and its begin and end in the text, in characters


class Tokenizer(ABC):
    """Splits text into pieces of the dictionary."""

    @abstractmethod
    def spans(self, text: str) -> list[PieceSpan]:
        """(piece, start, end) of each piece: it stands for ``text[start:end]``.

        Offsets are in ``text`` itself, however the tokenizer normalizes it (lower case, composed
        characters, white space). Spans do not overlap, and white space belongs to no piece. A piece
        without any character (SentencePiece's U+2581 alone) is empty: start == end.
        """

    @abstractmethod
    def text(self, pieces: list[str]) -> str:
        """The text of some pieces, as far as they determine it (not its case, for example)."""

    @abstractmethod
    def symbols(self) -> list[str]:
        """All pieces except ``<unk>``, in the order of the dictionary."""

    @abstractmethod
    def begins_word(self, piece: str) -> bool:
        """Whether a piece is the first one of its word."""

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [piece for piece, _, _ in self.spans(text)]


class WordPiece(Tokenizer):
    """A tokenizer of the library ``tokenizers``, read from its file."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(file))

    def spans(self, text: str) -> list[PieceSpan]:
        encoding = self._tokenizer.encode(text)
        offsets = zip(encoding.tokens, encoding.offsets, strict=True)
        return [(piece, start, end) for piece, (start, end) in offsets]

    def text(self, pieces: list[str]) -> str:
        return str(self._tokenizer.decoder.decode(pieces)) if pieces else ""

    def symbols(self) -> list[str]:
        numbers = self._tokenizer.get_vocab()
        return [piece for piece in sorted(numbers, key=numbers.__getitem__) if piece != UNKNOWN]

    def begins_word(self, piece: str) -> bool:
        return not piece.startswith(CONTINUES)


class SentencePiece(Tokenizer):
    """A model of ``corpora/pieces.py``, which normalizes only white space."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._processor: sentencepiece.SentencePieceProcessor = pieces.load(file)

    def spans(self, text: str) -> list[PieceSpan]:
        plain, offsets = _words(text)
        # The library marks the beginning of each word, also of the first.
        rest = pieces.SPACE + plain.replace(" ", pieces.SPACE) if plain else ""
        spans, at = [], 0
        for piece in self._processor.encode(plain, out_type=str):
            if not rest.startswith(piece, at):
                raise UserError(
                    f"{self._file}: changes the text beyond white space, which loses its offsets; "
                    "use a model of this project, or one learnt with the normalization 'identity'"
                )
            start, at = at + piece.startswith(pieces.SPACE), at + len(piece)
            begin = offsets[start - 1] if start <= len(plain) else len(text)
            end = offsets[at - 2] + 1 if at > start else begin
            spans.append((self._known(piece), begin, end))
        return spans

    def _known(self, piece: str) -> str:
        """``piece``, or ``<unk>`` for unknown characters, which the library returns as text."""
        number = self._processor.piece_to_id(piece)
        unknown = piece in (*FIRST, MASK) or number == self._processor.unk_id()
        return UNKNOWN if unknown else piece

    def text(self, pieces_: list[str]) -> str:
        return pieces.join(" ".join(pieces_))

    def symbols(self) -> list[str]:
        return pieces.symbols(self._file)

    def begins_word(self, piece: str) -> bool:
        return piece.startswith(pieces.SPACE)


def _words(text: str) -> tuple[str, list[int]]:
    """The text with one space for each run of white space, and the offset of each character."""
    plain: list[str] = []
    offsets: list[int] = []
    for offset, character in enumerate(text):
        # The library's own mark would read as a space, too.
        if character.isspace() or character == pieces.SPACE:
            if plain[-1:] in ([], [" "]):
                continue
            character = " "
        plain.append(character)
        offsets.append(offset)
    return "".join(plain).rstrip(" "), offsets


_KINDS = {WORDPIECE: WordPiece, SENTENCEPIECE: SentencePiece}


def file_of(folder: Path) -> Path:
    """The file of the tokenizer in ``folder``. Raises UserError unless there is exactly one."""
    names = [name for name in _KINDS if (folder / name).is_file()]
    if len(names) == 1:
        return folder / names[0]
    what = " and ".join(_KINDS) if names else "neither " + " nor ".join(_KINDS)
    raise UserError(f"{folder}: holds {what}; give the bin folder of diet-mt prepare mlm")


def load(folder: Path) -> Tokenizer:
    """The one tokenizer in ``folder``."""
    return load_file(file_of(folder))


@cache
def load_file(file: Path) -> Tokenizer:
    """The tokenizer in a file, whose name determines its kind. Raises UserError if damaged."""
    try:
        return _KINDS[file.name](file)
    except Exception as error:  # tokenizers raises no class of its own
        raise UserError(f"{file}: no tokenizer ({error}); prepare the corpus again") from None


def write_dictionary_of(tokenizer: Tokenizer, out: Path) -> None:
    """Writes ``dict.txt`` for ``masked_lm``, which adds the symbol of a masked word to it."""
    write_dictionary(tokenizer.symbols(), out, later=1)


def say_unknown(name: str, unknown: int, pieces: int) -> None:
    """Reports the number of unknown pieces, and warns where the vocabulary hardly fits the text."""
    say(f"{name}: {pieces:,} pieces, {unknown:,} of them unknown")
    if unknown > _MOST_UNKNOWN * pieces:
        share = f"{unknown / pieces:.0%} of the pieces of {name} are unknown"
        say(f"warning: {share}; is the vocabulary one of this language?")


def checksum_of(folder: Path) -> str:
    """``cat ... | cksum`` of dictionary and tokenizer, CRC-SIZE. Raises UserError without them."""
    dictionary = folder / "dict.txt"
    if not dictionary.is_file():
        raise UserError(f"{folder}: no dict.txt; give the bin folder that diet-mt prepare mlm made")
    return posix_cksum(dictionary.read_bytes() + file_of(folder).read_bytes())


def posix_cksum(data: bytes) -> str:
    """``CRC-SIZE``. zlib's CRC has the same polynomial, but the bits of each byte reversed."""
    length = len(data).to_bytes(8, "little").rstrip(b"\0")
    crc = zlib.crc32((data + length).translate(_REVERSED), 0xFFFFFFFF)
    return f"{int(f'{crc:032b}'[::-1], 2)}-{len(data)}"


def learn_wordpiece(files: Iterable[Path], out: Path, size: int, *, cased: bool = False) -> None:
    """Learns WordPiece of all files and writes it to ``out``. Raises UserError for another size.

    Control characters are dropped, CJK characters and punctuation stand alone, and unless the model
    is cased, letters become small and lose their accents. ``size``: with fairseq's five symbols.
    """
    files = list(files)
    own = len(FIRST)  # fairseq has four more: <mask> and FIRST without <unk>, which is here, too
    tokenizer = _untrained({UNKNOWN: 0}, cased)
    alphabet = _alphabet(tokenizer, ticking(_lines(files), "characters"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=size - own,
        # These tokens come first, in this order. The library itself numbers characters in an order
        # that differs from run to run, and breaks ties between pairs by those numbers.
        special_tokens=[UNKNOWN, *alphabet],
        limit_alphabet=0,
        show_progress=False,
        continuing_subword_prefix=CONTINUES,
    )
    tokenizer.train_from_iterator(ticking(_lines(files), "lines"), trainer)
    vocabulary = tokenizer.get_vocab()
    if len(vocabulary) != size - own:
        nearest = len(vocabulary) + own
        raise UserError(f"WordPiece: no vocabulary of {size} from this text; nearest {nearest}")
    # A fresh tokenizer: the trained one matches the alphabet as special tokens within words.
    with writing(out) as file:
        file.write(_untrained(vocabulary, cased).to_str(pretty=True) + "\n")


def _untrained(vocabulary: dict[str, int], cased: bool) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES, cleanup=False)
    return tokenizer


def _lines(files: Iterable[Path]) -> Iterator[str]:
    return chain.from_iterable(map(read_lines, files))


def _alphabet(tokenizer: tokenizers.Tokenizer, lines: Iterable[str]) -> list[str]:
    """The most frequent characters, followed by the marked forms of those that continue a word."""
    chunks: Counter[str] = Counter()
    for line in lines:
        chunks.update(tokenizer.normalizer.normalize_str(line).split())
    characters: Counter[str] = Counter()
    continuing: set[str] = set()
    for chunk, count in chunks.items():
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(chunk):
            for character in word:
                characters[character] += count
            continuing.update(word[1:])
    frequent = sorted(characters, key=lambda character: (-characters[character], character))
    alphabet = sorted(frequent[:_ALPHABET])
    return alphabet + [CONTINUES + character for character in alphabet if character in continuing]
