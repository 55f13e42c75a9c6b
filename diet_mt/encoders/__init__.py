"""What splits text for fairseq (``--bpe``), registered by explicit imports."""

from . import wordpiece as wordpiece
