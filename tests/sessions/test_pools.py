"""The pools' promise: a hundred clients with settings of their own share four connections to each server, and
none ever sees what another has set.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pytest
from pymysql import MySQLError
from pymysql.constants import CLIENT

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.support.servers import Connection

CLIENTS, TURNS, THREADS = 100, 400, 8

CHARSETS = ("utf8mb4", "latin1", "utf8mb3")
MODES = ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT,STRICT_TRANS_TABLES")
ZONES = ("SYSTEM", "+00:00", "+05:30", "-08:00")
LEVELS = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")
DATABASES = ("legacy", "demo", "pools", "db00003", "db00007")


class Client:
    """One client, what it has set, and how it looks at it."""

    def __init__(self, proxy: OwnProxy, number: int, isolation: str, user: int) -> None:
        choice = random.Random(number)
        self.number = number
        self.lock = Lock()
        self.user = user
        self.lists_variables = isolation == "tx_isolation"
        self.found_rows = number % 2 == 0
        self.autocommit = choice.random() < 0.7
        self.charset = choice.choice(CHARSETS)
        self.expected: dict[str, Any] = {
            "@@sql_mode": choice.choice(MODES),
            "@@time_zone": choice.choice(ZONES),
            f"@@{isolation}": choice.choice(LEVELS),
            "@@character_set_client": self.charset,
            "@@character_set_results": self.charset,
            "@@collation_connection": f"{self.charset}_bin",
            "@@autocommit": int(self.autocommit),
            "@@group_concat_max_len": 4000 + number,
            "@@foreign_key_checks": choice.randrange(2),
            "@@unique_checks": choice.randrange(2),
            "DATABASE()": choice.choice(DATABASES),
            "@number": number,
            "@word": f"w{number}" if number % 3 else None,
        }
        flags = CLIENT.FOUND_ROWS if self.found_rows else 0
        self.connection: Connection = proxy.connect(
            database=self.expected["DATABASE()"], client_flag=flags, autocommit=None
        )
        self.asked = "SELECT " + ", ".join(self.expected)

    def prepare(self) -> None:
        with self.connection.cursor() as cursor:
            for name, value in self.expected.items():
                if name.endswith("_checks") and value == 1:
                    continue  # so it is by itself
                if name.startswith("@@character") or name in ("DATABASE()", "@@collation_connection"):
                    continue
                if value is not None:
                    text = f"'{value}'" if isinstance(value, str) else value
                    cursor.execute(f"SET {name.replace('@@', 'SESSION ')} = {text}")
            cursor.execute(f"SET NAMES {self.charset} COLLATE {self.charset}_bin")

    def turn(self, kind: int) -> list[str]:
        """Do something, look at everything; what is wrong."""
        with self.lock, self.connection.cursor() as cursor:
            wrong = KINDS[kind](self, cursor)
            return [f"client {self.number}: {text}" for text in wrong] + self._look(cursor)

    def _look(self, cursor: Any) -> list[str]:
        cursor.execute(self.asked)
        found = dict(zip(self.expected, cursor.fetchone(), strict=True))
        return [
            f"client {self.number}: {name} is {found[name]!r}, not {value!r}"
            for name, value in self.expected.items()
            if found[name] != value
        ]

    def _change(self, cursor: Any) -> list[str]:
        """Settings are not set once for all."""
        self.expected["@@group_concat_max_len"] += 1000
        self.expected["@number"] += 1000
        cursor.execute("SET group_concat_max_len = @@group_concat_max_len + 1000")
        cursor.execute("SET @number = @number + 1000")
        return []

    def _temporary(self, cursor: Any) -> list[str]:
        """A temporary table of a name that all use."""
        cursor.execute("CREATE TEMPORARY TABLE pools.mine (n INT)")
        cursor.execute("INSERT INTO pools.mine VALUES (%s)", (self.number,))
        cursor.execute("SELECT n, @number FROM pools.mine")
        rows = cursor.fetchall()
        cursor.execute("DROP TEMPORARY TABLE pools.mine")
        cursor.execute("COMMIT")
        return [] if rows == ((self.number, self.expected["@number"]),) else [f"temporary table: {rows}"]

    def _transact(self, cursor: Any) -> list[str]:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT {next(iter(self.expected))} FROM pools.flags")
        cursor.execute("SELECT @@group_concat_max_len, @number FROM pools.flags WHERE id = 1")
        rows = cursor.fetchall()
        cursor.execute("ROLLBACK")
        wanted = self.expected["@@group_concat_max_len"], self.expected["@number"]
        return [] if rows == (wanted,) else [f"in a transaction: {rows}"]

    def _count(self, cursor: Any) -> list[str]:
        """What UPDATE counts is up to the flag of the log-in."""
        affected = cursor.execute("UPDATE pools.flags SET n = 1 WHERE id = 1")
        if not self.autocommit:
            cursor.execute("COMMIT")
        return [] if affected == int(self.found_rows) else [f"{affected} rows"]

    def _prepared(self, cursor: Any) -> list[str]:
        """A statement of a name that all use. Where no server can list a connection's variables (MySQL
        without its performance schema) EXECUTE would keep the connection for the session's life.
        """
        if self.expected["DATABASE()"] == "demo" or not self.lists_variables:
            return []  # PREPARE is refused over shards
        cursor.execute("PREPARE mine FROM 'SELECT ?, @number, @@group_concat_max_len'")
        cursor.execute("SET @given = %s", (f"g{self.number}",))
        cursor.execute("EXECUTE mine USING @given")
        rows = cursor.fetchall()
        cursor.execute("DEALLOCATE PREPARE mine")
        cursor.execute("COMMIT")
        wanted = f"g{self.number}", self.expected["@number"], self.expected["@@group_concat_max_len"]
        return [] if rows == (wanted,) else [f"prepared: {rows}"]

    def _assign(self, cursor: Any) -> list[str]:
        """A variable that a statement assigns, which is read on another connection."""
        cursor.execute("SELECT @seen := n + %s FROM pools.flags WHERE id = 1", (self.number,))
        cursor.execute("COMMIT")
        cursor.execute("SELECT @seen")
        rows = cursor.fetchall()
        return [] if rows == ((self.number + 1,),) else [f"assigned: {rows}"]

    def _level(self, cursor: Any) -> list[str]:
        """SET TRANSACTION holds for one statement of one client."""
        cursor.execute("COMMIT")
        cursor.execute("SET TRANSACTION READ ONLY")
        try:
            cursor.execute("INSERT INTO pools.flags VALUES (%s, 0)", (self.number + 10,))
        except MySQLError as error:
            wrong = [] if error.args[0] == 1792 else [f"read only: {error}"]
        else:
            wrong = ["a READ ONLY transaction has written"]
        cursor.execute("ROLLBACK")
        return wrong

    def _shard(self, cursor: Any) -> list[str]:
        names = "@@time_zone, @@group_concat_max_len"
        cursor.execute(f"SELECT id, {names} FROM demo.users WHERE id = {self.user}")
        rows = cursor.fetchall()
        if not self.autocommit:
            cursor.execute("COMMIT")
        wanted = self.user, self.expected["@@time_zone"], self.expected["@@group_concat_max_len"]
        return [] if rows == (wanted,) else [f"on a shard: {rows}"]


KINDS = (
    Client._look,
    Client._change,
    Client._temporary,
    Client._transact,
    Client._count,
    Client._shard,
    Client._prepared,
    Client._assign,
    Client._level,
)


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    return own({"backends": {"max_connections": 4, "queue_length": 1000, "queue_timeout": "20s"}})


@pytest.mark.either_server
def test_nobody_sees_what_another_has_set(proxy: OwnProxy, flavour: str) -> None:
    isolation = "tx_isolation" if flavour == "mariadb" else "transaction_isolation"
    with proxy.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM users")
        users = [row[0] for row in cursor.fetchall()]
        cursor.execute("DROP DATABASE IF EXISTS pools")
        cursor.execute("CREATE DATABASE pools")
        cursor.execute("CREATE TABLE pools.flags (id INT PRIMARY KEY, n INT)")
        cursor.execute("INSERT INTO pools.flags VALUES (1, 1)")
    clients = [Client(proxy, number, isolation, users[number % len(users)]) for number in range(CLIENTS)]
    choice = random.Random(7)
    turns = [(choice.choice(clients), choice.randrange(len(KINDS))) for _ in range(TURNS)]
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(Client.prepare, clients))
        wrong = [text for found in threads.map(lambda turn: turn[0].turn(turn[1]), turns) for text in found]
    assert not wrong, "\n".join(wrong[:20])
    state = proxy.status()
    assert all(host["idle"] + host["opening"] + host["busy"] <= 4 for host in state["hosts"]), state["hosts"]
