"""SQL in character sets whose characters may end in a byte that looks like a quote, a backslash or a letter.

The rewriter reads SQL byte by byte. `mask` makes of such a text one whose characters have only bytes above
0x7F, which is all that the rewriter asks of any character set; `unmask` gives the very bytes back.
"""

from __future__ import annotations

import re
from typing import Final

from .characters import CHARACTERS, MASKED
from .opening import scanner
from .written import ESCAPE as ESCAPE  # in none of these character sets part of a character
from .written import unmask as unmask


def _pieces(charset: str, *, escapes: bool) -> re.Pattern[bytes]:
    """What `mask` changes; a backslash takes one byte along, though a character may begin there."""
    character = rb"(?P<character>" + CHARACTERS[charset] + rb")"
    return re.compile(b"|".join((*((rb"\\.",) if escapes else ()), character, ESCAPE)), re.DOTALL)


_PIECES: Final = {
    (charset, escapes): _pieces(charset, escapes=escapes) for charset in MASKED for escapes in (False, True)
}


def can_mask(charset: str) -> bool:
    return charset in MASKED


def mask(sql: bytes, charset: str, no_backslash_escapes: bool = False, *, ansi_quotes: bool = False) -> bytes:
    """`sql` with 0xFF and the byte plus 0x80 for each byte below 0x80 in a character of several bytes.
    KeyError where there is no way (`can_mask`).

    Backslashes escape in strings only. In comments servers read bytes, not characters.
    """
    plain, escaped = _PIECES[charset, False], _PIECES[charset, True]

    def masked(found: re.Match[bytes]) -> bytes:
        if found.lastgroup == "comment":
            return found[0].replace(ESCAPE, ESCAPE * 2)
        escapes = found[0][:1] == b"'" or (found[0][:1] == b'"' and not ansi_quotes)
        return (escaped if escapes and not no_backslash_escapes else plain).sub(_masked, found[0])

    return scanner(charset, ansi_quotes, no_backslash_escapes).sub(masked, sql)


def _masked(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if found.lastgroup != "character":
        return text.replace(ESCAPE, ESCAPE * 2)
    if len(text) == 2 and text[1] >= 0x80:
        return text
    return b"".join(bytes((byte,)) if byte >= 0x80 else ESCAPE + bytes((byte | 0x80,)) for byte in text)
