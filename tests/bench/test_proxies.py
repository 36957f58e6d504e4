"""The other proxies: their configurations, and that the programs that are here take them and serve."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
import yaml
from pymysql.cursors import Cursor

from bench import kingshard, proxies
from bench.cluster import Cluster, Server
from bench.proxies import PROGRAMS, Program
from bench.rows import LAYOUT, PINS
from bench.setup import Setup
from bench.stage import find_proxies
from bench.sysbench import Target
from bench.tools import BenchError
from bench.workloads import FOLDER, WORKLOADS, Route
from tests.support.demo import Demo
from tests.support.servers import LocalServer

BY_ROUTE = {one.route: one for one in PROGRAMS}
PROXY = Target((("127.0.0.1", 3307),), "demo", "demo", physical=False, database="demo")


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    servers = tuple(
        Server("127.0.0.1", 3306 + n, "bench", "secret", 1, tuple(range(n * 32, n * 32 + 32))) for n in (0, 1)
    )
    return Setup("/usr/bin/it", tmp_path, Cluster(servers, PROXY, 7), (4001, 4002), 1)


def text(program: Program, setup: Setup) -> str:
    (found,) = program.files(setup).values()
    return found


def test_every_proxy_is_a_route_that_is_documented() -> None:
    docs = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for program in PROGRAMS:
        assert program.route.value in docs
        assert f"`{program.option} PATH`" in docs


def test_haproxy_copies_bytes_before_each_host(setup: Setup) -> None:
    made = text(BY_ROUTE[Route.HAPROXY], setup)
    assert "mode tcp" in made
    assert "nbthread 1\n" in made
    assert "    bind 127.0.0.1:4002\n    server mysql 127.0.0.1:3307\n" in made


def test_router_has_a_port_for_each_host(setup: Setup) -> None:
    made = text(BY_ROUTE[Route.ROUTER], replace(setup, threads=3))
    assert "[io]\nthreads=3\n" in made
    assert "bind_port=4002\ndestinations=127.0.0.1:3307\n" in made
    assert "0.0.0.0" not in made


def test_proxysql_tells_hosts_apart_by_port(setup: Setup) -> None:
    made = text(BY_ROUTE[Route.PROXYSQL], setup)
    assert 'interfaces="127.0.0.1:4001;127.0.0.1:4002"' in made
    assert '{ address="127.0.0.1", port=3307, hostgroup=1, max_connections=5000 }' in made
    assert "proxy_port=4002, destination_hostgroup=1, apply=1" in made
    assert "threads=1\n" in made
    assert "0.0.0.0" not in made
    assert made.count("{") == made.count("}")
    assert made.count("(") == made.count(")") == 3


def test_kingshard_divides_ids_as_the_layout_does(setup: Setup) -> None:
    document = yaml.safe_load(text(BY_ROUTE[Route.KINGSHARD], setup))
    assert document["addr"] == "127.0.0.1:4001"
    assert [one["master"] for one in document["nodes"]] == ["127.0.0.1:3306", "127.0.0.1:3307"]
    rules = {one["table"]: one for one in document["schema_list"][0]["shard"]}
    assert set(rules) == {"pins", "board_has_pins"}
    for rule in rules.values():
        assert rule["locations"] == [32, 32]
        assert LAYOUT.compose(shard=37, type=PINS, local=5) // rule["table_row_limit"] == 37


def test_one_given_by_path_must_be_there(tmp_path: Path) -> None:
    router = BY_ROUTE[Route.ROUTER]
    with pytest.raises(BenchError, match=r"--router: .*mysqlrouter is no program"):
        router.find(tmp_path)
    (tmp_path / "mysqlrouter").write_text("#!/bin/sh\n")
    (tmp_path / "mysqlrouter").chmod(0o755)
    assert router.find(tmp_path) == str(tmp_path / "mysqlrouter")
    assert find_proxies({Route.ROUTER: tmp_path}, [Route.ROUTER]) == {Route.ROUTER: router.find(tmp_path)}
    assert find_proxies({Route.ROUTER: tmp_path}, [Route.SHARDGATE]) == {}


def test_workloads_that_other_proxies_can_do() -> None:
    takes = {one.name for one in WORKLOADS.values() if one.takes(Route.KINGSHARD)}
    assert takes == {"point", "ids", "mapping"}  # it does not route what is prepared
    assert WORKLOADS["prepared"].takes(Route.ROUTER)
    assert all(one.takes(Route.HAPROXY) for one in WORKLOADS.values())


def test_a_proxy_that_ends_says_why(setup: Setup, tmp_path: Path) -> None:
    program = tmp_path / "it"
    program.write_text("#!/bin/sh\necho 'no such option'\nexit 1\n")
    program.chmod(0o755)
    with (
        pytest.raises(BenchError, match=r"(?s)HAProxy did not start.*no such option"),
        proxies.running(BY_ROUTE[Route.HAPROXY], str(program), setup.cluster, 1),
    ):
        pass


def port_behind(host: str, port: int) -> int:
    """Of the server that answers there."""
    with (
        pymysql.connect(host=host, port=port, user="bench", password="secret") as connection,
        connection.cursor() as cursor,
    ):
        return int(one_row(cursor, "SELECT @@port")[0])


def one_row(cursor: Cursor, sql: str) -> tuple[Any, ...]:
    cursor.execute(sql)
    found = cursor.fetchone()
    assert found
    return found


@pytest.mark.one_server
@pytest.mark.parametrize("route", [Route.HAPROXY, Route.ROUTER, Route.PROXYSQL], ids=str)
def test_a_proxy_leads_to_each_host(servers: list[LocalServer], route: Route) -> None:
    folder = os.environ.get("SHARDGATE_MYSQL9")
    given = Path(folder) if route is Route.ROUTER and folder else None
    program = BY_ROUTE[route].find(given)
    if program is None:
        pytest.skip(f"{BY_ROUTE[route].name} is not installed")
    behind = tuple(Server(one.host, one.port, "bench", "secret", 1, (n,)) for n, one in enumerate(servers))
    for server in servers:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER bench@'%' IDENTIFIED BY 'secret'")
    try:
        with proxies.running(BY_ROUTE[route], program, Cluster(behind, PROXY, 7), 1) as way:
            assert way.pid is not None
            assert way.target.physical
            reached = [port_behind(host, port) for host, port in way.target.addresses]
            assert reached == [one.port for one in servers]
    finally:
        for server in servers:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("DROP USER bench@'%'")


@pytest.mark.one_server
def test_kingshard_finds_the_rows_of_the_shards(demo: Demo) -> None:
    """Its tables are made, on one shard of each host; the program itself is asked where it is installed."""
    hosts = [
        Server(one.host, one.port, one.user, one.password, one.pid, (shard,))
        for one, shard in zip(demo.masters, (0, 32), strict=True)
    ]
    try:
        kingshard.fill(Cluster(tuple(hosts), PROXY, 7))
        for server in hosts:
            shard = server.shards[0]
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT id, data FROM ks.pins_{shard:04d} ORDER BY id")
                rows = cursor.fetchall()
                cursor.execute(f"SELECT local_id, data FROM db{shard:05d}.pins ORDER BY local_id")
                own = [(LAYOUT.compose(shard=shard, type=PINS, local=id), data) for id, data in cursor]
                assert list(rows) == own
                assert rows
                boards = one_row(cursor, f"SELECT COUNT(*) FROM ks.board_has_pins_{shard:04d}")
                assert boards == one_row(cursor, f"SELECT COUNT(*) FROM db{shard:05d}.board_has_pins")
    finally:
        for server in hosts:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("DROP DATABASE IF EXISTS ks")


def test_haproxy_finds_no_fault_with_its_configuration(setup: Setup) -> None:
    program = BY_ROUTE[Route.HAPROXY].find(None)
    if program is None:
        pytest.skip("haproxy is not installed")
    (setup.folder / "haproxy.cfg").write_text(text(BY_ROUTE[Route.HAPROXY], setup))
    done = subprocess.run(
        [program, "-c", "-f", str(setup.folder / "haproxy.cfg")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
