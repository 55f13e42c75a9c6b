"""The words of the demo corpus, as tables: one word a line, ``_`` for a space inside a field.

Kinds say what goes together: ``p`` person, ``a`` animal, ``t`` thing, ``f`` food, ``l`` place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    en: str
    en_plural: str
    gender: str  # m, f or n: of the German noun
    de: str  # nominative
    de_oblique: str  # accusative and dative; differs in the weak declension (der Bär, den Bären)
    de_plural: str
    de_plural_dative: str
    kind: str
    pronoun: str = "it"  # he, she, it; empty: no pronoun refers to this noun


@dataclass(frozen=True)
class Adjective:
    en: str
    de: str  # as a predicate: das Kleid ist teuer
    stem: str  # before an ending: das teur-e Kleid
    kinds: str
    rank: int  # of two adjectives the lower one comes first; two of one rank do not go together


@dataclass(frozen=True)
class Verb:
    en: str  # third person singular
    en_base: str
    en_past: str
    prefix: str  # separable prefix, or empty
    infinitive: str  # without the prefix
    de: str  # third person singular, without the prefix
    participle: str  # with the prefix
    auxiliary: str  # haben or sein
    subject_kinds: str
    case: str = ""  # of the direct object: acc, dat; empty: there is none
    object_kinds: str = ""
    preposition: str = ""  # English, before the indirect object; empty: it comes first, bare
    indirect_kinds: str = ""  # of the (dative) indirect object; empty: there is none


# english plural | nominative, oblique, plural, dative plural | pronoun. A lone "=" repeats the
# form before it, "+n" adds an ending to it.
_PERSONS = """
man men m Mann = Männer +n he
woman women f Frau = Frauen = she
king kings m König = Könige +n he
queen queens f Königin = Königinnen = she
farmer farmers m Bauer Bauern = = he
teacher teachers m Lehrer = = +n he
doctor doctors f Ärztin = Ärztinnen = she
painter painters m Maler = = +n he
cook cooks f Köchin = Köchinnen = she
soldier soldiers m Soldat Soldaten = = he
thief thieves m Dieb = Diebe +n he
aunt aunts f Tante = Tanten = she
uncle uncles m Onkel = = +n he
brother brothers m Bruder = Brüder +n he
sister sisters f Schwester = Schwestern = she
boy boys m Junge Jungen = = he
girl girls n Mädchen = = = -
child children n Kind = Kinder +n -
neighbour neighbours m Nachbar Nachbarn = = he
poet poets m Dichter = = +n he
"""
_ANIMALS = """
dog dogs m Hund = Hunde +n it
cat cats f Katze = Katzen = it
horse horses n Pferd = Pferde +n it
bird birds m Vogel = Vögel +n it
cow cows f Kuh = Kühe +n it
pig pigs n Schwein = Schweine +n it
mouse mice f Maus = Mäuse +n it
bear bears m Bär Bären = = it
duck ducks f Ente = Enten = it
fox foxes m Fuchs = Füchse +n it
rabbit rabbits n Kaninchen = = = it
lion lions m Löwe Löwen = = it
snake snakes f Schlange = Schlangen = it
goat goats f Ziege = Ziegen = it
wolf wolves m Wolf = Wölfe +n it
monkey monkeys m Affe Affen = = it
"""
_THINGS = """
book books n Buch = Bücher +n it
letter letters m Brief = Briefe +n it
table tables m Tisch = Tische +n it
lamp lamps f Lampe = Lampen = it
key keys m Schlüssel = = +n it
bag bags f Tasche = Taschen = it
knife knives n Messer = = +n it
spoon spoons m Löffel = = +n it
cup cups f Tasse = Tassen = it
hat hats m Hut = Hüte +n it
car cars n Auto = Autos = it
picture pictures n Bild = Bilder +n it
clock clocks f Uhr = Uhren = it
flower flowers f Blume = Blumen = it
ball balls m Ball = Bälle +n it
bottle bottles f Flasche = Flaschen = it
ring rings m Ring = Ringe +n it
"""
_FOODS = """
apple apples m Apfel = Äpfel +n it
cake cakes m Kuchen = = = it
soup soups f Suppe = Suppen = it
egg eggs n Ei = Eier +n it
sausage sausages f Wurst = Würste +n it
potato potatoes f Kartoffel = Kartoffeln = it
"""
# Only in the singular, after a preposition; the last field lists which.
_PLACES = """
garden m Garten in,behind
house n Haus in,behind,in_front_of,next_to
kitchen f Küche in
school f Schule in,behind,in_front_of,next_to
park m Park in,behind,next_to
forest m Wald in,behind,in_front_of
city f Stadt in
street f Straße on
bridge f Brücke on,under,in_front_of
church f Kirche in,behind,in_front_of,next_to
tree m Baum under,behind,in_front_of,next_to
hotel n Hotel in,behind,in_front_of,next_to
mountain m Berg on,behind
village n Dorf in,behind
wall f Mauer on,behind,in_front_of,next_to
"""
# english german kinds rank (1 opinion or state, 2 size, 3 age, 4 colour)
# [stem, where it is not the predicate form]
_ADJECTIVES = """
beautiful schön patl 1
tired müde pa 1 müd
hungry hungrig pa 1
thirsty durstig pa 1
happy glücklich pa 1
sad traurig pa 1
angry wütend pa 1
quiet ruhig pal 1
friendly freundlich pa 1
lazy faul pa 1
clever klug pa 1
rich reich p 1
poor arm p 1
strong stark pa 1
weak schwach pa 1
cold kalt fl 1
warm warm fl 1
dirty schmutzig patl 1
clean sauber tl 1
wet nass pat 1
expensive teuer tf 1 teur
empty leer tl 1
sweet süß f 1
fresh frisch f 1
wild wild a 1
brave mutig pa 1
famous berühmt pl 1
dangerous gefährlich pal 1
strange seltsam patfl 1
important wichtig ptl 1
ugly hässlich patl 1
small klein patfl 2
large groß patfl 2
thin dünn pat 2
heavy schwer tf 2
round rund tf 2
old alt patl 3
young jung pa 3
new neu tl 3
red rot tf 4
blue blau t 4
green grün tf 4
yellow gelb tf 4
black schwarz at 4
white weiß at 4
brown braun at 4
grey grau atl 4
"""
# english: 3rd singular, base, past | german: prefix or -, infinitive, 3rd singular, participle,
# auxiliary (h, s) | kinds of the subject, case of the object, its kinds | for a second object:
# English preposition or -, kinds
_VERBS = """
sleeps sleep slept - schlafen schläft geschlafen h pa
dances dance danced - tanzen tanzt getanzt h pa
laughs laugh laughed - lachen lacht gelacht h p
sings sing sang - singen singt gesungen h p
works work worked - arbeiten arbeitet gearbeitet h p
waits wait waited - warten wartet gewartet h pa
swims swim swam - schwimmen schwimmt geschwommen s pa
stays stay stayed - bleiben bleibt geblieben s pa
falls_asleep fall_asleep fell_asleep ein schlafen schläft eingeschlafen s pa
gets_up get_up got_up auf stehen steht aufgestanden s pa
arrives arrive arrived an kommen kommt angekommen s pa
runs_away run_away ran_away weg laufen läuft weggelaufen s pa
comes_back come_back came_back zurück kommen kommt zurückgekommen s pa
sees see saw - sehen sieht gesehen h pa acc patf
loves love loved - lieben liebt geliebt h pa acc patf
hates hate hated - hassen hasst gehasst h pa acc patf
finds find found - finden findet gefunden h pa acc patf
hears hear heard - hören hört gehört h pa acc pa
follows follow followed - folgen folgt gefolgt s pa dat pa
helps help helped - helfen hilft geholfen h pa dat pa
thanks thank thanked - danken dankt gedankt h p dat p
watches watch watched - beobachten beobachtet beobachtet h pa acc pa
looks_for look_for looked_for - suchen sucht gesucht h pa acc patf
carries carry carried - tragen trägt getragen h p acc atf
feeds feed fed - füttern füttert gefüttert h p acc a
eats eat ate - essen isst gegessen h p acc f
buys buy bought - kaufen kauft gekauft h p acc atf
paints paint painted - malen malt gemalt h p acc patf
needs need needed - brauchen braucht gebraucht h pa acc patf
forgets forget forgot - vergessen vergisst vergessen h p acc ptf
protects protect protected - beschützen beschützt beschützt h pa acc pat
greets greet greeted - grüßen grüßt gegrüßt h p acc pa
visits visit visited - besuchen besucht besucht h pa acc pa
meets meet met - treffen trifft getroffen h pa acc pa
hides hide hid - verstecken versteckt versteckt h pa acc patf
bites bite bit - beißen beißt gebissen h a acc pa
chases chase chased - jagen jagt gejagt h pa acc pa
calls call called an rufen ruft angerufen h p acc p
invites invite invited ein laden lädt eingeladen h p acc p
picks_up pick_up picked_up ab holen holt abgeholt h p acc patf
wakes wake woke auf wecken weckt aufgeweckt h pa acc pa
looks_at look_at looked_at an schauen schaut angeschaut h pa acc patf
listens_to listen_to listened_to zu hören hört zugehört h pa dat pa
runs_after run_after ran_after nach laufen läuft nachgelaufen s pa dat pa
throws_away throw_away threw_away weg werfen wirft weggeworfen h p acc tf
packs pack packed ein packen packt eingepackt h p acc tf
takes_along take_along took_along mit nehmen nimmt mitgenommen h p acc patf
laughs_at laugh_at laughed_at aus lachen lacht ausgelacht h p acc pa
chooses choose chose aus wählen wählt ausgewählt h p acc patf
attacks attack attacked an greifen greift angegriffen h pa acc pa
gives give gave - geben gibt gegeben h p acc atf - pa
shows show showed - zeigen zeigt gezeigt h p acc patf - pa
brings bring brought - bringen bringt gebracht h pa acc atf - pa
sends send sent - schicken schickt geschickt h p acc atf - p
offers offer offered an bieten bietet angeboten h p acc atf - p
returns return returned zurück geben gibt zurückgegeben h p acc atf to pa
introduces introduce introduced vor stellen stellt vorgestellt h p acc pa to p
sells sell sold - verkaufen verkauft verkauft h p acc atf to p
steals steal stole - stehlen stiehlt gestohlen h pa acc atf from pa
takes_away take_away took_away weg nehmen nimmt weggenommen h pa acc atf from pa
"""
# Verbs whose complement is a clause: "says that", "asks whether", "tries to". Same fields.
_CLAUSE_VERBS = """
that says say said - sagen sagt gesagt h p
that believes believe believed - glauben glaubt geglaubt h p
that hopes hope hoped - hoffen hofft gehofft h p
that hears hear heard - hören hört gehört h p
whether asks ask asked - fragen fragt gefragt h p
to tries try tried - versuchen versucht versucht h pa
to decides decide decided - beschließen beschließt beschlossen h p
to promises promise promised - versprechen verspricht versprochen h p
to begins begin began an fangen fängt angefangen h pa
"""


def _rows(table: str) -> list[list[str]]:
    return [
        [field.replace("_", " ") for field in line.split()] for line in table.strip().split("\n")
    ]


def _noun(row: list[str], kind: str) -> Noun:
    en, en_plural, gender, first, *others, pronoun = row
    forms = [first]
    for form in others:
        if form == "=":
            form = forms[-1]
        elif form.startswith("+"):
            form = forms[-1] + form[1:]
        forms.append(form)
    oblique, plural, plural_dative = forms[1:]
    pronoun = pronoun.strip("-")
    return Noun(
        en, en_plural, gender, first, oblique, plural, plural_dative, kind=kind, pronoun=pronoun
    )


def _verb(row: list[str]) -> Verb:
    fields = ["" if field == "-" else field for field in row]
    fields[7] = {"h": "haben", "s": "sein"}[fields[7]]
    return Verb(*fields)


NOUNS = tuple(
    _noun(row, kind)
    for kind, table in (("p", _PERSONS), ("a", _ANIMALS), ("t", _THINGS), ("f", _FOODS))
    for row in _rows(table)
)
PLACES = tuple(
    (Noun(en, "", gender, de, de, "", "", kind="l"), tuple(prepositions.split(",")))
    for en, gender, de, prepositions in _rows(_PLACES)
)
ADJECTIVES = tuple(
    Adjective(en, de, stem[0] if stem else de, kinds, int(rank))
    for en, de, kinds, rank, *stem in _rows(_ADJECTIVES)
)
VERBS = tuple(_verb(row) for row in _rows(_VERBS))
CLAUSE_VERBS = tuple((row[0], _verb(row[1:])) for row in _rows(_CLAUSE_VERBS))
BE = Verb("is", "be", "was", "", "sein", "ist", "gewesen", "sein", "patf")

PREPOSITIONS = {
    "in": "in", "on": "auf", "under": "unter", "behind": "hinter",
    "in front of": "vor", "next to": "neben",
}  # fmt: skip
CONJUNCTIONS = {
    "because": "weil", "although": "obwohl", "if": "wenn", "before": "bevor", "while": "während",
    "as soon as": "sobald", "until": "bis", "so that": "damit", "that": "dass", "whether": "ob",
}  # fmt: skip
COORDINATORS = {"and": "und", "but": "aber"}
QUESTION_WORDS = {"why": "warum", "when": "wann", "where": "wo"}
MANNERS = {
    "gladly": "gern", "quietly": "leise", "loudly": "laut", "slowly": "langsam",
    "quickly": "schnell", "carefully": "vorsichtig", "secretly": "heimlich",
    "patiently": "geduldig", "proudly": "stolz", "politely": "höflich",
}  # fmt: skip
# Between subject and verb in English; in German after definite objects.
FREQUENCIES = {
    "often": "oft", "always": "immer", "never": "nie", "sometimes": "manchmal", "not": "nicht",
}  # fmt: skip
# With the tenses each goes with; "modal" stands for every modal verb.
TIMES = {
    "today": ("heute", ("present", "past", "modal", "will")),
    "yesterday": ("gestern", ("past",)),
    "tomorrow": ("morgen", ("modal", "will")),
    "now": ("jetzt", ("present", "modal")),
    "soon": ("bald", ("modal", "will")),
    "in the morning": ("am Morgen", ("present", "past", "modal", "will")),
    "in the evening": ("am Abend", ("present", "past", "modal", "will")),
    "at night": ("in der Nacht", ("present", "past", "modal", "will")),
    "on Monday": ("am Montag", ("past", "modal", "will")),
    "on Friday": ("am Freitag", ("past", "modal", "will")),
    "on Sunday": ("am Sonntag", ("past", "modal", "will")),
    "every day": ("jeden Tag", ("present", "past", "modal", "will")),
    "last week": ("letzte Woche", ("past",)),
    "next week": ("nächste Woche", ("modal", "will")),
}
# German: singular and plural, third person.
MODALS = {
    "can": ("kann", "können"), "must": ("muss", "müssen"), "should": ("sollte", "sollten"),
    "want": ("will", "wollen"), "will": ("wird", "werden"),
}  # fmt: skip
