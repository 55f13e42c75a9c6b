"""Says a plan in German: the verb second or last, the rest by case.

A clause is laid out in fields, as German grammars do:

    front | finite verb | middle                       | right bracket | after
    Heute | hat         | der Hund die Katze im Garten | gesehen       | , die ...
          | (weil)      | der Hund die Katze im Garten | gesehen hat   |

The middle runs: subject, pronoun, time, indirect object, definite direct object, frequency and
"nicht", manner, indefinite direct object, companion, place. In a subordinate clause the finite verb
joins the right bracket, where a separated prefix is attached again ("ruft ... an", "anruft").
"""

from __future__ import annotations

from . import lexicon, plan

# Endings by case, for masculine, feminine, neuter, plural.
_DER = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
# dies-er, jed-er; of an adjective that stands alone
_STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
_EIN = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}  # ein, mein, unser
_ADJECTIVE_AFTER_DER = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}
_ADJECTIVE_AFTER_EIN = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}
_PRONOUN = {"nom": "er sie es sie", "acc": "ihn sie es sie", "dat": "ihm ihr ihm ihnen"}
_RELATIVE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem denen"}

_EIN_WORDS = {"a": "ein", "my": "mein", "our": "unser"}
_DIES_WORDS = {"this": "dies", "these": "dies", "every": "jed"}
_BARE_WORDS = {"": "", "two": "zwei", "three": "drei"}


def german(sentence: plan.Sentence) -> str:
    if isinstance(sentence, plan.Statement):
        words = _main(sentence.clause)
    elif isinstance(sentence, plan.Question):
        words = _main(sentence.clause, front=[lexicon.QUESTION_WORDS.get(sentence.word, "")])
    elif isinstance(sentence, plan.Coordinated):
        comma = "," if sentence.word == "but" else ""
        words = [*_main(sentence.first), comma, lexicon.COORDINATORS[sentence.word]]
        words += _main(sentence.second)
    else:
        sub = [lexicon.CONJUNCTIONS[sentence.word], *_subordinate(sentence.sub)]
        if sentence.sub_first:
            words = _main(sentence.main, front=[*sub, ","])
        else:
            words = [*_main(sentence.main), ",", *sub]
    return _punctuate(words) + ("?" if isinstance(sentence, plan.Question) else ".")


def _punctuate(words: list[str]) -> str:
    """Joins words; of commas that meet only one stays, and none before the full stop."""
    text = ""
    for word in words:
        if word == ",":
            text = text.rstrip(",") + ","
        elif word:
            text += " " + word
    text = text.strip(", ")
    return text[0].upper() + text[1:]


def _main(clause: plan.Clause, front: list[str] | None = None) -> list[str]:
    """Verb second, or first where ``front`` is given and empty."""
    fronted = clause.front if front is None else ""
    finite, bracket = _verbs(clause)
    middle, after = _middle(clause, without=fronted, bracketed=bool(bracket))
    if front is None:
        front = _front(clause)
    return [*front, finite, *middle, *bracket, *after]


def _subordinate(clause: plan.Clause) -> list[str]:
    """Verb last."""
    middle, after = _middle(clause, without="", bracketed=True)
    finite, bracket = _verbs(clause)
    if bracket and bracket == [clause.verb.prefix]:
        return [*middle, clause.verb.prefix + finite, *after]
    return [*middle, *bracket, finite, *after]


def _infinitive(clause: plan.Clause) -> list[str]:
    """Verb last, with "zu": before it, or between its prefix and its stem."""
    middle, after = _middle(clause, without="", bracketed=True)
    verb = clause.verb
    if verb.prefix:
        return [*middle, f"{verb.prefix}zu{verb.infinitive}", *after]
    return [*middle, "zu", verb.infinitive, *after]


def _verbs(clause: plan.Clause) -> tuple[str, list[str]]:
    """(finite verb, right bracket)."""
    verb, tense, plural = clause.verb, clause.tense, clause.subject.plural
    if tense in lexicon.MODALS:
        return lexicon.MODALS[tense][plural], [verb.prefix + verb.infinitive]
    if verb is lexicon.BE:
        return {"present": ("ist", "sind"), "past": ("war", "waren")}[tense][plural], []
    if tense == "past":
        auxiliary = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}[verb.auxiliary]
        return auxiliary[plural], [verb.participle]
    return verb.infinitive if plural else verb.de, [verb.prefix] if verb.prefix else []


def _front(clause: plan.Clause) -> list[str]:
    if clause.front == "time":
        return [lexicon.TIMES[clause.time][0]]
    if clause.front == "place":
        return _place(clause)
    if clause.front == "direct":
        return _phrase(clause.direct, clause.verb.case)
    return _phrase(clause.subject, "nom")


def _middle(clause: plan.Clause, *, without: str, bracketed: bool) -> tuple[list[str], list[str]]:
    """(the middle less what stands in front, what comes after the right bracket).

    A relative clause that would end the middle follows the bracket instead, if there is one.
    """
    after = _complement(clause)
    direct, early = clause.direct, clause.direct is None or clause.direct.definite
    object_ = [] if without == "direct" else _phrase(direct, clause.verb.case or "acc")
    if isinstance(direct, plan.NounPhrase) and direct.relative and bracketed:
        object_ = _noun_phrase(direct, clause.verb.case)
        after = [*_relative(direct), *after]
    is_pronoun = isinstance(direct, plan.Pronoun)
    words = [] if without == "subject" else _phrase(clause.subject, "nom")
    words += object_ if is_pronoun else []
    words += [] if without == "time" or not clause.time else [lexicon.TIMES[clause.time][0]]
    words += _phrase(clause.indirect, "dat")
    words += object_ if early and not is_pronoun else []
    words += [lexicon.FREQUENCIES[clause.frequency]] if clause.frequency else []
    words += [lexicon.MANNERS[clause.manner]] if clause.manner else []
    words += object_ if not early else []
    words += ["mit", *_phrase(clause.companion, "dat")] if clause.companion else []
    words += [] if without == "place" else _place(clause)
    words += [clause.predicate.de] if clause.predicate else []
    return words, after


def _place(clause: plan.Clause) -> list[str]:
    if clause.place is None:
        return []
    preposition, phrase = lexicon.PREPOSITIONS[clause.place[0]], clause.place[1]
    words = _noun_phrase(phrase, "dat")
    if preposition == "in" and words[0] == "dem":
        return ["im", *words[1:]]
    return [preposition, *words]


def _complement(clause: plan.Clause) -> list[str]:
    if clause.complement is None:
        return []
    if clause.complement.word == "to":
        return [",", *_infinitive(clause.complement.clause), ","]
    word = lexicon.CONJUNCTIONS[clause.complement.word]
    return [",", word, *_subordinate(clause.complement.clause), ","]


def _form(table: dict[str, str], case: str, gender: str, plural: bool) -> str:
    return table[case].split()[3 if plural else "mfn".index(gender)].strip("-")


def _phrase(phrase: plan.Phrase | None, case: str) -> list[str]:
    if phrase is None or isinstance(phrase, plan.Gap):
        return []
    if isinstance(phrase, plan.Pronoun):
        one = phrase.antecedent
        gender = "" if isinstance(one, plan.Both) else one.noun.gender
        return [_form(_PRONOUN, case, gender, phrase.plural)]
    if isinstance(phrase, plan.Both):
        return [*_noun_phrase(phrase.left, case), "und", *_noun_phrase(phrase.right, case)]
    return [*_noun_phrase(phrase, case), *_relative(phrase)]


def _noun_phrase(phrase: plan.NounPhrase, case: str) -> list[str]:
    """Determiner, adjectives, noun; without the relative clause."""
    noun, word = phrase.noun, phrase.determiner
    slot = (case, noun.gender, phrase.plural)
    if word in _EIN_WORDS:
        determiner, endings = _EIN_WORDS[word] + _form(_EIN, *slot), _ADJECTIVE_AFTER_EIN
    elif word in _DIES_WORDS:
        determiner, endings = _DIES_WORDS[word] + _form(_STRONG, *slot), _ADJECTIVE_AFTER_DER
    elif word == "many":
        determiner, endings = "viel" + _form(_STRONG, *slot), _STRONG
    elif word in _BARE_WORDS:
        determiner, endings = _BARE_WORDS[word], _STRONG
    else:
        determiner, endings = _form(_DER, *slot), _ADJECTIVE_AFTER_DER
    ending = _form(endings, *slot)
    if phrase.plural:
        form = noun.de_plural_dative if case == "dat" else noun.de_plural
    else:
        form = noun.de if case == "nom" else noun.de_oblique
    return [determiner, *(adjective.stem + ending for adjective in phrase.adjectives), form]


def _relative(phrase: plan.NounPhrase) -> list[str]:
    if phrase.relative is None:
        return []
    clause = phrase.relative
    case = "nom" if isinstance(clause.subject, plan.Gap) else clause.verb.case
    pronoun = _form(_RELATIVE, case, phrase.noun.gender, phrase.plural)
    return [",", pronoun, *_subordinate(clause), ","]
