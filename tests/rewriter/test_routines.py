"""What triggers, functions and procedures leave behind, read off their bodies."""

from __future__ import annotations

import pytest

from config.flavour import MARIADB
from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.sql.statements.effects import Effects, effects_of
from rewriter.sql.statements.routines import Body, Left, Routines, names_in
from rewriter.text.tokens import Source, read


def source_of(sql: str) -> Source:
    return read(sql.encode(), lift(sql.encode())[1], Env(flavour=MARIADB))


def names_of(sql: str) -> frozenset[str]:
    return names_in(source_of(sql))


BODIES = (
    Body("t", "SET @seen = NEW.n"),
    Body("u", "INSERT INTO t (n) VALUES (NEW.n)"),
    Body("double", "BEGIN SET @`Fun``ny` = 1, @'it''s' = 2; RETURN a * @@auto_increment_increment; END"),
    Body("plain", "RETURN a + 1"),
    Body("locks", "RETURN GET_LOCK('a', 0)"),
    Body("makes", "BEGIN CREATE  TEMPORARY TABLE x (n INT); CALL locks(); END"),
    Body("dynamic", "BEGIN PREPARE s FROM 'SELECT 1'; EXECUTE s; END"),
    Body("hidden", None),
    Body("a view", "select `db`.`double`(1) AS `x`"),
    Body("ring", "CALL ring()"),
)


@pytest.mark.parametrize(
    ("sql", "variables", "pins", "routine"),
    [
        ("INSERT INTO T VALUES (1)", ("seen",), (), False),
        ("INSERT INTO u VALUES (1)", ("seen",), (), False),
        ("SELECT db.`double`(n) FROM x", ("fun`ny", "it's"), (), False),
        ("SELECT x FROM `a view`", ("fun`ny", "it's"), (), False),
        ("SELECT locks()", (), (("lock", ""),), False),
        ("SELECT hidden()", (), (), True),
        ("/* app */ SELECT locks()", (), (("lock", ""),), False),
        ("-- app\nINSERT /* x */ INTO `t` VALUES (1)", ("seen",), (), False),
    ],
)
def test_what_a_statement_leaves(
    sql: str, variables: tuple[str, ...], pins: tuple[tuple[str, str], ...], routine: bool
) -> None:
    found = Routines(BODIES).added(None, names_of(sql))
    assert found == Effects(pins=pins, variables=variables, routine=routine)


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT plain(1)", "SELECT ring()", "SELECT 1", "INSERT INTO tt VALUES (1)"),
        *("/* locks */ SELECT 1", "SELECT 'locks'", "SELECT 1 -- hidden"),
    ],
)
def test_what_leaves_nothing(sql: str) -> None:
    effects = Effects(insert_id="ask")
    assert Routines(BODIES).added(effects, names_of(sql)) is effects


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("CALL makes()", Left(pins=frozenset({("table", ""), ("lock", "")}))),
        ("call `db` . `makes`", Left(pins=frozenset({("table", ""), ("lock", "")}))),
        ("CALL plain(`double`(1))", Left(frozenset({"fun`ny", "it's"}))),
        ("CALL plain(1)", Left()),
        ("/* app */ CALL -- x\n plain(1)", Left()),
        ("CALL plain", Left()),
        ("CALL dynamic()", None),
        ("CALL hidden()", None),
        ("CALL unknown(locks())", None),
    ],
)
def test_what_a_call_leaves(sql: str, left: Left | None) -> None:
    effects = effects_of(source_of(sql), flavour=MARIADB)
    assert effects is not None
    assert Routines(BODIES).called(effects.procedure, names_of(sql)) == left


def test_who_has_nothing_of_the_kind() -> None:
    assert not Routines([])
    assert not Routines([Body("plain", "RETURN a + 1"), Body("t", "SET NEW.n = 1, NEW.m = @@sql_mode")])
    assert Routines(BODIES)


@pytest.mark.parametrize(
    ("sql", "harmless"),
    [
        ("SELECT plain(1), db.`plain` (2), ABS(3)", True),
        ("SELECT plain/* of all */(1)", True),
        ("SELECT plain(locks())", False),
        ("SELECT locks /* f */ (1)", False),
        ("SELECT `double`(1)", False),
        ("SELECT never_seen(1)", False),
        ("SELECT hidden()", False),
        ("SELECT sys.format_bytes(1)", False),
    ],
)
def test_functions_that_are_known_to_leave_nothing(sql: str, harmless: bool) -> None:
    effects = effects_of(source_of(sql), flavour=MARIADB)
    assert effects is not None
    assert Routines(BODIES).harmless(effects.calls) is harmless


@pytest.mark.parametrize(
    "body",
    [
        "SET ROLE NONE",
        "HANDLER t OPEN",
        "RETURN LAST_INSERT_ID(5)",
        "RETURN NEXTVAL(s)",
        "SELECT NEXT VALUE FOR s",
        "XA START 'x'",
    ],
)
def test_what_servers_do_not_tell_of(body: str) -> None:
    assert not Routines([Body("f", body)]).harmless(["f"])


def test_who_reads_the_last_insert_id() -> None:
    """It leaves nothing, but must be told the session's."""
    found = Routines([Body("lid", "RETURN LAST_INSERT_ID()"), Body("v", "select `lid`() AS `x`")])
    assert found
    assert found.harmless(["lid"])
    for sql in ("SELECT lid()", "SELECT x FROM v"):
        effects = found.added(None, names_of(sql))
        assert effects is not None
        assert effects == Effects(insert_id="ask")
    assert found.added(None, names_of("SELECT 1")) is None
