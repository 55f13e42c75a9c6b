"""What MLQA's evaluation takes for the same answer, by language.

Lewis et al. (2020), arXiv:1910.07475, and the behaviour of the evaluation that was published with
it (mlqa_evaluation_v1.py): lower case; no punctuation of any script; articles of the language
become spaces; then words are split at white space, and in Chinese at each character of the range
below, too.

Two of its habits look like slips and are kept, since published scores depend on them: the Arabic
article is taken out wherever its two letters stand, also within a word; and Chinese characters
beyond the range, such as those of the extensions, are not split.
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cache

from ...errors import UserError

# Whole words; None: the language has none.
_ARTICLES: dict[str, str | None] = {
    "ar": "ال",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "hi": None,
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "zh": None,
}
LANGUAGES = tuple(_ARTICLES)


@cache
def _is_punctuation(character: str) -> bool:
    # The ASCII signs include some that Unicode calls symbols: $ + < = > ^ ` | ~
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def need_rules(language: str) -> None:
    """Raises UserError where MLQA has none for the language."""
    if language not in _ARTICLES:
        raise UserError(
            f"language '{language}': MLQA's scores are defined for {', '.join(LANGUAGES)}; "
            "use SQuAD's for others"
        )


def words(text: str, language: str) -> list[str]:
    """What is left of an answer, as a list of words. Raises UserError as ``need_rules``."""
    need_rules(language)
    plain = "".join(each for each in text.lower() if not _is_punctuation(each))
    if articles := _ARTICLES[language]:
        plain = re.sub(articles, " ", plain)
    if language == "zh":
        plain = re.sub("([\u4e00-\u9fa5])", r" \1 ", plain)
    return plain.split()
