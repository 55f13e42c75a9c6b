"""Sampled sentences: what their German looks like, read from the text alone.

The patterns below know words and their classes, nothing of how the grammar under test works.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from diet_mt.corpora.clauses.english import english
from diet_mt.corpora.clauses.german import german
from diet_mt.corpora.clauses.lexicon import (
    ADJECTIVES,
    BE,
    CLAUSE_VERBS,
    CONJUNCTIONS,
    NOUNS,
    PLACES,
    TIMES,
    VERBS,
)
from diet_mt.corpora.clauses.plan import (
    Clause,
    Coordinated,
    NounPhrase,
    Pronoun,
    Question,
    Sentence,
    Statement,
    Subordinated,
    noun_phrases,
    pronoun_for,
    swapped,
)
from diet_mt.corpora.clauses.sample import Sampler

ALL_VERBS = (*VERBS, *(verb for _, verb in CLAUSE_VERBS), BE)


def _any(words: list[str] | set[str]) -> str:
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"


_EIN = [f"{stem}{end}" for stem in ("ein", "mein", "unser") for end in ("", "e", "en", "em", "er")]
_DIES = [
    f"{stem}{end}" for stem in ("dies", "jed", "viel") for end in ("e", "er", "es", "en", "em")
]
DETERMINER = _any(["der", "die", "das", "den", "dem", "zwei", "drei", *_EIN, *_DIES])
ADJECTIVE = _any({a.stem + end for a in ADJECTIVES for end in ("e", "er", "es", "en", "em")})
NOUN = _any({form for n in NOUNS for form in (n.de, n.de_oblique, n.de_plural, n.de_plural_dative)})
PLACE = _any({noun.de for noun, _ in PLACES})
PREPOSITION = _any(["in", "auf", "unter", "hinter", "vor", "neben"])
_MODALS = ["kann", "können", "muss", "müssen", "sollte", "sollten", "will", "wollen"]
_AUXILIARIES = ["wird", "werden", "hat", "haben", "ist", "sind", "war", "waren"]
FINITE = _any(
    {form for verb in ALL_VERBS if verb is not BE for form in (verb.de, verb.infinitive)}
    | {*_MODALS, *_AUXILIARIES}
)
FINITE_LAST = _any(
    {
        verb.prefix + form
        for verb in ALL_VERBS
        if verb is not BE
        for form in (verb.de, verb.infinitive)
    }
    | {*_MODALS, *_AUXILIARIES}
)
CONJUNCTION = _any({*CONJUNCTIONS.values()})
RELATIVE = _any(["der", "die", "das", "den", "dem", "denen"])
TIME = _any({german for german, _ in TIMES.values()})

NP = rf"(?:{DETERMINER} )?(?:{ADJECTIVE} ){{0,2}}{NOUN}"
NPS = rf"{NP}(?: und {NP})?"
RELATIVE_CLAUSE = rf", {RELATIVE}(?: [^ ,]+)* {FINITE_LAST}"
SUBORDINATE = rf"{CONJUNCTION}(?: [^ ,]+)+ {FINITE_LAST}"
PP = rf"(?:im|{PREPOSITION} {DETERMINER}) (?:{ADJECTIVE} )?{PLACE}"
CONSTITUENT = rf"(?:{NPS}|{NP}{RELATIVE_CLAUSE},|{PP}|{TIME}|er|sie|es|{SUBORDINATE},)"
VERB_SECOND = re.compile(rf"{CONSTITUENT} {FINITE}\b")
VERB_FIRST = re.compile(rf"(?:(?:warum|wann|wo) )?{FINITE}\b")
VERB_LAST = re.compile(rf"(?:{CONJUNCTION}|{RELATIVE}) .*\b{FINITE_LAST}")


def _lower_first(text: str) -> list[str]:
    """Without the capital of the sentence, which hides whether its first word is a noun."""
    return [text, text[0].lower() + text[1:]]


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    sampler = Sampler(Random(7))
    return [sampler.sentence() for _ in range(3000)]


def _main_clauses(sentence: Sentence) -> list[str]:
    """The German of what should be verb-second; the parts of a coordination each for itself."""
    if isinstance(sentence, Coordinated):
        return [german(Statement(sentence.first)), german(Statement(sentence.second))]
    return [] if isinstance(sentence, Question) else [german(sentence)]


def test_the_verb_is_second_in_main_clauses(sentences: list[Sentence]) -> None:
    checked = 0
    for sentence in sentences:
        for text in _main_clauses(sentence):
            assert any(VERB_SECOND.match(form) for form in _lower_first(text)), text
            checked += 1
    assert checked > 2500


def test_the_verb_is_first_in_questions(sentences: list[Sentence]) -> None:
    questions = [german(sentence) for sentence in sentences if isinstance(sentence, Question)]
    assert len(questions) > 200
    for text in questions:
        assert VERB_FIRST.match(text[0].lower() + text[1:]), text
        assert text.endswith("?")


def test_the_verb_is_last_after_a_conjunction(sentences: list[Sentence]) -> None:
    checked = 0
    for sentence in sentences:
        for segment in german(sentence).rstrip(".?").split(", "):
            clause = segment[0].lower() + segment[1:]
            if re.fullmatch(CONJUNCTION, clause.split(" ")[0]):
                assert VERB_LAST.fullmatch(clause), german(sentence)
                checked += 1
    assert checked > 800


def test_the_verb_is_last_in_relative_clauses(sentences: list[Sentence]) -> None:
    checked = 0
    for sentence in sentences:
        if not isinstance(sentence, Statement) or not _has_relative(sentence.clause):
            continue
        _, *segments = german(sentence).rstrip(".").split(", ")
        first = next(s for s in segments if re.fullmatch(RELATIVE, s.split(" ")[0]))
        assert VERB_LAST.fullmatch(first), german(sentence)
        checked += 1
    assert checked > 200


def _has_relative(clause: Clause) -> bool:
    phrases = (clause.subject, clause.direct)
    return any(isinstance(phrase, NounPhrase) and phrase.relative for phrase in phrases)


def test_commas_and_capitals(sentences: list[Sentence]) -> None:
    for sentence in sentences:
        for text in (english(sentence), german(sentence)):
            assert text[0].isupper(), text
            assert text[-1] in ".?", text
            assert not re.search(r",,| ,|  |,[.?]|,\S", text), text


def test_infinitives_end_in_zu(sentences: list[Sentence]) -> None:
    plain = "|".join(verb.infinitive for verb in VERBS if not verb.prefix)
    joined = "|".join(f"{verb.prefix}zu{verb.infinitive}" for verb in VERBS if verb.prefix)
    texts = [
        german(sentence)
        for sentence in sentences
        if isinstance(sentence, Statement)
        and sentence.clause.complement
        and sentence.clause.complement.word == "to"
    ]
    assert len(texts) > 50
    for text in texts:
        assert re.search(rf"(?: zu (?:{plain})|[ ,](?:{joined}))\.$", text), text
    assert any(re.search(rf"(?:{joined})\.$", text) for text in texts)


def test_a_pronoun_has_one_possible_antecedent(sentences: list[Sentence]) -> None:
    checked = 0
    for sentence in sentences:
        first, second = _in_order(sentence)
        if second is None:
            continue
        for phrase in (second.subject, second.direct, second.indirect):
            if isinstance(phrase, Pronoun):
                candidates = list(noun_phrases(first))
                like = [one for one in candidates if pronoun_for(one) in (phrase.english, "")]
                assert like == [phrase.antecedent], english(sentence)
                checked += 1
    assert checked > 300


def _in_order(sentence: Sentence) -> tuple[Clause, Clause | None]:
    if isinstance(sentence, Coordinated):
        return sentence.first, sentence.second
    if isinstance(sentence, Subordinated):
        clauses = sentence.main, sentence.sub
        return clauses[::-1] if sentence.sub_first else clauses
    return sentence.clause, None


def test_negation_leaves_out_what_german_says_otherwise(sentences: list[Sentence]) -> None:
    """No "muss nicht" for "must not", nothing that would be "kein", no "jeden ... nicht"."""
    negated = 0
    for sentence in sentences:
        for clause in _in_order(sentence):
            if clause is None or clause.frequency not in ("not", "never"):
                continue
            negated += 1
            assert clause.tense != "must", english(sentence)
            for phrase in (clause.subject, clause.direct, clause.indirect):
                if isinstance(phrase, NounPhrase):
                    assert phrase.determiner != "every", english(sentence)
                    assert phrase.definite or clause.frequency == "never", english(sentence)
    assert negated > 60


def test_swapping_roles_keeps_english_words_and_changes_german(sentences: list[Sentence]) -> None:
    same_bag = swaps = 0
    for sentence in sentences:
        twin = swapped(sentence)
        if twin is None:
            continue
        one, two = english(sentence), english(twin)
        if one == two:  # "a dog sees a dog"
            continue
        swaps += 1
        assert german(sentence) != german(twin), one
        same_bag += sorted(one.lower().rstrip(".?").split()) == sorted(
            two.lower().rstrip(".?").split()
        )
    assert swaps > 400
    assert same_bag > 200  # the others differ by agreement, "sees" and "see"


def test_nothing_follows_a_relative_clause_on_the_object(sentences: list[Sentence]) -> None:
    """Else "the dog that the cat sees in the garden" could mean two things."""
    checked = 0
    for sentence in sentences:
        if isinstance(sentence, Statement) and isinstance(sentence.clause.direct, NounPhrase):
            clause, relative = sentence.clause, sentence.clause.direct.relative
            if relative:
                trailing = (clause.manner, clause.companion, clause.place, clause.time)
                assert not any(trailing), english(sentence)
                checked += 1
    assert checked > 50
