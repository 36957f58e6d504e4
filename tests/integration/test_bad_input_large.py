"""Statements that are too much: too deep, too long, with too many values. An error, or the answer, and the
connection goes on.
"""

from __future__ import annotations

import pytest

from tests.integration.binary import Binary, integer
from tests.integration.binary import text as string
from tests.integration.fixtures import MakeOwn, MakeRaw, make_id
from tests.integration.raw import Raw
from tests.integration.test_bad_input import check

MANY = [make_id(n % 64, 1, n) for n in range(1, 100_001)]
NUMBERS = ",".join(map(str, MANY))
QUOTED = ",".join(f"'{id}'" for id in MANY)


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    return raw()


@pytest.mark.one_server
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM pins WHERE id IN ({})",
        "SELECT COUNT(*) FROM pins WHERE id NOT IN ({})",
        "SELECT DISTINCT ts FROM pins WHERE id IN ({})",
        "SELECT COUNT(*) FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE p.id IN ({})",
        "UPDATE pins SET ts = ts WHERE id IN ({})",
        "DELETE FROM board_has_pins WHERE board_id IN ({})",
        "SELECT * FROM email_to_user WHERE email IN ({})",
    ],
)  # fmt: skip
def test_100_000_ids(client: Raw, sql: str) -> None:
    """Each kind of plan refuses them, however they are written."""
    check(client, sql.format(QUOTED), 1105, "HY000", "100000 values", "limits.in_list")
    if "email" not in sql:
        check(client, sql.format(NUMBERS), 1105, "HY000", "100000 values", "limits.in_list")


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("sql", "each", "between"),
    [
        ("SELECT id FROM pins WHERE {}", "id = {}", " OR "),
        ("SELECT COUNT(*) FROM pins WHERE (id, 1) IN ({})", "({}, 1)", ","),
        ("SELECT DISTINCT ts FROM pins WHERE id IN (NULL, 'x', {})", "{}", ","),
        ("UPDATE pins SET ts = CASE {} END WHERE id = 5", "WHEN id = {} THEN ts", " "),
    ],
)
def test_100_000_ids_elsewhere(client: Raw, sql: str, each: str, between: str) -> None:
    values = between.join(each.format(id) for id in MANY)
    check(client, sql.format(values), 1105, "HY000", "limits.in_list")


@pytest.mark.one_server
def test_values_that_do_not_route(client: Raw) -> None:
    """Any server takes these, so they are answered."""
    some = ",".join(map(str, MANY[:20_000]))
    found = client.ask(f"SELECT COUNT(*) FROM board_has_pins WHERE pin_id IN ({some})")
    assert found.kind == "rows", found
    assert client.ask(f"SELECT 5 IN ({NUMBERS})").value == b"0"


@pytest.mark.one_server
def test_ids_of_all_kinds(client: Raw) -> None:
    """Strings, NULLs, floats, hex, duplicates, negative and overflowing numbers among IDs: found is what is
    an ID.
    """
    pins = [int(row[0] or 0) for row in client.ask("SELECT id FROM pins ORDER BY id LIMIT 4").rows]
    one, two, three, four = pins
    odd = f"'{one}', {two}.0, 0x{three:x}, NULL, -5, -{four}, 'x', '', 1.5, 1e3, {1 << 64}, {two}, {four}"
    for sql in (
        f"SELECT id FROM pins WHERE id IN ({odd}) ORDER BY id",
        f"SELECT DISTINCT id FROM pins WHERE id IN ({odd}) ORDER BY id",
        f"SELECT id FROM pins WHERE id IN ({one}, {two}, {two}, {three}, -1, {1 << 70}, {four}) ORDER BY id",
    ):
        assert [int(row[0] or 0) for row in client.ask(sql).rows] == pins, sql
    for nothing in ("NULL", "NULL, NULL", "'x'", "-1", "99999999999999999999", "x''", "1.5", "b'1'"):
        for select in ("id", "DISTINCT id"):
            reply = client.ask(f"SELECT {select} FROM pins WHERE id IN ({nothing})")
            assert (reply.kind, reply.columns, reply.rows) == ("rows", ["id"], []), (nothing, reply)
    for verb in (
        f"UPDATE pins SET ts = ts WHERE id IN (NULL, -1, {1 << 64})",
        "DELETE FROM pins WHERE id IN (NULL)",
    ):
        reply = client.ask(verb)
        assert (reply.kind, reply.affected) == ("ok", 0), (verb, reply)


@pytest.mark.one_server
def test_many_parameters(raw: MakeRaw) -> None:
    binary = Binary(raw())
    marks = ",".join("?" * 10_001)
    select = binary.statement(f"SELECT id FROM pins WHERE id IN ({marks})")
    answer = binary.execute(select.id, [integer(id) for id in MANY[:10_001]])
    assert answer.code == 1105, answer
    assert "10001 values" in answer.message
    fewer = binary.statement(f"SELECT id FROM pins WHERE id IN ({marks[:-2]})")
    for values in ([integer(id) for id in MANY[:10_000]], [string(str(id)) for id in MANY[:10_000]]):
        assert binary.execute(fewer.id, values).rows


@pytest.mark.one_server
def test_an_insert_of_many_rows(client: Raw) -> None:
    """Nothing in it is quadratic; over several hosts, with and without IDs."""
    boards = [make_id(n % 64, 2, (1 << 30) + n) for n in range(4_000)]
    reply = client.ask(
        "INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES "
        + ",".join(f"({one}, 1, {n})" for n, one in enumerate(boards))
    )
    assert (reply.kind, reply.affected) == ("ok", 4_000), reply
    try:
        bad = "INSERT INTO board_has_pins VALUES " + ",".join("(1, 1)" for _ in range(4_000))
        check(client, bad, 1136, "21S01")
        assert client.ask("SELECT COUNT(*) FROM board_has_pins WHERE pin_id = 1").value == b"4000"
    finally:
        assert client.ask("DELETE /*+ scatter */ FROM board_has_pins WHERE pin_id = 1").kind == "ok"


def nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


@pytest.mark.one_server
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + nested("(", "1", ")", 10_000),
        "SELECT id FROM pins WHERE id = " + nested("(", "1", ")", 10_000),
        "UPDATE pins SET ts = " + nested("(", "1", ")", 10_000) + " WHERE id = 5",
        "INSERT INTO pins (data) VALUES (" + nested("(", "1", ")", 10_000) + ")",
        "SELECT 1 FROM pins WHERE id IN " + nested("(SELECT id FROM pins WHERE id IN ", "(1)", ")", 200),
        "SELECT COUNT(*) FROM " + nested("(SELECT * FROM ", "pins", ") d", 250),
    ],
)  # fmt: skip
def test_too_deep(client: Raw, sql: str) -> None:
    check(client, sql, 1105, "HY000", "limits.parse_depth")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM pins WHERE id = " + "(" * 100_000,
        "SELECT id FROM pins WHERE id = " + ")" * 100_000,
        "SELECT id FROM pins WHERE id IN ()",
        "SELECT id FROM pins WHERE id IN (1,)",
        "SELECT DISTINCT id FROM pins WHERE id IN (,1)",
        "UPDATE pins SET ts = ts WHERE id IN ()",
        "DELETE FROM pins WHERE id IN (5, )",
        "SELECT id FROM pins ORDER BY id LIMIT 18446744073709551616",
        "SELECT DISTINCT id FROM pins ORDER BY id LIMIT 18446744073709551616",
        "SELECT id FROM pins LIMIT -1",
        "SELECT id FROM pins LIMIT 1.5",
        "SELECT id FROM pins LIMIT 5 OFFSET -1",
        "SELECT id FROM pins LIMIT 1 + 1",
        "UPDATE pins SET ts = ts WHERE id = 5 LIMIT -1",
        "UPDATE pins SET ts = ts WHERE id = 5 LIMIT 1, 2",
        "DELETE FROM pins WHERE id = 5 LIMIT 'x'",
        "SELECT id FROM pins WHERE id = '" + "x" * 1_000_000,
        "SELECT id FROM pins WHERE id = `" + "x" * 100_000,
        "SELECT id FROM pins /* " + "x" * 100_000,
        "SELECT id FROM pins WHERE id = 5 \0\0",  # (one is the end of a string in C)
    ],
)
def test_the_servers_syntax_error(client: Raw, sql: str) -> None:
    check(client, sql, 1064, "42000")


@pytest.mark.one_server
@pytest.mark.parametrize("sql", ["", " ", ";", "-- x", "# x", "/* x */", "/* x */;", "\n;\n"])
def test_nothing_to_run(client: Raw, sql: str) -> None:
    assert client.ask(sql).code in (0, 1065, 1064), sql
    assert client.ask("SELECT 'usable'").value == b"usable"


@pytest.mark.one_server
def test_large_limits(client: Raw) -> None:
    for limit in (
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551615 OFFSET 18446744073709551615",
    ):
        expected = 0 if "OFFSET" in limit else 300
        for select in ("SELECT id FROM users", "SELECT DISTINCT id FROM users ORDER BY id"):
            assert len(client.ask(f"{select} LIMIT {limit}").rows) == expected, (select, limit)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} FROM pins",
        "SELECT DISTINCT {} FROM pins",
        "SELECT id FROM pins WHERE {} = 5",
        "SELECT id FROM pins WHERE id = 5 AND {} = 5",
        "SELECT id FROM pins ORDER BY {}",
        "SELECT COUNT(*) FROM pins GROUP BY {}",
        "SELECT COUNT(*) c FROM pins GROUP BY ts HAVING {} = 5",
        "SELECT p.id FROM pins p JOIN boards b ON p.{} = b.id",
        "SELECT id FROM pins WHERE id IN (SELECT {} FROM boards)",
        "SELECT id FROM pins WHERE EXISTS (SELECT 1 FROM boards b WHERE b.{} = pins.id)",
        "SELECT x.{} FROM (SELECT id FROM pins) x",
        "WITH c AS (SELECT id FROM pins) SELECT {} FROM c",
        "SELECT id FROM pins UNION SELECT {} FROM boards",
        "SELECT SUM(id) OVER (ORDER BY {}) FROM pins",
        "INSERT INTO board_has_pins (board_id, pin_id, {}) VALUES (5, 5, 5)",
    ],
)  # fmt: skip
def test_unknown_columns(client: Raw, sql: str) -> None:
    for name in ("nosuch", "`no such`"):
        check(client, sql.format(name), 1054, "42S22", name.strip("`"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM pins, boards",
        "SELECT p.id FROM pins p, boards b WHERE ts > 5",
        "SELECT p.id FROM pins p JOIN boards b ON id = 5",
        "SELECT p.id FROM pins p JOIN boards b ON p.id = b.id ORDER BY ts",
        "SELECT COUNT(*) FROM pins p JOIN boards b ON p.id = b.id GROUP BY data",
        "SELECT 1 FROM pins WHERE id = (SELECT MAX(ts) FROM boards b JOIN users u WHERE ts = 5)",
    ],
)
def test_ambiguous_columns(client: Raw, sql: str) -> None:
    reply = client.ask(sql)
    assert (reply.code, reply.sqlstate) == (1052, "23000"), reply
    assert client.ask("SELECT 'usable'").value == b"usable"


def test_text_that_is_not_utf8(client: Raw) -> None:
    """In a comment, a name, a string: the server's own answer, for every kind of plan."""
    for sql in (
        b"SELECT id /* \xff\xfe */ FROM pins WHERE id = 5",
        b"SELECT DISTINCT '\xff' FROM pins WHERE id IN (5, 6)",
        b"SELECT id FROM pins WHERE data = '\xc3\x28'",
        b"SELECT `\xff` FROM pins",
        b"SELECT id FROM `\xff`",
        b"INSERT INTO users (data) VALUES ('\xff')",
        b"UPDATE pins SET data = '\xff' WHERE id = 5",
    ):
        client.ask(sql)
        assert client.ask("SELECT 'usable'").value == b"usable"


@pytest.mark.one_server
def test_too_long(own: MakeOwn) -> None:
    client = own({"limits": {"max_statement": "1MB"}}).raw()
    long = "x" * (1 << 20)
    for sql in (
        f"SELECT id FROM pins WHERE id = '{long}'",
        f"SELECT DISTINCT id FROM pins WHERE data = '{long}'",
        f"INSERT INTO users (data) VALUES ('{long}')",
    ):
        check(client, sql, 1153, "HY000", "limits.max_statement")
