"""What splits text for fairseq (``--bpe``), registered by explicit imports."""

from .. import plugin as plugin
from . import wordpiece as wordpiece
