"""Session values as SQL literals: read again as a server reads them, they are what they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.settings import LOGIN
from proxy.session.outcome import Diagnostic
from proxy.session.state import Role, Session, User
from proxy.session.values import quote, slot


def read_string(sql: bytes, no_backslash_escapes: bool) -> tuple[bytes, bytes]:
    """A string literal's value and what follows it, as MySQL's lexer sees it."""
    assert sql[:1] == b"'"
    out, pos = b"", 1
    while True:
        byte = sql[pos : pos + 1]
        assert byte, "the literal has no end"
        if byte == b"'" and sql[pos + 1 : pos + 2] != b"'":
            return out, sql[pos + 1 :]
        if byte == b"'":
            pos += 1
        elif byte == b"\\" and not no_backslash_escapes:
            pos += 1
            byte = sql[pos : pos + 1]
            byte = {b"0": b"\0", b"n": b"\n", b"t": b"\t", b"Z": b"\x1a"}.get(byte, byte)
        out += byte
        pos += 1


strings = st.binary(max_size=20) | st.lists(
    st.sampled_from((b"'", b"\\", b"\0", b'"', b"a", b"\\'", b"\xff"))
).map(b"".join)


@given(strings, st.booleans(), strings)
def test_quote(value: bytes, no_backslash_escapes: bool, behind: bytes) -> None:
    sql = quote(value, no_backslash_escapes)
    behind = b"," + behind
    assert read_string(sql + behind, no_backslash_escapes) == (value, behind)


@pytest.mark.parametrize(("text", "sql"), [("é", b"'\xc3\xa9'"), ("\udcff", b"'\xff'"), ("", b"''")])
def test_quote_text(text: str, sql: bytes) -> None:
    assert quote(text) == sql


@pytest.fixture
def session() -> Session:
    session = Session(7, User("o'neil", Role.READ), "10.0.0.1:4711", "9.7.0", {"autocommit": b"1"})
    session.settings = LOGIN
    session.refresh_env()
    return session


def test_slots(session: Session) -> None:
    session.last_insert_id = 241294492511762325
    session.row_count, session.found_rows = -1, 3
    session.diagnostics = [Diagnostic("Error", 1, ""), Diagnostic("Warning", 2, "")]
    found = {
        name: slot(session, name)
        for name in (
            "LAST_INSERT_ID()", "@@last_insert_id", "@@identity", "DATABASE()", "CONNECTION_ID()", "USER()",
            "CURRENT_USER()", "FOUND_ROWS()", "ROW_COUNT()", "@@warning_count", "@@error_count",
            "@@version", "@@pseudo_thread_id", "@x",
        )
    }  # fmt: skip
    assert found == {
        "LAST_INSERT_ID()": b"241294492511762325",
        "@@last_insert_id": b"241294492511762325",
        "@@identity": b"241294492511762325",
        "DATABASE()": b"NULL",
        "CONNECTION_ID()": b"7",
        "USER()": b"'o''neil@10.0.0.1'",
        "CURRENT_USER()": b"'o''neil@%'",
        "FOUND_ROWS()": b"3",
        "ROW_COUNT()": b"-1",
        "@@warning_count": b"2",
        "@@error_count": b"1",
        "@@version": b"'9.7.0'",
        "@@pseudo_thread_id": b"7",
        "@x": b"NULL",
    }


@pytest.mark.parametrize(("mode", "sql"), [(b"''", b"'a\\\\b'"), (b"'NO_BACKSLASH_ESCAPES'", b"'a\\b'")])
def test_texts_follow_sql_mode(session: Session, mode: bytes, sql: bytes) -> None:
    session.database = "a\\b"
    session.settings = LOGIN.with_values({"sql_mode": mode})
    session.refresh_env()
    assert slot(session, "DATABASE()") == sql


def test_user_variables(session: Session) -> None:
    session.settings = session.settings.with_values({"@x": b"'1'"})
    assert slot(session, "@x") == b"'1'"
    assert slot(session, "@y") == b"NULL"
