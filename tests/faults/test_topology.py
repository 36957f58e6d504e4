"""The topology changes under running clients; bad ones are refused; without ZooKeeper the proxy goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
import pytest
import yaml

from demo.programs import ServerError
from demo.zookeeper import LocalZooKeeper
from tests.faults.link import Link
from tests.integration.binary import Binary
from tests.integration.fixtures import MakeOwn
from tests.integration.own import Document, OwnProxy, moved
from tests.integration.raw import IN_TRANS, Raw, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until

CARS = {"kind": "object", "keyspace": "main", "type": 77}
REFUSED = ("topology refused",)
NODE, SCHEMA = "/shardgate/topology", "/shardgate/schema"


def second_master(demo: Demo) -> tuple[str, str]:
    """The second host's address, and the ID of a user there."""
    with demo.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT MAX(id) FROM users")
        ((user,),) = cursor.fetchall()
    return demo.masters[1].address, str(user)


def test_a_changed_master_in_the_file(own: MakeOwn, demo: Demo) -> None:
    """New statements go there at once; an open transaction ends where it began; nobody is disconnected."""
    proxy = own()
    old, user = second_master(demo)
    idle, client, holder = proxy.raw(), proxy.raw(), proxy.raw()
    holder.ask("BEGIN")
    assert holder.ask(f"SELECT id FROM users WHERE id = {user} FOR UPDATE").value == user.encode()
    sleeper = proxy.raw()
    sleeper.write(query(f"SELECT SLEEP(0.6), id FROM users WHERE id = {user}"))
    with Link(demo.masters[1].host, demo.masters[1].port) as link:
        assert client.ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
        assert link.accepted == 0
        proxy.put_topology(moved(proxy.topology, {old: link.address}))  # it is noticed without a signal
        proxy.wait_for_version(proxy.topology["version"] + 1)
        assert client.ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
        assert link.accepted > 0
        assert sleeper.reply().rows[0][1] == user.encode()
        told = client.ask(f"EXPLAIN ROUTE SELECT id FROM users WHERE id = {user}")
        assert link.address in str(told.rows)
        assert holder.ping().status & IN_TRANS
        assert holder.ask("COMMIT").kind == "ok"
        assert holder.ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
        assert idle.ask("SELECT COUNT(*) FROM users").kind == "rows"
        assert {host["host"] for host in proxy.status()["hosts"] if host["in_topology"]} >= {link.address}
        back = moved(moved(proxy.topology, {}), {})
        proxy.change_topology(back)
        assert idle.ask("SELECT COUNT(*) FROM users").kind == "rows"
        wait_until(lambda: link.connections == 0, "the old host's connections are closed")
        proxy.close_clients()
        proxy.wait_idle(clients=0)


@pytest.mark.one_server
def test_clients_at_work_while_the_topology_changes(own: MakeOwn, demo: Demo) -> None:
    """No statement fails while versions come and go."""
    proxy = own()
    old, user = second_master(demo)
    stop = threading.Event()
    problems: list[object] = []
    done = [0]

    def work() -> None:
        client = Raw(proxy.proxy.host, proxy.proxy.port)
        client.login(database="demo")
        while not stop.is_set():
            for sql in (f"SELECT id FROM users WHERE id = {user}", "SELECT COUNT(*) FROM users"):
                reply = client.ask(sql)
                if reply.kind != "rows":
                    problems.append(reply)
            done[0] += 1
        client.close()

    def further(before: int) -> bool:
        return done[0] > before + 5 or bool(problems)

    with Link(demo.masters[1].host, demo.masters[1].port) as link:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        document = proxy.topology
        for turn in range(6):
            document = moved(document, {old: link.address} if turn % 2 == 0 else {link.address: old})
            proxy.change_topology(document)
            before = done[0]
            wait_until(partial(further, before), "statements go on")
        stop.set()
        for thread in threads:
            thread.join()
        assert not problems, problems[0]
        proxy.wait_idle(clients=0)


BAD: dict[str, Any] = {
    "no JSON": "{",
    "empty": "",
    "overlap": lambda document: document["keyspaces"]["main"]["ranges"][1].update(range=[20, 63]),
    "gap": lambda document: document["keyspaces"]["main"]["ranges"][1].update(range=[40, 63]),
    "unknown field": lambda document: document.update(colour="red"),
    "older version": lambda document: document.update(version=0),
    "no master": lambda document: document["keyspaces"]["global"].pop("master"),
}


def spoilt(document: Document, how: str) -> str:
    changed: Document = json.loads(json.dumps(document))
    changed["version"] += 5
    if isinstance(BAD[how], str):
        return str(BAD[how])
    BAD[how](changed)
    return json.dumps(changed)


@pytest.mark.one_server
def test_bad_documents_are_refused_and_the_old_one_stays(own: MakeOwn) -> None:
    proxy = own(expected=REFUSED)
    client = proxy.raw()
    refused = proxy.status()["topology"]["refused"]

    def refusals(count: int) -> bool:
        return bool(proxy.status()["topology"]["refused"] >= count)

    for how in BAD:
        proxy.topology_file.write_text(spoilt(proxy.topology, how))
        proxy.signal(signal.SIGHUP)
        refused += 1
        wait_until(partial(refusals, refused), f"refused: {how}")
        assert proxy.status()["topology"]["version"] == proxy.topology["version"], how
        assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"
    proxy.logged("topology refused", refused)
    assert proxy.metric("shardgate_topology_version") == proxy.topology["version"]
    proxy.change_topology(moved(proxy.topology, {}))
    assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"


@pytest.mark.one_server
def test_a_malformed_topology_is_refused_at_start(own: MakeOwn, demo: Demo, tmp_path: Path) -> None:
    """`serve` ends at once, and tells all errors with their places."""
    document = json.loads((demo.directory / "topology.json").read_text())
    document["keyspaces"]["main"]["ranges"][1]["range"] = [40, 63]
    document["keyspaces"]["main"]["colour"] = "red"
    document["keyspaces"]["lookup"]["ranges"][0]["range"] = [5, 1]
    document["version"] = "seven"
    with pytest.raises(ServerError) as error, OwnProxy(demo, tmp_path / "bad", None, document):
        pass
    told = subprocess.run(
        [sys.executable, "-m", "proxy", "check", "--config", str(tmp_path / "bad" / "shardgate.yaml")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert told.returncode != 0
    for word in ("main", "colour", "lookup", "version"):
        assert word in str(error.value), error.value
        assert word in told.stdout + told.stderr, told


@pytest.mark.one_server
def test_sighup_looks_again(own: MakeOwn) -> None:
    proxy = own()
    client = proxy.raw()
    proxy.put_topology(moved(proxy.topology, {}))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_version(proxy.topology["version"] + 1)
    assert client.ask("SELECT 1").value == b"1"


@pytest.mark.one_server
def test_zookeeper(own: MakeOwn, demo: Demo, tmp_path: Path) -> None:
    """A change in the nodes of topology and schema is used, by two proxies; a bad one, or one that does not
    fit the other, is refused; without ZooKeeper they go on.
    """
    document = json.loads((demo.directory / "topology.json").read_text())
    old, user = second_master(demo)
    try:
        zookeeper = LocalZooKeeper(tmp_path / "zookeeper").start()
    except ServerError as error:
        pytest.skip(str(error))
    with zookeeper, Link(demo.masters[1].host, demo.masters[1].port) as link:
        zookeeper.put(NODE, json.dumps(document).encode())
        zookeeper.put(SCHEMA, demo.schema.read_bytes())
        node = {"hosts": zookeeper.address, "path": NODE, "schema_path": SCHEMA, "session_timeout": "2s"}
        settings = {"topology": {"file": None, "zookeeper": node}, "schema": None}
        expected = (*REFUSED, "schema refused")
        proxy, second = own(settings, expected=expected), own(settings, expected=expected)
        client, holder = proxy.raw(), proxy.raw()
        holder.ask("BEGIN")
        holder.ask(f"SELECT id FROM users WHERE id = {user} FOR UPDATE")
        document = moved(document, {old: link.address})
        zookeeper.put(NODE, json.dumps(document).encode())
        proxy.wait_for_version(document["version"])
        assert client.ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
        assert link.accepted > 0
        assert holder.ask("COMMIT").kind == "ok"

        zookeeper.put(NODE, spoilt(document, "overlap").encode())
        wait_until(lambda: proxy.status()["topology"]["refused"] == 1, "refused")
        assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"

        live_schema(zookeeper, demo, [proxy, second])
        zookeeper.stop()
        for _ in range(20):
            assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"
        assert proxy.raw().ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
        zookeeper.start()
        document = moved(document, {link.address: old})
        zookeeper.put(NODE, json.dumps(document).encode())
        proxy.wait_for_version(document["version"])
        assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"
        proxy.close_clients()
        second.close_clients()
        second.proxy.stop()
        zookeeper.stop()
        second.proxy.start()  # with what it has on disk
        assert knows(second, "cars2")


def knows(proxy: OwnProxy, table: str) -> bool:
    with proxy.raw() as client:
        told = client.ask(f"EXPLAIN ROUTE SELECT * FROM {table} WHERE id = 5")
    return b"keyspace" in {row[0] for row in told.rows or ()}


def page(proxy: OwnProxy) -> str:
    assert proxy.proxy.status_url is not None
    with urllib.request.urlopen(proxy.proxy.status_url, timeout=10) as answer:
        return str(answer.read(), "utf-8")


def live_schema(zookeeper: LocalZooKeeper, demo: Demo, proxies: list[OwnProxy]) -> None:
    """New tables take no restart; what cannot be used is refused, and the old schema stays."""
    document = yaml.safe_load(demo.schema.read_text())
    tables = document["databases"]["demo"]["tables"]
    refused = 0

    def put(**new: Any) -> None:
        tables.update(new)
        zookeeper.put(SCHEMA, json.dumps(document).encode())

    def told(text: str) -> None:
        for one in proxies:
            count = partial(one.metric, "shardgate_schema_refused_total")
            wait_until(lambda: text in one.log.read_text(), text)  # noqa: B023
            wait_until(lambda: count() >= refused, "the metric")  # noqa: B023
            assert text in page(one)
            assert not knows(one, "cars2")

    put(cars=CARS)
    for one in proxies:
        wait_until(partial(knows, one, "cars"), "the table")
    refused = 1
    put(cars2=CARS | {"keyspace": "nowhere", "type": 78})
    told("the topology has no keyspace")
    refused = 2
    zookeeper.put(SCHEMA, b"")
    told("must be a mapping")
    refused = 3
    client = zookeeper.client()
    client.start()
    client.delete(SCHEMA)
    client.stop()
    client.close()
    told("the node does not exist")
    put(cars2=CARS | {"type": 78})
    for one in proxies:
        wait_until(partial(knows, one, "cars2"), "the table")


@pytest.mark.either_server
def test_read_only_stops_the_proxy(demo: Demo, flavour: str) -> None:
    """A planned promotion begins with it: the proxy's account must not be above it."""
    name = "read_only" if flavour == "mariadb" else "super_read_only"
    with demo.direct() as server, server.cursor() as root, demo.connect(database="legacy") as connection:
        try:
            root.execute(f"SET GLOBAL {name} = ON")
            with connection.cursor() as cursor, pytest.raises(pymysql.err.OperationalError, match="1290"):
                cursor.execute("DELETE FROM customers WHERE 1 = 0")
        finally:
            root.execute("SET GLOBAL super_read_only = OFF" if flavour != "mariadb" else "SELECT 1")
            root.execute("SET GLOBAL read_only = OFF")


@pytest.mark.parametrize("state", ["read_only", "frozen", "offline"])
def test_states_hold_for_every_way_to_a_shard(own: MakeOwn, demo: Demo, state: str) -> None:
    """By ID, by scatter, by name of the physical database, from a session in it, prepared or not."""
    proxy = own({"timeouts": {"buffer": 0}})  # what is frozen waits for nobody
    client = proxy.raw()
    _, user = second_master(demo)
    shard = int(user) >> 46
    binary = Binary(client)
    prepared = binary.statement(f"DELETE FROM db{shard:05d}.users WHERE local_id = 0")
    topology = moved(proxy.topology, {})
    topology["keyspaces"]["main"]["ranges"][1]["state"] = state
    proxy.change_topology(topology)
    reads = [
        f"SELECT id FROM users WHERE id = {user}",
        "SELECT COUNT(*) FROM users",
        "SELECT DISTINCT ts FROM users",
    ]
    reads.append(f"SELECT COUNT(*) FROM db{shard:05d}.users")
    for sql in reads:
        reply = client.ask(sql)
        refused = reply.code == 1105 and f"is {state}" in reply.message
        assert refused == (state != "read_only"), (sql, reply)
    writes = [f"DELETE FROM users WHERE id = {user}", f"DELETE FROM users WHERE id IN ({user}, 5)"]
    writes.append(f"DELETE FROM db{shard:05d}.users WHERE local_id = 0")
    for sql in writes:
        reply = client.ask(sql)
        assert reply.code == 1105, (sql, reply)
        assert f"is {state}" in reply.message
    assert f"is {state}" in binary.execute(prepared.id).message
    assert client.ask(f"USE db{shard:05d}").kind == "ok"
    assert f"is {state}" in client.ask("DELETE FROM users WHERE local_id = 0").message
    assert client.ask("DELETE FROM db00000.users WHERE local_id = 0").kind == "ok"
