"""Names that a session gives, to prepared statements and to open handlers, are its own on all hosts: as on
one server with all databases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn
from tests.integration.raw import RESET_CONNECTION, Raw
from tests.integration.second_host import Sides, second_host
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    with second_host(demo, plain, own, tmp_path_factory.mktemp("schema")) as sides:
        yield sides


MADE = ("PREPARE p FROM 'SELECT 1'", "HANDLER kept OPEN AS h", "USE crm2", "PREPARE q FROM 'SELECT 2'")
USED = ("EXECUTE p", "EXECUTE q", "HANDLER h READ FIRST")
SCRIPTS = {
    "executed elsewhere": [
        "PREPARE p FROM 'SELECT 1'",
        "USE crm2",
        "EXECUTE p",
        "DEALLOCATE PREPARE p",
        "EXECUTE p",
    ],
    "and its case": [
        "PREPARE Paul FROM 'SELECT 1'",
        "USE crm2",
        "EXECUTE pAUL",
        "DROP PREPARE PAUL",
        "EXECUTE Paul",
    ],
    "keeps its database": [
        "PREPARE p FROM 'SELECT a, DATABASE() FROM kept'",
        "USE crm2",
        "EXECUTE p",
        "SELECT DATABASE()",
        "SELECT a FROM kept",
        "EXECUTE p",
    ],
    "one name": [
        "PREPARE p FROM 'SELECT 1'",
        "USE crm2",
        "PREPARE p FROM 'SELECT 2'",
        "USE crm",
        "EXECUTE p",
        "DEALLOCATE PREPARE p",
        "EXECUTE p",
        "USE crm2",
        "EXECUTE p",
    ],
    "freed by an error": [
        "PREPARE p FROM 'SELECT 1'",
        "USE crm2",
        "PREPARE p FROM 'SELECT missing FROM kept'",
        "EXECUTE p",
        "USE crm",
        "EXECUTE p",
    ],
    "not by what is no SQL": [
        "PREPARE p FROM 'SELECT 1'",
        "USE crm2",
        "PREPARE p FORM 'SELECT 2'",
        "EXECUTE p",
    ],
    "values of the session": [
        "PREPARE p FROM 'SELECT ?, @b, @@sql_mode, @@sql_select_limit'",
        "USE crm2",
        "SET @a = 5, @b = 'x', sql_mode = 'ANSI', sql_select_limit = 7",
        "EXECUTE p USING @a",
        "SELECT 'y' INTO @b",
        "EXECUTE p USING @b",
    ],
    "assigns": [
        "PREPARE p FROM 'SELECT a + 1 FROM kept INTO @c'",
        "USE crm2",
        "EXECUTE p",
        "SELECT @c",
        "EXECUTE p",
        "USE crm",
        "SELECT @c",
    ],
    "in a sharded database": [
        "PREPARE p FROM 'SELECT a FROM kept'",
        "HANDLER kept OPEN AS h",
        "USE demo",
        "EXECUTE p",
        "EXECUTE q",
        "HANDLER h READ FIRST",
        "SELECT DATABASE()",
        "DEALLOCATE PREPARE p",
        "HANDLER h CLOSE",
        "EXECUTE p",
        "HANDLER h READ FIRST",
    ],
    "assigns here": [
        "PREPARE p FROM 'SELECT a + 1 FROM kept INTO @c'",
        "EXECUTE p",
        "SELECT @c",
    ],
    "assigns on the default": [
        "USE crm2",
        "PREPARE p FROM 'SELECT a + 1 FROM kept INTO @c'",
        "EXECUTE p",
        "SELECT @c",
    ],
    "assigns, set": [
        "PREPARE p FROM 'SET @c = 4'",
        "USE crm2",
        "EXECUTE p",
        "SELECT @c",
    ],
    "in a transaction": [
        "PREPARE p FROM 'UPDATE kept SET a = a + 1'",
        "USE crm2",
        "BEGIN",
        "UPDATE kept SET a = a + 1",
        "EXECUTE p",
        "SELECT a FROM kept",
        "ROLLBACK",
        "SELECT a FROM crm.kept",
        "SELECT a FROM crm2.kept",
    ],
    "replaced in a transaction": [
        "BEGIN",
        "UPDATE kept SET a = a + 1",
        "PREPARE p FROM 'SELECT a FROM kept'",
        "USE crm2",
        "PREPARE p FROM 'SELECT a FROM kept'",
        "EXECUTE p",
        "SELECT a FROM crm.kept",
        "ROLLBACK",
        "SELECT a FROM crm.kept",
        "EXECUTE p",
    ],
    "handlers": [
        "HANDLER kept OPEN AS h",
        "USE crm2",
        "HANDLER H READ FIRST",
        "HANDLER kept OPEN",
        "HANDLER kept READ FIRST",
        "HANDLER h READ NEXT",
        "HANDLER h CLOSE",
        "HANDLER h READ NEXT",
        "USE crm",
        "HANDLER kept READ NEXT",
        "HANDLER kept CLOSE",
        "HANDLER kept CLOSE",
    ],
    "an open handler's name": [
        "HANDLER kept OPEN AS h",
        "HANDLER h READ FIRST",
        "USE crm2",
        "HANDLER kept OPEN AS h",
        "HANDLER h READ FIRST",
        "HANDLER h CLOSE",
        "HANDLER kept OPEN h",
        "HANDLER h READ FIRST",
    ],
    "a closed table's handler": [
        "CREATE TABLE gone (a INT)",
        "HANDLER gone OPEN AS h",
        "DROP TABLE gone",
        "USE crm2",
        "HANDLER kept OPEN AS h",
        "HANDLER h READ FIRST",
    ],
}


def told(session: Any, sql: str) -> object:
    """What a client is told: rows, or the error's number."""
    found = answer(session, sql)
    return found[0] if len(found) == 2 and isinstance(found[0], int) else found


def ask(sides: Sides, script: Sequence[str]) -> list[list[object]]:
    found = []
    for session in sides.sessions(database="crm"):
        with session:
            found.append([told(session, sql) for sql in script])
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_name_is_the_sessions_on_all_hosts(sides: Sides, flavour: str, name: str) -> None:
    if name in ("assigns", "assigns, set") and flavour != "mariadb":
        pytest.skip("without its performance schema MySQL does not tell what a prepared text assigns")
    ours, theirs = ask(sides, SCRIPTS[name])
    assert list(zip(SCRIPTS[name], ours, strict=True)) == list(zip(SCRIPTS[name], theirs, strict=True))


def some(chance: random.Random) -> str:
    """A statement with a name, or one that changes what it may meet."""
    name, handler = chance.choice(["p", "q", "P"]), chance.choice(["h", "i", "kept"])
    text = chance.choice(
        [
            "SELECT a FROM kept",
            "SELECT DATABASE(), @a",
            "SELECT missing FROM kept",
            "SELECT FROM",
        ]
    )
    database = chance.choice(["crm", "crm2"])
    return chance.choice(
        [
            f"PREPARE {name} FROM '{text}'",
            f"EXECUTE {name}",
            f"EXECUTE {name}",
            f"DEALLOCATE PREPARE {name}",
            f"USE {database}",
            f"USE {database}",
            f"HANDLER kept OPEN AS {handler}",
            f"HANDLER {database}.kept OPEN AS {handler}",
            f"HANDLER {handler} READ FIRST",
            f"HANDLER {handler} READ NEXT",
            f"HANDLER {handler} CLOSE",
            f"SET @a = {chance.randint(0, 9)}",
            "SELECT DATABASE(), @a",
            "BEGIN",
            "UPDATE kept SET a = a + 1",
            "ROLLBACK",
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_any_sequence_is_answered_as_by_one_server(sides: Sides, seed: int) -> None:
    chance = random.Random(seed)
    script = ["SET @a = 1", *(some(chance) for _ in range(120))]
    ours, theirs = ask(sides, script)
    for at, (sql, mine, other) in enumerate(zip(script, ours, theirs, strict=True)):
        assert mine == other, (at, sql, script[max(0, at - 25) : at])


@pytest.mark.parametrize("way", ["reset", "another user"])
def test_no_name_outlives_the_session(sides: Sides, plain: LocalServer, way: str) -> None:
    proxy = sides.proxy.proxy
    for host, port, user, password in (
        (proxy.host, proxy.port, "demo", "demo"),
        ("127.0.0.1", plain.port, plain.user, plain.password),
    ):
        with Raw(host, port) as client:
            assert client.login(user, password, "crm").kind == "ok"
            for sql in MADE:
                assert client.ask(sql).kind == "ok", sql
            if way == "reset":
                assert client.do(RESET_CONNECTION).kind == "ok"
            else:
                assert client.change_user(user, password, "crm").kind == "ok"
            for database in ("crm", "crm2"):
                assert client.ask(f"USE {database}").kind == "ok"
                assert [client.ask(sql).code for sql in USED] == [1243, 1243, 1109]
