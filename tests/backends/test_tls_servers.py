"""Connections to real servers over TLS: both plugins on a cold cache, and whom the proxy does not talk to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest
import uvloop

from config.tls import BackendTls
from demo.certificates import LocalAuthority
from demo.documents import settings_document
from demo.programs import Flavour, Program
from proxy.backends.collect import Collector
from proxy.backends.connecting import LoginConnector
from proxy.certificates import Certificates
from proxy.errors import ProxyError
from tests.backends.hosts import World
from tests.support.servers import LocalServer
from tests.support.zygote import ForkedProxy

PASSWORD = "sécret"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LocalAuthority:
    return LocalAuthority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server(
    program: Program, template: Path, authority: LocalAuthority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    """A server with a certificate for 127.0.0.1, not for localhost, and accounts that must use TLS."""
    cert, key = authority.issue(("db1.example", "127.0.0.1"))
    users = LocalAuthority(tmp_path_factory.mktemp("users"), "users")
    options = [f"--ssl-cert={cert}", f"--ssl-key={key}", f"--ssl-ca={users.ca}"]
    with LocalServer(program, tmp_path_factory.mktemp("server"), template=template, options=options) as made:
        with made.connect().cursor() as cursor:
            plugin = " WITH caching_sha2_password" if made.program.flavour is Flavour.MYSQL else ""
            cursor.execute(f"CREATE USER must@'%' IDENTIFIED{plugin} BY '{PASSWORD}' REQUIRE SSL")
            cursor.execute(f"CREATE USER shows@'%' IDENTIFIED{plugin} BY '{PASSWORD}' REQUIRE X509")
            for user in ("must", "shows"):
                cursor.execute(f"GRANT ALL ON *.* TO {user}@'%'")
            cursor.execute("CREATE DATABASE app")
        made_users[made.port] = users
        yield made


made_users: dict[int, LocalAuthority] = {}


def ask(server: LocalServer, tls: BackendTls | None, *, user: str = "must", name: str = "127.0.0.1") -> str:
    """Log in over the proxy's own connector, and ask which cipher the server sees."""

    async def main() -> str:
        certificates = None if tls is None else Certificates("hosts", tls)
        connector = LoginConnector(lambda host, capability_set: (user, PASSWORD), 10.0, certificates)
        conn = await connector(f"{name}:{server.port}", World().pool, False)
        try:
            reply = await Collector().query(conn, b"SHOW STATUS LIKE 'Ssl_cipher'")
            big = await Collector().query(conn, b"SELECT REPEAT('x', 3000000)")
            assert len(big.values()[0][0] or b"") == 3000000
            return (reply.values()[0][1] or b"").decode()
        finally:
            conn.close()

    return uvloop.run(main())


def test_verified(server: LocalServer, authority: LocalAuthority) -> None:
    for _ in range(2):  # on MySQL: full authentication, then the cached one
        assert "GCM" in ask(server, BackendTls(ca=authority.ca))
    assert "GCM" in ask(server, BackendTls(ca=authority.ca, min_version="TLSv1.3"))
    assert "GCM" in ask(server, BackendTls(verify="none"))


def test_a_cold_cache(server: LocalServer, authority: LocalAuthority) -> None:
    """The password itself goes through TLS; none is ever asked for by RSA."""
    with server.connect().cursor() as cursor:
        cursor.execute("FLUSH PRIVILEGES")
    assert ask(server, BackendTls(ca=authority.ca))


def test_an_own_certificate(server: LocalServer, authority: LocalAuthority) -> None:
    cert, key = made_users[server.port].issue(("proxy",), client=True)
    assert ask(server, BackendTls(ca=authority.ca, cert=cert, key=key), user="shows")
    with pytest.raises(ProxyError, match="refuses the proxy's own account"):
        ask(server, BackendTls(ca=authority.ca), user="shows")


def test_who_is_refused(server: LocalServer, authority: LocalAuthority, tmp_path: Path) -> None:
    stranger = LocalAuthority(tmp_path)
    with pytest.raises(ProxyError, match="refuses the proxy's own account"):
        ask(server, None)  # as the server wants it
    with pytest.raises(ProxyError, match="TLS failed: the certificate is refused"):
        ask(server, BackendTls(ca=stranger.ca))
    with pytest.raises(ProxyError, match="TLS failed: the certificate is refused"):
        ask(server, BackendTls())  # the system's authorities
    with pytest.raises(ProxyError, match=r"TLS failed: the certificate is refused: .*mismatch"):
        ask(server, BackendTls(ca=authority.ca), name="localhost")
    assert ask(server, BackendTls(ca=authority.ca, verify="ca"), name="localhost")


def test_a_server_without_tls(program: Program, request: pytest.FixtureRequest) -> None:
    """tests/backends/test_connecting.py has one for every kind of server."""
    if program.flavour is Flavour.MYSQL:
        pytest.skip("MySQL makes itself a certificate")
    servers: list[LocalServer] = request.getfixturevalue("servers")
    with pytest.raises(ProxyError, match="does not offer it"):
        ask(servers[0], BackendTls(verify="none"), user="root")


@pytest.fixture
def proxied(server: LocalServer, authority: LocalAuthority, tmp_path: Path) -> Iterator[ForkedProxy]:
    """A proxy in front of that server, which it reaches over TLS only."""
    proxy = ForkedProxy(tmp_path, port=0, page=False)
    settings: dict[str, Any] = settings_document(
        port=proxy.port,
        status_port=None,
        workers=1,
        backends={"user": "must", "password": PASSWORD},
        zookeeper=None,
    )
    settings["backends"]["tls"] = {"ca": str(authority.ca)}
    documents: Mapping[str, Any] = {
        "schema.yaml": {"databases": {"app": {"keyspace": "app"}}},
        "topology.json": {
            "version": 1,
            "default": {"master": server.address},
            "keyspaces": {"app": {"master": server.address}},
        },
    }
    for file, document in documents.items():
        (tmp_path / file).write_text(json.dumps(document))
    try:
        proxy.configure(settings)
        proxy.start()
        yield proxy
    finally:
        proxy.stop()
        proxy.release()


def test_through_the_proxy(proxied: ForkedProxy) -> None:
    """Statements, large ones, transactions, KILL and resets as ever."""
    with pymysql.connect(
        host=proxied.host, port=proxied.port, user="demo", password="demo", ssl_disabled=True, read_timeout=20
    ) as connection:
        cursor = connection.cursor()
        connection.select_db("app")
        cursor.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * (5 << 20),))
        connection.rollback()
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("y" * (5 << 20),))
        connection.commit()
        cursor.execute("SELECT id, LENGTH(v), v FROM t")
        assert cursor.fetchall() == ((2, 5 << 20, "y" * (5 << 20)),)
        cursor.execute("CREATE TEMPORARY TABLE fleeting (id INT)")
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchall() == (("Ssl_cipher", ""),)
        cursor.execute("DROP TABLE t")
