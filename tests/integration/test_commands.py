"""Every command that the proxy speaks, and those it does not."""

from __future__ import annotations

import pytest

from tests.integration import raw as wire
from tests.integration.fixtures import CHANGES, Connect, MakeRaw
from tests.integration.own import statements_like
from tests.integration.raw import IN_TRANS, command, packet
from tests.support.demo import Demo
from tests.support.waiting import wait_until


def test_ping_and_statistics(raw: MakeRaw, flavour: str) -> None:
    client = raw()
    assert client.ping().kind == "ok"
    client.write(command(wire.STATISTICS))
    line = client.packet().decode()
    assert line.startswith("Uptime: ")
    assert "Questions: " in line
    assert ("Flush tables: " in line) == (flavour == "mysql9")
    assert client.ping().kind == "ok"


def test_init_db(raw: MakeRaw) -> None:
    client = raw(database=None)
    assert client.ask("SELECT DATABASE()").rows == [(None,)]
    assert client.ask("SELECT * FROM pins LIMIT 1").code == 1046
    for name in (b"demo", b"legacy", b"db00003", b"information_schema"):
        assert client.do(wire.INIT_DB, name).kind == "ok", name
        assert client.ask("SELECT DATABASE()").value == name
    for name in (b"nowhere", b"db99999", b"\xff\xfe", b"a" * 300, b"`", b"x\0y"):
        reply = client.do(wire.INIT_DB, name)
        assert (reply.kind, reply.code) in (("err", 1049), ("err", 1102), ("err", 1059)), (name, reply)
        assert client.ask("SELECT DATABASE()").value == b"information_schema"
    assert client.do(wire.INIT_DB).code == 1046


def test_quit(raw: MakeRaw) -> None:
    client = raw()
    client.write(command(wire.QUIT))
    assert client.closed
    late = raw()
    late.write(wire.query("SELECT 1") + command(wire.QUIT) + wire.query("SELECT 2"))
    assert late.reply().value == b"1"
    assert late.closed


def test_field_list(raw: MakeRaw) -> None:
    client = raw()
    for argument, columns in (
        (b"pins\0", ["id", "data", "ts"]),
        (b"board_has_pins\0", ["board_id", "pin_id", "sequence"]),
        (b"usernames\0%name", ["username"]),
        (b"pins\0d%", ["data"]),
        (b"email_to_user\0", ["email", "user_id"]),
    ):
        reply = client.do(wire.FIELD_LIST, argument, fields=True)
        assert (reply.kind, reply.columns) == ("rows", columns), argument
        assert reply.in_order
    assert client.do(wire.FIELD_LIST, b"no_such_table\0", fields=True).code == 1146
    assert client.do(wire.FIELD_LIST, b"without an end", fields=True).kind == "err"
    client.do(wire.INIT_DB, b"legacy")
    assert client.do(wire.FIELD_LIST, b"customers\0", fields=True).columns[:2] == ["id", "name"]
    assert client.ping().kind == "ok"


def test_reset_connection(raw: MakeRaw) -> None:
    """All is as after log-in but for the current database."""
    client = raw()
    user = client.ask("INSERT INTO users (data) VALUES ('{}')").insert_id
    for sql in CHANGES:
        assert client.ask(sql).kind == "ok", sql
    reply = client.do(wire.RESET_CONNECTION)
    assert reply.kind == "ok"
    assert not reply.status & IN_TRANS
    assert reply.status & wire.AUTOCOMMIT
    assert client.ask("SELECT DATABASE(), @mine, LAST_INSERT_ID(), @@autocommit").rows == [
        (b"legacy", None, b"0", b"1")
    ]
    asked = "SELECT @@time_zone, @@character_set_client, @@sql_mode LIKE '%ANSI%'"
    assert client.ask(asked).rows == raw(database="legacy").ask(asked).rows
    assert client.ask("SELECT COUNT(*) FROM customers WHERE city = 'Nowhere'").value == b"0"
    assert client.ask(f"DELETE FROM demo.users WHERE id = {user}").affected == 1


@pytest.mark.parametrize("code", [0, 5, 6, 8, 11, 15, 16, 18, 19, 20, 21, 29, 77, 255])
def test_commands_that_are_not_spoken(raw: MakeRaw, code: int) -> None:
    """1047, and the connection goes on."""
    client = raw()
    for argument in (b"", b"SELECT 1", b"\0" * 20, b"\xff" * 300):
        reply = client.do(code, argument)
        assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1047, "08S01"), (code, reply)
    assert client.ask("SELECT 'on'").value == b"on"


def test_an_empty_packet_and_an_empty_statement(raw: MakeRaw) -> None:
    client = raw()
    client.write(packet(b""))
    reply = client.reply()
    assert (reply.kind, reply.code) == ("err", 1835)
    for sql in ("", "   ", ";", "-- nothing", "/* nothing */"):
        reply = client.ask(sql)
        assert (reply.kind, reply.code) in (("err", 1065), ("ok", 0)), (sql, reply)
    assert client.ask("SELECT 1").value == b"1"


def test_kill(raw: MakeRaw, connect: Connect, demo: Demo) -> None:
    """KILL QUERY ends the statement, KILL the connection; on one host and on several."""
    admin = raw()
    sleeping = "SELECT SLEEP(30 + 0 * id) AS kill_me FROM users WHERE id IN (%s)"
    ids = [(row[0] or b"").decode() for row in raw().ask("SELECT id FROM users ORDER BY id").rows]
    with demo.direct(0) as first, demo.direct(1) as second:
        for statement in (
            "SELECT SLEEP(30) AS kill_me",
            sleeping % ids[0],
            sleeping % ",".join(ids[:3] + ids[-3:]),
        ):
            victim = raw()
            victim.write(wire.query(statement))
            wait_until(
                lambda: statements_like(first, "%kill\\_me%") or statements_like(second, "%kill\\_me%"),
                "it runs",
            )
            assert admin.ask(f"KILL QUERY {victim.id}").kind == "ok"
            reply = victim.reply()
            assert (reply.kind, reply.code) == ("err", 1317) or reply.rows[:1] == [(b"1",)], (
                statement,
                reply,
            )
            wait_until(
                lambda: (
                    not statements_like(first, "%kill\\_me%") and not statements_like(second, "%kill\\_me%")
                ),
                "it is gone from the servers",
            )
            assert victim.ask("SELECT 'alive'").value == b"alive"
        victim = raw()
        victim.write(wire.query("SELECT SLEEP(30) AS kill_me"))
        wait_until(lambda: statements_like(first, "%kill\\_me%"), "it runs")
        assert admin.do(wire.PROCESS_KILL, victim.id.to_bytes(4, "little")).kind == "ok"
        wait_until(lambda: not statements_like(first, "%kill\\_me%"), "it is gone")
        with pytest.raises(wire.Closed):
            victim.reply()
        idle = raw()
        assert admin.ask(f"KILL {idle.id}").kind == "ok"
        with pytest.raises(wire.Closed):
            idle.exactly(1000)
    assert admin.ask("KILL 99999999").code == 1094
    assert admin.do(wire.PROCESS_KILL, b"\1").kind == "err"
    with pytest.raises(Exception) as error, connect(user="reader", password="reader").cursor() as cursor:
        cursor.execute(f"KILL {admin.id}")
    assert error.value.args[0] == 1095
    assert admin.ping().kind == "ok"
