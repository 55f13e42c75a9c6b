"""Sentences translated by hand, phenomenon by phenomenon."""

from __future__ import annotations

from typing import Any

import pytest

from diet_mt.corpora.clauses.english import english
from diet_mt.corpora.clauses.german import german
from diet_mt.corpora.clauses.plan import (
    Both,
    Clause,
    Coordinated,
    Gap,
    NounPhrase,
    Pronoun,
    Question,
    Sentence,
    Statement,
    Subordinated,
)

from .phrases import clause, gap, np

Case = tuple[Sentence, str, str]


def says(*arguments: Any, **more: Any) -> Statement:
    return Statement(clause(*arguments, **more))


def asks(word: str, *arguments: Any, **more: Any) -> Question:
    return Question(clause(*arguments, **more), word)


def sleeping(head: str, inner: Clause) -> Statement:
    """HEAD, with a relative clause, "sleeps"."""
    return Statement(clause(np(head, inner), "sleeps"))


def because(main: Clause, sub: Clause, *, word: str = "because", first: bool = False) -> Sentence:
    return Subordinated(main, word, sub, sub_first=first)


VERB_SECOND: list[Case] = [
    (
        says("the dog", "sees", "the cat"),
        "The dog sees the cat.",
        "Der Hund sieht die Katze.",
    ),
    (
        says("the cat", "sees", "the dog"),
        "The cat sees the dog.",
        "Die Katze sieht den Hund.",
    ),
    (
        says("the dog", "sees", "the cat", time="today", front="time"),
        "Today the dog sees the cat.",
        "Heute sieht der Hund die Katze.",
    ),
    (
        says("the dog", "sees", "the cat", time="on Monday", tense="will", place="in the garden"),
        "The dog will see the cat in the garden on Monday.",
        "Der Hund wird am Montag die Katze im Garten sehen.",
    ),
    (
        says("a farmer", "works", place="behind the old house", front="place"),
        "Behind the old house a farmer works.",
        "Hinter dem alten Haus arbeitet ein Bauer.",
    ),
    (
        says("the cat", "sees", "this dog", front="direct"),
        "This dog, the cat sees.",
        "Diesen Hund sieht die Katze.",
    ),
    (
        says("the cats", "helps", "my dogs", front="direct"),
        "My dogs, the cats help.",
        "Meinen Hunden helfen die Katzen.",
    ),
    (
        says("the king", "gives", "the ball", indirect="a child"),
        "The king gives a child the ball.",
        "Der König gibt einem Kind den Ball.",
    ),
    (
        says("the king", "returns", "the ball", indirect="a child"),
        "The king returns the ball to a child.",
        "Der König gibt einem Kind den Ball zurück.",
    ),
]

BRACKETS: list[Case] = [
    (
        says("the woman", "calls", "the man"),
        "The woman calls the man.",
        "Die Frau ruft den Mann an.",
    ),
    (
        says("the woman", "calls", "the man", tense="past", time="yesterday", front="time"),
        "Yesterday the woman called the man.",
        "Gestern hat die Frau den Mann angerufen.",
    ),
    (
        says("the women", "calls", "the man", tense="must"),
        "The women must call the man.",
        "Die Frauen müssen den Mann anrufen.",
    ),
    (
        says("our dogs", "runs after", "the boy", tense="past"),
        "Our dogs ran after the boy.",
        "Unsere Hunde sind dem Jungen nachgelaufen.",
    ),
    (
        says("the boy", "falls asleep", tense="past"),
        "The boy fell asleep.",
        "Der Junge ist eingeschlafen.",
    ),
    (
        says("the boy", "gets up", tense="want", frequency="not"),
        "The boy does not want to get up.",
        "Der Junge will nicht aufstehen.",
    ),
    (
        says("the boy", "sees", "the bear", tense="can", frequency="not"),
        "The boy cannot see the bear.",
        "Der Junge kann den Bären nicht sehen.",
    ),
    (
        says("the boy", "wakes", "the bear", frequency="often"),
        "The boy often wakes the bear.",
        "Der Junge weckt den Bären oft auf.",
    ),
    (
        says("the boy", "wakes", "a bear", frequency="often"),
        "The boy often wakes a bear.",
        "Der Junge weckt oft einen Bären auf.",
    ),
    (
        says("the boy", "wakes", "the bear", tense="past", frequency="not"),
        "The boy did not wake the bear.",
        "Der Junge hat den Bären nicht aufgeweckt.",
    ),
    (
        says(
            "the woman",
            "tries",
            complement=("to", clause(Gap(), "calls", "the man", tense="infinitive")),
        ),
        "The woman tries to call the man.",
        "Die Frau versucht, den Mann anzurufen.",
    ),
    (
        says(
            "the woman",
            "begins",
            tense="past",
            complement=("to", clause(Gap(), "sees", "the man", tense="infinitive")),
        ),
        "The woman began to see the man.",
        "Die Frau hat angefangen, den Mann zu sehen.",
    ),
]

VERB_LAST: list[Case] = [
    (
        because(clause("the dog", "sleeps"), clause("the cat", "sees", "the bird")),
        "The dog sleeps because the cat sees the bird.",
        "Der Hund schläft, weil die Katze den Vogel sieht.",
    ),
    (
        because(clause("the dog", "sleeps"), clause("the cat", "sees", "the bird"), first=True),
        "Because the cat sees the bird, the dog sleeps.",
        "Weil die Katze den Vogel sieht, schläft der Hund.",
    ),
    (
        because(
            clause("the dog", "sleeps", time="now", front="time"),
            clause("the woman", "calls", "the man"),
            word="although",
        ),
        "Now the dog sleeps although the woman calls the man.",
        "Jetzt schläft der Hund, obwohl die Frau den Mann anruft.",
    ),
    (
        because(
            clause("the dog", "sleeps", tense="past"),
            clause("the woman", "calls", "the man", tense="past", time="yesterday"),
            word="before",
            first=True,
        ),
        "Before the woman called the man yesterday, the dog slept.",
        "Bevor die Frau gestern den Mann angerufen hat, hat der Hund geschlafen.",
    ),
    (
        because(clause("the dog", "sleeps"), clause("the cats", "sees", "the bird", tense="want")),
        "The dog sleeps because the cats want to see the bird.",
        "Der Hund schläft, weil die Katzen den Vogel sehen wollen.",
    ),
    (
        says("the king", "says", tense="past", complement=("that", clause("the dog", "gets up"))),
        "The king said that the dog gets up.",
        "Der König hat gesagt, dass der Hund aufsteht.",
    ),
    (
        says(
            "the king", "asks", complement=("whether", clause("the dog", "is", predicate="tired"))
        ),
        "The king asks whether the dog is tired.",
        "Der König fragt, ob der Hund müde ist.",
    ),
    (
        sleeping("the dog", clause(gap("the dog"), "sees", "the cat")),
        "The dog that sees the cat sleeps.",
        "Der Hund, der die Katze sieht, schläft.",
    ),
    (
        sleeping("the dog", clause("the cat", "sees", gap("the dog"))),
        "The dog that the cat sees sleeps.",
        "Der Hund, den die Katze sieht, schläft.",
    ),
    (
        sleeping("the dogs", clause("the woman", "helps", gap("the dogs"), tense="past")),
        "The dogs that the woman helped sleep.",
        "Die Hunde, denen die Frau geholfen hat, schlafen.",
    ),
    (
        sleeping("the woman", clause("the man", "listens to", gap("the woman"))),
        "The woman that the man listens to sleeps.",
        "Die Frau, der der Mann zuhört, schläft.",
    ),
    (
        says("the king", "sees", np("the dog", clause(gap("the dog"), "is", predicate="old"))),
        "The king sees the dog that is old.",
        "Der König sieht den Hund, der alt ist.",
    ),
    (
        says(
            "the king",
            "sees",
            np("the dog", clause("a cat", "bites", gap("the dog"))),
            tense="past",
        ),
        "The king saw the dog that a cat bites.",
        "Der König hat den Hund gesehen, den eine Katze beißt.",
    ),
]

QUESTIONS: list[Case] = [
    (
        asks("", "the dogs", "sees", "the cat"),
        "Do the dogs see the cat?",
        "Sehen die Hunde die Katze?",
    ),
    (
        asks("", "the woman", "calls", "the man", tense="past"),
        "Did the woman call the man?",
        "Hat die Frau den Mann angerufen?",
    ),
    (
        asks("why", "the woman", "calls", "the man", tense="want"),
        "Why does the woman want to call the man?",
        "Warum will die Frau den Mann anrufen?",
    ),
    (
        asks("where", "the dog", "is", predicate="tired", tense="past", frequency="often"),
        "Where was the dog often tired?",
        "Wo war der Hund oft müde?",
    ),
    (
        asks("when", "the dog", "is", predicate="tired", tense="can"),
        "When can the dog be tired?",
        "Wann kann der Hund müde sein?",
    ),
]

SPOON, WOMAN, LION = np("the spoon"), np("the woman"), np("a lion")
FRIENDS = Both(np("the king"), np("my cat"))

AGREEMENT: list[Case] = [
    (
        because(clause(WOMAN, "needs", SPOON), clause(Pronoun(WOMAN), "looks for", Pronoun(SPOON))),
        "The woman needs the spoon because she looks for it.",
        "Die Frau braucht den Löffel, weil sie ihn sucht.",
    ),
    (
        because(
            clause(Pronoun(WOMAN), "throws away", Pronoun(SPOON)),
            clause(WOMAN, "needs", SPOON),
            word="if",
            first=True,
        ),
        "If the woman needs the spoon, she throws it away.",
        "Wenn die Frau den Löffel braucht, wirft sie ihn weg.",
    ),
    (
        Coordinated(clause(LION, "sees", WOMAN), "but", clause("the boy", "helps", Pronoun(WOMAN))),
        "A lion sees the woman, but the boy helps her.",
        "Ein Löwe sieht die Frau, aber der Junge hilft ihr.",
    ),
    (
        Coordinated(
            clause(FRIENDS, "sees", LION),
            "and",
            clause(Pronoun(FRIENDS), "is", predicate="sad", time="now", front="time"),
        ),
        "The king and my cat see a lion, and now they are sad.",
        "Der König und meine Katze sehen einen Löwen und jetzt sind sie traurig.",
    ),
    (
        Coordinated(
            clause(LION, "follows", FRIENDS), "but", clause("the boy", "thanks", Pronoun(FRIENDS))
        ),
        "A lion follows the king and my cat, but the boy thanks them.",
        "Ein Löwe folgt dem König und meiner Katze, aber der Junge dankt ihnen.",
    ),
    (
        says("an ugly old bear", "eats", "the sweet apples", companion="two happy children"),
        "An ugly old bear eats the sweet apples with two happy children.",
        "Ein hässlicher alter Bär isst die süßen Äpfel mit zwei glücklichen Kindern.",
    ),
    (
        says("every small girl", "feeds", "many hungry horses", manner="gladly"),
        "Every small girl feeds many hungry horses gladly.",
        "Jedes kleine Mädchen füttert gern viele hungrige Pferde.",
    ),
    (
        says("every small girl", "feeds", "my hungry horse", manner="gladly"),
        "Every small girl feeds my hungry horse gladly.",
        "Jedes kleine Mädchen füttert mein hungriges Pferd gern.",
    ),
]


@pytest.mark.parametrize(
    ("sentence", "en", "de"),
    [*VERB_SECOND, *BRACKETS, *VERB_LAST, *QUESTIONS, *AGREEMENT],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_by_hand(sentence: Sentence, en: str, de: str) -> None:
    assert (english(sentence), german(sentence)) == (en, de)


# A table as in a grammar: nominative, accusative, dative.
DECLENSION = {
    "the old dog": "der alte Hund | den alten Hund | dem alten Hund",
    "the old cat": "die alte Katze | die alte Katze | der alten Katze",
    "the old horse": "das alte Pferd | das alte Pferd | dem alten Pferd",
    "the old horses": "die alten Pferde | die alten Pferde | den alten Pferden",
    "this old dog": "dieser alte Hund | diesen alten Hund | diesem alten Hund",
    "this old cat": "diese alte Katze | diese alte Katze | dieser alten Katze",
    "every old horse": "jedes alte Pferd | jedes alte Pferd | jedem alten Pferd",
    "these old cats": "diese alten Katzen | diese alten Katzen | diesen alten Katzen",
    "an old dog": "ein alter Hund | einen alten Hund | einem alten Hund",
    "an old cat": "eine alte Katze | eine alte Katze | einer alten Katze",
    "an old horse": "ein altes Pferd | ein altes Pferd | einem alten Pferd",
    "our old dog": "unser alter Hund | unseren alten Hund | unserem alten Hund",
    "our old cat": "unsere alte Katze | unsere alte Katze | unserer alten Katze",
    "my old dogs": "meine alten Hunde | meine alten Hunde | meinen alten Hunden",
    "old horses": "alte Pferde | alte Pferde | alten Pferden",
    "two old cats": "zwei alte Katzen | zwei alte Katzen | zwei alten Katzen",
    "many old dogs": "viele alte Hunde | viele alte Hunde | vielen alten Hunden",
    "the tired bear": "der müde Bär | den müden Bären | dem müden Bären",
    "a tired farmer": "ein müder Bauer | einen müden Bauern | einem müden Bauern",
    "the expensive cars": "die teuren Autos | die teuren Autos | den teuren Autos",
    "my small brothers": "meine kleinen Brüder | meine kleinen Brüder | meinen kleinen Brüdern",
    "the rich aunts": "die reichen Tanten | die reichen Tanten | den reichen Tanten",
}


@pytest.mark.parametrize(("en", "table"), DECLENSION.items())
def test_declension(en: str, table: str) -> None:
    phrase: NounPhrase = np(en)
    nominative, accusative, dative = table.split(" | ")
    plain = "sehen" if phrase.plural else "sieht"
    assert (
        german(says(phrase, "sees", "the cat")).lower()
        == f"{nominative} {plain} die katze.".lower()
    )
    assert german(says("the cat", "sees", phrase)) == f"Die Katze sieht {accusative}."
    assert german(says("the cat", "helps", phrase)) == f"Die Katze hilft {dative}."
