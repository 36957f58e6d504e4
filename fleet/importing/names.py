"""Names of tables and columns as a schema can have them: it knows letters, digits, _ and $ only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from config.schema import IDENTIFIER
from config.sqltext import tokens_of

_OTHERS: Final = re.compile(r"[^0-9A-Za-z_$]+")
_LONGEST: Final = 60
"""Of a name that is made, before a number that tells it from others."""


def plain(name: str, taken: Iterable[str]) -> str:
    """A name that a schema can have, none of `taken` in whatever case: `reply-to` becomes reply_to."""
    taken = {one.lower() for one in taken}
    bare = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    if len(bare.strip()) < len(name) // 2:
        bare = ""  # another script
    made = found = _OTHERS.sub("_", bare)[:_LONGEST] or "renamed"
    number = 1
    while found.lower() in taken:
        number += 1
        found = f"{made}_{number}"
    return found


def renames(names: Collection[str], refused: Collection[str] = ()) -> dict[str, str]:
    """New names for those that a schema cannot have, and for those of `refused`, by the old."""
    found: dict[str, str] = {}
    for name in names:
        if not IDENTIFIER.fullmatch(name) or name.lower() in refused:
            found[name] = plain(name, [*refused, *names, *found.values()])
    return found


def renamed(text: str, names: Mapping[str, str]) -> str:
    """SQL with other names in the places of these, which may be written in any case."""
    wanted = {old.lower(): new for old, new in names.items()}
    found, at = "", 0
    for token in tokens_of(text) if wanted else ():
        if token.is_name and token.text.lower() in wanted:
            found += f"{text[at : token.start]}`{wanted[token.text.lower()]}`"
            at = token.end
    return found + text[at:]
