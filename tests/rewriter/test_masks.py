"""Masked SQL: reads safely byte by byte, and comes back whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.charsets import NOT_ASCII
from rewriter.text.masks import can_mask, mask, unmask

CHARSETS = ("big5", "cp932", "gb18030", "gbk", "sjis")
CODECS = {"sjis": "shift_jis"}


@given(st.binary(), st.sampled_from(CHARSETS), st.booleans())
def test_it_comes_back(sql: bytes, charset: str, raw: bool) -> None:
    assert unmask(mask(sql, charset, raw)) == sql


@given(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="#-/")), st.sampled_from(CHARSETS)
)
def test_only_ascii_stays_ascii(text: str, charset: str) -> None:
    """Outside of comments, in which nothing looks like anything."""
    codec = CODECS.get(charset, charset)
    text = text.encode(codec, "ignore").decode(codec)
    low = bytes(byte for byte in mask(text.encode(codec), charset, True) if byte < 0x80)
    assert low.decode() == "".join(character for character in text if character.isascii())


@pytest.mark.parametrize(
    ("charset", "sql", "masked"),
    [
        ("gbk", b"'\xbf\x5c'", b"'\xbf\xff\xdc'"),
        ("gbk", b"'\xbf\x27", b"'\xbf\x27"),  # no character: the quote is one
        ("gb18030", b"\x81\x30\x81\x30", b"\x81\xff\xb0\x81\xff\xb0"),
        ("sjis", b"\xb1\x5c", b"\xb1\x5c"),  # a character of one byte
        ("big5", b"\xff\x80", b"\xff\xff\x80"),
        ("gbk", b"'\x5c\xbf\x5c''", b"'\x5c\xbf\x5c''"),  # two bytes behind backslashes, no character
        ("gbk", b"'\x5c\xff\x5c'", b"'\x5c\xff\xff\x5c'"),
    ],
)
def test_what_it_looks_like(charset: str, sql: bytes, masked: bytes) -> None:
    assert mask(sql, charset) == masked


def test_which_can_be_masked() -> None:
    assert {charset for charset in NOT_ASCII if can_mask(charset)} == set(CHARSETS)
