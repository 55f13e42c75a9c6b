"""Says a plan in English: fixed order, subject before verb before objects.

Whatever German shows by endings, English shows by order alone: "the dog sees the cat" against "the
cat sees the dog", "shows the boy the dog", "that sees the cat" against "that the cat sees".
"""

from __future__ import annotations

from . import plan
from .lexicon import BE

_PARTICLES = ("up", "away", "along")  # a pronoun goes before them: "throws it away"
_OBJECT_FORMS = {"he": "him", "she": "her", "it": "it", "they": "them"}


def english(sentence: plan.Sentence) -> str:
    if isinstance(sentence, plan.Statement):
        words = _clause(sentence.clause)
    elif isinstance(sentence, plan.Question):
        words = [sentence.word, *_question(sentence.clause)]
    elif isinstance(sentence, plan.Coordinated):
        words = [*_clause(sentence.first), ",", sentence.word, *_clause(sentence.second)]
    elif sentence.sub_first:
        words = [sentence.word, *_clause(sentence.sub), ",", *_clause(sentence.main)]
    else:
        words = [*_clause(sentence.main), sentence.word, *_clause(sentence.sub)]
    text = " ".join(word for word in words if word).replace(" ,", ",").replace("can not", "cannot")
    return text[0].upper() + text[1:] + ("?" if isinstance(sentence, plan.Question) else ".")


def _clause(clause: plan.Clause) -> list[str]:
    front, back = _adverbials(clause)
    helper, lexical = _verbs(clause)
    subject = _phrase(clause.subject)
    if clause.front == "direct":
        assert clause.direct is not None
        front = [*_phrase(clause.direct), ","]
    if clause.verb is BE and not helper and clause.tense != "want":
        verbs = [*lexical, clause.frequency]  # "is often hungry"
    else:
        verbs = [*helper, clause.frequency, *lexical]
    return [*front, *subject, *_with_objects(verbs, clause), *back, *_complement(clause)]


def _question(clause: plan.Clause) -> list[str]:
    """Verb, or a form of "do", before the subject."""
    _, back = _adverbials(clause)
    helper, lexical = _verbs(clause, asked=True)
    verbs = [clause.frequency, *lexical]
    objects = _with_objects(verbs, clause)
    return [*helper, *_phrase(clause.subject), *objects, *back, *_complement(clause)]


def _verbs(clause: plan.Clause, asked: bool = False) -> tuple[list[str], list[str]]:
    """(what stands before the subject of a question: modal, "do" or "be", the verb itself); the
    frequency stands between them.
    """
    verb, tense, plural = clause.verb, clause.tense, clause.subject.plural
    with_do = asked or clause.frequency == "not"
    if tense == "infinitive":
        return [], [verb.en_base]
    if tense == "want":
        wanted = ["to", verb.en_base]
        if with_do:
            return [_do(clause)], ["want", *wanted]
        return [], ["want" if plural else "wants", *wanted]
    if tense not in ("present", "past"):
        return [tense], [verb.en_base]
    if verb is BE:
        finite = [{"present": ("is", "are"), "past": ("was", "were")}[tense][plural]]
        return (finite, []) if asked else ([], finite)
    if with_do:
        return [_do(clause)], [verb.en_base]
    if tense == "past":
        return [], [verb.en_past]
    return [], [verb.en_base if plural else verb.en]


def _do(clause: plan.Clause) -> str:
    if clause.tense == "past":
        return "did"
    return "do" if clause.subject.plural else "does"


def _with_objects(verbs: list[str], clause: plan.Clause) -> list[str]:
    objects = _objects(clause)
    stem, _, particle = verbs[-1].rpartition(" ")
    if particle in _PARTICLES and isinstance(clause.direct, plan.Pronoun):
        return [*verbs[:-1], stem, *objects, particle]
    return [*verbs, *objects]


def _objects(clause: plan.Clause) -> list[str]:
    direct = [] if clause.front == "direct" else _phrase(clause.direct, objective=True)
    indirect = _phrase(clause.indirect, objective=True)
    if clause.verb.preposition:
        words = [*direct, clause.verb.preposition, *indirect]
    else:
        words = [*indirect, *direct]
    return words + ([clause.predicate.en] if clause.predicate else [])


def _adverbials(clause: plan.Clause) -> tuple[list[str], list[str]]:
    """(before the subject, after the objects)."""
    place = [clause.place[0], *_phrase(clause.place[1])] if clause.place else []
    companion = ["with", *_phrase(clause.companion)] if clause.companion else []
    if clause.front == "time":
        return [clause.time], [clause.manner, *companion, *place]
    if clause.front == "place":
        return place, [clause.manner, *companion, clause.time]
    return [], [clause.manner, *companion, *place, clause.time]


def _complement(clause: plan.Clause) -> list[str]:
    if clause.complement is None:
        return []
    return [clause.complement.word, *_clause(clause.complement.clause)]


def _phrase(phrase: plan.Phrase | None, objective: bool = False) -> list[str]:
    if phrase is None or isinstance(phrase, plan.Gap):
        return []
    if isinstance(phrase, plan.Pronoun):
        word = phrase.english
        return [_OBJECT_FORMS[word] if objective else word]
    if isinstance(phrase, plan.Both):
        return [*_phrase(phrase.left), "and", *_phrase(phrase.right)]
    return _noun_phrase(phrase)


def _noun_phrase(phrase: plan.NounPhrase) -> list[str]:
    noun = phrase.noun.en_plural if phrase.plural else phrase.noun.en
    words = [*(adjective.en for adjective in phrase.adjectives), noun]
    determiner = phrase.determiner
    if determiner == "a" and words[0][0] in "aeiou":
        determiner = "an"
    relative = ["that", *_clause(phrase.relative)] if phrase.relative else []
    return [determiner, *words, *relative]
