"""A worker that takes the place of a dead one serves what the others serve, whatever the files say then."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.programs import ServerError
from demo.zookeeper import LocalZooKeeper
from tests.faults.test_topology import NODE
from tests.integration.fixtures import MakeOwn
from tests.integration.own import Document, OwnProxy
from tests.integration.raw import Closed, Raw
from tests.support.demo import Demo, gone
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

EXPECTED = ("a worker ended", "topology refused", "schema refused", "settings refused")
EMAIL = "test_replaced@x"
ROUTE = f"EXPLAIN ROUTE SELECT user_id FROM email_to_user WHERE email = '{EMAIL}'"


def workers(proxy: OwnProxy) -> list[int]:
    """The process ids of the workers there are."""
    main = proxy.proxy.pid
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return [pid for pid in map(int, children) if not gone(pid)]


def kill(proxy: OwnProxy, victims: list[int]) -> None:
    """Kill workers, and wait until as many others serve."""
    served = len(proxy.logged("serving", proxy.settings["workers"]))  # all of the first
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(proxy.logged("serving", 0)) == served + len(victims), "others in their place")


def of_each(proxy: OwnProxy, user: str = "demo", password: str = "demo") -> list[Raw]:
    """A client of each worker."""
    found: dict[int, Raw] = {}

    def both() -> bool:
        client = proxy.raw(login=False)
        assert client.login(user, password, "demo").kind == "ok"
        found[client.id >> 24] = client
        return len(found) == 2

    wait_until(both, "clients of both workers")
    return list(found.values())


def ways(proxy: OwnProxy) -> set[str]:
    """What the workers say of one row's place."""
    told = [client.ask(ROUTE).rows for client in of_each(proxy)]
    return {str([row for row in rows if row[0] != b"cache"]) for rows in told}


def other_placement(document: Document) -> Document:
    """The next version, in which the hashed keyspaces have half of their shards."""
    changed: Document = json.loads(json.dumps(document))
    changed["version"] += 1
    for keyspace in changed["keyspaces"].values():
        if "hash" in keyspace:
            keyspace["shards"] //= 2
            whole = [{**keyspace["ranges"][0], "range": [0, keyspace["shards"] - 1]}]
            keyspace["ranges"] = whole
    return changed


def without(document: Document, name: str) -> Document:
    return {**document, "keyspaces": {one: of for one, of in document["keyspaces"].items() if one != name}}


def refused(proxy: OwnProxy, count: int) -> None:
    """Wait until so many refusals of a topology are in the log."""
    proxy.logged("topology refused", count)


@pytest.mark.parametrize("victims", [1, 2])
def test_a_refused_placement_is_nobodys(own: MakeOwn, victims: int) -> None:
    """Not that of a worker that begins later, even when all of them do."""
    proxy = own({"workers": 2}, expected=EXPECTED)
    before = ways(proxy)
    assert len(before) == 1
    client = proxy.raw()
    assert client.ask(f"INSERT INTO email_to_user (email, user_id) VALUES ('{EMAIL}', 7)").kind == "ok"
    try:
        proxy.put_topology(other_placement(proxy.topology))
        refused(proxy, 2)
        kill(proxy, workers(proxy)[:victims])
        assert ways(proxy) == before
        for one in of_each(proxy):
            assert one.ask(f"SELECT user_id FROM email_to_user WHERE email = '{EMAIL}'").value == b"7"
        refused(proxy, 2 + victims)
        assert proxy.status()["topology"]["version"] == proxy.topology["version"]
        assert proxy.metric("shardgate_workers_replaced_total") >= 1
        assert proxy.metric("shardgate_topology_refused_total") >= 1
        proxy.put_topology({**proxy.topology, "version": proxy.topology["version"] + 2})
        proxy.wait_for_version(proxy.topology["version"] + 2)
        wait_until(lambda: len(ways(proxy)) == 1, "all follow")
    finally:
        proxy.raw().ask(f"DELETE FROM email_to_user WHERE email = '{EMAIL}'")


def test_a_bad_topology_takes_nobody_down(own: MakeOwn) -> None:
    """Neither one that is broken, nor missing, nor one that the schema does not fit."""
    proxy = own({"workers": 2}, expected=EXPECTED)
    before = ways(proxy)
    for bad in ("nonsense: [", "", json.dumps({**without(proxy.topology, "lookup"), "version": 99})):
        told = len(proxy.logged("topology refused", 0))
        if bad:
            proxy.topology_file.write_text(bad)
        else:
            proxy.topology_file.unlink()
        refused(proxy, told + 2)
        clients = of_each(proxy)
        kill(proxy, workers(proxy)[:1])
        assert sum(map(answers, clients)) == 1, "the other worker's goes on"
        assert ways(proxy) == before
    assert len(workers(proxy)) == 2


def answers(client: Raw) -> bool:
    try:
        return client.ask("SELECT 1").value == b"1"
    except (Closed, OSError):
        return False


def test_what_was_changed_since_the_start_is_handed_on(own: MakeOwn, tmp_path: Path) -> None:
    """Schema and users of now, though their files are bad; nobody from before comes back."""
    base = own().proxy.settings
    schema = tmp_path / "schema.yaml"
    document = yaml.safe_load(Path(json.loads(base.read_text())["schema"]).read_text())
    schema.write_text(yaml.safe_dump(document))
    users = [{"name": name, "password": name, "role": "admin"} for name in ("demo", "gone", "stays")]
    proxy = own({"workers": 2, "schema": str(schema), "users": users}, expected=EXPECTED)
    document["databases"]["demo"]["tables"]["cars"] = {"kind": "object", "keyspace": "main", "type": 77}
    schema.write_text(yaml.safe_dump(document))

    def knows(client: Raw) -> bool:
        return client.ask("EXPLAIN ROUTE SELECT * FROM cars WHERE id = 5").rows[0][0] != b"error"

    wait_until(lambda: all(map(knows, of_each(proxy))), "the new table")
    proxy.proxy.configure(proxy.settings | {"users": [users[0], users[2]], "workers": 3})
    proxy.signal(signal.SIGHUP)
    proxy.logged("users read again", 2)
    (told,) = proxy.logged("changed settings are not in use")
    assert told["settings"] == ["workers"]

    bad = schema.with_suffix(".new")
    bad.write_text("databases: 7")
    bad.replace(schema)  # at once: nobody reads half of it
    proxy.proxy.settings.write_text("nonsense: [")
    proxy.logged("schema refused", 2)
    kill(proxy, workers(proxy))
    assert all(map(knows, of_each(proxy, "stays", "stays")))
    for _ in range(6):
        assert proxy.raw(login=False).login("gone", "gone", "demo").code == 1045
    proxy.logged("schema refused", 4)
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() > begun + 2.5, "some looks at the file", 5)
    assert len(proxy.logged("schema refused", 4)) == 4, "once"
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: proxy.metric("shardgate_settings_refused_total") >= 1, "the metric")
    assert "settings refused" in str(proxy.status()["topology"]["recent"])


def test_settings_not_read_again_are_nobodys(own: MakeOwn) -> None:
    """A changed file without SIGHUP: the old users stay, of a new worker, too."""
    proxy = own({"workers": 2}, expected=EXPECTED)
    other: dict[str, Any] = {"name": "other", "password": "other", "role": "admin"}
    proxy.proxy.configure(proxy.settings | {"users": [*proxy.settings["users"], other]})
    kill(proxy, workers(proxy)[:1])
    of_each(proxy)
    for _ in range(6):
        assert proxy.raw(login=False).login("other", "other", "demo").code == 1045


def test_a_lawful_change_after_another_is_followed_by_all(own: MakeOwn) -> None:
    """A keyspace is taken out, and put back with another placement: unlawful in one step, so no worker may
    have missed the step between.
    """
    proxy = own({"workers": 2}, expected=EXPECTED)
    version = proxy.topology["version"]
    spare = {**proxy.topology["keyspaces"]["lookup"], "database": "spare{shard:03d}"}
    before = 0
    for number, shards in enumerate((4, 0, 2, 0, 4, 0, 2)):
        changed = json.loads(json.dumps(proxy.topology))
        changed["version"] = version + 1 + number
        if not shards:
            changed["dropped_shards"] = {"spare": [[0, before - 1]]}
        before = shards
        if shards:
            only = {**spare["ranges"][0], "range": [0, shards - 1]}
            changed["keyspaces"]["spare"] = {**spare, "shards": shards, "ranges": [only]}
        proxy.put_topology(changed)
        proxy.wait_for_version(version + 1 + number)
    clients = of_each(proxy)
    last = str(version + 7).encode()

    def same() -> bool:
        shown = [client.ask("SHOW PROXY STATUS LIKE 'Topology_version'").rows for client in clients]
        return all(rows[0][1] == last for rows in shown)

    wait_until(same, "both workers have the last version")
    assert not proxy.logged("topology refused", 0)


def test_a_refused_placement_in_zookeeper(own: MakeOwn, demo: Demo, tmp_path: Path) -> None:
    """It comes neither into a new worker nor into the cache file."""
    document = json.loads((demo.directory / "topology.json").read_text())
    try:
        zookeeper = LocalZooKeeper(tmp_path / "zookeeper").start()
    except ServerError as error:
        pytest.skip(str(error))
    with zookeeper:
        zookeeper.put(NODE, json.dumps(document).encode())
        cache = tmp_path / "cache"
        source = {"hosts": zookeeper.address, "path": NODE, "session_timeout": "2s", "cache_file": str(cache)}
        proxy = own({"workers": 2, "topology": {"file": None, "zookeeper": source}}, expected=EXPECTED)
        before = ways(proxy)
        zookeeper.put(NODE, json.dumps(other_placement(document)).encode())
        refused(proxy, 2)
        kill(proxy, workers(proxy)[:1])
        refused(proxy, 3)
        assert ways(proxy) == before
        assert json.loads(cache.read_text())["version"] == document["version"]
        kill(proxy, workers(proxy))
        assert ways(proxy) == before
        zookeeper.put(NODE, json.dumps({**document, "version": document["version"] + 1}).encode())
        proxy.wait_for_version(document["version"] + 1)
        wait_until(lambda: len(ways(proxy)) == 1, "all follow")
        proxy.close_clients()
