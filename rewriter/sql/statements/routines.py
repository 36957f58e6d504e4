"""What triggers, functions and procedures leave behind: read off their bodies' words, as `effects` does for a
statement. A statement does not show that it runs a trigger, or what a function assigns; a host's catalogs do.

Names are compared as words, whatever database they are of. So more may be found than there is, never less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from sys import intern
from typing import Final, NamedTuple

from rewriter.text.tokens import Source

from .effects import Effects, Pin

_WORD: Final = re.compile(r"[\w$]+")
_VARIABLE: Final = re.compile(r"(?<!@)@(?:([\w$.]+)|`((?:[^`]|``)+)`|'((?:[^']|'')+)'|\"((?:[^\"]|\"\")+)\")")
_SETS: Final = re.compile(
    r"(?:\bset|,)\s*(?:@@[\w.]+\s*:?=|(?:session|local)\s|names\b|charset\b|character\s+set\b|transaction\b"
    r"|(?:time_zone|autocommit|timestamp|lc_time_names|(?:sql|character_set|collation|foreign_key|unique|max|min"
    r"|group_concat|innodb|tx|transaction|auto_increment|optimizer|div_precision|default|old|net|lock|wait"
    r"|interactive|completion|insert|last_insert|tmp|sort|join|read|query|session_track|rand|big|low|explicit"
    r"|show|statement|system|updatable|use)_\w+)\s*:?=)",
    re.IGNORECASE,
)
"""What may set a system variable of the session. Names of local variables may look like one: then a session
is only kept on its connection for nothing."""
_PINS: Final[tuple[tuple[re.Pattern[str], Pin], ...]] = (
    (re.compile(r"\bget_lock\b", re.IGNORECASE), ("lock", "")),
    (re.compile(r"\bcreate\s+(?:or\s+replace\s+)?temporary\b", re.IGNORECASE), ("table", "")),
    (re.compile(r"\bprepare\b", re.IGNORECASE), ("prepare", "")),
    (_SETS, ("settings", "")),
    (
        re.compile(
            r"\bset\s+(?:default\s+)?role\b|\b(?:handler|xa|lock|flush)\b|\bnext(?:val\s*\(|\s+value\b)|\bsetval\s*\("
            r"|\blast_insert_id\s*\(\s*[^\s)]",
            re.IGNORECASE,
        ),
        ("settings", ""),
    ),
)
"""What no server tells of by session tracking is all here: locks, user variables that a query assigns, the
next transaction, roles, handlers, sequences, LAST_INSERT_ID(value)."""
_BEGINS: Final = re.compile(
    r"\bstart\s+transaction\b|\band\s+chain\b|\bbegin\s+work\b|\bcompletion_type\b", re.IGNORECASE
)
"""After these a transaction is open that is not the client's."""
_ENDS: Final = re.compile(r"\bcommit\b|\brollback\b(?!\s+(?:work\s+)?to\b)", re.IGNORECASE)
"""These end a transaction, also the client's."""
_SAVES: Final = re.compile(r"\bsavepoint\s+(?:`((?:[^`]|``)+)`|([\w$]+))", re.IGNORECASE)
_DYNAMIC: Final = frozenset({"prepare", "execute"})
_READING_ID: Final = frozenset({"last_insert_id", "sql_auto_is_null"})


class Body(NamedTuple):
    """A trigger (called by its table's name), function, procedure or view. `text` None: it may not be
    seen.
    """

    name: str
    text: str | None


class Left(NamedTuple):
    """What a body leaves behind; `unknown`: perhaps more than that. `reads_id`: it reads LAST_INSERT_ID(),
    which must be the session's then, whatever connection it runs on. `begins`: it may begin a transaction of
    its own; `ends`: it may end one.
    """

    variables: frozenset[str] = frozenset()
    pins: frozenset[Pin] = frozenset()
    unknown: bool = False
    reads_id: bool = False
    begins: bool = False
    ends: bool = False

    def __or__(self, other: Left) -> Left:
        return Left(
            self.variables | other.variables,
            self.pins | other.pins,
            self.unknown or other.unknown,
            self.reads_id or other.reads_id,
            self.begins or other.begins,
            self.ends or other.ends,
        )


_NOTHING: Final = Left()


class Routines:
    """The bodies of one host."""

    def __init__(self, bodies: Iterable[Body]) -> None:
        own: dict[str, Left] = {}
        uses: dict[str, set[str]] = {}
        saves: set[str] = set()
        for body in bodies:
            saves.update((quoted or plain).upper() for quoted, plain in _SAVES.findall(body.text or ""))
            found = _words(body.text or "")
            # whoever names it has all words of its name: one of them is enough
            name = max(_words(body.name), key=len, default="")
            own[name] = own.get(name, _NOTHING) | _left(body.text, found)
            uses.setdefault(name, set()).update(found)
        #: The names of savepoints in the bodies, in upper case.
        self.savepoints = frozenset(saves)
        self._known = frozenset(own)
        self._left = {name: _reached(name, own, uses) for name in own}
        self._noted = frozenset(
            name for name, left in self._left.items() if left._replace(begins=False) != _NOTHING
        )
        self._leaving = frozenset(
            name
            for name, left in self._left.items()
            if left._replace(reads_id=False, begins=False) != _NOTHING
        )

    def __bool__(self) -> bool:
        """Whether statements that run any of them have other effects than their words show."""
        return bool(self._noted)

    def added(self, effects: Effects | None, names: frozenset[str]) -> Effects | None:
        """The effects of a statement with these names (`names_in`), and of what it may run."""
        names &= self._noted
        if not names:
            return effects
        left = reduce(Left.__or__, (self._left[name] for name in names))
        known = effects or Effects()
        return known._replace(
            pins=known.pins + tuple(sorted(left.pins - set(known.pins), key=str)),
            variables=tuple(dict.fromkeys((*known.variables, *sorted(left.variables)))),
            routine=known.routine or left.unknown,
            insert_id="ask" if left.reads_id else known.insert_id,
        )

    def knows(self, calls: Iterable[str]) -> bool:
        """Whether all these functions are among the bodies."""
        return self._known.issuperset(calls)

    def has(self, procedure: str) -> bool:
        """Whether a procedure of this name is among the bodies."""
        return max(_words(procedure), key=len, default="") in self._known

    def harmless(self, calls: Iterable[str]) -> bool:
        """Whether all these functions are known to leave nothing."""
        names = frozenset(calls)
        return names <= self._known and names.isdisjoint(self._leaving)

    def begins(self, names: frozenset[str]) -> bool:
        """Whether what a statement with these names runs may begin a transaction."""
        return any(self._left[name].begins for name in names & self._known)

    def ends(self, names: frozenset[str]) -> bool:
        """Whether what a statement with these names runs may end a transaction."""
        return any(self._left[name].ends for name in names & self._known)

    def called(self, procedure: str, names: frozenset[str]) -> Left | None:
        """Effects of a CALL of `procedure` in a statement with these names; None when they are not known."""
        own = self._left.get(max(_words(procedure), key=len, default=""))
        if own is None:
            return None
        left = reduce(Left.__or__, (self._left[name] for name in names & self._known), own)
        return None if left.unknown else left


def names_in(source: Source) -> frozenset[str]:
    """The words of all names and keywords of a statement, in lower case: comments and values are none."""
    return frozenset(
        intern(word)
        for at, token in enumerate(source.tokens)
        if source.is_name(at)
        for word in _WORD.findall(token.name.lower())
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _left(text: str | None, words: frozenset[str]) -> Left:
    if text is None:
        return Left(unknown=True)
    names = (_name(*found) for found in _VARIABLE.findall(text))
    pins = frozenset(pin for pattern, pin in _PINS if pattern.search(text))
    return Left(
        frozenset(names),
        pins,
        not words.isdisjoint(_DYNAMIC),
        not words.isdisjoint(_READING_ID),
        _BEGINS.search(text) is not None,
        _ENDS.search(text) is not None,
    )


def _name(plain: str, back: str, single: str, double: str) -> str:
    name = plain or back.replace("``", "`") or single.replace("''", "'") or double.replace('""', '"')
    return name.lower()


def _reached(name: str, own: dict[str, Left], uses: dict[str, set[str]]) -> Left:
    """What is left by a body and all that it may run in turn."""
    seen, waiting, found = {name}, [name], _NOTHING
    while waiting:
        one = waiting.pop()
        found |= own[one]
        new = (uses[one] & own.keys()) - seen
        seen |= new
        waiting += new
    return found
