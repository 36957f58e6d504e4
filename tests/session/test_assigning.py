"""Variables that a statement is about to assign count as unknown until they are read back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from proxy.backends.connection import BackendConnection
from proxy.backends.settings import LOGIN, Settings
from proxy.engine.session_sync import assigning
from proxy.session.state import Session
from rewriter.sql.statements.effects import Effects


def told_before(next_session: Settings, conn: Any) -> bytes:
    """The SET that the next session's statement has in front of it."""
    return b";".join(next_session.statements_from(conn.settings))


def test_a_way_of_running_that_forgets_leaves_no_value() -> None:
    """Nobody reads @tok back here: still the next session sees NULL, or its own value."""
    conn = SimpleNamespace(settings=LOGIN)
    session = cast(Session, SimpleNamespace(names=lambda name: name.isascii()))
    assigning(session, cast(BackendConnection, conn), Effects(variables=("tok", "é")))
    assert conn.settings is not LOGIN
    assert told_before(LOGIN, conn) == b"SET @`tok`=x'',@`tok`=NULL"  # without a type
    assert told_before(LOGIN.with_values({"@tok": b"5"}), conn) == b"SET @`tok`=5"


def test_without_assignments_a_connection_stays_as_it_is() -> None:
    conn = SimpleNamespace(settings=LOGIN)
    session = cast(Session, SimpleNamespace(names=str.isascii))
    assigning(session, cast(BackendConnection, conn), Effects(insert_id="ask"))
    assert conn.settings is LOGIN
