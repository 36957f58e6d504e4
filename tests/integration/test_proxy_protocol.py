"""The PROXY protocol: who is believed, what is done with the address, and headers in all pieces."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from demo.certificates import LocalAuthority
from demo.process import free_port, reserve_port, spawn, stop_all
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import Raw
from tests.integration.secure import SecureRaw, trusting
from tests.support.demo import Demo
from tests.support.waiting import wait_until
from tests.wire.test_proxy_header import BAD, GOOD

pytestmark = pytest.mark.one_server

V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 3306\r\n"


class Balanced:
    """A proxy with three listeners: one that trusts nobody, one this machine, one somebody else."""

    def __init__(self, demo: Demo, folder: Path, ports: tuple[int, int]) -> None:
        self.authority = LocalAuthority(folder)
        cert, key = self.authority.issue()
        tls = {"cert": str(cert), "key": str(key)}
        self.own = OwnProxy(demo, folder / "proxy", {"timeouts": {"login": "2s"}, "tls": tls})
        self.port, self.strange_port = ports
        self.own.settings["listen"] = [
            self.own.settings["listen"],
            {"address": f"127.0.0.1:{self.port}", "proxy_protocol": ["127.0.0.1", "fd00::/8"]},
            {"address": f"127.0.0.1:{self.strange_port}", "proxy_protocol": ["10.0.0.0/8"]},
        ]


@pytest.fixture(scope="module")
def balanced_proxy(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    reserved = [reserve_port(0) for _ in range(2)]
    ports = reserved[0].getsockname()[1], reserved[1].getsockname()[1]
    made = Balanced(demo, tmp_path_factory.mktemp("balanced"), ports)
    with made.own as proxy:
        yield made
        assert not log_problems(proxy.log.read_text())
    for one in reserved:
        one.close()


@pytest.fixture
def balanced(balanced_proxy: Balanced) -> Iterator[Balanced]:
    yield balanced_proxy
    balanced_proxy.own.wait_idle(clients=0)


def sessions(client: Raw) -> list[bytes | None]:
    return [row[2] for row in client.ask("SHOW PROXY SESSIONS").rows]


HEADERS = {name: one for name, one in GOOD.items() if len(one[0]) < 1000}


@pytest.mark.parametrize(("header", "source"), HEADERS.values(), ids=HEADERS)
def test_the_address_is_the_clients(
    balanced: Balanced, header: bytes, source: tuple[str, int] | None
) -> None:
    with Raw("127.0.0.1", balanced.port) as client:
        client.write(header)
        assert client.login().kind == "ok"
        host, port = source or client.sock.getsockname()
        assert client.ask("SELECT USER()").value == f"demo@{host}".encode()
        assert sessions(client) == [f"{host}:{port}".encode()]


def test_cut_anywhere_and_with_more_behind(balanced: Balanced) -> None:
    for header in (V1, GOOD["2, IPv6"][0]):
        with Raw("127.0.0.1", balanced.port) as client:
            for n in range(len(header)):
                client.write(header[n : n + 1])
            assert client.login().kind == "ok"
        with Raw("127.0.0.1", balanced.port) as client:
            client.write(header + b"\x01\0\0\1\x0e")  # no response, but bytes that must reach the log-in
            assert client.greeting() is None
            assert client.reply().kind == "err"
            assert client.closed


def test_over_tls(balanced: Balanced) -> None:
    context = trusting(balanced.authority.ca)
    with SecureRaw("127.0.0.1", balanced.port, context) as client:
        client.write(V1)
        assert client.login().kind == "ok"
        assert client.ask("SELECT USER()").value == b"demo@192.0.2.7"


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_garbage_is_refused_without_a_word(balanced: Balanced, data: bytes) -> None:
    with Raw("127.0.0.1", balanced.port) as client:
        client.write(data)
        with suppress(ConnectionError):
            assert client.closed


def test_silence_is_refused(balanced: Balanced) -> None:
    with Raw("127.0.0.1", balanced.port) as client:
        client.write(V1[:20])
        assert client.closed

    def refused() -> list[dict[str, Any]]:
        lines = balanced.own.logged("PROXY header refused")
        return lines if any(line["reason"] == "none came in time" for line in lines) else []

    lines = wait_until(refused, "the line in the log")
    assert all(line["address"].startswith("127.0.0.1:") for line in lines)


def test_who_is_not_trusted(balanced: Balanced) -> None:
    """Clients as ever, and a header is a bad packet."""
    for port in (balanced.own.proxy.port, balanced.strange_port):
        with Raw("127.0.0.1", port) as client:
            assert client.login().kind == "ok"
            assert client.ask("SELECT USER()").value == b"demo@127.0.0.1"
        for header in (V1, GOOD["2, IPv4"][0]):
            with Raw("127.0.0.1", port) as client:
                assert client.greeting() is None
                client.write(header)
                assert client.reply().kind == "err"
                with suppress(ConnectionError):
                    assert client.closed


def test_failed_log_ins_count_for_the_client(balanced: Balanced) -> None:
    def failed(last: int) -> float:
        with Raw("127.0.0.1", balanced.port) as client:
            client.write(b"PROXY TCP4 192.0.2.%d 198.51.100.1 1 3306\r\n" % last)
            began = time.monotonic()
            reply = client.login("demo", "wrong")
            assert reply.code == 1045
            assert f"'demo'@'192.0.2.{last}'" in reply.message
            return time.monotonic() - began

    slow = sum(failed(50) for _ in range(6))
    assert slow >= 0.1 + 0.2 + 0.4
    lines = balanced.own.logged("log-in refused")
    assert {line["address"] for line in lines} == {"192.0.2.50:1"}


@pytest.fixture
def haproxy(balanced: Balanced, tmp_path: Path) -> Iterator[dict[str, int]]:
    """A real balancer, with a port for each version of the header; it also checks that the proxy is there."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("haproxy is not installed")
    ports = {option: free_port() for option in ("send-proxy", "send-proxy-v2")}
    lines = [
        "defaults",
        "    mode tcp",
        *(f"    timeout {one} 20s" for one in ("connect", "client", "server")),
    ]
    for option, port in ports.items():
        check = "check inter 100ms check-send-proxy"
        lines += [f"listen {option}", f"    bind 127.0.0.1:{port}"]
        lines += [f"    server proxy 127.0.0.1:{balanced.port} {option} {check}"]
    file = tmp_path / "haproxy.cfg"
    file.write_text("\n".join(lines) + "\n")
    child = spawn([program, "-db", "-f", str(file)], tmp_path / "haproxy.log")
    try:
        yield ports
    finally:
        stop_all([child], timeout=5.0)


def test_behind_haproxy(balanced: Balanced, haproxy: dict[str, int]) -> None:
    context = trusting(balanced.authority.ca)
    for option, port in haproxy.items():

        def user(port: int = port, **arguments: Any) -> Any:
            mine = {"host": "127.0.0.1", "port": port, "bind_address": "127.0.0.9"}
            try:
                connection = balanced.own.demo.connect(**mine, **arguments)
            except pymysql.OperationalError:
                return None  # not up yet
            with connection, connection.cursor() as cursor:
                cursor.execute("SELECT USER()")
                return cursor.fetchall()[0][0]

        assert wait_until(user, f"an answer through {option}") == "demo@127.0.0.9"
        assert user(ssl=context) == "demo@127.0.0.9"
