"""Builds plans for the tests from English words: ``np("two small dogs")``, ``clause(...)``."""

from __future__ import annotations

from typing import Any

from diet_mt.corpora.clauses.lexicon import ADJECTIVES, BE, CLAUSE_VERBS, NOUNS, PLACES, VERBS
from diet_mt.corpora.clauses.plan import Clause, Complement, Gap, NounPhrase, Phrase

_ADJECTIVES = {adjective.en: adjective for adjective in ADJECTIVES}
_NOUNS = {noun.en: noun for noun in (*NOUNS, *(place for place, _ in PLACES))}
_PLURALS = {noun.en_plural: noun for noun in NOUNS}
_VERBS = {verb.en: verb for verb in (*(verb for _, verb in CLAUSE_VERBS), *VERBS, BE)}
_DETERMINERS = ("the", "a", "an", "this", "these", "every", "my", "our", "two", "three", "many")


def np(text: str, relative: Clause | None = None) -> NounPhrase:
    """A noun phrase from its English words, without "and"."""
    *words, noun = text.split()
    determiner = words.pop(0) if words and words[0] in _DETERMINERS else ""
    return NounPhrase(
        _PLURALS[noun] if noun in _PLURALS else _NOUNS[noun],
        "a" if determiner == "an" else determiner,
        tuple(_ADJECTIVES[word] for word in words),
        noun in _PLURALS,
        relative,
    )


def gap(text: str) -> Gap:
    """The gap that a noun phrase leaves in its own relative clause."""
    phrase = np(text)
    return Gap(phrase.plural)


def clause(
    subject: Phrase | str, verb: str, direct: Phrase | str | None = None, **more: Any
) -> Clause:
    """``clause("the dogs", "sees", "the cat", tense="past", place="in the garden")``.

    The verb is named by its English third person; any noun phrase may be a string.
    """
    for name in ("indirect", "companion"):
        if isinstance(more.get(name), str):
            more[name] = np(more[name])
    if "place" in more:
        more["place"] = _split(more["place"])
    if "predicate" in more:
        more["predicate"] = _ADJECTIVES[more["predicate"]]
    if "complement" in more:
        more["complement"] = Complement(*more["complement"])
    return Clause(
        np(subject) if isinstance(subject, str) else subject,
        _VERBS[verb],
        direct=np(direct) if isinstance(direct, str) else direct,
        **more,
    )


def _split(text: str) -> tuple[str, NounPhrase]:
    for preposition in ("in front of", "next to", "in", "on", "under", "behind"):
        if text.startswith(preposition + " "):
            return preposition, np(text.removeprefix(preposition + " "))
    raise ValueError(text)
