"""Running one client's program through the proxy and on a plain server, and comparing what it reports."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.wire.auth import store_caching_sha2
from tests.drivers.catalog import HERE, Client, environment
from tests.support.cases import cases_in
from tests.support.servers import Connection

TIMEOUT = 120
NATIVE, SHA2 = ("drivers_native", "native word"), ("drivers_sha2", "sha2 word")

#: Only the proxy has what these need: they pass when no step gives an error.
OWN = ("tls", "log-in with mysql_native_password", "log-in with caching_sha2_password")

Steps = Any


@dataclass(frozen=True)
class Place:
    """Where a client connects to. `database` is the one of its tables."""

    host: str
    port: int
    user: str
    password: str


@dataclass(frozen=True)
class Difference:
    """A check in which the proxy differs; both sides' steps."""

    check: str
    direct: Steps
    proxy: Steps

    def __str__(self) -> str:
        for number, (one, other) in enumerate(zip(self.direct or [], self.proxy or [], strict=False)):
            if one != other and isinstance(self.direct, list):
                said = f"  direct {shorten(one, other)}\n  proxy  {shorten(other, one)}"
                return f"{self.check}, step {number + 1}:\n{said}"
        return f"{self.check}:\n  direct {self.direct}\n  proxy  {self.proxy}"[:2000]


def shorten(value: Any, other: Any) -> str:
    """The part of a step's report where it begins to differ from the other."""
    text, beside = json.dumps(value, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
    at = next((n for n, (a, b) in enumerate(zip(text, beside, strict=False)) if a != b), 0)
    return ("…" if at > 100 else "") + text[max(0, at - 100) : at + 300]


def load() -> dict[str, Any]:
    """checks.yaml, with the marks and conditions that follow from the columns filled in."""
    found: dict[str, Any] = cases_in(HERE / "checks.yaml")
    columns = list(found["columns"])
    marks = ", ".join("?" * (len(columns) + 1))
    # a FLOAT that went through text has lost what the server does not print
    same = " AND ".join(
        f"a.{name} <=> b.{name}"
        if name != "c_float"
        else "ABS(a.c_float - b.c_float) <= ABS(a.c_float) / 1e5 OR a.c_float IS NULL"
        for name in columns
    )
    same = " AND ".join(f"({one})" for one in same.split(" AND "))
    text = json.dumps(found["checks"]).replace("{marks}", marks).replace("{same}", same)
    found["checks"] = [{"name": name, "steps": steps} for name, steps in json.loads(text).items()]
    return found


CHECKS = load()


def prepare(connection: Connection) -> None:
    """Make the tables of checks.yaml in `legacy`."""
    columns = dict(CHECKS["columns"])
    definitions = ", ".join(f"{name} {what[0]}" for name, what in columns.items())
    low, high = (", ".join(what[at] for what in columns.values()) for at in (1, 2))
    nulls = ", ".join("NULL" for _ in columns)
    with connection.cursor() as cursor:
        cursor.execute("USE legacy")
        cursor.execute("SET sql_mode = ''")
        cursor.execute("DROP TABLE IF EXISTS drivers_types")
        cursor.execute(f"CREATE TABLE drivers_types (n INT PRIMARY KEY, {definitions}) CHARACTER SET utf8mb4")
        for number, values in enumerate((low, high, nulls), 1):
            cursor.execute(f"INSERT INTO drivers_types VALUES ({number}, {values})")
        for sql in CHECKS["tables"]:
            cursor.execute(sql)


def clean(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS legacy.drivers_types, legacy.drivers_back, legacy.drivers_rows")
        cursor.execute("DROP TABLE IF EXISTS legacy.drivers_large")


def native_hash(password: str) -> str:
    """A password as mysql_native_password stores it."""
    return "*" + hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()


def sha2_hash(password: str) -> str:
    """A password as caching_sha2_password stores it."""
    return store_caching_sha2(password.encode())


def size_for(client: Client, flavour: str) -> int:
    """Bytes of the checks' large value: more than a packet holds, on one of the two servers, which differs
    from client to client. That packets are split and joined is the client's business and the proxy's; on the
    other server a smaller one makes the check cheaper.
    """
    turn = len(client.name) % len(client.flavours)
    return 17 << 20 if client.flavours[turn] == flavour else 1 << 20


def description(place: Place, ca: Path, truststore: Path, **more: Any) -> dict[str, Any]:
    """What a program gets to read."""
    return {
        "host": place.host,
        "port": place.port,
        "user": place.user,
        "password": place.password,
        "database": "legacy",
        "ca": str(ca),
        "truststore": str(truststore),
        "checks": CHECKS["checks"],
        **more,
    }


def run(client: Client, what: dict[str, Any], folder: Path) -> dict[str, Steps]:
    """The checks' reports by name; AssertionError when the program fails."""
    path = folder / f"{re.sub('[^A-Za-z0-9]+', '-', client.name)}-{what['port']}.json"
    path.write_text(json.dumps(what))
    done = subprocess.run(
        [*client.argv, str(path)], capture_output=True, timeout=TIMEOUT, check=False, env=environment()
    )
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, f"{client.name} on port {what['port']}:\n{said[-2000:]}"
    # ports, ids of connections and addresses are not the proxy's to keep
    text = re.sub(rf"\b{what['port']}\b", "PORT", done.stdout.decode("utf-8", "replace"))
    return {line["check"]: line["steps"] for line in map(json.loads, text.splitlines())}


def compare(direct: dict[str, Steps], proxy: dict[str, Steps]) -> list[Difference]:
    """The checks in which they differ."""
    found = []
    for check in dict.fromkeys([*direct, *proxy]):
        one, other = _comparable(check, direct.get(check)), _comparable(check, proxy.get(check))
        wrong = _fails(other) if check in OWN else one != other
        if wrong:
            found.append(Difference(check, one, other))
    return found


def _fails(steps: Steps) -> bool:
    """Whether a step has an error; that a client lacks the plugin is none."""
    text = json.dumps(steps)
    return '"error"' in text and not any(f"[{code}," in text for code in (2059, 2061))


def _comparable(check: str, steps: Steps) -> Steps:
    """Without the column definitions of the steps that ask for it."""
    asked: list[dict[str, Any]] = next((one["steps"] for one in CHECKS["checks"] if one["name"] == check), [])
    if not isinstance(steps, list) or len(steps) != len(asked):
        return steps
    return [_compared(step, what) for step, what in zip(steps, asked, strict=True)]


def _compared(step: Any, what: dict[str, Any]) -> Any:
    """What is compared of a step's report."""
    if not isinstance(step, dict):
        return step
    found = dict(step)
    if what.get("columns") is False:
        found.pop("columns", None)
        found.pop("id", None)  # some drivers tell the last one after a SELECT, too
    if what.get("sort") and isinstance(found.get("rows"), list):
        found["rows"] = sorted(found["rows"])
    return found


def report(client: Client, flavour: str, proxy: dict[str, Steps], differences: list[Difference]) -> None:
    """A line for the table in the docs, when $SHARDGATE_DRIVERS_REPORT names a file."""
    path = os.environ.get("SHARDGATE_DRIVERS_REPORT")
    if path is None:
        return
    wrong = {one.check for one in differences}
    checks = {
        name: "**no**" if name in wrong else "cannot" if '"unsupported": true' in json.dumps(steps) else "yes"
        for name, steps in proxy.items()
    }
    line = {"client": client.name, "version": client.version(), "flavour": flavour, "checks": checks}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
