"""Character sets outside of quotes: which bytes belong to names, are white space, make characters."""

from __future__ import annotations

from typing import Final

from .byte_classes import TABLE

#: A character of several bytes, as the servers' lexers take them (`ismbchar` of each set): what does not
#: match stands for itself. In the first five one of the bytes may look like a quote, a backslash or a letter.
CHARACTERS: Final = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "gb18030": rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]|[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "sjis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "eucjpms": rb"\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\xa1-\xfe]{2}",
    "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
    "ujis": rb"\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\xa1-\xfe]{2}",
}
#: Those whose statements are masked before they are read: see masks.py.
MASKED: Final = frozenset({"big5", "cp932", "gb18030", "gbk", "sjis"})
UTF8: Final = frozenset({"utf8", "utf8mb3", "utf8mb4"})


def _bytes(ranges: str) -> frozenset[int]:
    found: set[int] = set()
    for part in ranges.split(",") if ranges != "-" else ():
        first, _, last = part.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(found)


_ROWS: Final = [row.split() for row in TABLE.replace("\\\n", "").split("\n") if row]

#: In character sets of one byte: the bytes above 0x7F that names may have, and those that are white space.
WORD_BYTES: Final = {charset: _bytes(words) for charset, words, _ in _ROWS}
SPACES: Final = {charset: _bytes(spaces) for charset, _, spaces in _ROWS}

#: Those in which statements can be read. In swe7 brackets and braces are letters.
READABLE: Final = (frozenset(WORD_BYTES) | frozenset(CHARACTERS) | UTF8) - {"swe7"}
