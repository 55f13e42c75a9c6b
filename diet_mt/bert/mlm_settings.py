"""What can be set where text becomes the corpus of a masked language model."""

from __future__ import annotations

from dataclasses import dataclass

from ..corpora.settings import SPM_COVERAGE, SPM_SAMPLE

# As in Chen et al. 2021: the subwords, the size of the vocabulary, and the length of a sequence.
USUAL = {"english": ("wordpiece", 30_000, 128), "multilingual": ("spm", 120_000, 512)}


@dataclass(frozen=True)
class MlmSettings:
    """From plain text to fairseq's binaries."""

    subwords: str  # wordpiece or spm
    vocab_size: int  # entries, fairseq's five marks included
    max_length: int  # pieces of a sequence, <s> and </s> included
    language: str = "en"  # of files given without one: it decides where sentences end
    cased: bool = False  # WordPiece: keep capital letters and accents
    vocab_sample: int = SPM_SAMPLE  # sentences that the pieces are learnt from
    spm_coverage: float = SPM_COVERAGE  # share of the characters that are pieces
    alpha: float = 0.5  # a language's share to this power; 1: all text once
    workers: int = 1  # processes; the result is the same for any number

    def words(self) -> str:
        """All that the results depend on, as the file ``settings`` has it."""
        return (
            f"LANGUAGE={self.language} SUBWORDS={self.subwords} MAX_LENGTH={self.max_length} "
            f"VOCAB_SAMPLE={self.vocab_sample} ALPHA={self.alpha:g}"
        )

    def of_vocabulary(self) -> str:
        """What only the vocabulary, and what is made with it, depends on."""
        if self.subwords == "wordpiece":
            return f"VOCAB_SIZE={self.vocab_size} CASED={1 if self.cased else ''}"
        return f"VOCAB_SIZE={self.vocab_size} SPM_COVERAGE={self.spm_coverage:g}"
