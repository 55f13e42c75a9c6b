"""The words: enough of them, and none that would make a translation uncertain."""

from __future__ import annotations

from collections import Counter

from diet_mt.corpora.clauses.lexicon import (
    ADJECTIVES,
    BE,
    CLAUSE_VERBS,
    MANNERS,
    MODALS,
    NOUNS,
    PLACES,
    TIMES,
    VERBS,
)

ALL_VERBS = (*VERBS, *(verb for _, verb in CLAUSE_VERBS))


def test_every_gender_and_kind_is_there() -> None:
    assert {(noun.gender, noun.kind) for noun in NOUNS} >= {
        (gender, kind) for gender in "mfn" for kind in "pat"
    }
    assert {place.gender for place, _ in PLACES} == set("mfn")
    assert any(noun.de != noun.de_oblique for noun in NOUNS), "the weak declension"


def test_german_forms_are_well_made() -> None:
    for noun in NOUNS:
        assert noun.de_plural_dative.endswith(("n", "s")), noun
        assert noun.pronoun in ("he", "she", "it", ""), noun
        if noun.pronoun == "he":
            assert noun.gender == "m"
        if noun.pronoun == "she":
            assert noun.gender == "f"
        if noun.de != noun.de_oblique:
            assert noun.gender == "m"
            assert noun.de_oblique in (noun.de + "n", noun.de + "en")
            assert noun.de_plural == noun.de_oblique
        assert all(form[0].isupper() for form in (noun.de, noun.de_plural))
    for verb in ALL_VERBS:
        assert verb.infinitive.endswith("n"), verb
        assert verb.de.endswith("t"), verb
        assert verb.auxiliary in ("haben", "sein"), verb
        if verb.prefix:  # an-ge-rufen
            assert verb.participle.startswith(verb.prefix + "ge"), verb
    for adjective in ADJECTIVES:
        assert not adjective.stem.endswith("e"), adjective
        assert 1 <= adjective.rank <= 4, adjective


def test_frames_are_complete() -> None:
    for verb in VERBS:
        assert verb.case in ("", "acc", "dat"), verb
        assert bool(verb.case) == bool(verb.object_kinds), verb
        assert not verb.indirect_kinds or verb.case == "acc", verb
        assert not verb.preposition or verb.indirect_kinds, verb


def test_english_forms_tell_number_and_tense() -> None:
    for noun in NOUNS:
        assert noun.en != noun.en_plural, noun
    for verb in ALL_VERBS:
        assert len({verb.en, verb.en_base, verb.en_past}) == 3, verb


def test_no_english_form_belongs_to_two_words() -> None:
    owners: Counter[str] = Counter()
    for noun in NOUNS:
        owners.update({noun.en, noun.en_plural})
    owners.update(place.en for place, _ in PLACES)
    owners.update(adjective.en for adjective in ADJECTIVES)
    owners.update([*MANNERS, *MODALS, *TIMES])
    for verb in {v.en: v for v in (*ALL_VERBS, BE)}.values():  # "hears" has two frames
        owners.update({verb.en, verb.en_base, verb.en_past})
    assert [form for form, count in owners.items() if count > 1] == []
