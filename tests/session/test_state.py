"""What follows from a session's settings: how its statements are read, and its status flags."""

from __future__ import annotations

import pytest

from proxy.backends.memory import Memory
from proxy.backends.settings import LOGIN
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Outcome
from proxy.session.state import Role, Session, User
from proxy.wire.constants import Status
from rewriter.plans import Access


def session(version: str = "9.7.0", defaults: dict[str, bytes] | None = None, **values: bytes) -> Session:
    made = Session(1, User("u", Role.READ), "127.0.0.1:1", version, defaults or {})
    made.settings = LOGIN.with_values(values)
    made.refresh_env()
    return made


MODES = {
    b"''": set(),
    b"'ANSI_QUOTES'": {"ansi_quotes"},
    b"'ansi_quotes, NO_BACKSLASH_ESCAPES'": {"ansi_quotes", "no_backslash_escapes"},
    b"'PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE'": {
        "pipes_as_concat", "high_not_precedence", "ignore_space",
    },
    b"'REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI'": {
        "ansi_quotes", "pipes_as_concat", "ignore_space",
    },
    b"'ANSI'": {"ansi_quotes", "pipes_as_concat", "ignore_space"},
}  # fmt: skip


@pytest.mark.parametrize(("mode", "expected"), MODES.items(), ids=map(bytes.decode, MODES))
@pytest.mark.parametrize("where", ["settings", "the servers' default"])
def test_sql_mode(mode: bytes, expected: set[str], where: str) -> None:
    made = session(sql_mode=mode) if where == "settings" else session(defaults={"sql_mode": mode})
    names = ("ansi_quotes", "no_backslash_escapes", "pipes_as_concat", "high_not_precedence", "ignore_space")
    assert {name for name in names if getattr(made.env, name)} == expected
    assert made.no_backslash_escapes == ("no_backslash_escapes" in expected)


VERSIONS = {
    "8.0.36": 80036,
    "8.4.2-commercial": 80402,
    "9.7.4-2": 90704,
    "8.4": 80400,
    "10.11.6-MariaDB-log": 101106,
    "5.5.5-10.11.19-MariaDB-0+deb12u1": 101119,
}


@pytest.mark.parametrize(("version", "number"), VERSIONS.items())
def test_version(version: str, number: int) -> None:
    made = session(version)
    assert made.env.server_version == number
    assert (made.env.flavour.name == "mariadb") == ("MariaDB" in version)


@pytest.mark.parametrize(
    ("default", "value", "expected"),
    [(None, None, True), (b"1", None, True), (b"0", None, False), (b"0", b"1", True), (b"1", b"0", False)],
)
def test_autocommit(default: bytes | None, value: bytes | None, expected: bool) -> None:
    """A session begins with the servers' default, as a setting of its own."""
    made = session(defaults={} if default is None else {"autocommit": default})
    made.settings = made.settings.with_values(made.reading)
    if value is not None:
        made.settings = made.settings.with_values({"autocommit": value})
    made.refresh_env()
    assert made.autocommit == expected
    assert bool(made.status() & Status.AUTOCOMMIT) == expected


def test_status() -> None:
    made = session(sql_mode=b"'NO_BACKSLASH_ESCAPES'")
    assert made.status() == Status.AUTOCOMMIT | Status.NO_BACKSLASH_ESCAPES
    made.transaction.start()
    assert made.status() & Status.IN_TRANS


@pytest.mark.parametrize("text", [b"gbk", b"'gbk'", b"sjis", b"'big5'"])
def test_character_sets_in_which_quotes_hide(text: bytes) -> None:
    """Also as a literal, which is what a server's answer is remembered as."""
    made = session(character_set_client=text)
    assert made.unsafe_charset
    assert made.env.charset == text.decode().strip("'")


@pytest.mark.parametrize("text", [b"utf8mb4", b"'latin1'"])
def test_character_sets_that_can_be_read(text: bytes) -> None:
    made = session(character_set_client=text)
    assert not made.unsafe_charset
    assert made.env.charset == text.decode().strip("'")


def test_roles_are_accesses() -> None:
    """They are compared with each other."""
    assert [(role.name, int(role)) for role in Role] == [(one.name, int(one)) for one in Access if one]


def test_an_error_is_remembered() -> None:
    made = session()
    made.row_count = 3
    made.note_error(1062, "Duplicate \ufffd")
    assert [(one.level, one.code, one.message) for one in made.diagnostics] == [
        ("Error", 1062, "Duplicate \ufffd")
    ]
    assert made.row_count == -1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("character_set_client", b"swe7"),  # brackets are letters there
        ("character_set_client", b"utf16"),
        ("character_set_client", b"_binary x'6762'"),
        ("sql_mode", b"'PIPES_AS_CONCAT,ORACLE'"),
        ("sql_mode", b"_binary x'414e5349'"),
        ("sql_mode", b"'A_MODE_TO_COME'"),
    ],
)
def test_what_nobody_can_read_with(name: str, value: bytes) -> None:
    made = session()
    before = made.env
    made.settings = made.settings.with_values({name: value})
    with pytest.raises(ProxyError, match="cannot read statements"):
        made.refresh_env()
    assert made.env is before


def test_what_is_learned_behind_a_client_that_has_gone_is_in_no_books() -> None:
    made = session()
    made.memory, made.memory_limit = Memory(1000), 1000
    made.take_settings(made.settings.with_values({"@a": b"'abc'"}))
    assert made.memory.used == made.accounted > 0
    made.memory.hold("u", made.accounted, 0)  # as its client does that goes
    memory, made.accounted = made.memory, 0
    made.let_go()
    made.take_settings(made.settings.with_values({"@b": b"'abc'"}))
    assert memory.used == 0


def test_diagnostics_of_several_servers_are_as_many_as_max_error_count() -> None:
    """Each server keeps so many; all are counted."""
    made = session(max_error_count=b"3")
    found = [Diagnostic("Warning", 1292, f"{number}") for number in range(5)]
    made.apply(Outcome(diagnostics=[*found, Diagnostic("Error", 1, "")]))
    assert made.diagnostics == found[:3]
    assert (made.warning_count, made.error_count) == (6, 1)
    made.apply(Outcome(diagnostics=found[:3]))
    assert (len(made.diagnostics), made.warning_count, made.error_count) == (3, 3, 0)
