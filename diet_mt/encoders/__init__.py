"""``--bpe diet_wordpiece``: the WordPiece model of a prepared corpus, for fairseq.

fairseq itself supports SentencePiece (``--bpe sentencepiece``).
"""

from dataclasses import dataclass, field
from pathlib import Path

from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from ..bert.tokenizer import load
from ..corpora.binarized import FIRST, MASK
from ..system.errors import UserError


@dataclass
class WordPieceConfig(FairseqDataclass):
    wordpiece_folder: str = field(
        default="",
        metadata={"help": "folder with wordpiece.json: bin of diet-mt prepare mlm"},
    )


@register_bpe("diet_wordpiece", dataclass=WordPieceConfig)
class WordPieceBPE:
    """fairseq's BPE interface to :mod:`diet_mt.bert.tokenizer`."""

    def __init__(self, cfg: WordPieceConfig) -> None:
        if not cfg.wordpiece_folder:
            raise UserError("--bpe diet_wordpiece: give --wordpiece-folder, with wordpiece.json")
        self.tokenizer = load(Path(cfg.wordpiece_folder))

    def encode(self, text: str) -> str:
        """The pieces of ``text``, separated by spaces."""
        return " ".join(self.tokenizer.pieces(text))

    def decode(self, pieces: str) -> str:
        """The text of ``pieces``; inverts :meth:`encode` up to the tokenizer's normalization."""
        return self.tokenizer.text(pieces.split())

    def is_beginning_of_word(self, piece: str) -> bool:
        """Whether ``piece`` begins a word or is a special symbol, for whole-word masking."""
        return piece in (*FIRST, MASK) or self.tokenizer.begins_word(piece)


# At the end, because the models of the plugin import this file.
from .. import plugin as plugin  # noqa: E402
