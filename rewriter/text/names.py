"""Words that are keywords for one kind of server and mere names for the other: told apart once, before
anything is read, so that no reader has to know the kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .tokens import NAME, WORD, Source

_NAMES: Final = {True: frozenset({"QUALIFY"}), False: frozenset({"RETURNING", "SQL_CACHE"})}
"""By whether the server is MariaDB: clauses that it does not have."""


def with_plain_names(source: Source, *, mariadb: bool) -> Source:
    """The source with names in the place of the words that this kind of server takes for names."""
    names = _NAMES[mariadb]
    changed = {
        at: token._replace(kind=NAME, text=token.name)
        for at, token in enumerate(source.tokens)
        if token.kind == WORD and token.text in names
    }
    if not changed:
        return source
    return replace(source, tokens=tuple(changed.get(at, token) for at, token in enumerate(source.tokens)))
