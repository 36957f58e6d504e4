"""Session tracking: an OK packet tells a client that asked for it (CLIENT_SESSION_TRACK) what has changed.

Which changes are told is up to the session's `session_track_*` variables: the current database, certain
system variables, that anything has changed at all, and the transaction's state and characteristics. What
only a server sees (that it reads and writes tables in a transaction) is judged by the replies that pass; see
`engine.tracked`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from proxy.backends.settings import Settings
from proxy.wire.packets import lenenc_bytes
from rewriter.env import Env
from rewriter.plans.characteristics import PLAIN

from .transaction import Transaction

_VARIABLE, _SCHEMA, _CHANGE, _CHARACTERISTICS, _STATE = 0, 1, 2, 4, 5

#: What both servers track unless they are told otherwise.
_DEFAULT = (
    "autocommit,character_set_client,character_set_connection,character_set_results,time_zone"
)  # fmt: skip
_NO_TRANSACTION = "________"


class Tracked(Protocol):
    """What of a session is told."""

    env: Env
    settings: Settings
    transaction: Transaction


class Tracker:
    """What a session's next OK packet has to tell. `touched`: what the open transaction has done so far, as
    the letters R, W and S at their places in the state. `silent`: the OK packets do not go to the client.
    """

    __slots__ = ("_characteristics", "_state", "changed", "schema", "silent", "touched", "variables")

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.schema: str | None = None
        self.changed = False
        self.touched: set[str] = set()
        self.silent = False
        self._state = _NO_TRANSACTION
        self._characteristics: str | None = None

    def forget(self) -> None:
        """The command has failed: nothing is told of it."""
        self.variables.clear()
        self.schema = None
        self.changed = False

    def ended(self) -> None:
        """A transaction is over, and the next one has begun with it (AND CHAIN)."""
        self.touched.clear()
        self._characteristics = None

    def take(self, session: Tracked, in_transaction: bool | None = None, *, left: bool = False) -> bytes:
        """The session state of an OK packet, b"" for none. `in_transaction`: as the packet says. `left`: the
        current database is dropped, so that there is none (to servers that is no change of state).
        """
        if self.silent:
            return b""
        wanted = tracked(session)
        order = _in_own_order if session.env.flavour.tracks_in_own_order else str
        names = [name for name in sorted(self.variables, key=order) if wanted is None or name in wanted]
        parts = [_entry(_VARIABLE, name, self.variables[name]) for name in names]
        if (left or self.schema is not None) and _on(session.settings, "session_track_schema", True):
            parts.append(_entry(_SCHEMA, self.schema or ""))
        parts += self._transaction(session, in_transaction)
        changed = self.changed or bool(self.variables) or self.schema is not None
        if changed and _on(session.settings, "session_track_state_change", False):
            parts.append(bytes((_CHANGE, 1)) + b"1")
        self.forget()
        return b"".join(parts)

    def _transaction(self, session: Tracked, in_transaction: bool | None) -> list[bytes]:
        mode = _text(session.settings, "session_track_transaction_info", "OFF").upper()
        if mode not in ("STATE", "CHARACTERISTICS"):
            self._state, self._characteristics = _NO_TRANSACTION, None
            return []
        parts: list[bytes] = []
        open_ = session.transaction.open if in_transaction is None else in_transaction
        if not open_:
            self.touched.clear()
        state = self._letters(session) if open_ else _NO_TRANSACTION
        if state != self._state:
            self._state = state
            parts.append(_entry(_STATE, state))
        if mode == "CHARACTERISTICS":
            characteristics = _characteristics(session, open_)
            if characteristics != self._characteristics:
                self._characteristics = characteristics
                parts.append(_entry(_CHARACTERISTICS, characteristics))
        return parts

    def _letters(self, session: Tracked) -> str:
        """Kind, then reads and writes of tables without and with transactions, unsafe, result set, locks."""
        kind = "T" if session.transaction.explicit else "I"
        read, wrote, sent = (letter if letter in self.touched else "_" for letter in "RWS")
        return f"{kind}_{read}_{wrote}_{sent}_"


def tracked(session: Tracked) -> frozenset[str] | None:
    """The system variables to tell of; None for all."""
    text = _text(session.settings, "session_track_system_variables", _DEFAULT)
    names = frozenset(part.strip().lower() for part in text.split(","))
    return None if "*" in names else names


def follows_replies(settings: Settings) -> bool:
    """Whether servers' own OK packets have something to tell as well."""
    transactions = _text(settings, "session_track_transaction_info", "OFF").upper() != "OFF"
    return transactions or _on(settings, "session_track_state_change", False)


def shown(values: Mapping[str, bytes], names: Iterable[str]) -> dict[str, str]:
    """Settings as session tracking shows them."""
    found = {}
    for name in names:
        value = values.get(name, b"").decode("utf-8", "replace").strip("'")
        if name == "autocommit":
            value = "ON" if value == "1" else "OFF"
        found[name] = "" if value == "NULL" else value
    return found


def _in_own_order(name: str) -> tuple[bool, str]:
    """The order in which MariaDB tells of variables, as far as it is known."""
    return name != "character_set_connection", name


def _characteristics(session: Tracked, open_: bool) -> str:
    transaction = session.transaction
    begins = transaction.explicit and open_
    set_ = transaction.next or PLAIN
    if begins:
        set_ = replace(set_, read_only=None)
    parts = [f"SET TRANSACTION {one};" for one in set_.parts()]
    if begins:
        parts.append(f"{transaction.said.start.decode()};")
    return " ".join(parts)


def _entry(kind: int, *texts: str) -> bytes:
    data = b"".join(lenenc_bytes(text.encode("utf-8", "surrogateescape")) for text in texts)
    return bytes((kind,)) + lenenc_bytes(data)


def _text(settings: Settings, name: str, default: str) -> str:
    value = settings.get(name)
    return default if value is None else value.decode("utf-8", "replace").strip("'")


def _on(settings: Settings, name: str, default: bool) -> bool:
    value = settings.get(name)
    return default if value is None else value == b"1"
