"""What a user with a list of databases learns of the others: every statement that names one is answered in
the same bytes, whether the database is sharded, is another one, or does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary, Prepared
from tests.integration.own import OwnProxy
from tests.integration.raw import (
    INIT_DB,
    MULTI_STATEMENTS,
    QUERY,
    STMT_PREPARE,
    Raw,
)
from tests.integration.test_access import one_account
from tests.statements.answers import examples
from tests.support.demo import Demo

NOWHERE = "qzxnowhere"
OUTSIDE = (NOWHERE, "qzxthere", "demo", "db00003")
"""One that does not exist, one on the default host, a sharded one, and a shard's."""
LISTED = "qzxlisted"
ROLES = ("read", "admin")
USERS = [
    {"name": "demo", "password": "demo", "role": "admin"},
    *({"name": role, "password": "x", "role": role, "databases": [LISTED, "legacy"]} for role in ROLES),
]
SETUP = (
    "DROP DATABASE IF EXISTS qzxthere",
    "DROP DATABASE IF EXISTS qzxlisted",
    "CREATE DATABASE qzxthere",
    "CREATE DATABASE qzxlisted",
    "CREATE TABLE qzxthere.t (a INT PRIMARY KEY, b INT)",
)
TEARDOWN = SETUP[:2]
MORE = (
    ("both", "SELECT * FROM Ω.pins WHERE id = 5"),
    ("both", "SELECT * FROM Ω.no_such_table"),
    ("both", "SELECT COUNT(*) FROM Ω.pins p JOIN orders o ON o.id = p.id"),
    ("both", "SELECT Ω.pins.id FROM Ω.pins"),
    ("both", "SELECT Ω.f(1)"),
    ("both", "SELECT 1 WHERE EXISTS (SELECT 1 FROM Ω.pins)"),
    ("both", "INSERT INTO Ω.pins (data) VALUES (1)"),
    ("both", "UPDATE Ω.pins SET data = 1"),
    ("both", "DELETE FROM Ω.pins USING Ω.pins JOIN orders"),
    ("both", "CALL Ω.reorder_board_pin(1, 2, 3)"),
    ("both", "SHOW TABLES FROM Ω"),
    ("both", "SHOW TABLES FROM Ω LIKE 'p%' WHERE"),
    ("both", "SHOW COLUMNS FROM pins FROM Ω"),
    ("both", "SHOW INDEX FROM pins IN Ω"),
    ("both", "SHOW CREATE TABLE Ω.pins"),
    ("both", "SHOW TABLE STATUS FROM Ω"),
    ("both", "SHOW TRIGGERS FROM Ω"),
    ("both", "SHOW EVENTS IN Ω"),
    ("both", "SHOW OPEN TABLES FROM Ω"),
    ("both", "FLUSH CACHE FOR Ω.pins"),
    ("both", "HANDLER Ω.pins OPEN AS h"),
    ("both", "LOAD DATA LOCAL INFILE 'f' INTO TABLE Ω.pins"),
    ("both", "CREATE TABLE here AS SELECT * FROM Ω.pins"),
    ("both", "CREATE TABLE here LIKE Ω.pins"),
    ("both", "CREATE VIEW here AS SELECT Ω.pins.id FROM Ω.pins"),
    ("both", "CREATE PROCEDURE p() SELECT * FROM Ω.pins"),
    ("both", "CREATE TRIGGER g BEFORE INSERT ON orders FOR EACH ROW INSERT INTO Ω.pins VALUES (NEW.id)"),
    ("both", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM Ω.pins"),
    ("both", "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES Ω.pins (id)"),
    ("both", "RENAME TABLE orders TO Ω.orders"),
    ("both", "/*!40000 SELECT * FROM Ω.pins */"),
    ("both", "SELECT /*+ scatter */ * FROM Ω.pins"),
    ("both", "SELECT * FROM Ω.pins WHERE ((("),
    ("both", "SELECT * FRM Ω.pins"),
    ("both", "EXPLAIN ROUTE SELECT * FROM Ω.pins"),
    ("both", "EXPLAIN ROUTE DROP DATABASE Ω"),
    ("mariadb", "EXECUTE IMMEDIATE 'DROP DATABASE Ω'"),
    ("mariadb", "BEGIN NOT ATOMIC SELECT * FROM Ω.pins; END"),
    ("mariadb", "SELECT NEXTVAL(Ω.s)"),
)
_NAME = re.compile(r"'[^']*'|(?<!@)\b[a-z]\b")


@pytest.fixture(scope="module", params=["an account a list", "one account"])
def proxy(
    demo: Demo, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnProxy]:
    with demo.direct() as server, server.cursor() as cursor:
        for sql in SETUP:
            cursor.execute(sql)
        settings: dict[str, object] = {"users": USERS}
        if request.param == "one account":
            settings["backends"] = one_account(demo)
        try:
            with OwnProxy(demo, tmp_path_factory.mktemp("outside"), settings) as started:
                yield started
        finally:
            for sql in TEARDOWN:
                cursor.execute(sql)


def texts(server: str) -> list[str]:
    """Statements with Ω where a database stands: the manuals' with Ω before each name that may be an
    object's, and in its place where it is a database's.
    """
    found: dict[str, None] = {}
    for example in examples():
        if example.servers.strip("?") not in ("both", server):
            continue
        for name in _NAME.finditer(example.sql):
            if not name[0].startswith("'"):
                of_database = name[0] == "d"
                before, behind = example.sql[: name.start()], example.sql[name.end() :]
                found[before + ("Ω" if of_database else f"Ω.{name[0]}") + behind] = None
    found |= dict.fromkeys(sql for servers, sql in MORE if servers in ("both", server))
    quoted = [sql.replace("'", "''") for sql in found]
    return [
        *found,
        *(f"PREPARE q FROM '{sql}'" for sql in quoted),
        *(f"EXPLAIN ROUTE {sql}" for sql in found),
    ]


def client(proxy: OwnProxy, user: str, flags: int = 0) -> Raw:
    made = proxy.raw(login=False)
    assert made.login(user, "x", LISTED, flags=flags).kind == "ok"
    return made


def answer(side: Raw, command: int, text: str, name: str) -> str:
    """A command's whole answer, with Ω in the place of the database's name."""
    sql = text.replace("Ω", name)
    if command == STMT_PREPARE:
        binary = Binary(side)
        prepared = binary.prepare(sql)
        if isinstance(prepared, Prepared):
            binary.close(prepared.id)
            return "prepared"
        shown = f"{prepared.code} {prepared.message}"
    else:
        reply = side.do(command, sql.encode())
        shown = f"{reply.kind} {reply.code} {reply.message} {reply.rows}"
    return re.sub(rf"{name}|(?<=offset )\d+", "Ω", shown, flags=re.IGNORECASE)


def told(proxy: OwnProxy, user: str, command: int, asked: list[str]) -> dict[str, set[str]]:
    """The statements that are answered in several ways, by what database they name."""
    found = {}
    with client(proxy, user) as side:
        for text in asked:
            answers = {name: answer(side, command, text, name) for name in OUTSIDE}
            if len(set(answers.values())) > 1:
                found[text] = set(answers.values())
    return found


@pytest.mark.parametrize("user", ROLES)
@pytest.mark.parametrize("command", [QUERY, STMT_PREPARE])
def test_no_statement_tells_which_databases_there_are(
    proxy: OwnProxy, flavour: str, user: str, command: int
) -> None:
    server = "mysql" if flavour == "mysql9" else "mariadb"
    asked = texts(server)
    if command == STMT_PREPARE:
        asked = [sql for sql in asked if not sql.startswith(("PREPARE", "EXPLAIN ROUTE"))]
    assert told(proxy, user, command, asked) == {}


@pytest.mark.parametrize("user", ROLES)
def test_nor_does_a_second_statement_of_a_text(proxy: OwnProxy, user: str) -> None:
    with client(proxy, user, MULTI_STATEMENTS) as side:
        for text in ("DROP DATABASE Ω", "SELECT * FROM Ω.no_such_table", "SELECT * FROM Ω.t"):
            found = set()
            for name in OUTSIDE:
                reply = side.do(QUERY, f"DO 1; {text}".replace("Ω", name).encode())
                assert reply.kind == "ok"
                rest = side.replies()
                found.add("".join(f"{one.kind} {one.code} {one.message}" for one in rest).replace(name, "Ω"))
            assert len(found) == 1, found


@pytest.mark.parametrize("user", ROLES)
def test_nor_do_use_and_log_in(proxy: OwnProxy, user: str) -> None:
    assert told(proxy, user, INIT_DB, ["Ω"]) == {}
    found = set()
    for name in OUTSIDE:
        with proxy.raw(login=False) as side:
            reply = side.login(user, "x", name)
            found.add(f"{reply.kind} {reply.code} {reply.message}".replace(name, "Ω"))
    assert len(found) == 1, found
    assert "Access denied" in found.pop()
