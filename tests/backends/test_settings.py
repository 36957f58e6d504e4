"""What a session has set: the statement that brings a connection there, tried on a server of a few lines."""

from __future__ import annotations

import gc
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.settings import FRESH, LOGIN, LOGIN_STATEMENT, LOGIN_VALUES, RESULTS, TRACK, Settings

#: Character sets and their collations, the default one first.
CHARSETS = {
    b"utf8mb4": (b"utf8mb4_0900_ai_ci", b"utf8mb4_general_ci", b"utf8mb4_bin"),
    b"latin1": (b"latin1_swedish_ci", b"latin1_bin"),
    b"ascii": (b"ascii_general_ci",),
}
DEFAULTS = {"sql_mode": b"'STRICT'", "time_zone": b"'SYSTEM'", "wait_timeout": b"28800", "autocommit": b"1"}


CHARACTER_SETS = ("character_set_client", "character_set_results", "character_set_connection")


class Server:
    """Session variables, as a server couples them."""

    def __init__(self) -> None:
        self.values = {**DEFAULTS, **LOGIN_VALUES}

    def run(self, statement: bytes) -> None:
        assert statement.startswith(b"SET ")
        for assignment in _split(statement[4:]):
            if assignment.startswith(b"NAMES "):
                _, charset, _, collation = assignment.split()
                self.values |= dict.fromkeys(CHARACTER_SETS, charset)
                self.values |= {"collation_connection": collation, RESULTS: collation}
                continue
            name, _, value = assignment.partition(b"=")
            self.set(name.decode(), value)

    def set(self, name: str, value: bytes) -> None:
        if value == b"DEFAULT":
            assert name in DEFAULTS, "a character set has no useful default"
            value = DEFAULTS[name]
        self.values[name] = value
        if name == "character_set_results":
            self.values[RESULTS] = b""
        if name == "character_set_connection":
            self.values["collation_connection"] = CHARSETS[value][0]
        if name == "collation_connection":
            charset = next(one for one, collations in CHARSETS.items() if value in collations)
            self.values["character_set_connection"] = charset


def _split(text: bytes) -> list[bytes]:
    """Parts between commas that are not in quotes."""
    parts, quoted = [b""], False
    for byte in text:
        quoted ^= byte == ord("'")
        if byte == ord(",") and not quoted:
            parts.append(b"")
        else:
            parts[-1] += bytes((byte,))
    return parts


def state(settings: Settings) -> Mapping[str, bytes]:
    """What a connection with these settings has on the server."""
    return {**DEFAULTS, **LOGIN_VALUES, **settings.values}


@st.composite
def some_settings(draw: st.DrawFn) -> Settings:
    values = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "sql_mode": st.sampled_from((b"''", b"'ANSI,TRADITIONAL'", b"'STRICT'")),
                "time_zone": st.sampled_from((b"'+00:00'", b"'SYSTEM'")),
                "wait_timeout": st.sampled_from((b"60", b"28800")),
                "autocommit": st.sampled_from((b"0", b"1")),
                "character_set_client": st.sampled_from(list(CHARSETS)),
                "character_set_results": st.sampled_from((*CHARSETS, b"NULL")),
            },
        )
    )
    if draw(st.booleans()):
        charset = draw(st.sampled_from(list(CHARSETS)))
        values["character_set_connection"] = charset
        values["collation_connection"] = draw(st.sampled_from(CHARSETS[charset]))
    results = values.get("character_set_results", LOGIN_VALUES["character_set_results"])
    if results in CHARSETS and draw(st.booleans()):
        values[RESULTS] = draw(st.sampled_from(CHARSETS[results]))
    return Settings.of(values)


@given(some_settings(), some_settings())
def test_the_statement_gives_what_is_wanted(old: Settings, new: Settings) -> None:
    server = Server()
    if old is not LOGIN:
        server.run(old.statement_from(LOGIN))
    assert server.values == state(old)
    if new is not old:
        server.run(new.statement_from(old))
        assert server.values == state(new)


TRACKED = b"," + TRACK.removeprefix(b"SET ")
"""The end of the first SET of every connection, whatever its session sets."""


@given(some_settings())
def test_a_fresh_connection_is_told_all_character_sets(new: Settings) -> None:
    """Its log-in has named a collation for the results too, which by name cannot be told apart."""
    server = Server()
    server.values.update(dict.fromkeys(LOGIN_VALUES, b"?"))
    statement = new.statement_from(FRESH)
    assert statement.endswith(TRACKED)
    server.run(statement.removesuffix(TRACKED))
    assert server.values == state(new)


def test_autocommit_is_turned_on_before_it_is_off() -> None:
    """On a connection that began without it MySQL's status flags have it until it is turned off."""
    assert LOGIN.with_values({"autocommit": b"0"}).statement_from(LOGIN) == b"SET autocommit=0"
    assert LOGIN.statement_from(LOGIN.with_values({"autocommit": b"0"})) == b"SET autocommit=1"
    statement = LOGIN.with_values({"autocommit": b"0"}).statement_from(FRESH)
    assert statement.index(b"autocommit=1") < statement.index(b"autocommit=0")
    assert b"autocommit=1" in LOGIN.statement_from(FRESH)
    assert b"autocommit=1" in LOGIN_STATEMENT


@given(some_settings(), some_settings())
def test_equal_settings_are_one_object(one: Settings, two: Settings) -> None:
    assert (one is two) == (one.values == two.values)
    assert Settings.of(dict(reversed(list(one.values.items())))) is one


def test_log_in_values_are_no_settings() -> None:
    assert Settings.of(LOGIN_VALUES) is LOGIN
    assert LOGIN.with_values({"character_set_client": b"latin1"}).with_values(LOGIN_VALUES) is LOGIN
    assert LOGIN.get("character_set_client") == b"utf8mb4"
    assert LOGIN.get("sql_mode") is None
    assert FRESH is not LOGIN


def test_a_statement_is_made_once() -> None:
    new = Settings.of({"sql_mode": b"'ANSI'"})
    assert new.statement_from(LOGIN) is new.statement_from(LOGIN) == b"SET sql_mode='ANSI'"


def test_the_order_of_assignments() -> None:
    """The character sets first: what follows may be read in them."""
    names = dict.fromkeys(CHARACTER_SETS, b"latin1")
    new = Settings.of({"a": b"1", **names, "collation_connection": b"latin1_bin"})
    assert new.statement_from(LOGIN) == (
        b"SET character_set_client=latin1,character_set_results=latin1,character_set_connection=latin1,"
        b"collation_connection=latin1_bin,a=1"
    )
    new = new.with_values({RESULTS: b"latin1_bin", "character_set_client": b"ascii"})
    assert new.statement_from(LOGIN) == b"SET NAMES latin1 COLLATE latin1_bin,character_set_client=ascii,a=1"
    assert LOGIN.with_values({RESULTS: b"latin1_bin"}) is LOGIN, "of another character set"


def test_forgotten_settings_leave_no_wrong_statement() -> None:
    """Statements are remembered by the address of the other object, which another may get later."""
    new = Settings.of({"sql_mode": b"'ANSI'"})
    seen = set()
    for number in range(2000):
        other = Settings.of({"wait_timeout": b"%d" % number})
        assert new.statement_from(other) == b"SET sql_mode='ANSI',wait_timeout=DEFAULT"
        other = Settings.of({"time_zone": b"'+%d'" % number})
        assert new.statement_from(other) == b"SET sql_mode='ANSI',time_zone=DEFAULT"
        seen.add(id(other))
    assert len(seen) < 2000, "addresses were used again"
    assert len(new._statements) <= 257


def test_settings_nobody_has_are_forgotten() -> None:
    Settings.of({"wait_timeout": b"424242"})
    gc.collect()
    assert not any(one.values.get("wait_timeout") == b"424242" for one in Settings._interned.values())


def test_the_statement_after_a_reset() -> None:
    """The reset has left the server's own character sets."""
    server = Server()
    server.values.update(dict.fromkeys(LOGIN_VALUES, b"?"))
    assert LOGIN_STATEMENT.endswith(TRACKED)
    server.run(LOGIN_STATEMENT.removesuffix(TRACKED))
    assert server.values == state(LOGIN)


@pytest.mark.parametrize("text", [b"a=1", b"a='x,y',b=2"])
def test_split(text: bytes) -> None:
    assert b",".join(_split(text)) == text


def test_what_has_no_default_to_go_back_to() -> None:
    """MySQL takes foreign_key_checks = DEFAULT for off, and has none for the seeds of RAND()."""
    values = {"foreign_key_checks": b"0", "rand_seed1": b"5", "sql_notes": b"0"}
    back = LOGIN.statement_from(LOGIN.with_values(values))
    seed = b"rand_seed1=CRC32(UUID())"
    assert back == b"SET foreign_key_checks=@@global.foreign_key_checks," + seed + b",sql_notes=DEFAULT"
    assert LOGIN.statement_from(LOGIN.with_values({"rand_seed1": b"5"})) == b"SET " + seed


QUOTED = "@`\u4e2d`"


@given(some_settings(), some_settings(), st.booleans())
def test_names_outside_ascii_are_read_in_utf8(old: Settings, new: Settings, first: bool) -> None:
    """Whichever of both has them: no statement with such a name is read in another character set."""
    name = {"@\u4e2d": b"1"}
    old, new = (old.with_values(name), new) if first else (old, new.with_values(name))
    read_in = old.get("character_set_client")
    statements = new.statements_from(old)
    for statement in statements:
        assert statement.isascii() or read_in == b"utf8mb4"
        read_in = b"utf8mb4"
    assert len(statements) <= 2
    server = Server()
    server.values = {key.replace("@\u4e2d", QUOTED): value for key, value in state(old).items()}
    for statement in statements:
        server.run(statement)
    assert server.values.pop(QUOTED, b"NULL") == new.get("@\u4e2d") or first
    assert server.values == {key: value for key, value in state(new).items() if key != "@\u4e2d"}
