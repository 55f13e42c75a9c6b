"""How parallel text becomes what fairseq reads: what can be set, for every corpus."""

from __future__ import annotations

from dataclasses import dataclass

BPE_WORDS = 1_000_000
SPM_SAMPLE = 3_000_000
SPM_COVERAGE = 0.9999


@dataclass(frozen=True)
class Limits:
    """What a training pair must keep to."""

    langs: tuple[str, str]
    max_words: int = 250  # what white space separates, on either side
    max_chars: int = 2000  # on either side
    ratio: float = 2.0  # of characters, the longer side to the shorter
    language_chars: int = 40  # shorter sides are not asked for their language
    certainty: float = 0.9  # 0 to 1, that it is another language; above 1 nobody asks


@dataclass(frozen=True)
class TextSettings:
    """From raw text to fairseq's binaries."""

    pair: tuple[str, str]  # source and target language
    subwords: str = "bpe"  # on Moses tokens; or spm: SentencePiece on plain text
    bpe_merges: int = 6000
    bpe_words: int = BPE_WORDS  # most frequent words that the merges are learnt from
    dictionary: int = -1  # bpe: entries of fairseq's dictionary at most; -1: all
    spm_size: int = 6000  # pieces
    spm_sample: int = SPM_SAMPLE  # sentences that they are learnt from
    spm_coverage: float = SPM_COVERAGE  # share of the characters that are pieces
    clean: Limits | None = None  # None: the training pairs as they are
    workers: int = 1  # processes; the result is the same for any number

    def words(self) -> str:
        """All that the result depends on, as the file ``settings`` has it."""
        found = ["-".join(self.pair)]
        if self.subwords == "bpe":
            found.append(f"BPE_MERGES={self.bpe_merges}")
            if self.bpe_words != BPE_WORDS:
                found.append(f"BPE_WORDS={self.bpe_words}")
            if self.dictionary != -1:
                found.append(f"DICTIONARY={self.dictionary}")
        else:
            found.append(f"SPM_SIZE={self.spm_size} SPM_SAMPLE={self.spm_sample}")
            found.append(f"SPM_COVERAGE={self.spm_coverage:g}")
        if self.clean is not None:
            limits = self.clean
            found.append(
                f"CLEAN='--max-words {limits.max_words} --max-chars {limits.max_chars} "
                f"--ratio {limits.ratio} --language-chars {limits.language_chars} "
                f"--certainty {limits.certainty}'"
            )
        return " ".join(found)
