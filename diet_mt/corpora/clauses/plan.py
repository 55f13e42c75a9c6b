"""What a sentence says, before either language says it. All of it is immutable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Union

from .lexicon import BE, Adjective, Noun, Verb


@dataclass(frozen=True)
class NounPhrase:
    noun: Noun
    determiner: str  # the English word; empty for a bare plural
    adjectives: tuple[Adjective, ...] = ()
    plural: bool = False
    relative: Clause | None = None  # one of its places is filled by a Gap

    @property
    def definite(self) -> bool:
        return self.determiner in ("the", "this", "these", "every", "my", "our")


@dataclass(frozen=True)
class Both:
    """Two noun phrases joined by "and"."""

    left: NounPhrase
    right: NounPhrase

    plural = True

    @property
    def definite(self) -> bool:
        return self.left.definite


@dataclass(frozen=True)
class Pronoun:
    """Stands for a noun phrase of an earlier clause."""

    antecedent: NounPhrase | Both

    definite = True

    @property
    def plural(self) -> bool:
        return self.antecedent.plural

    @property
    def english(self) -> str:
        """The nominative: he, she, it, they."""
        return pronoun_for(self.antecedent)


@dataclass(frozen=True)
class Gap:
    """The place in a relative clause that its noun fills, or the subject of a "to" clause."""

    plural: bool = False

    definite = True


Phrase = Union[NounPhrase, Both, Pronoun, Gap]


@dataclass(frozen=True)
class Clause:
    subject: Phrase
    verb: Verb
    tense: str = "present"  # present, past, infinitive, or an English modal verb
    direct: Phrase | None = None
    indirect: NounPhrase | None = None
    predicate: Adjective | None = None  # only with the verb "be"
    frequency: str = ""
    manner: str = ""
    companion: NounPhrase | None = None  # "with the old woman"
    place: tuple[str, NounPhrase] | None = None
    time: str = ""
    front: str = "subject"  # what comes first: subject, time, place, direct
    complement: Complement | None = None

    def __post_init__(self) -> None:
        assert (self.verb is BE) == (self.predicate is not None)
        assert self.front == "subject" or getattr(self, self.front)


@dataclass(frozen=True)
class Complement:
    """The clause that a verb such as "says" ends in."""

    word: str  # that, whether, to
    clause: Clause


@dataclass(frozen=True)
class Statement:
    clause: Clause


@dataclass(frozen=True)
class Question:
    clause: Clause
    word: str = ""  # why, when, where; empty: yes or no


@dataclass(frozen=True)
class Coordinated:
    first: Clause
    word: str  # and, but
    second: Clause


@dataclass(frozen=True)
class Subordinated:
    main: Clause
    word: str  # because, although, ...
    sub: Clause
    sub_first: bool


Sentence = Union[Statement, Question, Coordinated, Subordinated]


def pronoun_for(phrase: NounPhrase | Both) -> str:
    """The English pronoun for a phrase; empty where none is certain (a child: he, she, it?)."""
    if isinstance(phrase, Both) or phrase.plural:
        return "they"
    return phrase.noun.pronoun


def noun_phrases(clause: Clause) -> Iterator[NounPhrase | Both]:
    """All noun phrases of a clause, those of its relative clauses and complement included."""
    phrases: list[Phrase | None] = [
        clause.subject, clause.direct, clause.indirect, clause.companion,
        clause.place[1] if clause.place else None,
    ]  # fmt: skip
    for phrase in phrases:
        if isinstance(phrase, (NounPhrase, Both)):
            yield phrase
        if isinstance(phrase, Both):
            yield from (phrase.left, phrase.right)
        if isinstance(phrase, NounPhrase) and phrase.relative:
            yield from noun_phrases(phrase.relative)
    if clause.complement:
        yield from noun_phrases(clause.complement.clause)


def swapped(sentence: Sentence) -> Sentence | None:
    """The sentence with subject and direct object of its first clause in each other's place: "the
    dog sees the cat", "the cat sees the dog".

    Its words are the same up to agreement. None where the verb does not take them that way round.
    """
    if isinstance(sentence, Subordinated):
        place = "sub" if sentence.sub_first else "main"
    else:
        place = "first" if isinstance(sentence, Coordinated) else "clause"
    clause: Clause = getattr(sentence, place)
    subject, direct, verb = clause.subject, clause.direct, clause.verb
    if not isinstance(subject, NounPhrase) or not isinstance(direct, NounPhrase):
        return None
    if subject.relative or direct.relative or clause.frequency == "not":
        return None
    if subject.noun.kind not in verb.object_kinds or direct.noun.kind not in verb.subject_kinds:
        return None
    if clause.front == "direct" and not subject.definite:
        return None
    changed: dict[str, Any] = {place: replace(clause, subject=direct, direct=subject)}
    return replace(sentence, **changed)
