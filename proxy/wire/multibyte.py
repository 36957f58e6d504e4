"""SQL in character sets whose characters may end in a byte that looks like a quote, a backslash or a letter.

The rewriter reads SQL byte by byte. `mask` makes of such a text one whose characters have only bytes above
0x7F, which is all that the rewriter asks of any character set; `unmask` gives the very bytes back.
"""

from __future__ import annotations

import re

ESCAPE = b"\xff"  # in none of these character sets part of a character

#: A backslash takes the one byte behind it along, though a character may begin there.
_ESCAPED = rb"\\."

#: A character by its bytes, as the servers' lexers take them (MySQL's `ismbchar` of each set); what does not
#: match stands for itself. A lone 0xFF is doubled by `mask`.
_CHARACTERS = {
    (charset, raw): re.compile(b"|".join((*(() if raw else (_ESCAPED,)), *pattern, ESCAPE)), re.DOTALL)
    for raw in (False, True)
    for charset, pattern in {
        "big5": (rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",),
        "cp932": (rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",),
        "gb18030": (rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]", rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]"),
        "gbk": (rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",),
        "sjis": (rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",),
    }.items()
}
_MASKED = re.compile(rb"\xff(.)", re.DOTALL)


def can_mask(charset: str) -> bool:
    return (charset, False) in _CHARACTERS


def mask(sql: bytes, charset: str, no_backslash_escapes: bool = False) -> bytes:
    """`sql` with 0xFF and the byte plus 0x80 for each byte below 0x80 in a character of several bytes.
    KeyError where there is no way (`can_mask`).
    """
    return _CHARACTERS[charset, no_backslash_escapes].sub(_masked, sql)


def _masked(found: re.Match[bytes]) -> bytes:
    character = found[0]
    if character[:1] == b"\\":
        return character.replace(ESCAPE, ESCAPE * 2)
    if character == ESCAPE:
        return ESCAPE * 2
    if len(character) == 2 and character[1] >= 0x80:
        return character
    return b"".join(bytes((byte,)) if byte >= 0x80 else ESCAPE + bytes((byte | 0x80,)) for byte in character)


def unmask(text: bytes) -> bytes:
    """What `mask` was given."""
    return _MASKED.sub(lambda found: ESCAPE if found[1] == ESCAPE else bytes((found[1][0] & 0x7F,)), text)
