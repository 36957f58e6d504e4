"""The same bytes to a server by an account with few rights, and to a proxy that has all of them.

The server's grants are the judge: a text that they refuse, the proxy has to refuse as well. Besides, a word
that only the canary's tables and file know must never reach the proxy's client, and nothing of the canary may
change.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.readings.grammar import Manner, Writer
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import MORE_RESULTS, MULTI_STATEMENTS, QUERY, STMT_PREPARE, Closed, Raw, command
from tests.integration.replies import is_eof, lenenc
from tests.support.demo import Demo
from tests.support.servers import Connection

SECRET = "secret_place"
PASSWORD = "judged"
MIGHTY = "judged_mighty"
"""The account that the proxy has on the servers."""
RIGHTS = {
    "judged_read": "SELECT, SHOW VIEW",
    "judged_write": "SELECT, SHOW VIEW, INSERT, UPDATE, DELETE, EXECUTE, LOCK TABLES, "
    "CREATE TEMPORARY TABLES",
}
#: The server's ways to say that an account may not.
DENIED = frozenset({1044, 1045, 1095, 1142, 1143, 1227, 1290, 1370, 1419})
STMT_EXECUTE = 23
BATCH = 25
"""Statements of one session."""


@dataclass
class Answer:
    """What came of a text: "ok", "err" with its code, or "closed"; and all that was heard."""

    kind: str
    code: int = 0
    heard: bytes = b""


@dataclass
class Case:
    """One text in one manner. `way`: "text", "several" (with MULTI_STATEMENTS) or "prepared"."""

    user: str
    manner: Manner
    way: str
    text: bytes

    def __str__(self) -> str:
        settings = b"; ".join(self.manner.settings).decode()
        return f"{self.user}, {self.way}, {settings}: {self.text!r}"


@dataclass
class Tally:
    """How the cases ended; `differences` are sentences."""

    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


class Judge:
    """Compares cases. `server` is a connection as root to the server on which `legacy` lives."""

    def __init__(self, demo: Demo, proxy: OwnProxy, server: Connection, folder: Path, seed: int) -> None:
        self.demo, self.proxy, self.server, self.seed = demo, proxy, server, seed
        self.token = secrets.token_hex(8)
        self.file = folder / "readable.txt"
        self.tally = Tally()

    # -- what must stay as it is

    def prepare(self, mariadb: bool) -> None:
        """The canary, and the accounts that judge."""
        self.file.write_text(self.token + "\n")
        self.file.chmod(0o644)
        self.file.parent.chmod(0o777)
        statements = [
            f"DROP DATABASE IF EXISTS {SECRET}",
            f"CREATE DATABASE {SECRET}",
            f"CREATE TABLE {SECRET}.canary (v VARCHAR(64))",
            f"INSERT INTO {SECRET}.canary VALUES ('{self.token}')",
            f"CREATE FUNCTION {SECRET}.tell() RETURNS VARCHAR(64) READS SQL DATA "
            f"RETURN (SELECT v FROM {SECRET}.canary LIMIT 1)",
            f"CREATE PROCEDURE {SECRET}.`show`() SELECT v FROM {SECRET}.canary",
            "CREATE TABLE IF NOT EXISTS legacy.fuzzed (a INT, b VARCHAR(100))",
            "DELETE FROM legacy.fuzzed",
            "INSERT INTO legacy.fuzzed VALUES (1, 'one'), (3, 'three'), (3, '\\\\')",
        ]
        if mariadb:
            statements.append(f"CREATE SEQUENCE {SECRET}.seq")
        for name, rights in RIGHTS.items():
            statements += [
                f"DROP USER IF EXISTS {name}",
                f"CREATE USER {name} IDENTIFIED BY '{PASSWORD}'",
                f"GRANT {rights} ON legacy.* TO {name}",
            ]
        self._run(statements)
        self._before = self.state()

    def remove(self) -> None:
        drops = [f"DROP USER IF EXISTS {name}" for name in RIGHTS]
        self._run([f"DROP DATABASE IF EXISTS {SECRET}", "DROP TABLE IF EXISTS legacy.fuzzed", *drops])

    def _run(self, statements: list[str]) -> None:
        with self.server.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def state(self) -> list[Any]:
        """All that no case may change."""
        with self.server.cursor() as cursor:
            found: list[Any] = [sorted(one.name for one in self.file.parent.iterdir())]
            for query in (
                f"SELECT * FROM {SECRET}.canary",
                "SELECT table_schema, table_name, table_comment FROM information_schema.tables "
                f"WHERE table_schema IN ('legacy', '{SECRET}') ORDER BY 1, 2",
                "SELECT @@global.net_retry_count",
            ):
                cursor.execute(query)
                found.append(cursor.fetchall())
        return found

    # -- cases

    def batch(self, number: int) -> None:
        """BATCH cases in one pair of sessions."""
        chooser = Random(f"{self.seed}/{number}")
        user = chooser.choice(list(RIGHTS))
        manner = Manner.any(chooser)
        way = chooser.choice(("text", "text", "several", "prepared"))
        writer = Writer(chooser, {"SECRET": SECRET, "FILE": str(self.file)})
        cases = [Case(user, manner, way, writer.statement()) for _ in range(BATCH)]
        self._together(cases)
        if self.state() != self._before:
            self._find_culprit(cases)

    def _together(self, cases: list[Case]) -> None:
        rest = list(cases)
        while rest:
            with self.sessions(rest[0]) as pair:
                if pair is None:
                    return
                while rest:
                    case = rest.pop(0)
                    try:
                        suspicious = self._compare(case, *pair)
                    except Closed:
                        suspicious = True
                    except TimeoutError:
                        self.tally.outcomes["no answer"] += 1
                        self.tally.differences.append(
                            f"no answer: {case}; heard {[one.heard for one in pair]}"
                        )
                        break
                    if suspicious:
                        self._alone(case)
                        break  # what the sessions have now may differ

    def _compare(self, case: Case, direct: Raw, proxied: Raw) -> bool:
        """Whether the proxy gave more than the server's rights."""
        judged = ask(direct, case)
        given = ask(proxied, case)
        name = f"{judged.kind} {judged.code or ''}".strip() + f" / {given.kind} {given.code or ''}".rstrip()
        self.tally.outcomes[name] += 1
        if self.token.encode() in given.heard:
            return True
        return judged.code in DENIED and given.kind == "ok"

    def _alone(self, case: Case) -> None:
        """Try a suspicious case once more in sessions of its own, and note it."""
        with self.sessions(case) as pair:
            if pair is None:
                return
            with suppress(Closed):
                judged, given = ask(pair[0], case), ask(pair[1], case)
                told = self.token.encode() in given.heard
                if told or (judged.code in DENIED and given.kind == "ok"):
                    what = "told the secret" if told else f"allowed what the server refuses ({judged.code})"
                    self.tally.differences.append(f"the proxy {what}: {case}")

    def _find_culprit(self, cases: list[Case]) -> None:
        self._restore()
        for case in cases:
            with self.sessions(case) as pair:
                if pair is not None:
                    with suppress(Closed):
                        ask(pair[1], case)
            if self.state() != self._before:
                self.tally.differences.append(f"the proxy let the canary be changed: {case}")
                self._restore()
                return
        self.tally.differences.append(
            f"the canary was changed by these together: {[str(one) for one in cases]}"
        )

    def _restore(self) -> None:
        for one in self.file.parent.iterdir():
            if one != self.file:
                one.unlink()
        with self.server.cursor() as cursor:
            cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'legacy'")
            extra = [name for (name,) in cursor.fetchall() if name.startswith("fuzzed") and name != "fuzzed"]
        self._run([f"DROP TABLE IF EXISTS legacy.{name}" for name in extra])
        self._run(
            [
                "ALTER TABLE legacy.fuzzed COMMENT ''",
                f"TRUNCATE {SECRET}.canary",
                f"INSERT INTO {SECRET}.canary VALUES ('{self.token}')",
                "SET GLOBAL net_retry_count = DEFAULT",
            ]
        )
        self._before = self.state()

    @contextmanager
    def sessions(self, case: Case) -> Iterator[tuple[Raw, Raw] | None]:
        """A session at the server and one at the proxy, both set as the case wants; None when either refuses
        that.
        """
        host = self.demo.masters[0]
        flags = MULTI_STATEMENTS if case.way == "several" else 0
        with (
            Raw(host.host, host.port, timeout=15) as direct,
            Raw(self.proxy.proxy.host, self.proxy.proxy.port, timeout=15) as proxied,
        ):
            for one in (direct, proxied):
                reply = one.login(case.user, PASSWORD, "legacy", flags=flags)
                assert reply.kind == "ok", reply
            for setting in case.manner.settings:
                outcomes = [one.ask(setting).kind for one in (direct, proxied)]
                if outcomes != ["ok", "ok"]:
                    self.tally.outcomes[f"setting {' / '.join(outcomes)}"] += 1
                    yield None
                    return
            yield direct, proxied


def ask(client: Raw, case: Case) -> Answer:
    """Run the case's text. Raises Closed."""
    client.heard.clear()
    if case.way == "prepared":
        return _prepared(client, case.text)
    client.write(command(QUERY, case.text))
    return _replies(client)


def _prepared(client: Raw, text: bytes) -> Answer:
    """Prepare, and execute what has no parameters."""
    client.write(command(STMT_PREPARE, text))
    first = client.packet()
    if first[:1] == b"\xff":
        return _error(first)
    statement, columns, parameters = first[1:5], first[5:7], first[7:9]
    for count in (parameters, columns):
        if any(count):
            for _ in range(int.from_bytes(count, "little") + 1):
                client.packet()
    if any(parameters):
        return Answer("ok")
    client.write(command(STMT_EXECUTE, statement + b"\0" + (1).to_bytes(4, "little")))
    return _replies(client)


def _replies(client: Raw) -> Answer:
    """All results of one command, which are not looked into."""
    more = MORE_RESULTS
    while more:
        first = client.packet()
        if first[:1] == b"\xff":
            return _error(first)
        if first[:1] == b"\0":
            _, place = lenenc(first, 1)
            _, place = lenenc(first, place)
            status = int.from_bytes(first[place : place + 2], "little")
        else:
            ends = 0
            while ends < 2:
                last = client.packet()
                if last[:1] == b"\xff":
                    return _error(last)
                ends += is_eof(last)
            status = int.from_bytes(last[3:5], "little")
        more = status & MORE_RESULTS
    return Answer("ok", 0, b"".join(data for _, data in client.heard))


def _error(data: bytes) -> Answer:
    return Answer("err", int.from_bytes(data[1:3], "little"), data)


@contextmanager
def judging(demo: Demo, directory: Path, seed: int, *, mariadb: bool) -> Iterator[Judge]:
    """A judge, and a proxy whose own account on the servers may do all."""
    folder = directory / "files"
    folder.mkdir(parents=True)
    for index in range(len(demo.hosts)):
        with closing(demo.direct(index)) as server, server.cursor() as cursor:
            cursor.execute(f"DROP USER IF EXISTS {MIGHTY}")
            cursor.execute(f"CREATE USER {MIGHTY} IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO {MIGHTY}")
    users = [
        {"name": name, "password": PASSWORD, "role": name.removeprefix("judged_"), "databases": ["legacy"]}
        for name in RIGHTS
    ]
    settings = {"users": users, "backends": {"user": MIGHTY, "password": PASSWORD, "accounts": []}}
    with closing(demo.direct(0)) as server, OwnProxy(demo, directory / "proxy", settings) as proxy:
        judge = Judge(demo, proxy, server, folder, seed)
        judge.prepare(mariadb)
        try:
            yield judge
        finally:
            judge.remove()
            judge.tally.differences += log_problems(proxy.log.read_text(errors="replace"))
