"""What tells one vocabulary from another."""

from __future__ import annotations

import subprocess

import pytest

from diet_mt.bert.vocabulary import posix_cksum


@pytest.mark.parametrize("data", [b"", b"a\n", bytes(range(256)) * 300])
def test_the_checksum_is_that_of_cksum(data: bytes) -> None:
    printed = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert posix_cksum(data) == printed.decode().strip().replace(" ", "-")
