"""Exchanges who does it and whom it is done to: "the dog sees the cat", "the cat sees the dog"."""

from __future__ import annotations

from dataclasses import replace

from .plan import Clause, Coordinated, NounPhrase, Question, Sentence, Statement


def swapped(sentence: Sentence) -> Sentence | None:
    """The sentence with subject and direct object of its first clause in each other's place.

    Its words are the same up to agreement. None where the verb does not take them that way round.
    """
    if isinstance(sentence, (Statement, Question)):
        clause = _swapped(sentence.clause)
        return None if clause is None else replace(sentence, clause=clause)
    if isinstance(sentence, Coordinated):
        clause = _swapped(sentence.first)
        return None if clause is None else replace(sentence, first=clause)
    clause = _swapped(sentence.sub if sentence.sub_first else sentence.main)
    if clause is None:
        return None
    if sentence.sub_first:
        return replace(sentence, sub=clause)
    return replace(sentence, main=clause)


def _swapped(clause: Clause) -> Clause | None:
    subject, direct, verb = clause.subject, clause.direct, clause.verb
    if not isinstance(subject, NounPhrase) or not isinstance(direct, NounPhrase):
        return None
    if subject.relative or direct.relative or clause.frequency == "not":
        return None
    if subject.noun.kind not in verb.object_kinds or direct.noun.kind not in verb.subject_kinds:
        return None
    if clause.front == "direct" and not subject.definite:
        return None
    return replace(clause, subject=direct, direct=subject)
