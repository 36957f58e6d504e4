"""Numbers and names in result rows whose character set has two or four bytes a character: ucs2 and its kin.

MariaDB sends numbers and times in the character set of results. MySQL sends them in ASCII, but for decimal
numbers that it computes; those that come out of a UNION are in ASCII again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .constants import ColumnType

_CODECS: Final = {
    b"ucs2": "utf-16-be",
    b"utf16": "utf-16-be",
    b"utf16le": "utf-16-le",
    b"utf32": "utf-32-be",
}
DECIMALS: Final = frozenset({ColumnType.DECIMAL, ColumnType.NEWDECIMAL})


class Form(NamedTuple):
    """How a server writes names and numbers. `codec`: Python's codec of a character set of two or four bytes,
    "" for one in which they are ASCII. `all_numbers`: it is that of all numbers and times, not of computed
    decimal numbers alone.
    """

    codec: str = ""
    all_numbers: bool = False

    def read(self, value: bytes) -> bytes:
        """A name or a number in ASCII. ValueError when it is neither."""
        return value.decode(self.codec).encode("ascii") if self.codec and b"\0" in value else value

    def computed(self, value: bytes, type_: int) -> bytes:
        """A number or time in ASCII as a server writes what it has computed, in a column of this type."""
        if self.codec and (self.all_numbers or type_ in DECIMALS):
            return value.decode("ascii").encode(self.codec)
        return value

    def stored(self, value: bytes) -> bytes:
        """A number in ASCII as a server writes that of a column."""
        return value.decode("ascii").encode(self.codec) if self.all_numbers else value


ASCII: Final = Form()


def form_of(results: bytes | None, *, all_numbers: bool) -> Form:
    """The form in this character set of results, an SQL word or text. `all_numbers`: see `Form`."""
    codec = _CODECS.get((results or b"").strip(b"'").lower())
    return ASCII if codec is None else Form(codec, all_numbers)
