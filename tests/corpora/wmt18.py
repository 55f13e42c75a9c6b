"""Archives laid out as those of WMT18, with a few hundred made-up sentences and known dirt."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
import unicodedata
from pathlib import Path

import yaml

from diet_mt.corpora import clean

from . import server

LANGS = ("en", "de", "cs")
# Parts of a sentence in the order of LANGS.
WHO = [
    ("The old woman", "Die alte Frau", "Ta stará žena"),
    ("The young teacher", "Der junge Lehrer", "Ten mladý učitel"),
    ("Our neighbour", "Unser Nachbar", "Náš soused"),
    ("The new minister", "Der neue Minister", "Nový ministr"),
    ("My little sister", "Meine kleine Schwester", "Moje malá sestra"),
]
DOES = [
    ("reads the long letter", "liest den langen Brief", "čte dlouhý dopis"),
    ("sees the black dog", "sieht den schwarzen Hund", "vidí černého psa"),
    ("buys fresh bread", "kauft frisches Brot", "kupuje čerstvý chléb"),
    ("looks for the key", "sucht den Schlüssel", "hledá klíč"),
    ("paints the garden door", "streicht die Gartentür", "natírá zahradní dveře"),
]
WHERE = [
    ("in front of the station", "vor dem Bahnhof", "před nádražím"),
    ("behind the church", "hinter der Kirche", "za kostelem"),
    ("beside the quiet river", "neben dem stillen Fluss", "vedle tiché řeky"),
    ("under a large tree", "unter einem großen Baum", "pod velkým stromem"),
]
WHY = [
    ("because it has been raining.", "weil es geregnet hat.", "protože pršelo."),
    ("although nobody asked for it.", "obwohl niemand darum bat.", "ačkoli o to nikdo nežádal."),
    ("before the children wake up.", "bevor die Kinder aufwachen.", "než se děti probudí."),
]
SIZES = {"europarl": 120, "commoncrawl": 50, "news": 50, "valid": 9, "test": 7}

Pair = tuple[bytes, bytes]


def sentences(count: int, seed: int) -> list[dict[str, str]]:
    """Different sentences, each in the three languages."""
    draw = random.Random(seed)
    every = [
        {lang: f"{who[i]} {does[i]} {where[i]}, {why[i]}" for i, lang in enumerate(LANGS)}
        for who in WHO for does in DOES for where in WHERE for why in WHY
    ]  # fmt: skip
    return draw.sample(every, count)


def dirt(lang: str) -> list[tuple[str, Pair]]:
    """Pairs with something wrong: (what, (side in ``lang``, English side)).

    The first kinds are dropped, under the names in ``clean``; the last are mended.
    """
    texts = sentences(230, seed=4)[220:]
    some, english = [t[lang].encode() for t in texts], [t["en"].encode() for t in texts]
    other = texts[5]["de" if lang == "cs" else "cs"].encode()
    decomposed = unicodedata.normalize("NFD", texts[7][lang] + " ü").encode()
    return [
        (clean.INVALID, (some[0] + b" \xff", english[0])),
        (clean.EMPTY, (b" \xc2\xa0", english[1])),
        (clean.OVERLONG, (b"ja " * 300, b"yes " * 300)),
        (clean.RATIO, (b"Ja.", english[3] * 3)),
        (clean.LANGUAGE, (other, english[5])),
        (clean.LANGUAGE, (some[5], some[5] + b" .")),
        (clean.COMPOSED, (decomposed, english[7] + " ü".encode())),
        (clean.CONTROL, (some[8] + b"\x02", english[8])),
        (clean.INVISIBLE, (some[9], "\u200b".encode() + english[9])),
        (clean.WINDOWS, (some[6] + " \u0096 \u0084x\u0093".encode(), english[6] + b' - "x"')),
        (clean.SPACES, (some[4], english[4].replace(b", ", ",\u2028 ".encode()))),
        (clean.DUPLICATE, (some[4], english[4])),
    ]


def _lines(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _training(lang: str) -> dict[str, tuple[bytes, bytes]]:
    """The three corpora of a pair: (side in ``lang``, English side)."""
    everything = sentences(SIZES["europarl"] + SIZES["commoncrawl"] + SIZES["news"], seed=4)
    corpora, start = {}, 0
    for name in ("europarl", "commoncrawl", "news"):
        some = everything[start : start + SIZES[name]]
        start += SIZES[name]
        sides = [[s[lang].encode() for s in some], [s["en"].encode() for s in some]]
        if name == "commoncrawl":
            for _, pair in dirt(lang):
                for side, line in zip(sides, pair, strict=True):
                    side.append(line)
        if name == "news":
            sides[0][3] += b"\r"
            sides[1][0] = b"\xef\xbb\xbf" + sides[1][0]
        corpora[name] = (_lines(sides[0]), _lines(sides[1]))
    return corpora


def _sgm(texts: list[str]) -> bytes:
    body = "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(texts, start=1))
    return f'<srcset setid="x" srclang="any">\n<doc docid="a">\n<p>\n{body}</p>\n</doc>\n'.encode()


def _sets(kind: str, year: int, lang: str, texts: list[dict[str, str]]) -> dict[str, bytes]:
    """Both directions of a development or test set; the two of the German test set differ."""
    files = {}
    for source, target in ((lang, "en"), ("en", lang)):
        some = texts[:-1] if kind == "test" and (source, lang) == ("en", "de") else texts
        stem = f"{kind}/newstest{year}-{source}{target}"
        files[f"{stem}-src.{source}.sgm"] = _sgm([text[source] for text in some])
        files[f"{stem}-ref.{target}.sgm"] = _sgm([text[target] for text in some])
    return files


def members() -> dict[str, dict[str, bytes]]:
    """What each archive holds, by name; other languages and files stand between, as they do."""
    archives: dict[str, dict[str, bytes]] = {
        "training-parallel-europarl-v7.tgz": {"training/europarl-v7.fr-en.fr": b"Non.\n"},
        "training-parallel-commoncrawl.tgz": {"commoncrawl.de-en.annotation": b"a\tb\n"},
        "training-parallel-nc-v13.tgz": {},
        "dev.tgz": {"dev/newstest2016-deen-src.de.sgm": _sgm(["Nein."])},
        "test.tgz": {},
    }
    for lang in ("cs", "de"):
        corpora, pair = _training(lang), f"{lang}-en"
        for side, which in ((lang, 0), ("en", 1)):
            for archive, corpus, path in (
                ("europarl-v7", "europarl", "training/europarl-v7"),
                ("commoncrawl", "commoncrawl", "commoncrawl"),
                ("nc-v13", "news", "training-parallel-nc-v13/news-commentary-v13"),
            ):
                name = f"{path}.{pair}.{side}"
                archives[f"training-parallel-{archive}.tgz"][name] = corpora[corpus][which]
        held_out = sentences(300, seed=9)
        valid = [{k: f"{v} A & B" for k, v in s.items()} for s in held_out[: SIZES["valid"]]]
        escaped = [{k: v.replace("&", "&amp;") for k, v in s.items()} for s in valid]
        archives["dev.tgz"] |= _sets("dev", 2017, lang, escaped)
        archives["test.tgz"] |= _sets("test", 2018, lang, held_out[-SIZES["test"] :])
    archives["dev.tgz"]["dev/last.sgm"] = b"not wanted\n"
    return archives


def tar(content: dict[str, bytes]) -> bytes:
    """A .tgz of these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def manifest(archives: dict[str, bytes], base: str) -> str:
    """The manifest of these archives, served below ``base``."""
    entries = yaml.safe_load(server.manifest("wmt18", archives, base))
    md5 = hashlib.md5(archives["test.tgz"]).hexdigest()
    entries["wmt18"]["files"]["test.tgz"] = {"url": f"{base}/test.tgz", "checksum": f"md5:{md5}"}
    return yaml.safe_dump(entries)


def write(folder: Path) -> dict[str, bytes]:
    """Writes the five archives and ``manifest`` (with addresses that lead nowhere)."""
    archives = {name: tar(content) for name, content in members().items()}
    for name, data in archives.items():
        (folder / name).write_bytes(data)
    (folder / "manifest").write_text(manifest(archives, "http://127.0.0.1:9"))
    return archives
