"""Which language a line is in, by py3langid.

py3langid is Lui and Baldwin's langid.py (2012, "langid.py: An Off-the-shelf Language Identification
Tool", ACL) kept up to date: one small model for 139 languages, no network, numpy alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Languages whose lines are often taken for those of one another count as one.
_ALIKE = ({"cs", "sk"}, {"de", "lb", "nds"}, {"en", "pcm"})


@cache
def _identifier() -> LanguageIdentifier:
    if find_spec("py3langid") is None:
        raise UserError(
            "py3langid is not installed; install it (pip install --no-deps py3langid), or clean "
            "with --certainty 2, which asks for no language"
        )
    # Not at the top: it asks for a newer numpy than stock fairseq can have, and all but this filter
    # works without it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:
        raise UserError(
            f"{tempfile.gettempdir()}: py3langid cannot unpack its model there "
            f"({error.strerror or error}); make room, or set TMPDIR to another folder"
        ) from None


def need_known(langs: Iterable[str]) -> None:
    """Raises UserError for a code, such as "de", that the model does not know; also where py3langid
    is not installed, or cannot load its model.
    """
    for lang in langs:
        if lang not in _identifier().nb_classes:
            raise UserError(
                f"language {lang}: not known to py3langid; use a code that it knows, or clean "
                "with --certainty 2, which asks for no language"
            )


def is_other(line: str, lang: str, certainty: float) -> bool:
    """Whether a line is in another language than ``lang``.

    Args:
        certainty: Probability, 0 to 1, that the model must give the other language. Names, numbers
            and quotations make lines that look like any language; those are left alone.
    """
    found, probability = _identifier().classify(line)
    group = next((alike for alike in _ALIKE if found in alike), {found})
    if lang in group:
        return False
    if probability < certainty and len(group) > 1:
        probability = sum(p for other, p in _identifier().rank(line) if other in group)
    return bool(probability >= certainty)
