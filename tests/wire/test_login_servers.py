"""BackendLogin against real servers, over a plain blocking socket."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import pymysql
import pytest

from proxy.wire import auth
from proxy.wire.constants import Capability, Status
from proxy.wire.login import BackendLogin, Done, Failed, LoginOptions, Send, StartTls, Tls
from proxy.wire.packets import frame, read_lenenc_bytes
from tests.support.waiting import wait_until
from tests.wire.conftest import Server

pytestmark = pytest.mark.integration

CREDENTIALS = LoginOptions("app", "sécret", capabilities=Capability.TRANSACTIONS | Capability.FOUND_ROWS)


class Client:
    """A blocking socket that carries out what BackendLogin says, and keeps what was sent."""

    def __init__(self, server: Server, options: LoginOptions, *, unix: bool) -> None:
        self.server = server
        self.options = replace(options, secure=unix)
        self.sent: list[bytes] = []
        if unix:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(server.socket)
        else:
            self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.settimeout(20)

    def login(self) -> Done | Failed:
        machine = BackendLogin(self.options)
        steps = machine.receive(*self.read())
        while True:
            for step in steps:
                if isinstance(step, Send):
                    self.sent.append(step.payload)
                    self.socket.sendall(frame(step.payload, step.seq))
            last = steps[-1] if steps else None
            if isinstance(last, Done | Failed):
                assert machine.finished
                return last
            if isinstance(last, StartTls):
                self.socket = self.server.tls().wrap_socket(self.socket, server_hostname="127.0.0.1")
                steps = machine.tls_started()
            else:
                steps = machine.receive(*self.read())

    def read(self) -> tuple[bytes, int]:
        header = self.exactly(4)
        return self.exactly(int.from_bytes(header[:3], "little")), header[3]

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, "the server closed the connection"
            data += more
        return data

    def value(self, sql: str) -> str | None:
        """The only value of the only row of a statement."""
        self.socket.sendall(frame(b"\x03" + sql.encode()))
        packets = [self.read()[0]]
        assert packets[0] == b"\x01", packets
        packets += [self.read()[0] for _ in range(4)]  # definition, EOF, row, EOF
        value = read_lenenc_bytes(packets[3], 0)[0]
        return None if value is None else value.decode()

    @property
    def encrypted(self) -> bool:
        return isinstance(self.socket, ssl.SSLSocket)


@contextmanager
def connected(server: Server, options: LoginOptions, *, unix: bool = False) -> Iterator[Client]:
    client = Client(server, options, unix=unix)
    try:
        yield client
    finally:
        client.socket.close()


def succeed(server: Server, options: LoginOptions, *, unix: bool = False) -> tuple[Done, list[bytes]]:
    """Log in, check that the connection works and belongs to the user, and give what was sent meanwhile."""
    with connected(server, options, unix=unix) as client:
        done = client.login()
        assert isinstance(done, Done), done
        assert client.value("SELECT CURRENT_USER()") == f"{options.user}@%"
        assert client.value("SELECT CONNECTION_ID()") == str(done.greeting.connection_id)
        assert client.value("SELECT @@collation_connection") == "utf8mb4_general_ci"
        assert done.status & Status.AUTOCOMMIT
        assert done.capabilities & Capability.FOUND_ROWS
        assert (Capability.SSL in done.capabilities) is client.encrypted
        return done, client.sent


def fail(server: Server, options: LoginOptions, *, unix: bool = False) -> Failed:
    with connected(server, options, unix=unix) as client:
        failed = client.login()
        assert isinstance(failed, Failed), failed
        return failed


# ── MySQL 9.7, caching_sha2_password ────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mysql(mysql9: Server) -> Server:
    mysql9.admin(
        "CREATE USER app IDENTIFIED BY 'sécret'",
        "CREATE USER blank",
        "CREATE USER locked IDENTIFIED BY 'sécret' ACCOUNT LOCK",
        "CREATE USER sha256 IDENTIFIED WITH sha256_password BY 'sécret'",
        f"CREATE USER long_one IDENTIFIED BY '{'x' * 200}'",
        "CREATE DATABASE known",
        "GRANT ALL ON known.* TO app",
    )
    return mysql9


CLEAR = "sécret".encode() + b"\0"


def test_mysql_full_with_a_cold_cache_then_fast(mysql: Server) -> None:
    mysql.admin("FLUSH PRIVILEGES")
    done, sent = succeed(mysql, CREDENTIALS)
    assert (len(sent), sent[1], len(sent[2])) == (3, auth.REQUEST_PUBLIC_KEY, 256)
    assert done.plugin == auth.CACHING_SHA2
    assert done.greeting.server_version.startswith("9.")
    assert "MariaDB" not in done.greeting.server_version
    _, sent = succeed(mysql, CREDENTIALS)
    assert len(sent) == 1


def test_mysql_full_with_a_known_public_key(mysql: Server) -> None:
    mysql.admin("FLUSH PRIVILEGES")
    ((_, pem),) = mysql.admin("SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'")
    _, sent = succeed(mysql, replace(CREDENTIALS, server_public_key=pem.encode()))
    assert [len(payload) for payload in sent[1:]] == [256]


@pytest.mark.parametrize("tls", [Tls.PREFERRED, Tls.REQUIRED])
def test_mysql_full_over_tls(mysql: Server, tls: Tls) -> None:
    mysql.admin("FLUSH PRIVILEGES")
    _, sent = succeed(mysql, replace(CREDENTIALS, tls=tls))
    assert len(sent[0]) == 32
    assert sent[2:] == [CLEAR]
    _, sent = succeed(mysql, replace(CREDENTIALS, tls=tls))
    assert len(sent) == 2


def test_mysql_full_over_a_unix_socket(mysql: Server) -> None:
    mysql.admin("FLUSH PRIVILEGES")
    _, sent = succeed(mysql, CREDENTIALS, unix=True)
    assert sent[1:] == [CLEAR]


@pytest.mark.parametrize("unix", [False, True])
def test_mysql_empty_password(mysql: Server, unix: bool) -> None:
    succeed(mysql, replace(CREDENTIALS, user="blank", password=""), unix=unix)
    failed = fail(mysql, replace(CREDENTIALS, user="blank"), unix=unix)
    assert (failed.code, failed.sqlstate) == (1045, "28000")


def test_mysql_a_password_as_long_as_rsa_allows(mysql: Server) -> None:
    mysql.admin("FLUSH PRIVILEGES")
    succeed(mysql, replace(CREDENTIALS, user="long_one", password="x" * 200))


@pytest.mark.parametrize("tls", [Tls.OFF, Tls.REQUIRED])
@pytest.mark.parametrize(
    ("user", "password", "code", "sqlstate"),
    [
        ("app", "wrong", 1045, "28000"),
        ("app", "", 1045, "28000"),
        ("locked", "sécret", 3118, "HY000"),
        ("app", "x" * 250, None, "HY000"),
    ],
)
def test_mysql_refuses(
    mysql: Server, user: str, password: str, code: int | None, sqlstate: str, tls: Tls
) -> None:
    if code is None:
        code, sqlstate = (2061, "HY000") if tls is Tls.OFF else (1045, "28000")
    failed = fail(mysql, replace(CREDENTIALS, user=user, password=password, tls=tls))
    assert (failed.code, failed.sqlstate) == (code, sqlstate)
    assert not password or password not in failed.message


def test_mysql_a_plugin_we_do_not_speak(mysql: Server) -> None:
    failed = fail(mysql, replace(CREDENTIALS, user="sha256"))
    assert (failed.code, failed.sqlstate) == (2059, "HY000")
    assert "sha256_password" in failed.message


def test_mysql_a_user_it_does_not_know(mysql: Server) -> None:
    codes = {fail(mysql, replace(CREDENTIALS, user=f"nobody{number}")).code for number in range(10)}
    assert codes <= {
        1045,
        2059,
    }  # it sends some of the names to sha256_password, others differ in the next run


def test_mysql_database_and_attributes(mysql: Server) -> None:
    options = replace(
        CREDENTIALS, database="known", attributes={"program_name": "shardgate", "größe": "日本"}
    )
    with connected(mysql, options) as client:
        assert isinstance(client.login(), Done)
        assert client.value("SELECT DATABASE()") == "known"
        value = "SELECT attr_value FROM performance_schema.session_account_connect_attrs WHERE attr_name = "
        assert client.value(value + "'program_name'") == "shardgate"
        assert client.value(value + "'größe'") == "日本"
    assert fail(mysql, replace(CREDENTIALS, database="unknown")).code in (1044, 1049)


def test_mysql_without_tls_is_refused_when_tls_is_required(mysql: Server) -> None:
    mysql.admin("SET GLOBAL tls_version = ''", "ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR")
    try:
        with connected(mysql, replace(CREDENTIALS, tls=Tls.REQUIRED)) as client:
            failed = client.login()
            assert failed == Failed(2026, "HY000", "TLS is required, but the server does not offer it")
            assert client.sent == []
        succeed(mysql, replace(CREDENTIALS, tls=Tls.PREFERRED))
    finally:
        mysql.admin("SET GLOBAL tls_version = 'TLSv1.2,TLSv1.3'", "ALTER INSTANCE RELOAD TLS")


def test_mysql_too_many_connections(mysql: Server) -> None:
    """A connection that is closed counts until the server has seen it."""
    mysql.admin("SET GLOBAL max_connections = 1")

    def logs_in() -> bool:
        return isinstance(stack.enter_context(connected(mysql, CREDENTIALS)).login(), Done)

    def mended() -> bool:
        with suppress(pymysql.OperationalError):
            mysql.admin("SET GLOBAL max_connections = 151")
            return True
        return False

    try:
        with ExitStack() as stack:
            wait_until(logs_in, "the administrator has gone")
            assert fail(mysql, CREDENTIALS).code == 1040
    finally:
        wait_until(mended, "one of them has gone")


# ── MariaDB 10.11, mysql_native_password ────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def maria(mariadb: Server) -> Server:
    mariadb.admin(
        "CREATE USER app IDENTIFIED BY 'sécret'",
        "CREATE USER blank",
        "CREATE USER locked IDENTIFIED BY 'sécret' ACCOUNT LOCK",
        "CREATE USER two_ways IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('sécret')",
        "CREATE DATABASE known",
        "GRANT ALL ON known.* TO app",
    )
    return mariadb


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize(("user", "password"), [("app", "sécret"), ("blank", ""), ("two_ways", "sécret")])
def test_mariadb(maria: Server, user: str, password: str, unix: bool) -> None:
    done, _ = succeed(maria, replace(CREDENTIALS, user=user, password=password), unix=unix)
    assert "MariaDB" in done.greeting.server_version
    assert done.greeting.extended
    assert done.plugin == auth.NATIVE


@pytest.mark.parametrize("tls", [Tls.PREFERRED, Tls.REQUIRED])
def test_mariadb_over_tls(maria: Server, tls: Tls) -> None:
    succeed(maria, replace(CREDENTIALS, tls=tls))


@pytest.mark.parametrize(
    ("user", "password", "code", "sqlstate"),
    [
        ("app", "wrong", 1045, "28000"),
        ("app", "", 1045, "28000"),
        ("nobody", "sécret", 1045, "28000"),
        ("blank", "sécret", 1045, "28000"),
        ("locked", "sécret", 4151, "HY000"),
    ],
)
def test_mariadb_refuses(maria: Server, user: str, password: str, code: int, sqlstate: str) -> None:
    failed = fail(maria, replace(CREDENTIALS, user=user, password=password))
    assert (failed.code, failed.sqlstate) == (code, sqlstate)


def test_a_plugin_that_is_not_known(maria: Server) -> None:
    try:
        maria.admin(
            "INSTALL SONAME 'auth_ed25519'",
            "CREATE USER ed25519 IDENTIFIED VIA ed25519 USING PASSWORD('sécret')",
        )
    except pymysql.err.OperationalError as error:
        if error.args[0] != 1126:
            raise
        pytest.skip("this server has no plugin auth_ed25519 (Debian: mariadb-server has it, not its -core)")
    failed = fail(maria, replace(CREDENTIALS, user="ed25519"))
    assert (failed.code, failed.sqlstate) == (2059, "HY000")


def test_mariadb_database_and_attributes(maria: Server) -> None:
    options = replace(CREDENTIALS, database="known", attributes={"program_name": "shardgate"})
    with connected(maria, options) as client:
        assert isinstance(client.login(), Done)
        assert client.value("SELECT DATABASE()") == "known"
    assert fail(maria, replace(CREDENTIALS, database="unknown")).code in (1044, 1049)
