"""SHOW PROXY ADVICE: what scatters, is gathered or is refused, and what would route it, without literals."""

from __future__ import annotations

import contextlib

import pymysql
import pytest

from tests.integration.binary import Binary, integer, text
from tests.integration.fixtures import MakeOwn, MakeRaw
from tests.support.demo import Demo


def test_what_does_not_go_to_one_shard(demo: Demo) -> None:
    with demo.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT data AS probe_advice FROM pins WHERE id = 68719476737")
        for name in ("secret", "hidden"):
            cursor.execute(
                f"SELECT id AS probe_advice FROM users WHERE JSON_VALUE(data, '$.email') = '{name}@mail'"
            )
        cursor.execute("SELECT user_id AS probe_advice FROM user_likes_pins WHERE pin_id = 68719476737")
        cursor.execute(
            "SELECT b.pin_id AS probe_advice FROM usernames u JOIN board_has_pins b "
            "ON b.board_id = u.user_id WHERE u.username = 'secret'"
        )
        with contextlib.suppress(pymysql.MySQLError):
            cursor.execute("UPDATE pins AS probe_advice SET data = 'x' WHERE ts < '1970-12-31'")
        cursor.execute("SHOW PROXY ADVICE LIKE '%probe\\_advice%'")
        names = [column[0] for column in cursor.description or ()]
        found = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    assert names == ["Digest", "Db", "Plan", "Shards", "Count", "Errors", "Total_ms", "Mean_ms", "Advice"]
    assert not any(
        "secret" in str(row) or "hidden" in str(row) or "1970" in str(row) for row in found.values()
    )
    mine = {text: row for text, row in found.items() if "probe_advice" in text}
    email = mine["SELECT id AS probe_advice FROM users WHERE JSON_VALUE(data, ?) = ?"]
    assert (email["Db"], email["Plan"], email["Shards"]) == ("demo", "scatter", "64")
    assert email["Count"] == 2
    assert 0 < float(email["Mean_ms"]) <= float(email["Total_ms"])
    likes = mine["SELECT user_id AS probe_advice FROM user_likes_pins WHERE pin_id = ?"]
    assert "SELECT user_id FROM pin_liked_by_user WHERE pin_id = ?" in likes["Advice"]
    joined = next(row for text, row in mine.items() if "JOIN" in text)
    assert joined["Plan"] == "gather"
    assert "make usernames a reference table" in joined["Advice"]
    refused = found["UPDATE pins AS probe_advice SET data = ? WHERE ts < ?"]
    assert (refused["Plan"], refused["Errors"]) == ("refused", 1)
    assert refused["Advice"].startswith("1105 (HY000): UPDATE names no ID")
    assert "unless it says so. Add a condition" in refused["Advice"]
    assert "SELECT data AS probe_advice FROM pins WHERE id = ?" not in found


def test_prepared_statements(demo: Demo, raw: MakeRaw) -> None:
    client = Binary(raw())
    sql = "SELECT id AS probe_prepared, ? AS said FROM users WHERE JSON_VALUE(data, '$.email') = ?"
    assert client.run(sql, text("secret"), text("secret@mail")).kind == "rows"
    assert client.run("SELECT id AS probe_prepared FROM users WHERE id = ?", integer(5)).kind == "rows"
    with demo.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW PROXY ADVICE LIKE '%probe\\_prepared%'")
        (found,) = cursor.fetchall()
    assert found[0] == "SELECT id AS probe_prepared, ? AS said FROM users WHERE JSON_VALUE(data, ?) = ?"
    assert (found[2], found[3], found[4]) == ("scatter", "64", 1)
    assert "secret" not in str(found)


def test_a_change_of_topology_forgets_nothing(own: MakeOwn) -> None:
    proxy = own()
    client = proxy.raw()
    for _ in range(2):
        client.ask("SELECT id AS kept FROM users WHERE JSON_VALUE(data, '$.email') = 'secret@mail'")
    client.ask("SELECT data AS kept FROM pins WHERE id = 68719476737")
    proxy.change_topology(proxy.topology | {"version": proxy.topology["version"] + 1})
    ((digest, *_, count), *others) = [row[:5] for row in client.ask("SHOW PROXY ADVICE LIKE '%kept%'").rows]
    assert (digest, count) == (b"SELECT id AS kept FROM users WHERE JSON_VALUE(data, ?) = ?", b"2")
    assert not others
    client.ask("SELECT id AS kept FROM users WHERE JSON_VALUE(data, '$.email') = 'secret@mail'")
    ((*_, count),) = [row[:5] for row in client.ask("SHOW PROXY ADVICE LIKE '%kept%'").rows]
    assert count == b"3"


def test_like(demo: Demo) -> None:
    with demo.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) AS probe_like FROM pins WHERE ts > '2001-01-01'")
        cursor.execute("SHOW PROXY ADVICE LIKE '%probe\\_like%'")
        assert [row[0] for row in cursor.fetchall()] == [
            "SELECT COUNT(*) AS probe_like FROM pins WHERE ts > ?"
        ]


@pytest.mark.one_server
def test_for_admins(demo: Demo) -> None:
    with (
        demo.connect(user="reader", password="reader") as connection,
        connection.cursor() as cursor,
        pytest.raises(pymysql.OperationalError) as refused,
    ):
        cursor.execute("SHOW PROXY ADVICE")
    assert refused.value.args[0] == 1142
