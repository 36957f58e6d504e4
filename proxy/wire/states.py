"""Session state in OK packets, as servers tell it: taken out of replies, which go to clients without it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final, NamedTuple

from .constants import Status
from .packets import Ok, ProtocolError, lenenc_bytes, ok_packet, read_lenenc_bytes

_CHANGED = int(Status.SESSION_STATE_CHANGED)
_VARIABLE, _SCHEMA, _STATE_CHANGE, _CHARACTERISTICS = 0, 1, 2, 4


class Changes(NamedTuple):
    """Changes of a session that its server has told. `state`: anything has changed (a system or user
    variable, the current database, a prepared statement, a temporary table). `variables`: system variables
    that were set, with their values as shown. `database`: the current database, "" for none; None when it was
    not told. `left`: the one that was current before, where it is known. `transaction`: the characteristics
    of the next transaction, or of the open one, as statements; None when they were not told. Alone they
    are no change.
    """

    state: bool = False
    variables: Mapping[str, str] = {}
    database: str | None = None
    left: str | None = None
    transaction: str | None = None

    def __bool__(self) -> bool:
        return self.state or bool(self.variables) or self.database is not None

    @property
    def moved(self) -> bool:
        """Whether code has chosen another current database. Servers tell the one that there is after any code
        of another database, which they choose before it and leave behind it; and on a connection for which no
        database was chosen the session's is elsewhere.
        """
        return self.database is not None and self.left is not None and self.database != self.left

    def without(self, names: Container[str]) -> Changes:
        """The changes without these system variables."""
        left = {name: value for name, value in self.variables.items() if name not in names}
        rest = self._replace(variables=left)
        return UNCHANGED if rest._replace(state=False) == UNCHANGED else rest

    def then(self, later: Changes) -> Changes:
        """Both, one after the other."""
        if self == UNCHANGED:
            return later
        moved = later.database is not None
        return Changes(
            self.state or later.state,
            {**self.variables, **later.variables},
            later.database if moved else self.database,
            later.left if moved and self.database is None else self.left,
            self.transaction if later.transaction is None else later.transaction,
        )


UNCHANGED: Final = Changes()


def untracked(ok: Ok) -> tuple[Ok, Changes]:
    """An OK packet without the session state that it has, and the changes that this tells. ProtocolError when
    it cannot be read.
    """
    info, at = read_lenenc_bytes(ok.info, 0)
    state, _ = read_lenenc_bytes(ok.info, at)
    shown = lenenc_bytes(info) if info else b""
    return ok._replace(status=ok.status & ~_CHANGED, info=shown), _changes(state or b"")


def rewritten(ok: Ok, seq: int) -> bytes:
    """The packet of `ok`."""
    return ok_packet(
        seq, ok.status, affected=ok.affected, insert_id=ok.insert_id, warnings=ok.warnings, info=ok.info
    )


def _changes(state: bytes) -> Changes:
    at, changed, database, transaction = 0, False, None, None
    variables: dict[str, str] = {}
    while at < len(state):
        kind = state[at]
        entry, at = read_lenenc_bytes(state, at + 1)
        if kind == _STATE_CHANGE:
            changed = True
        elif kind == _SCHEMA:
            database = _texts(entry or b"")[0]
        elif kind == _CHARACTERISTICS:
            transaction = _texts(entry or b"")[0]
        elif kind == _VARIABLE:
            texts = _texts(entry or b"")  # MariaDB puts several variables into one entry
            variables.update(zip(texts[::2], texts[1::2], strict=False))
    return Changes(changed, variables, database, transaction=transaction)


def _texts(entry: bytes) -> list[str]:
    at, found = 0, []
    while at < len(entry):
        text, at = read_lenenc_bytes(entry, at)
        found.append((text or b"").decode("utf-8", "surrogateescape"))
    if not found:
        raise ProtocolError("an entry of the session state is empty")
    return found
