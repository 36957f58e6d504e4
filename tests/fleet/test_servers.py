"""`LocalServer` on both servers: start, log in, die, start again, replicate."""

from __future__ import annotations

import socket
from pathlib import Path

import pymysql
import pytest

from demo.background import complete
from demo.programs import Program, ServerError
from demo.replication import prepare_master, start_slave, wait_for_slave
from demo.servers import start_all, stop_servers
from tests.support.demo import gone
from tests.support.servers import LocalServer


def ask(server: LocalServer, statement: str, **arguments: object) -> object:
    with server.connect(**arguments) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
        return row[0] if row else None


def test_two_servers_listen_on_loopback_with_one_account(servers: list[LocalServer]) -> None:
    first, second = servers
    assert first.port != second.port
    for server in servers:
        assert ask(server, "SELECT @@port") == server.port
        assert ask(server, "SELECT USER()", port=server.port) == "root@127.0.0.1"
        assert ask(server, "SELECT @@bind_address") == "127.0.0.1"
        assert ask(server, "SELECT COUNT(*) FROM mysql.user WHERE user IN ('', 'root')") == 2
        with pytest.raises(pymysql.err.OperationalError, match="1045"):
            server.connect(password="")
        with pytest.raises(pymysql.err.OperationalError, match="1045"):
            server.connect(port=server.port, password="wrong")


@pytest.mark.either_server
def test_a_killed_server_starts_again_with_its_port_and_rows(
    program: Program, template: Path, tmp_path: Path
) -> None:
    # A deep folder, so that the socket needs a short one elsewhere
    with LocalServer(program, tmp_path / ("d" * 90), template=template) as server:
        port, pid, shelter = server.port, server.pid, server.socket.parent
        assert len(bytes(server.socket)) < 108
        ask(server, "CREATE DATABASE kept")
        server.kill()
        assert not server.alive
        assert gone(pid)
        server.start()
        assert server.port == port
        assert ask(server, "SHOW DATABASES LIKE 'kept'") == "kept"
        server.kill()
    assert not shelter.exists()  # stopping what is dead already is fine


@pytest.mark.either_server
def test_a_port_taken_meanwhile_is_changed(program: Program, template: Path, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        server = LocalServer(program, tmp_path / "server", template=template)
        server.port = taken = holder.getsockname()[1]
        with server:
            assert server.port != taken


def test_a_server_that_cannot_start_says_why(program: Program, template: Path, tmp_path: Path) -> None:
    good = LocalServer(program, tmp_path / "good", name="good", template=template)
    options = ["--no-such-option"]
    bad = LocalServer(program, tmp_path / "bad", name="bad", template=template, options=options)
    with pytest.raises(ServerError, match=r"(?s)bad .* ended at start:.*no-such-option"):
        start_all([good, bad])
    assert not good.alive


def test_a_slave_has_what_its_master_has_and_refuses_writes(
    program: Program, template: Path, tmp_path: Path
) -> None:
    master, slave = (
        LocalServer(program, tmp_path / name, name=name, template=template, server_id=number, binlog=True)
        for number, name in enumerate(("master", "slave"), 1)
    )
    start_all([master, slave])
    try:
        complete(prepare_master(master, "it's secret"))
        complete(start_slave(slave, master, "it's secret"))
        ask(master, "CREATE DATABASE copied")
        complete(wait_for_slave(slave, master))
        assert ask(slave, "SHOW DATABASES LIKE 'copied'") == "copied"
        assert ask(slave, "SELECT @@global.read_only") == 1
        ask(slave, "STOP SLAVE" if program.flavour == "mariadb" else "STOP REPLICA")
        ask(master, "CREATE DATABASE later")
        with pytest.raises(ServerError, match="slave has not caught up with master in 1 s"):
            complete(wait_for_slave(slave, master, seconds=1))
    finally:
        stop_servers([master, slave], timeout=1)
