"""Manifests, those of the recipes among them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diet_mt.corpora import multi30k, wmt18
from diet_mt.corpora.manifest import read_manifest
from diet_mt.errors import UserError

SHA = "ab" * 32


def test_what_a_line_may_be(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    path.write_text(f"# comment\n\na\t12\t{SHA}\nb.tgz\t-\tmd5:{'c' * 32}\thttp://x/b.tgz\n")
    found = read_manifest(path)
    assert [found["a"].size, found["a"].checksum, found["a"].url] == [12, SHA, ""]
    archive = found["b.tgz"]
    assert [archive.size, archive.method, archive.url] == [None, "md5", "http://x/b.tgz"]
    text, md5 = tmp_path / "text", "900150983cd24fb0d6963f7d28e17f72"  # of RFC 1321, A.5
    text.write_text("abc")
    assert replace(archive, checksum=md5).fault_of(text) == ""
    assert archive.fault_of(text) == f"3 bytes with MD5 {md5}, expected {'c' * 32}"
    assert found["a"].fault_of(text).endswith(f"expected 12 with {SHA}")


@pytest.mark.parametrize(
    "line", ["a 12 abc", "a\t12", f"a\tmany\t{SHA}", "a\t12\tabc", f"a\t12\tcrc:{SHA}"]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "manifest").write_text(f"# x\n{line}\n")
    with pytest.raises(UserError, match="manifest, line 2: expected name, bytes and sha256"):
        read_manifest(tmp_path / "manifest")


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none: cannot be read"):
        read_manifest(tmp_path / "none")


def test_the_files_of_multi30k() -> None:
    names = {
        f"{name}.{lang}" for name in multi30k._ORIGINAL.values() for lang in ("en", "de", "cs")
    }
    assert read_manifest(multi30k.MANIFEST).keys() == names


def test_the_archives_of_wmt18() -> None:
    found = read_manifest(wmt18.MANIFEST)
    assert {item.size for item in found.values()} == {
        657632379,
        918311367,
        113157482,
        38654961,
        None,
    }
    assert all(item.url.endswith(f"/{name}") for name, item in found.items())


def test_the_test_set_is_the_one_that_sacrebleu_knows() -> None:
    from sacrebleu.dataset import DATASETS

    item, theirs = read_manifest(wmt18.MANIFEST)["test.tgz"], DATASETS["wmt18"]
    assert [theirs.data, theirs.md5] == [[item.url], [item.checksum]]
