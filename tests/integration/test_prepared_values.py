"""Values in prepared statements, bit for bit: through the proxy, on tables that are sharded or not, and
straight from the server. Compared are the very packets of definitions and rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration import binary as b
from tests.integration import everything
from tests.integration.binary import Answer, Binary, Param
from tests.integration.everything import COLUMNS, ODD, OWN
from tests.integration.fixtures import MakeOwn, make_id
from tests.integration.raw import Raw
from tests.integration.replies import column_name
from tests.sessions.test_tracking import SESSION_TRACK, changes
from tests.support.demo import Demo


class Sides(NamedTuple):
    """The same statements on a plain server, through the proxy to it, and through the proxy to shards."""

    direct: Binary
    passed: Binary
    sharded: Binary

    def do(self, sql: str) -> None:
        for side in self:
            reply = side.raw.ask(sql)
            assert reply.kind == "ok", reply


@pytest.fixture(scope="module")
def schema(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The schema with `vals`, whose databases are there."""
    with everything.databases(demo):
        yield everything.schema_file(demo, tmp_path_factory.mktemp("schema"))


@pytest.fixture
def sides(demo: Demo, schema: Path, own: MakeOwn) -> Iterator[Sides]:
    proxy = own({"schema": str(schema)}, everything.topology(demo))
    host = demo.masters[0]
    with Raw(host.host, host.port) as direct:
        reply = direct.login(host.user, host.password, "plain_vals")
        assert reply.kind == "ok", reply
        passed, sharded = (Binary(proxy.raw(database=name)) for name in ("passed_vals", "vals"))
        found = Sides(Binary(direct), passed, sharded)
        found.do("SET NAMES utf8mb4, sql_mode = '', time_zone = '+00:00'")
        yield found
        found.do("DELETE /*+ scatter */ FROM everything")


def ids(count: int) -> list[int]:
    """IDs of `everything`, on all shards in turn."""
    return [make_id(n % everything.SHARDS, 9, n // everything.SHARDS + 1) for n in range(count)]


def what(answer: Answer) -> tuple[object, ...]:
    """What must be the same of an answer."""
    if answer.kind == "err":
        return "err", answer.code
    if answer.kind == "ok":
        return "ok", answer.ok.affected, answer.warnings
    return "rows", [typed(one) for one in answer.definitions], answer.rows, answer.warnings


def typed(definition: bytes) -> bytes:
    """A definition without the names of database and table: its fixed part, and the column's name."""
    return definition[-13:] + column_name(definition).encode()


def shown(definition: bytes) -> tuple[object, ...]:
    """A definition's name, character set, type and decimals. (The length depends on temporary tables.)"""
    _, collation, _, type_, _, decimals = struct.unpack("<BHIBHBxx", definition[-13:])
    return column_name(definition), collation, type_, decimals


def test_own_types(sides: Sides) -> None:
    """What each type of column is made for, written and read, one column at a time and all at once."""
    count = max(map(len, OWN.values()))
    numbers = ids(count)
    for side in sides:
        for row, number in enumerate(numbers):
            names, given = ["id"], [b.integer(number, unsigned=True)]
            for name, values in OWN.items():
                if row < len(values) and name != "place":  # MariaDB takes no POINT in a row of many
                    names.append(name)
                    given.append(values[row])
            marks = ", ".join("?" for _ in names)
            answer = side.run(f"INSERT INTO everything ({', '.join(names)}) VALUES ({marks})", *given)
            assert answer.kind == "ok", (row, sides.index(side), answer)
    for sql, parameters in (
        ("SELECT * FROM everything WHERE id = ?", [[b.integer(one)] for one in numbers]),
        *((f"SELECT `{name}` FROM everything WHERE id = ?", [[b.integer(numbers[0])]]) for name in COLUMNS),
    ):
        for given in parameters:
            answers = [side.run(sql, *given) for side in sides]
            assert answers[0].rows, sql
            assert what(answers[1]) == what(answers[0]), sql
            assert what(answers[2])[2:] == what(answers[0])[2:], sql
            for mine, theirs in zip(answers[2].definitions, answers[0].definitions, strict=True):
                if column_name(mine) != "id":
                    assert typed(mine) == typed(theirs)


def test_over_shards(sides: Sides) -> None:
    """Rows of several shards in one answer."""
    numbers = ids(8)
    for side in sides:
        for row, number in enumerate(numbers):
            for name, values in OWN.items():
                value = values[row % len(values)]
                sql = f"INSERT INTO everything (id, `{name}`) VALUES (?, ?)"
                sql += f" ON DUPLICATE KEY UPDATE `{name}` = ?"
                answer = side.run(sql, b.integer(number), value, value)
                assert answer.kind == "ok", (name, sides.index(side), answer)
    marks = ", ".join("?" for _ in numbers)
    given = [*(b.integer(number) for number in numbers), b.integer(7)]
    for shown in (*(f"`{name}`" for name in COLUMNS), "*"):
        sql = f"SELECT {shown} FROM everything WHERE id IN ({marks}) ORDER BY id LIMIT ?"
        answers = [side.run(sql, *given) for side in sides]
        assert len(answers[0].rows) == 7
        assert answers[1].rows == answers[0].rows, shown
        assert answers[2].rows == answers[0].rows, shown


#: Equal as text of six digits, or 0.
ALIKE = (
    1234567.0,
    1234568.0,
    0.1,
    0.10000001,
    16777216.0,
    16777215.0,
    -0.0,
    1e-40,
    0.0,
    -1234567.0,
    -1234566.5,
)

ROUNDED = (
    "SELECT * FROM everything WHERE id IN ({ids}) ORDER BY single, id",
    "SELECT single, rounded, ratio FROM everything WHERE id IN ({ids}) ORDER BY single DESC LIMIT ? OFFSET 3",
    "SELECT id, single AS x FROM everything WHERE id IN ({ids}) ORDER BY x LIMIT ?",
    "SELECT id, single FROM everything WHERE id IN ({ids}) ORDER BY 2, 1 LIMIT ?",
    "SELECT id FROM everything WHERE id IN ({ids}) ORDER BY single, id LIMIT ?",
    "SELECT single * 2, single + 0.1e0, -single, rounded / 3, IF(id > 1, single, 0), COALESCE(single, 1)"
    " FROM everything WHERE id IN ({ids}) ORDER BY id",
    "SELECT IFNULL(single, 1) AS x, CASE WHEN id > 5 THEN single END FROM everything"
    " WHERE id IN ({ids}) ORDER BY 1, id",
    "SELECT MIN(single), MAX(single), MAX(rounded), COUNT(*) FROM everything WHERE id IN ({ids})",
    "SELECT AVG(single), MAX(single) FROM everything",
    "SELECT MAX(single) FROM everything WHERE single < ?",
    "SELECT single, COUNT(*), MIN(id) FROM everything GROUP BY single ORDER BY single",
    "SELECT single, MAX(rounded) FROM everything GROUP BY single HAVING single > ? ORDER BY 1",
    "SELECT DISTINCT single FROM everything ORDER BY single DESC",
    "SELECT id, MAX(single) FROM everything GROUP BY id ORDER BY MAX(single), id",
    "SELECT a.single, b.ratio FROM everything a JOIN everything b ON a.id = b.id + 1 ORDER BY a.id",
    "SELECT single FROM everything WHERE single >= ? UNION SELECT rounded FROM everything ORDER BY 1",
    "SELECT single FROM everything WHERE id = (SELECT MAX(id) FROM everything WHERE single = ?)",
    "SELECT single, ROW_NUMBER() OVER (ORDER BY single, id) FROM everything ORDER BY 2",
    "SELECT single FROM everything WHERE single = 0.1 OR single = ? ORDER BY id",
)


def test_what_text_would_round(sides: Sides) -> None:
    """FLOAT and DOUBLE(M,D) over several shards, bit for bit, in the order of all their bits."""
    numbers = ids(len(ALIKE))
    for side in sides:
        for number, value in zip(numbers, ALIKE, strict=True):
            sql = "INSERT INTO everything (id, single, rounded, ratio) VALUES (?, ?, ?, ?)"
            given = [b.integer(number), b.single(value), b.double(value % 1000), b.double(value / 3)]
            assert side.run(sql, *given).kind == "ok"
    listed = ", ".join(map(str, numbers))
    for text in ROUNDED:
        sql = text.replace("{ids}", listed)
        given = [b.integer(5)] if "LIMIT ?" in sql else [b.single(0.1)] if "?" in sql else []
        direct, passed, sharded = (side.run(sql, *given) for side in sides)
        assert direct.rows, sql
        assert passed.rows == direct.rows, sql
        assert sharded.rows == direct.rows, sql
        assert list(map(shown, sharded.definitions)) == list(map(shown, direct.definitions)), sql
        assert (sharded.status & 3, sharded.warnings) == (direct.status & 3, direct.warnings), sql
    # as text their order is the same, too
    sql = f"SELECT single, id FROM everything WHERE id IN ({listed}) ORDER BY single, id"
    assert sides.sharded.raw.ask(sql).rows == sides.direct.raw.ask(sql).rows


def test_returning_what_text_would_round(sides: Sides, flavour: str) -> None:
    """From one shard bit for bit, from several not."""
    if flavour != "mariadb":
        pytest.skip("only MariaDB has RETURNING")
    numbers = ids(4)
    for side in sides:
        for number in numbers:
            sql = "INSERT INTO everything (id, single, whole) VALUES (?, ?, 1)"
            side.run(sql, b.integer(number), b.single(1234567))
    for number, shown_as in zip(numbers, ("single", "*", "whole", "ratio, single AS x"), strict=True):
        sql = f"DELETE FROM everything WHERE id = ? RETURNING {shown_as}"
        direct, _, sharded = (side.run(sql, b.integer(number)) for side in sides)
        assert direct.rows
        assert sharded.rows == direct.rows
    several = "DELETE FROM everything WHERE id IN (?, ?) RETURNING "
    given = [b.integer(number) for number in numbers[:2]]
    assert sides.sharded.run(several + "whole", *given).kind == "rows"
    refused = sides.sharded.run(several + "id, single", *given)
    assert (refused.code, "FLOAT" in refused.message) == (1235, True)
    insert = "INSERT INTO everything (id, single) VALUES (?, ?) RETURNING single, id"
    direct, _, sharded = (side.run(insert, b.integer(numbers[0]), b.single(1234567)) for side in sides)
    assert sharded.rows == direct.rows


def test_what_text_would_round_where_transactions_are_tracked(demo: Demo, schema: Path, own: MakeOwn) -> None:
    """What is prepared for one execution is tracked as any statement is."""
    proxy = own({"schema": str(schema)}, everything.topology(demo))
    host, number = demo.masters[0], b.integer(ids(1)[0])
    found = []
    with Raw(host.host, host.port) as direct:
        through = proxy.raw(login=False)
        assert direct.login(host.user, host.password, "plain_vals", flags=SESSION_TRACK).kind == "ok"
        assert through.login(database="vals", flags=SESSION_TRACK).kind == "ok"
        for raw in (direct, through):
            for sql in ("SET sql_mode = '', session_track_transaction_info = 'STATE'", "BEGIN"):
                assert raw.ask(sql).kind == "ok"
            client = Binary(raw)
            insert = client.run(
                "INSERT INTO everything (id, single) VALUES (?, ?)", number, b.single(1234567)
            )
            select = client.run("SELECT single FROM everything WHERE id = ?", number)
            update = client.run("UPDATE everything SET whole = 1 WHERE id = ?", number)
            found.append((changes(insert.payload), select.rows, changes(update.payload)))
            assert raw.ask("ROLLBACK").kind == "ok"
    assert found[0] == found[1]
    assert found[0][0] == [(5, "T___W___")]
    assert [row[-4:] for row in found[0][1]] == [struct.pack("<f", 1234567)]


DERIVED: list[tuple[str, list[Param]]] = [
    ("price * ?", [b.integer(2), b.text("2.5", b.NEWDECIMAL), b.double(2.5), b.text("2.5"), b.NOTHING]),
    ("whole + ?", [b.integer(2, b.LONG), b.text("2.5", b.NEWDECIMAL), b.double(2.5), b.text("2.5")]),
    ("whole - ?", [b.text("2"), b.text("17")]),
    ("IFNULL(SUM(whole), ?)", [b.integer(0)]),
    ("ratio + ?", [b.integer(2), b.text("2.5", b.NEWDECIMAL)]),
    ("ABS(?) + id * 0", [b.integer(2), b.text("2.5", b.NEWDECIMAL)]),
    ("COALESCE(moment6, ?)", [b.text("2012-02-23 10:11:12"), b.moment(b.DATETIME, 2012, 2, 23, 10, 11, 12)]),
    ("IFNULL(day, ?)", [b.text("2012-02-23"), b.moment(b.DATE, 2012, 2, 23)]),
    ("name = ?", [b.text("x"), b.integer(0)]),
    ("price > ?", [b.integer(0), b.text("0.5", b.NEWDECIMAL)]),
]
OF_INTEGERS: tuple[str, ...] = (
    *("? + whole", "uwhole - ?", "COALESCE(?, id)", "COALESCE(?, MIN(id))", "? + MAX(whole)"),
    *("GREATEST(?, MIN(ubig))", "IFNULL(?, COUNT(*))", "SUM(whole + ?)", "ROUND(MAX(whole), ?)"),
    *("MIN(whole | ?)", "CASE WHEN whole = 3 THEN ? ELSE whole END", "tiny = ?"),
)
"""Expressions whose parameters are whole numbers by their places."""


def test_types_of_parameters(sides: Sides, flavour: str) -> None:
    """MySQL gives a parameter the type of its place: `price * ?` has 30 decimals, whatever is bound."""
    if flavour == "mariadb":
        pytest.skip("MariaDB takes parameters as the literals that they are")
    numbers = ids(6)
    for side in sides:
        for number in numbers:
            sql = "INSERT INTO everything (id, price, whole, ratio, name) VALUES (?, ?, ?, ?, ?)"
            given = [b.integer(number), OWN["price"][1], b.integer(3), b.double(0.5), b.text("x")]
            assert side.run(sql, *given).kind == "ok"
    for expression, values in DERIVED:
        for value in values:
            sql = f"SELECT {expression} AS x FROM everything WHERE id IN ({', '.join(map(str, numbers))})"
            direct, passed, sharded = (side.run(sql, value) for side in sides)
            assert passed.rows == direct.rows, (sql, value)
            assert sharded.rows == direct.rows, (sql, value)
            assert list(map(shown, sharded.definitions)) == list(map(shown, direct.definitions)), (sql, value)


BY_BOUND_TYPES: tuple[str, ...] = (
    *("price * ?", "? * price", "price + ?", "MAX(price * ?)", "SUM(price + ?)", "whole_price - ?"),
    *(
        "12.50 * ?",
        "ROUND(price * ?, 3)",
        "rounded * ?",
        "IF(1, price, ?)",
        "price * ? + rounded",
        "ABS(price * ?)",
    ),
)
"""Expressions that are DECIMAL or DOUBLE as their parameter is."""


def test_decimals_of_expressions_with_parameters(sides: Sides, flavour: str) -> None:
    """One statement, executed with values of several types in turn: `price * ?` keeps its decimals."""
    numbers = ids(6)
    for side in sides:
        for number in numbers:
            sql = "INSERT INTO everything (id, price, whole_price, rounded) VALUES (?, ?, ?, ?)"
            given = [b.integer(number), b.text("30.5", b.NEWDECIMAL), b.integer(7), b.double(1.25)]
            assert side.run(sql, *given).kind == "ok"
    listed = ", ".join(map(str, numbers))
    values = [
        b.integer(-2),
        b.integer(2, b.TINY),
        b.text("2.50", b.NEWDECIMAL),
        b.integer(3),
        b.text("4", b.NEWDECIMAL),
        b.double(2.5),
        *([b.integer(5)] if flavour == "mariadb" else []),  # for MySQL it is a DOUBLE from now on
    ]
    for expression in BY_BOUND_TYPES:
        for rest in (f"WHERE id IN ({listed})", f"WHERE id = {numbers[0]}", "ORDER BY 1 LIMIT 2"):
            sql = f"SELECT {expression} AS x FROM everything {rest}"
            prepared = [side.statement(sql) for side in sides]
            for value in values:
                answers = [side.execute(one.id, [value]) for side, one in zip(sides, prepared, strict=True)]
                direct, _, sharded = answers
                assert direct.rows, sql
                assert sharded.rows == direct.rows, (sql, value)
                columns = [list(map(shown, one.definitions)) for one in (sharded, direct)]
                assert columns[0] == columns[1], (sql, value)


def test_null_has_the_type_that_mysql_gives_the_parameter(sides: Sides, flavour: str) -> None:
    if flavour == "mariadb":
        pytest.skip("MariaDB takes parameters as the literals that they are")
    numbers = ids(6)
    for side in sides:
        for number in numbers:
            insert = "INSERT INTO everything (id, whole, uwhole, ubig) VALUES (?, 3, 4, 5)"
            assert side.run(insert, b.integer(number)).kind == "ok"
    listed = ", ".join(map(str, numbers))
    for expression in OF_INTEGERS:
        for null in (b.NOTHING, Param(b.LONGLONG, None), Param(b.VAR_STRING, None)):
            sql = f"SELECT {expression} AS x FROM everything WHERE id IN ({listed}, {numbers[0]})"
            direct, _, sharded = (side.run(sql, null) for side in sides)
            assert sorted(sharded.rows) == sorted(direct.rows), (sql, null)
            assert list(map(shown, sharded.definitions)) == list(map(shown, direct.definitions)), (sql, null)
    for sql in ("SELECT id FROM everything WHERE id = ?", "SELECT id FROM everything ORDER BY id LIMIT ?"):
        for side in sides:
            assert side.run(sql, b.NOTHING).rows == [], sql


def test_a_float_comes_to_a_table(sides: Sides) -> None:
    """A statement that had none when it was prepared."""
    sql = "SELECT * FROM everything WHERE id IN (?, ?) ORDER BY id"
    numbers = ids(2)
    for side in sides:
        for number in numbers:
            side.run("INSERT INTO everything (id) VALUES (?)", b.integer(number))
    sides.do("ALTER TABLE everything DROP COLUMN single, DROP COLUMN rounded")
    try:
        given = [b.integer(number) for number in numbers]
        prepared = [side.statement(sql) for side in sides]
        before = [side.execute(one.id, given) for side, one in zip(sides, prepared, strict=True)]
        assert before[2].rows == before[0].rows
        sides.do("ALTER TABLE everything ADD COLUMN single FLOAT NOT NULL DEFAULT 1234567 FIRST")
        after = [side.execute(one.id, given) for side, one in zip(sides, prepared, strict=True)]
        assert after[2].names == after[0].names
        assert all(struct.pack("<f", 1234567) in row for row in after[2].rows)
    finally:
        for name in ("single", "rounded"):
            for side in sides:
                side.raw.ask(f"ALTER TABLE everything DROP COLUMN {name}")
            sides.do(f"ALTER TABLE everything ADD COLUMN {name} {COLUMNS[name]}")
        sides.do("ALTER TABLE everything MODIFY COLUMN single FLOAT NULL AFTER whole_price")
        sides.do("ALTER TABLE everything MODIFY COLUMN rounded DOUBLE(12,3) NULL AFTER ratio")


@pytest.mark.parametrize("strict", [False, True])
def test_odd_values(sides: Sides, flavour: str, strict: bool) -> None:
    """Every parameter into every column: the same value, the same warnings or the same error."""
    sides.do(f"SET sql_mode = '{'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE' if strict else ''}'")
    number = ids(1)[0]
    for side in sides:
        answer = side.run("INSERT INTO everything (id) VALUES (?)", b.integer(number))
        assert answer.kind == "ok", answer
    # as parameters, but not as literals, MySQL stores the largest integer as a negative TIME, and a DATETIME
    # as text without its microseconds
    strange = [(name, odd) for name in ("clock", "clock6") for odd in (ODD[6], ODD[9])]
    strange += [(name, ODD[13]) for name in ("fixed", "name", "latin", "bytes_", "body", "blob_")]
    wrong = []
    for name in COLUMNS:
        if name == "place":
            continue
        for odd in ODD if strict else ODD[::3]:
            update = f"UPDATE everything SET `{name}` = ? WHERE id = ?"
            done = [what(side.run(update, odd, b.integer(number)))[:2] for side in sides]
            read = (
                []
                if all(kind == "err" for kind, _ in done)
                else [
                    what(side.run(f"SELECT `{name}` FROM everything WHERE id = ?", b.integer(number)))[2]
                    for side in sides
                ]
            )
            if flavour == "mysql9" and (name, odd) in strange:
                done, read = done[:2], read[:2]
            if any(one != done[0] for one in done) or any(one != read[0] for one in read[1:]):
                wrong.append((name, odd, done, read))
    assert not wrong, "\n".join(map(str, wrong))


PARAMETERS: list[Param] = [*ODD, *(value for values in OWN.values() for value in values)]


def test_parameters_shown(sides: Sides) -> None:
    """`SELECT ?` on one host: the same definitions and the same bytes."""
    shown = [side.statement("SELECT ?, ? + 1, ?") for side in sides[:2]]
    for parameter in PARAMETERS:
        given = [parameter, parameter, b.text("x")]
        answers = [what(side.execute(one.id, given)) for side, one in zip(sides[:2], shown, strict=True)]
        assert answers[0] == answers[1], parameter
    long = "y" * 100_000
    for side in sides:
        one = side.statement("SELECT ?, ? + 1, ?")
        side.long_data(one.id, 0, b"begin ")
        side.long_data(one.id, 0, long.encode())
        answer = side.execute(one.id, [b.text("", b.BLOB), b.integer(1), b.text("z")], sent=[0])
        assert answer.rows[0].count(b"y") == len(long)


def test_vectors(demo: Demo, flavour: str) -> None:
    """Where other parameters have had MySQL prepare a statement again, it takes no VECTOR any more. To a
    client its new statement is new, though it may be an old one of the server's.
    """
    if flavour == "mariadb":
        pytest.skip("MariaDB 10.11 has no VECTOR")
    values = [b.integer(1, b.TINY, unsigned=True), b.text(b"\x00\x00\x80\x3f" * 3)]
    host = demo.masters[0]
    with Raw(host.host, host.port) as direct, Raw(demo.host, demo.port) as through:
        assert direct.login(host.user, host.password, "legacy").kind == "ok"
        assert through.login("demo", "demo", "legacy").kind == "ok"
        assert through.ask("CREATE TABLE vectors (n INT, v VECTOR(3))").kind == "ok"
        for side in (Binary(direct), Binary(through)):
            found = []
            for _ in range(2):
                statement = side.statement("INSERT INTO vectors VALUES (?, ?)")
                found += [side.execute(statement.id, values).code for _ in range(2)]
            assert found == [0, 6136] * 2
        assert through.ask("SELECT COUNT(*) FROM vectors WHERE v IS NOT NULL").value == b"4"
        assert through.ask("DROP TABLE vectors").kind == "ok"


@pytest.mark.parametrize("type_", [b.STRING, b.VAR_STRING, b.BLOB])
def test_bytes_that_are_no_text(sides: Sides, type_: int) -> None:
    """Some drivers send them as STRING. In the text for shards they stay what they are, and nobody is
    warned of them.
    """
    data = b"a\xff\x00'\\\xc3"
    for number in ids(6):
        sides.sharded.run("INSERT INTO everything (id) VALUES (?)", b.integer(number))
    for sql in (
        "SELECT ?",
        "SELECT ? FROM everything LIMIT 1",
        "SELECT CONCAT(?, 'x') FROM everything ORDER BY 1 LIMIT 1",
        "SELECT DISTINCT ? FROM everything",
        f"SELECT ? FROM everything WHERE id = {ids(1)[0]}",
    ):
        answer = sides.sharded.run(sql, b.text(data, type_))
        assert [data in row for row in answer.rows] == [True], sql
        assert answer.warnings == 0, sql


LONGER = (
    "JSON_SET('{}', '$.a', name)",
    "JSON_INSERT('{}', '$.a', big)",
    "JSON_ARRAY_APPEND('[]', '$', fixed_bytes)",
    "JSON_OBJECT('a', name)",
    "JSON_EXTRACT(JSON_ARRAY(name), '$[0]')",
    "JSON_UNQUOTE(JSON_EXTRACT(JSON_ARRAY(name), '$[0]'))",
    "ORD(name)",
    "COALESCE(NULL, bits)",
    "IF(id > 1, bits, NULL)",
    "CASE WHEN id > 1 THEN bits END",
    "MAX(bits)",
    "COALESCE(NULL, year_)",
    "IF(id > 1, year_, NULL)",
    "MIN(year_)",
    "CONCAT(single)",
    "IFNULL(single, 'none')",
    "CONCAT(rounded, 'x')",
    "CAST(ratio AS CHAR)",
    "UPPER(ratio)",
    "CONCAT_WS(',', ratio, ratio)",
    "REPEAT(ratio, 3)",
    "REPLACE(name, 'a', 'abc')",
    "FROM_UNIXTIME(name)",
    "AES_DECRYPT(AES_ENCRYPT(doc, 'k'), 'k')",
    "ratio / 2",
)


def test_what_a_union_would_cut(sides: Sides) -> None:
    """Values that are longer than a server expects of their expressions come as one server gives them."""
    row = (
        "bits = 5, year_ = '0000', single = -999.999, rounded = -9999999.999,"
        " ratio = -1.7976931348623157e308, name = '\U0001f600back\\\\slash \\0\\0 aaa',"
        " fixed_bytes = 'ab\\0\\1', big = -9223372036854775808,"
        """ doc = '{"a": [1, 2, {"b": "cdefg"}]}'"""
    )
    for number in ids(2 * everything.SHARDS):
        found = [side.raw.ask(f"INSERT INTO everything SET id = {number}, {row}").kind for side in sides]
        assert found == ["ok"] * 3
    for expression in LONGER:
        sql = f"SELECT {expression} FROM everything"
        direct, passed, sharded = (side.raw.ask(sql) for side in sides)
        assert direct.kind == "rows", direct
        assert sharded.rows == direct.rows, expression
        assert passed.rows == direct.rows, expression
