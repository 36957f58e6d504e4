"""Shards that the topology lacks: documents that hide them are refused, and IDs of them are errors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from config.layout import INSTAGRAM
from demo.zookeeper import LocalZooKeeper
from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeOwn, MakeRaw, make_id
from tests.integration.own import Document, OwnProxy
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.waiting import wait_until

FIRST, LAST = 31, 63
LACKS = "keyspaces.main.ranges: shards 32 to 63 are in no range"


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    return raw()


def without_the_last_range(document: Document, **fields: object) -> Document:
    """The next version of the demo's topology, in which no range has shards 32 to 63 of main."""
    changed: Document = json.loads(json.dumps(document)) | fields
    changed["version"] += 1
    assert changed["keyspaces"]["main"]["ranges"].pop()["range"] == [FIRST + 1, LAST]
    return changed


def refused(client: Raw, sql: str, id: int, shard: int, keyspace: str = "main") -> None:
    """The statement is an error that names ID, shard and keyspace, and the connection goes on."""
    reply = client.ask(sql)
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1105, "HY000"), (sql, reply)
    assert f"ID {id} is of shard {shard} of keyspace '{keyspace}', which the topology has" in reply.message
    assert client.ask("SELECT 'usable'").value == b"usable"


@pytest.mark.parametrize("shard", [64, 5000, 65535])
def test_ids_of_shards_that_the_topology_lacks_are_errors(client: Raw, shard: int) -> None:
    pin, board = make_id(shard, 1, 1), make_id(shard, 2, 1)
    known = make_id(5, 1, 1)
    for sql in (
        f"SELECT * FROM pins WHERE id = {pin}",
        f"/* app */ SELECT * FROM `demo`.`pins` p WHERE p.`id` = '{pin}'",
        f"SELECT id FROM pins WHERE id IN ({known}, {make_id(40, 1, 1)}, {pin})",
        f"SELECT id FROM pins WHERE id IN ({known}, {pin}) ORDER BY ts LIMIT 1",
        f"SELECT COUNT(*) FROM pins WHERE id = {pin} OR id = {known}",
        f"SELECT COUNT(*) FROM pins WHERE id = {pin} OR data = 'x'",
        f"SELECT id FROM pins WHERE id = {pin} UNION SELECT id FROM pins WHERE id = {known}",
        f"SELECT (SELECT COUNT(*) FROM pins WHERE id = {pin})",
        f"UPDATE pins SET ts = ts WHERE id = {pin}",
        f"UPDATE pins SET ts = ts WHERE id IN ({known}, {pin})",
        f"DELETE FROM pins WHERE id = {pin}",
        f"INSERT INTO pins (id, data) VALUES ({pin}, '{{}}')",
        f"REPLACE INTO pins (id, data) VALUES ({pin}, '{{}}')",
    ):
        refused(client, sql, pin, shard)
    for sql in (
        f"SELECT * FROM board_has_pins WHERE board_id = {board}",
        f"DELETE FROM board_has_pins WHERE board_id = {board} AND pin_id = {pin}",
        f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES ({board}, {pin}, 1)",
        f"INSERT INTO pins (data) VALUES ('{{\"board_id\": {board}}}')",
        f"CALL reorder_board_pin({board}, {known}, NULL, NULL)",
    ):
        refused(client, sql, board, shard)


def test_the_instagram_layout_is_no_exception(client: Raw) -> None:
    photo = INSTAGRAM.compose(time=10**9, shard=4000, sequence=7)
    for sql in (
        f"SELECT * FROM photos WHERE id = {photo}",
        f"UPDATE photos SET caption = 'x' WHERE id = {photo}",
        f"DELETE FROM photos WHERE id IN ({photo})",
        f"INSERT INTO photos (id, caption) VALUES ({photo}, 'x')",
    ):
        refused(client, sql, photo, 4000, "media")


def test_prepared_statements_with_such_an_id_are_errors_each_time(client: Raw) -> None:
    pin, known = make_id(64, 1, 1), make_id(5, 1, (1 << 36) - 1)
    binary = Binary(client)
    for sql in (
        "SELECT * FROM pins WHERE id = ?",
        "UPDATE pins SET ts = ts WHERE id = ?",
        "DELETE FROM pins WHERE id = ?",
    ):
        statement = binary.statement(sql)
        for _ in range(2):
            answer = binary.execute(statement.id, [integer(pin)])
            assert (answer.kind, answer.code) == ("err", 1105), (sql, answer)
            assert binary.execute(statement.id, [integer(known)]).kind != "err"


def test_rows_that_name_rows_of_missing_shards_are_errors_in_joins(client: Raw) -> None:
    """A join that leaves such a row out, or shows NULL for it, would hide the row that it names."""
    board, pin = make_id(9, 2, (1 << 36) - 2), make_id(64, 1, 1)
    row = f"board_id = {board} AND pin_id = {pin}"
    assert (
        client.ask(f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES ({board}, {pin}, 1)").kind
        == "ok"
    )
    try:
        joined = f"board_has_pins m {{}} pins p ON p.id = m.pin_id WHERE m.board_id = {board}"
        for sql in (
            "SELECT p.id FROM " + joined.format("JOIN"),
            "SELECT m.pin_id, p.id FROM " + joined.format("LEFT JOIN"),
            "SELECT p.id FROM " + joined.format("JOIN") + " ORDER BY m.sequence DESC LIMIT 5",
            "SELECT COUNT(*) FROM " + joined.format("JOIN"),
            f"SELECT id FROM pins WHERE id IN (SELECT pin_id FROM board_has_pins WHERE board_id = {board})",
            "UPDATE pins p JOIN board_has_pins m ON p.id = m.pin_id SET p.ts = p.ts "
            f"WHERE m.board_id = {board}",
        ):
            refused(client, sql, pin, 64)
        reply = client.ask(f"SELECT pin_id FROM board_has_pins WHERE {row}")  # it names no row of this table
        assert reply.value == str(pin).encode()
    finally:
        assert client.ask(f"DELETE FROM board_has_pins WHERE {row}").affected == 1


def test_what_names_no_row_of_a_missing_shard_is_answered(client: Raw) -> None:
    pin, pins = make_id(64, 1, 1), client.ask("SELECT COUNT(*) FROM pins").value
    for condition in (f"id <> {pin}", f"id NOT IN ({pin})", f"NOT (id = {pin})", f"id < {pin}"):
        assert client.ask(f"SELECT COUNT(*) FROM pins WHERE {condition}").value == pins, condition
    assert client.ask(f"SELECT COUNT(*) FROM pins WHERE id > {pin}").value == b"0"
    assert client.ask(f"SELECT COUNT(*) FROM pins WHERE id BETWEEN 0 AND {pin}").value == pins
    refused(client, f"SELECT COUNT(*) FROM pins WHERE id BETWEEN {pin} AND {pin + 5}", pin, 64)


@pytest.mark.parametrize("place", ["file", "zookeeper"])
def test_a_proxy_keeps_serving_shards_that_a_document_lacks(
    place: str, own: MakeOwn, demo: Demo, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It says so in log and metrics; over a restart it serves what it has on disk."""
    document: Document = json.loads((demo.directory / "topology.json").read_text())
    if place == "file":
        proxy = own(expected=("topology refused",))
        hidden(proxy, proxy.put_topology, document)
        return
    zookeeper: LocalZooKeeper = request.getfixturevalue("zookeeper")
    path = f"/hidden-{tmp_path.name}-{os.getpid()}/topology"
    zookeeper.put(path, json.dumps(document).encode())
    node = {"hosts": zookeeper.address, "path": path}
    proxy = own({"topology": {"file": None, "zookeeper": node}}, expected=("topology refused",))
    hidden(proxy, lambda changed: zookeeper.put(path, json.dumps(changed).encode()), document)


def hidden(proxy: OwnProxy, put: Callable[[Document], None], document: Document) -> None:
    """What the proxy does with documents that lack shards 32 to 63 of main."""
    client = proxy.raw()
    pins = client.ask("SELECT COUNT(*) FROM pins").value
    count = partial(proxy.metric, "shardgate_topology_refused_total")

    def serves_all() -> None:
        wait_until(lambda: count() >= 1, "the metric")
        assert any(LACKS in str(line) for line in proxy.logged("topology refused"))
        with proxy.raw() as new:
            assert new.ask("SELECT COUNT(*) FROM pins").value == pins
        assert proxy.status()["topology"]["version"] == document["version"]

    put(without_the_last_range(document))
    serves_all()
    assert client.ask("SELECT COUNT(*) FROM pins").value == pins
    proxy.close_clients()
    proxy.proxy.stop()
    proxy.proxy.start()
    serves_all()
    given_up = without_the_last_range(document, dropped_shards={"main": [[FIRST + 1, LAST]]})
    given_up["version"] += 1
    put(given_up)
    proxy.wait_for_version(given_up["version"])
    with proxy.raw() as after:
        pin = make_id(LAST, 1, 1)
        refused(after, f"SELECT * FROM pins WHERE id = {pin}", pin, LAST)
    proxy.proxy.stop()
    proxy.proxy.start()
    proxy.wait_for_version(given_up["version"])
    back = given_up | {"keyspaces": document["keyspaces"], "version": given_up["version"] + 1}
    put({name: value for name, value in back.items() if name != "dropped_shards"})
    proxy.wait_for_version(back["version"])
    with proxy.raw() as last:
        assert last.ask("SELECT COUNT(*) FROM pins").value == pins
