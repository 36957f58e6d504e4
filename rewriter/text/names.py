"""Words that are keywords for one kind of server and mere names for the other: told apart once, before
anything is read, so that no reader has to know the kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from config.flavour import Flavour

from .tokens import NAME, WORD, Source

_NAMES: Final = {"mariadb": frozenset({"QUALIFY"}), "mysql": frozenset({"RETURNING", "SQL_CACHE"})}
"""By the flavour: clauses that it does not have."""


def with_plain_names(source: Source, *, flavour: Flavour) -> Source:
    """The source with names in the place of the words that this kind of server takes for names."""
    names = _NAMES[flavour.name]
    changed = {
        at: token._replace(kind=NAME, text=token.name)
        for at, token in enumerate(source.tokens)
        if token.kind == WORD and token.text in names
    }
    if not changed:
        return source
    return replace(source, tokens=tuple(changed.get(at, token) for at, token in enumerate(source.tokens)))
