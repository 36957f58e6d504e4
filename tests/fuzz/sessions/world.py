"""The rows and routines that the statements use, on both sides, and how they are put back.

Each session writes rows of its own, so that none waits for another's locks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.sessions.client import Session

SESSIONS = 3
ROWS = 3
"""Of each table, for each session."""


@dataclass(frozen=True)
class Table:
    """A table: its rows are found by `key`, and `column` is what is written; `value` and `other` make an
    expression for it from the text of a number or from any expression.
    """

    name: str
    key: str
    column: str
    value: str
    keys: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    shared: tuple[str, ...]
    sharded: bool = True


def _main(type_: int, session: int, row: int) -> int:
    shard = session * 17 + row * 9 + 2
    return shard << 46 | type_ << 36 | 9_000_000 + session * 10 + row


def _keys(make: Callable[[int, int], str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(make(session, row) for row in range(ROWS)) for session in range(SESSIONS))


def _rows(make: Callable[[int, int], str]) -> tuple[tuple[str, ...], ...]:
    return _keys(make)


def _user(session: int, row: int) -> int:
    return _main(3, session, row)


def _photo(session: int, row: int) -> int:
    return 777_000_000 << 23 | _user(session, row) % 64 << 10 | session * 10 + row


PINS = Table(
    "demo.pins",
    "id",
    "data",
    "JSON_OBJECT( 'n' , {} )",
    _keys(lambda s, r: str(_main(1, s, r))),
    _rows(lambda s, r: f"({_main(1, s, r)}, '{{\"n\": {r}}}', '2012-01-01')"),
    ("68719476737", "68719476738"),
)
LISTS = Table(
    "demo.board_has_pins",
    "board_id",
    "sequence",
    "{}",
    _keys(lambda s, r: str(_main(2, s, r))),
    _rows(lambda s, r: f"({_main(2, s, r)}, {_main(1, s, (r + 1) % ROWS)}, {r + 100})"),
    ("137438953473",),
)
EMAILS = Table(
    "demo.email_to_user",
    "email",
    "user_id",
    "{}",
    _keys(lambda s, r: f"'f{s}{r}@fuzz.example'"),
    _rows(lambda s, r: f"('f{s}{r}@fuzz.example', {r + 7})"),
    ("'adaandersson178@example.com'", "'adagarcia257@example.org'"),
)
PHOTOS = Table(
    "demo.photos",
    "id",
    "caption",
    "{}",
    _keys(lambda s, r: str(_photo(s, r))),
    _rows(lambda s, r: f"({_photo(s, r)}, {_user(s, r)}, 'c{r}', '2012-02-02')"),
    ("147110650789758009", "157653879540944914"),
)
NAMES = Table(
    "demo.usernames",
    "username",
    "user_id",
    "{}",
    _keys(lambda s, r: f"'fuzz{s}{r}'"),
    _rows(lambda s, r: f"('fuzz{s}{r}', {r + 7})"),
    ("'adaandersson178'", "'adagarcia257'"),
    sharded=False,
)
COUNTRIES = Table(
    "demo.countries",
    "code",
    "name",
    "{}",
    _keys(lambda s, r: f"'{s}{r}'"),
    _rows(lambda s, r: f"('{s}{r}', 'n{r}')"),
    ("'AR'", "'AT'"),
    sharded=False,
)
SHARDED = (PINS, LISTS, EMAILS, PHOTOS)
SINGLE = (NAMES, COUNTRIES)


def own(session: int) -> Table:
    """The session's own table in `legacy`; an insert's trigger sets @c and @d."""
    return Table(
        f"legacy.f{session}",
        "id",
        "v",
        "{}",
        _keys(lambda s, r: str(r + 1)),
        _rows(lambda s, r: f"({r + 1}, 'v{r}', {r * 10})"),
        ("1",),
        sharded=False,
    )


def routines(*, mariadb: bool) -> list[str]:
    """What makes the tables and routines in `legacy` and a database `other`."""
    found = [
        "CREATE DATABASE other CHARACTER SET utf8mb4",
        "CREATE TABLE other.f0 (id INT PRIMARY KEY, v INT)",
        "INSERT INTO other.f0 VALUES (1, 1)",
    ]
    for session in range(SESSIONS):
        found += [
            f"CREATE TABLE legacy.f{session} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60), n INT)",
            f"CREATE TABLE legacy.g{session} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60))",
            f"CREATE TABLE legacy.h{session} (v VARCHAR(60))",
            f"CREATE TRIGGER legacy.t{session} BEFORE INSERT ON legacy.f{session} FOR EACH ROW"
            " SET @c = NEW.id, @d = CONCAT('t', COALESCE(NEW.v, ''))",
        ]
    found += [
        "CREATE FUNCTION legacy.setv(x INT) RETURNS INT DETERMINISTIC BEGIN SET @b = x; RETURN x; END",
        "CREATE FUNCTION legacy.lockf(x VARCHAR(40)) RETURNS INT DETERMINISTIC RETURN GET_LOCK(x, 0)",
        "CREATE FUNCTION legacy.calm(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
        "CREATE FUNCTION legacy.deep(x INT) RETURNS INT DETERMINISTIC RETURN legacy.setv(x) + 1",
        "CREATE PROCEDURE legacy.setp(x INT) BEGIN SET @a = x, @b = 'p'; END",
        "CREATE PROCEDURE legacy.two(x INT) BEGIN SELECT x AS one; SET @a = x; SELECT x + 1 AS two; END",
        "CREATE PROCEDURE legacy.dyn(x VARCHAR(200)) BEGIN SET @q = x; PREPARE dyn FROM @q; EXECUTE dyn;"
        " DEALLOCATE PREPARE dyn; END",
        "CREATE PROCEDURE legacy.outp(OUT x INT) SET x = 42",
        "CREATE PROCEDURE legacy.lockp(x VARCHAR(40)) DO GET_LOCK(x, 0)",
        "CREATE PROCEDURE legacy.tempp() CREATE TEMPORARY TABLE IF NOT EXISTS legacy.tmp (x INT)",
        "CREATE PROCEDURE legacy.buff() SET SESSION sort_buffer_size = 500000",
        "CREATE PROCEDURE legacy.insp(x INT) BEGIN INSERT INTO legacy.g0 (v) VALUES (x);"
        " SET @a = LAST_INSERT_ID(); DELETE FROM legacy.g0 WHERE id = @a; END",
        "CREATE PROCEDURE legacy.warn() SIGNAL SQLSTATE '01000'"
        " SET MESSAGE_TEXT = 'warned', MYSQL_ERRNO = 1642",
        "CREATE PROCEDURE legacy.fail() BEGIN SET @a = 'failed'; SIGNAL SQLSTATE '45000'"
        " SET MESSAGE_TEXT = 'no'; END",
    ]
    if mariadb:
        found.append("CREATE SEQUENCE legacy.sq NOCACHE")
    return found


def restore() -> str:
    """One text that brings all rows back."""
    parts = []
    for table in (*SHARDED, *SINGLE):
        keys = [key for mine in table.keys for key in mine]
        rows = [row for mine in table.rows for row in mine]
        names = {"demo.pins": "(id, data, ts)"}.get(table.name, "")
        parts.append(f"DELETE FROM {table.name} WHERE {table.key} IN ({', '.join(keys)})")
        parts.append(f"INSERT INTO {table.name} {names} VALUES {', '.join(rows)}")
    for session in range(SESSIONS):
        parts.append(f"DELETE FROM legacy.f{session}")
        parts.append(f"INSERT INTO legacy.f{session} VALUES {', '.join(own(session).rows[session])}")
    return ";".join(parts)


def restart(*, mariadb: bool) -> str:
    """One text that also brings counters back, and what a failed case may have left."""
    parts = ["DROP DATABASE IF EXISTS fz0", "DROP DATABASE IF EXISTS fz1", "DROP DATABASE IF EXISTS fz2"]
    for session in range(SESSIONS):
        parts += [f"TRUNCATE legacy.f{session}", f"TRUNCATE legacy.g{session}", f"TRUNCATE legacy.h{session}"]
    if mariadb:
        parts.append("ALTER SEQUENCE legacy.sq RESTART 1")
    return ";".join(parts)


def run(session: Session, text: str) -> None:
    """Run the statements of a text. AssertionError when one fails."""
    answers = session.ask(text.encode())
    assert answers[-1].kind == "ok", f"{answers[-1]}: {text[:300]}"


def removal(*, mariadb: bool) -> list[str]:
    """What takes away all of it."""
    found = ["DROP DATABASE IF EXISTS other"]
    found += [f"DROP DATABASE IF EXISTS fz{session}" for session in range(SESSIONS)]
    for table in (*SHARDED, *SINGLE):
        keys = [key for mine in table.keys for key in mine]
        found.append(f"DELETE FROM {table.name} WHERE {table.key} IN ({', '.join(keys)})")
    for session in range(SESSIONS):
        found.append(f"DROP TABLE IF EXISTS legacy.f{session}, legacy.g{session}, legacy.h{session}")
    for made in routines(mariadb=mariadb):
        verb, kind, name = made.replace("(", " ").split()[:3]
        if verb == "CREATE" and kind in ("FUNCTION", "PROCEDURE", "SEQUENCE"):
            found.append(f"DROP {kind} IF EXISTS {name}")
    return found
