"""Names of savepoints, compared as servers do: in utf8mb3_general_ci, whatever the client's character set.

A name's key is made of its characters' weights there. Those come from Unicode 3: a letter without its
accents, in upper case, where that is one character. What later versions have added stands for itself. The
servers' own weights are beside these in tests/integration/test_savepoint_names.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import ucd_3_2_0 as unicode_3

from proxy.wire.charsets import COLLATIONS, codec_of

#: The first bytes of the characters that have a weight other than themselves.
_PAGES: Final = frozenset({0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x1E, 0x1F, 0x21, 0x24, 0xFF})
#: By code point, as the next: what is not as the rule says. A sharp s is an S, the lunate sigma a sigma, the
#: lunate epsilon itself; the Cyrillic short i keeps its accent.
_OWN: Final = {0xDF: "S", 0x3F2: "\u03a3", 0x3F5: "\u03f5", 0x419: "\u0419", 0x439: "\u0419"}
#: Upper case that came with Unicode 3.2, after the servers' table was made.
_LATER: Final = frozenset(map(chr, (0x220, 0x3D8, 0x48A, 0x4C5, 0x4C9, 0x4CD, *range(0x500, 0x510))))

_NUMBERS: Final = {charset: number for number, (charset, _) in COLLATIONS.items()}


class Savepoint(NamedTuple):
    """One of a transaction's. `quoted` is its name as the client has written it, in backticks and in
    `charset`; two of the same `key` are the same one.
    """

    key: str
    quoted: bytes
    charset: str = "utf8mb4"

    def written(self, charset: str) -> bytes:
        """Its name for a connection with this character_set_client: as it was, where that has no such
        characters, which is the server's to refuse.
        """
        if charset == self.charset or self.quoted.isascii():
            return self.quoted
        try:
            return self.quoted.decode(_codec(self.charset)).encode(_codec(charset))
        except UnicodeError:
            return self.quoted


def savepoint_of(quoted: bytes, charset: str) -> Savepoint:
    """The savepoint of a name in backticks, as a statement in `charset` has it."""
    if quoted.isascii():
        return Savepoint(quoted.decode().upper(), quoted, charset)
    try:
        name = quoted.decode(_codec(charset))
    except UnicodeError:  # compared by its bytes, but for ASCII's case
        name = quoted.decode("ascii", "surrogateescape")
    return Savepoint("".join(map(_weight, name)), quoted, charset)


def _codec(charset: str) -> str:
    return codec_of(_NUMBERS.get(charset, 0))


@lru_cache(1024)
def _weight(character: str) -> str:
    """The character that stands for all that compare as this one."""
    code = ord(character)
    if code > 0xFFFF:
        return "?"  # a name has no such characters: MySQL puts this in their place, and MariaDB refuses them
    if code >> 8 not in _PAGES:
        return character
    if code in _OWN:
        return _OWN[code]
    base = character
    while unicode_3.category(base)[0] == "L":
        first, _, accent = unicode_3.decomposition(base).partition(" ")
        if not accent or first[0] == "<":  # another way to write the same character is none without accents
            break
        base = chr(int(first, 16))
    upper = base.upper()
    known = len(upper) == 1 and upper not in _LATER
    return upper if known and "Cn" not in map(unicode_3.category, (base, upper)) else base
