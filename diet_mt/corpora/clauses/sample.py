"""Draws plans whose English has only one German translation.

Two rules keep it so. An adverbial at the end belongs to the last clause: a clause that something
follows (a relative clause on its object, a complement) has none at its end. And a pronoun has
exactly one possible antecedent in the clause before. What German would say another way is left out:
"not" where it would be "kein", and "must not", which is not "muss nicht".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from . import lexicon, plan

T = TypeVar("T")

_SINGULAR = ("the", "the", "the", "a", "a", "this", "every", "my", "our")
_PLURAL = ("the", "the", "the", "these", "my", "our", "two", "three", "many", "")
_TENSES = ("present",) * 8 + ("past",) * 6 + ("can", "must", "should", "want", "will", "will")
_REASONS = ("because", "although")
_TEMPORAL = ("before", "while", "as soon as", "until")
_OPEN = (*_TEMPORAL, "if", "so that")


class Sampler:
    """Draws sentences from one source of randomness."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def sentence(self) -> plan.Sentence:
        kind = self._rng.random()
        if kind < 0.45:
            return plan.Statement(self._statement())
        if kind < 0.52:
            return plan.Statement(self._with_complement())
        if kind < 0.62:
            return self._question()
        first = self._clause(adverbials=0.25)
        if kind < 0.7:
            second = self._second(first, front=True)
            return plan.Coordinated(first, self._pick(("and", "but")), second)
        second = self._second(first, front=False)
        if self._chance(0.5):
            return plan.Subordinated(
                second, self._subordinator(second, first), first, sub_first=True
            )
        word = self._subordinator(first, second)
        return plan.Subordinated(self._front(first), word, second, sub_first=False)

    def _subordinator(self, main: plan.Clause, sub: plan.Clause) -> str:
        """One that goes with the tenses of the clauses."""
        if sub.tense == "will" or sub.frequency or (main.tense == "past") != (sub.tense == "past"):
            return self._pick(_REASONS)
        return self._pick(_REASONS + (_TEMPORAL if sub.tense == "past" else _OPEN))

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _pick(self, options: Sequence[T]) -> T:
        return options[int(self._rng.random() * len(options))]

    # Whole clauses

    def _statement(self) -> plan.Clause:
        clause = self._clause(adverbials=1.0)
        if isinstance(clause.subject, plan.NounPhrase) and self._chance(0.3):
            clause = replace(clause, subject=self._with_relative(clause.subject))
        elif isinstance(clause.direct, plan.NounPhrase) and _ends(clause) and self._chance(0.6):
            clause = replace(clause, direct=self._with_relative(clause.direct))
        return self._front(clause)

    def _with_complement(self) -> plan.Clause:
        word, verb = self._pick(lexicon.CLAUSE_VERBS)
        subject = self._one_or_both(verb.subject_kinds)
        tense = self._pick(("present", "past"))
        if word == "to":
            inner = self._clause(subject=subject, verbs=lexicon.VERBS)
            inner = replace(inner, subject=plan.Gap(), tense="infinitive")
        else:
            inner = self._clause(adverbials=0.5)
        return plan.Clause(subject, verb, tense, complement=plan.Complement(word, inner))

    def _question(self) -> plan.Question:
        clause = self._clause(adverbials=0.7)
        if clause.frequency == "not":
            clause = replace(clause, frequency="")
        word = self._pick(("", *lexicon.QUESTION_WORDS))
        if word == "where":
            clause = replace(clause, place=None)
        if word == "when":
            clause = replace(clause, time="", frequency="")
        return plan.Question(clause, word)

    def _second(self, first: plan.Clause, front: bool) -> plan.Clause:
        """A clause that may speak of what the first one spoke of."""
        pronouns = self._pronouns(first)
        if not pronouns or self._chance(0.35):
            clause = self._clause(adverbials=0.25)
        else:
            subject, *rest = pronouns
            clause = self._clause(subject=subject, adverbials=0.2)
            if rest and self._chance(0.7) and _takes(clause, rest[0]):
                clause = replace(clause, direct=rest[0])
        return self._front(clause) if front else clause

    def _pronouns(self, clause: plan.Clause) -> list[plan.Phrase]:
        """Pronouns that can mean only one phrase of the clause, in random order."""
        count = Counter(plan.pronoun_for(phrase) for phrase in plan.noun_phrases(clause))
        if count[""]:
            return []
        pronouns: list[plan.Phrase] = []
        for phrase in (clause.subject, clause.direct, clause.indirect):
            if (
                isinstance(phrase, (plan.NounPhrase, plan.Both))
                and count[plan.pronoun_for(phrase)] == 1
            ):
                pronouns.append(plan.Pronoun(phrase))
        self._rng.shuffle(pronouns)
        return pronouns

    def _front(self, clause: plan.Clause) -> plan.Clause:
        """Perhaps puts something other than the subject first."""
        direct = clause.direct
        if clause.time and self._chance(0.5):
            return replace(clause, front="time")
        if clause.place and self._chance(0.3):
            return replace(clause, front="place")
        if isinstance(direct, plan.NounPhrase) and not direct.relative and self._chance(0.12):
            return replace(clause, front="direct") if direct.definite else clause
        return clause

    # One clause

    def _clause(
        self,
        *,
        subject: plan.Phrase | None = None,
        verbs: Sequence[lexicon.Verb] = (*lexicon.VERBS, lexicon.BE),
        adverbials: float = 0.0,
    ) -> plan.Clause:
        """A clause without relative clauses or complement; ``adverbials`` scales their number."""
        subject = subject or self._one_or_both("pa")
        kinds = _kinds(subject)
        fitting = [verb for verb in verbs if all(kind in verb.subject_kinds for kind in kinds)]
        verb = self._verb(fitting)
        clause = plan.Clause(
            subject,
            verb,
            self._pick(_TENSES),
            predicate=self._predicate(kinds) if verb is lexicon.BE else None,
            direct=self._one_or_both(verb.object_kinds, 0.05) if verb.case else None,
            indirect=self._noun_phrase(verb.indirect_kinds) if verb.indirect_kinds else None,
        )
        return self._adverbials(clause, adverbials) if adverbials else clause

    def _verb(self, verbs: list[lexicon.Verb]) -> lexicon.Verb:
        """First how many objects, then which verb: the few with two objects are not to be rare."""
        wanted = self._pick((0, 1, 1, 1, 2, 2, 3))
        groups: dict[int, list[lexicon.Verb]] = {0: [], 1: [], 2: [], 3: []}
        for verb in verbs:
            group = 3 if verb is lexicon.BE else bool(verb.case) + bool(verb.indirect_kinds)
            groups[group].append(verb)
        return self._pick(groups[wanted] or verbs)

    def _adverbials(self, clause: plan.Clause, scale: float) -> plan.Clause:
        tense = clause.tense
        group = tense if tense in ("present", "past", "will") else "modal"
        times = [time for time, (_, tenses) in lexicon.TIMES.items() if group in tenses]
        if self._chance(0.45 * scale):
            clause = replace(clause, time=self._pick(times))
        elif self._chance(0.2):
            clause = replace(clause, frequency=self._frequency(clause))
        if clause.verb is lexicon.BE:
            return clause
        if self._chance(0.3 * scale):
            clause = replace(clause, manner=self._pick(tuple(lexicon.MANNERS)))
        if self._chance(0.12 * scale):
            clause = replace(clause, companion=self._noun_phrase("pa"))
        if self._chance(0.35 * scale):
            clause = replace(clause, place=self._place())
        return clause

    def _frequency(self, clause: plan.Clause) -> str:
        word = self._pick((*lexicon.FREQUENCIES, "not"))
        phrases = [clause.subject, clause.direct, clause.indirect]
        if word in ("not", "never") and clause.tense == "must":
            return "often"  # "must not" would be "darf nicht"
        if word == "not" and any(phrase and not phrase.definite for phrase in phrases):
            return "often"  # would be "kein"
        if any(isinstance(p, plan.NounPhrase) and p.determiner == "every" for p in phrases):
            return "sometimes"  # "not every", "never every": neither language says it so
        return word

    # Phrases

    def _one_or_both(self, kinds: str, both: float = 0.08) -> plan.NounPhrase | plan.Both:
        if not self._chance(both):
            return self._noun_phrase(kinds)
        determiners = ("the", "my", "our")
        left, right = (
            replace(self._noun_phrase(kinds), plural=False, determiner=self._pick(determiners))
            for _ in range(2)
        )
        return plan.Both(left, right)

    def _noun_phrase(self, kinds: str) -> plan.NounPhrase:
        kind = self._pick(kinds)
        noun = self._pick([noun for noun in lexicon.NOUNS if noun.kind == kind])
        plural = self._chance(0.3)
        determiner = self._pick(_PLURAL if plural else _SINGULAR)
        return plan.NounPhrase(noun, determiner, self._adjectives(kind), plural)

    def _adjectives(self, kind: str) -> tuple[lexicon.Adjective, ...]:
        fitting = [adjective for adjective in lexicon.ADJECTIVES if kind in adjective.kinds]
        count = self._pick((0, 0, 0, 0, 1, 1, 1, 1, 1, 2))
        if count == 0:
            return ()
        first = self._pick(fitting)
        others = [adjective for adjective in fitting if adjective.rank != first.rank]
        if count == 1 or not others:
            return (first,)
        return tuple(sorted((first, self._pick(others)), key=lambda adjective: adjective.rank))

    def _predicate(self, kinds: str) -> lexicon.Adjective:
        return self._pick([a for a in lexicon.ADJECTIVES if all(kind in a.kinds for kind in kinds)])

    def _place(self) -> tuple[str, plan.NounPhrase]:
        noun, prepositions = self._pick(lexicon.PLACES)
        adjectives = self._adjectives("l")[:1]
        phrase = plan.NounPhrase(noun, self._pick(("the", "the", "a", "this", "our")), adjectives)
        return self._pick(prepositions), phrase

    def _with_relative(self, phrase: plan.NounPhrase) -> plan.NounPhrase:
        gap = plan.Gap(phrase.plural)
        kind = phrase.noun.kind
        fitting = [
            v for v in lexicon.VERBS if v.case and not v.indirect_kinds and kind in v.object_kinds
        ]
        if fitting and self._chance(0.5):
            inner = self._clause(verbs=fitting)
            inner = replace(inner, direct=gap)
        elif kind in "pa":
            verbs = [verb for verb in (*lexicon.VERBS, lexicon.BE) if not verb.indirect_kinds]
            inner = replace(self._clause(subject=phrase, verbs=verbs), subject=gap)
        else:
            inner = plan.Clause(
                gap, lexicon.BE, self._pick(("present", "past")), predicate=self._predicate(kind)
            )
        return replace(phrase, relative=inner)


def _kinds(phrase: plan.Phrase) -> str:
    if isinstance(phrase, plan.Pronoun):
        phrase = phrase.antecedent
    if isinstance(phrase, plan.Both):
        return phrase.left.noun.kind + phrase.right.noun.kind
    return phrase.noun.kind if isinstance(phrase, plan.NounPhrase) else ""


def _takes(clause: plan.Clause, phrase: plan.Phrase) -> bool:
    """Whether the clause can have the phrase for its only object."""
    verb = clause.verb
    return bool(verb.object_kinds and not verb.indirect_kinds) and all(
        kind in verb.object_kinds for kind in _kinds(phrase)
    )


def _ends(clause: plan.Clause) -> bool:
    """Whether the direct object is the last thing the clause says."""
    adverbials = clause.manner or clause.companion or clause.place or clause.time
    return not adverbials and not clause.indirect
