"""The subwords of an encoder, and the place of each in the text that they were made from.

Two kinds, told apart by the file that a prepared folder holds: ``wordpiece.json``, WordPiece (Wu et
al. 2016, arXiv:1609.08144) over words split as BERT splits them (``wordpiece.py``), and
``spm.model``, SentencePiece (``pieces.py``). The folder's ``dict.txt`` lists the same pieces in the
same order. What the model does not know is ``<unk>``; nothing in a text ever is another of
fairseq's marks, whatever it looks like.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import List, Tuple

import sentencepiece
import tokenizers

from ..corpora import pieces
from ..corpora.dictionary import FIRST, MASK, UNKNOWN, write_dictionary
from ..errors import UserError

WORDPIECE = "wordpiece.json"
SENTENCEPIECE = "spm.model"

# A piece, and where it begins and ends in the text, in characters.
Span = Tuple[str, int, int]


class Tokenizer(ABC):
    """Splits text into pieces, as they stand in the dictionary."""

    @abstractmethod
    def spans(self, text: str) -> List[Span]:
        """(piece, start, end) for each piece: it stands for ``text[start:end]``.

        The places are in ``text`` itself, whatever is done to it inside (lower case, composed
        characters, white space). They do not overlap, and white space belongs to no piece. A piece
        without any character (SentencePiece's U+2581 alone) is empty: start == end.
        """

    @abstractmethod
    def text(self, pieces: List[str]) -> str:
        """The text that pieces stand for, as far as they can say (not its case, for example)."""

    @abstractmethod
    def symbols(self) -> List[str]:
        """All pieces but ``<unk>``, in the order of the dictionary."""

    @abstractmethod
    def begins_word(self, piece: str) -> bool:
        """Whether a piece is the first one of its word."""

    def pieces(self, text: str) -> List[str]:
        """The pieces of a text."""
        return [piece for piece, _, _ in self.spans(text)]


class WordPiece(Tokenizer):
    """A tokenizer of the library ``tokenizers``, read from its file."""

    def __init__(self, file: Path) -> None:
        """Raises UserError where ``file`` is none."""
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises no class of its own
            raise UserError(f"{file}: no tokenizer ({error}); prepare the corpus again") from None

    def spans(self, text: str) -> List[Span]:
        found = self._tokenizer.encode(text)
        places = zip(found.tokens, found.offsets, strict=True)
        return [(piece, start, end) for piece, (start, end) in places]

    def pieces(self, text: str) -> List[str]:
        return self._tokenizer.encode(text).tokens

    def text(self, pieces: List[str]) -> str:
        return str(self._tokenizer.decoder.decode(pieces)) if pieces else ""

    def symbols(self) -> List[str]:
        numbers = self._tokenizer.get_vocab()
        return [piece for piece in sorted(numbers, key=numbers.__getitem__) if piece != UNKNOWN]

    def begins_word(self, piece: str) -> bool:
        return not piece.startswith("##")


class SentencePiece(Tokenizer):
    """A model of ``pieces.py``, which changes nothing but white space."""

    def __init__(self, file: Path) -> None:
        """Raises UserError where ``file`` is none."""
        self._file = file
        try:
            self._processor: sentencepiece.SentencePieceProcessor = pieces.load(file)
        except (OSError, RuntimeError) as error:
            raise UserError(f"{file}: no model ({error}); prepare the corpus again") from None

    def spans(self, text: str) -> List[Span]:
        plain, places = _words(text)
        # The library marks where each word begins, the first one, too.
        rest = pieces.SPACE + plain.replace(" ", pieces.SPACE) if plain else ""
        found, at = [], 0
        for piece in self._processor.encode(plain, out_type=str):
            if not rest.startswith(piece, at):
                raise UserError(
                    f"{self._file}: changes the text beyond white space, so places in it are lost; "
                    "use a model of this project, or one learnt with the normalization 'identity'"
                )
            start, at = at + piece.startswith(pieces.SPACE), at + len(piece)
            begin = places[start - 1] if start <= len(plain) else len(text)
            end = places[at - 2] + 1 if at > start else begin
            found.append((self._known(piece), begin, end))
        return found

    def _known(self, piece: str) -> str:
        """The library gives unknown characters as they are."""
        number = self._processor.piece_to_id(piece)
        unknown = piece in (*FIRST, MASK) or number == self._processor.unk_id()
        return UNKNOWN if unknown else piece

    def text(self, pieces_: List[str]) -> str:
        return pieces.join(" ".join(pieces_))

    def symbols(self) -> List[str]:
        return pieces.symbols(self._file)

    def begins_word(self, piece: str) -> bool:
        return piece.startswith(pieces.SPACE)


def _words(text: str) -> Tuple[str, List[int]]:
    """The text with one space for each run of white space, and where each character came from."""
    plain: List[str] = []
    places: List[int] = []
    for place, character in enumerate(text):
        # The library's own mark would read as a space, too.
        space = character.isspace() or character == pieces.SPACE
        if not space:
            plain.append(character)
            places.append(place)
        elif plain and plain[-1] != " ":
            plain.append(" ")
            places.append(place)
    if plain and plain[-1] == " ":
        plain.pop()
        places.pop()
    return "".join(plain), places


_KINDS = {WORDPIECE: WordPiece, SENTENCEPIECE: SentencePiece}


def file_of(folder: Path) -> Path:
    """The file of the tokenizer that ``folder`` holds. Raises UserError where it holds none, or
    more than one.
    """
    found = [name for name in _KINDS if (folder / name).is_file()]
    if len(found) == 1:
        return folder / found[0]
    names = " and ".join(_KINDS) if found else "neither " + " nor ".join(_KINDS)
    raise UserError(
        f"{folder}: holds {names}; give the bin folder that diet-mt prepare mlm made, with the one "
        "tokenizer that its dictionary was made from"
    )


def load(folder: Path) -> Tokenizer:
    """The tokenizer that ``folder`` holds. Raises UserError where there is not exactly one."""
    return load_file(file_of(folder))


@cache
def load_file(file: Path) -> Tokenizer:
    """The tokenizer in a file, whose name says its kind. Raises UserError where it is none."""
    return _KINDS[file.name](file)


def write_dictionary_of(tokenizer: Tokenizer, out: Path) -> None:
    """Writes ``dict.txt`` for ``masked_lm``, which adds the mark of a masked word to it."""
    write_dictionary(tokenizer.symbols(), out, later=1)
