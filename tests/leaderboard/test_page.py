"""The page as a document; ``test_page_in_a_browser.py`` looks at it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.standings import Section

from ..evaluation.rows import row
from .conftest import sections_of
from .said import WILD as WILD_REFERENCE

WILD = '<script>alert("1")</script>\'&amp;<!--'
VOID = {"meta", "wbr", "path", "circle", "line", "input", "rect", "img", "polyline"}


class Reader(HTMLParser):
    """Elements, attributes and texts; complains about what is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.comments: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


@pytest.fixture(scope="module")
def read(full: list[Section]) -> Reader:
    return Reader(page(full))


def attributes(reader: Reader, tag: str) -> list[dict[str, str | None]]:
    return [found for name, found in reader.tags if name == tag]


def test_everything_from_rows_is_escaped() -> None:
    names = ("system", "arch", "positions", "direction", "test_set", "bleu_signature")
    more = ("fairseq", "revision", "checkpoint", "length_penalty")
    fields = dict.fromkeys((*names, *more), WILD)
    wild = row(**fields, train_command="fairseq-train '<script>'")
    reader = Reader(page(sections_of([wild])))
    tame = Reader(page(sections_of([row()])))
    assert [tag for tag, _ in reader.tags if tag in ("script", "b")] == ["script"]
    assert len(attributes(reader, "td")) >= len(attributes(tame, "td"))
    assert reader.comments == []
    assert any(WILD in text for text in reader.texts["h2"])
    assert any("<script>" in text for text in reader.texts["pre"])


def test_what_models_wrote_is_text(said_page: str) -> None:
    """Also inside the data of the page, which is no script that runs."""
    reader = Reader(said_page)
    assert not [found for tag, found in reader.tags if tag in ("img", "b")]
    kinds = [found.get("type") for found in attributes(reader, "script")]
    assert kinds == ["application/json", None]
    data = json.loads(reader.texts["script"][0])
    assert any(WILD_REFERENCE in line for line in data["shown"]["references"])
    policy = next(found["content"] for found in attributes(reader, "meta") if "http-equiv" in found)
    own = "".join(reader.texts["script"][1:])
    assert base64.b64encode(hashlib.sha256(own.encode()).digest()).decode() in (policy or "")


def test_without_references_the_page_says_what_it_lacks(plain: Section, said_page: str) -> None:
    assert "whose references the page was made with" in page([plain])
    assert "whose references the page was made with" not in said_page


def test_nothing_is_loaded_from_anywhere(read: Reader) -> None:
    links = [
        value
        for _, found in read.tags
        for name, value in found.items()
        if name in ("src", "href", "srcset", "action", "data", "poster", "style")
    ]
    assert links == [*(f"#group-{number}" for number in (1, 2, 3, 4)), "#reading"]
    assert "url(" not in "".join(read.texts["style"])
    assert "@import" not in "".join(read.texts["style"])


def test_only_its_own_style_and_script_may_run(read: Reader) -> None:
    policy = next(found["content"] for found in attributes(read, "meta") if "http-equiv" in found)
    assert policy is not None
    for tag in ("style", "script"):
        digest = hashlib.sha256("".join(read.texts[tag]).encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert not [found for _, found in read.tags if any(name.startswith("on") for name in found)]


def test_identities_are_unique_and_found(read: Reader) -> None:
    names = [found["id"] for _, found in read.tags if "id" in found]
    assert len(set(names)) == len(names)
    referred = [
        name for _, found in read.tags for name in (found.get("aria-labelledby") or "").split()
    ]
    assert referred
    assert set(referred) <= set(names)


def test_tables_say_what_they_are_sorted_by(read: Reader) -> None:
    heads = [found for found in attributes(read, "th") if found.get("scope") == "col"]
    orders = [found["aria-sort"] for found in heads if "aria-sort" in found]
    assert orders == ["descending"] * 4
    assert {found["data-first"] for found in heads} == {"ascending", "descending"}
    values = [found["data-value"] for found in attributes(read, "td") if "data-value" in found]
    assert len(values) > 100


def test_the_paper_s_and_ours_stand_side_by_side(full: list[Section]) -> None:
    shown = page(full[:1]).replace("<wbr>", "").replace("</bdi>", "")
    line = next(line for line in shown.split("\n") if ">diet_rel_base</th>" in line)
    cells = re.findall(r">([^<]+)</t[dh]>", line)
    assert cells[:8] == [
        "diet_rel_base",
        "in the logits",
        "39.41",
        "0.83",
        "0.975",
        "+0.62",
        "0.0183",
        "39.47",
    ]


def test_a_model_counts_once_however_many_test_sets_it_has() -> None:
    sums = ("a" * 64, "b" * 64)
    rows = [
        row(seed=seed, checkpoint_sha256=digest, test_set=name)
        for name in ("one", "two")
        for seed, digest in enumerate(sums, 1)
    ]
    assert ": 2 trained models beside " in page(sections_of(rows))


def test_one_group_needs_no_list_of_groups(plain: Section) -> None:
    assert "<nav" not in page([plain])
