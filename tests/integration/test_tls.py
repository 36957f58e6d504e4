"""TLS to clients: raw sockets that cut and mix its bytes, drivers, command line clients, new certificates."""

from __future__ import annotations

import datetime as dt
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from demo.certificates import LocalAuthority
from proxy.wire.auth import store_caching_sha2
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import NATIVE, SHA2, SSL, Closed, Raw, query
from tests.integration.secure import SecureRaw, Wrapped, all_at_once, byte_by_byte, ssl_request, trusting
from tests.integration.test_drivers import Cli
from tests.integration.test_login import native_hash
from tests.support.demo import Demo
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

PASSWORD = "pässwört"
USERS: list[dict[str, Any]] = [
    {"name": "demo", "password": "demo", "role": "admin"},
    {"name": "sha2", "password_hash": "0x" + store_caching_sha2(PASSWORD.encode()).encode().hex()},
    {"name": "native", "password_hash": native_hash(PASSWORD)},
    {"name": "careful", "password": PASSWORD, "require_tls": True},
]


@pytest.fixture
def authority(tmp_path: Path) -> LocalAuthority:
    return LocalAuthority(tmp_path)


@pytest.fixture
def context(demo: Demo) -> ssl.SSLContext:
    return trusting(demo.directory / "ca.pem")


@pytest.fixture
def stack(demo: Demo, unharmed: None) -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def settings(authority: LocalAuthority, **tls: Any) -> dict[str, Any]:
    cert, key = authority.issue()
    return {"users": USERS, "tls": {"cert": str(cert), "key": str(key), **tls}}


# -- the handshake's bytes
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False], ids=["one segment", "two"])
@pytest.mark.parametrize("deliver", [all_at_once, byte_by_byte])
def test_a_hello_with_the_request(
    demo: Demo, context: ssl.SSLContext, stack: ExitStack, together: bool, deliver: Any
) -> None:
    client = stack.enter_context(SecureRaw(demo.host, demo.port, context, together=together, deliver=deliver))
    assert client.login(database="demo", behind=query("SELECT 'a'") + query("SELECT 'b'")).kind == "ok"
    assert [client.reply().value, client.reply().value] == [b"a", b"b"]
    reply = client.ask("SHOW STATUS LIKE 'Ssl_cipher'")
    assert client.wrapped is not None
    cipher = client.wrapped.tls.cipher()
    assert cipher is not None
    assert reply.rows == [(b"Ssl_cipher", cipher[0].encode())]
    shown = client.ask("SHOW VARIABLES LIKE 'have_ssl'")
    assert shown.rows == ([(b"have_ssl", b"YES")] if "MariaDB" in client.version else [])


def test_statements_of_all_sizes(demo: Demo, context: ssl.SSLContext, stack: ExitStack) -> None:
    """The data path is that of clear text, with records between: rows and statements of many of them."""
    client = stack.enter_context(SecureRaw(demo.host, demo.port, context))
    assert client.login(database="legacy").kind == "ok"
    for size in (0, 1, 16383, 16384, 16385, 1 << 20, 17 << 20):
        assert client.ask(f"SELECT REPEAT('x', {size})").value == b"x" * size, size
        assert client.ask(b"SELECT LENGTH('" + b"y" * size + b"')").value == b"%d" % size, size
    client.write(b"".join(query(f"SELECT {n}") for n in range(200)))
    assert [client.reply().value for _ in range(200)] == [b"%d" % n for n in range(200)]


def test_clear_text_after_the_request(demo: Demo, stack: ExitStack) -> None:
    """A log-in, or statements, in the clear where TLS was to begin: nobody looks at them."""
    with demo.connect(database="legacy").cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS clear_text")
        for together in (True, False):
            client = stack.enter_context(Raw(demo.host, demo.port))
            client.greeting()
            behind = client.response("demo", "demo", "legacy", flags=SSL)
            behind = behind[:3] + b"\x02" + behind[4:] + query("CREATE TABLE legacy.clear_text (id INT)")
            if together:
                client.write(ssl_request() + behind)
            else:
                client.write(ssl_request())
                client.write(behind)
            with suppress(ConnectionError, Closed):
                alert = client.exactly(5)  # of TLS, and no packet
                assert alert[0] == 0x15
                client.exactly(alert[4])
                assert client.closed
        assert cursor.execute("SHOW TABLES LIKE 'clear_text'") == 0


def test_clear_text_before_tls_is_no_part_of_it(
    demo: Demo, context: ssl.SSLContext, stack: ExitStack
) -> None:
    """What is smuggled between the request and the hello breaks the handshake."""
    client = stack.enter_context(Raw(demo.host, demo.port))
    client.greeting()
    wrapped = Wrapped(client.sock, context)
    client.write(ssl_request() + query("SELECT 1") + wrapped.hello())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        wrapped.shake_hands(all_at_once)


def test_the_flag_of_tls_with_a_log_in_in_the_clear(demo: Demo, stack: ExitStack) -> None:
    client = stack.enter_context(Raw(demo.host, demo.port))
    assert client.login(flags=SSL).code == 1043
    assert client.closed


def test_failed_handshakes_are_logged(own: MakeOwn, authority: LocalAuthority, tmp_path: Path) -> None:
    proxy = own(settings(authority, min_version="TLSv1.3") | {"timeouts": {"login": "2s"}})
    good = trusting(authority.ca)

    def begun() -> tuple[Raw, Wrapped]:
        client = proxy.raw(login=False)
        client.greeting()
        return client, Wrapped(client.sock, good)

    half, wrapped = begun()
    half.write(ssl_request() + wrapped.hello()[:100])
    with suppress(ConnectionError):
        assert half.closed
    proxy.logged("log-in took too long")

    gone, wrapped = begun()
    gone.write(ssl_request() + wrapped.hello()[:100])
    gone.close()
    proxy.logged("TLS handshake failed")

    old = trusting(authority.ca)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    stranger = trusting(LocalAuthority(_folder(tmp_path / "other")).ca)
    for refused in (old, stranger):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            SecureRaw(proxy.proxy.host, proxy.proxy.port, refused).greeting()
    lines = proxy.logged("TLS handshake failed", 3)
    assert all(line["address"].startswith("127.0.0.1:") and line["reason"] for line in lines), lines
    assert proxy.metric('shardgate_connections_refused_total{error="tls_handshake"}') == 3
    with proxy.connect(ssl=good).cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


# -- who may, and who must
# -------------------------------------------------------------------------------------------------


def test_both_plugins_on_a_cold_cache(own: MakeOwn, authority: LocalAuthority) -> None:
    """The password itself goes through TLS, which also lets a stored native hash be checked."""
    proxy = own(settings(authority))
    for user, plugin, full in (
        ("sha2", SHA2, True),
        ("sha2", SHA2, False),
        ("sha2", NATIVE, False),
        ("native", NATIVE, False),
        ("native", SHA2, True),
        ("native", SHA2, False),
        ("careful", SHA2, False),
    ):
        with SecureRaw(proxy.proxy.host, proxy.proxy.port, trusting(authority.ca)) as client:
            assert client.login(user, PASSWORD, plugin=plugin).kind == "ok", (user, plugin)
            assert client.asked_full == full, (user, plugin)
            assert client.ask("SELECT 1").value == b"1"
    for user in ("sha2", "native", "nobody"):
        with SecureRaw(proxy.proxy.host, proxy.proxy.port, trusting(authority.ca)) as client:
            assert client.login(user, "wrong").code == 1045
            assert client.closed


def on_socket(proxy: OwnProxy, path: Path, user: str, password: str) -> int:
    """Log in on a Unix socket; 0 or the error's number."""
    try:
        proxy.connect(unix_socket=str(path), host=None, user=user, password=password.encode()).close()
    except pymysql.err.OperationalError as error:
        return int(error.args[0])
    return 0


def test_users_that_must(own: MakeOwn, authority: LocalAuthority, tmp_path: Path) -> None:
    """In the clear such a user looks like one that does not exist, on a Unix socket too, as in MySQL."""
    path = tmp_path / "proxy.sock"
    proxy = own(settings(authority) | {"listen": [f"unix:{path}", "127.0.0.1:0"]})
    port = int(proxy.logged("serving")[0]["listen"][1].rpartition(":")[2])
    for plugin in (SHA2, NATIVE):
        for password in (PASSWORD, "wrong"):
            with Raw("127.0.0.1", port) as client:
                reply = client.login("careful", password, plugin=plugin)
                assert (reply.code, reply.sqlstate) == (1045, "28000")
                assert client.closed
    assert on_socket(proxy, path, "careful", PASSWORD) == 1045
    assert {line["reason"] for line in proxy.logged("log-in refused", 5)} == {
        "this user must connect over TLS"
    }
    assert on_socket(proxy, path, "sha2", PASSWORD) == 0, "a cold cache on a socket needs no RSA"
    context = trusting(authority.ca)
    arguments = {"user": "careful", "password": PASSWORD.encode(), "ssl": context, "port": port}
    with proxy.connect(**arguments).cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1


def test_all_must(own: MakeOwn, authority: LocalAuthority, tmp_path: Path) -> None:
    """But for Unix sockets, which nobody can listen in to."""
    path = tmp_path / "proxy.sock"
    changes = settings(authority, required=True)
    proxy = own(changes | {"listen": [f"unix:{path}", "127.0.0.1:0"]})
    port = int(proxy.logged("serving")[0]["listen"][1].rpartition(":")[2])
    with Raw("127.0.0.1", port) as client:
        reply = client.login()
        assert (reply.code, reply.sqlstate) == (3159, "HY000")
        assert client.closed
    with pytest.raises(pymysql.err.OperationalError) as caught:
        proxy.connect(port=port)
    assert caught.value.args[0] == 3159
    with proxy.connect(ssl=trusting(authority.ca), port=port).cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1
    assert on_socket(proxy, path, "demo", "demo") == 0


def test_client_certificates(own: MakeOwn, authority: LocalAuthority, tmp_path: Path) -> None:
    users = LocalAuthority(_folder(tmp_path / "users"), "users")
    proxy = own(settings(authority, client_ca=str(users.ca)))
    known = trusting(authority.ca)
    known.load_cert_chain(*users.issue(("app",), client=True))
    strange = trusting(authority.ca)
    strange.load_cert_chain(*authority.issue(("app",), file="app", client=True))
    with proxy.connect(ssl=known).cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1
    for context in (strange, trusting(authority.ca)):
        with pytest.raises((pymysql.err.OperationalError, ssl.SSLError, ConnectionError)):
            proxy.connect(ssl=context)


# -- new certificates
# ------------------------------------------------------------------------------------------------------


def refusals(proxy: OwnProxy) -> int:
    return len(proxy.logged("certificate refused, the old one stays", 0))


def more_refusals(proxy: OwnProxy, before: int, what: str) -> None:
    wait_until(lambda: refusals(proxy) > before, f"the refusal of {what}")


def test_a_new_certificate(own: MakeOwn, authority: LocalAuthority) -> None:
    """By signal and by itself; a bad one is refused, and who is connected stays so."""
    proxy = own(settings(authority), expected=("certificate refused", "settings refused"))
    context = trusting(authority.ca)
    old = proxy.connect(ssl=context)

    def serial() -> Any:
        made = socket.create_connection((proxy.proxy.host, proxy.proxy.port), timeout=8)
        with Raw(proxy.proxy.host, proxy.proxy.port) as client:
            made.close()
            client.greeting()
            client.write(ssl_request())
            with context.wrap_socket(client.sock, server_hostname="127.0.0.1") as tls:
                return dict(tls.getpeercert() or {})["serialNumber"]

    first = serial()
    cert, key = authority.issue()
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: serial() != first, "the new certificate")
    second = serial()

    for spoil in ("another key", "half a file", "expired"):
        before = refusals(proxy)
        if spoil == "another key":
            shutil.copy(authority.issue(file="other")[1], key)
        elif spoil == "half a file":
            cert.write_text(cert.read_text()[:200])
        else:
            authority.issue(start=dt.timedelta(days=-9), end=dt.timedelta(days=-8))
        proxy.signal(signal.SIGHUP)
        more_refusals(proxy, before, spoil)
        assert serial() == second
        with proxy.connect(ssl=context).cursor() as cursor:
            assert cursor.execute("SELECT 1") == 1
    authority.issue()
    wait_until(lambda: serial() != second, "the new certificate, without a signal")
    with old.cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1


# -- clients
# ------------------------------------------------------------------------------------------------------


def test_command_line_clients(demo: Demo, cli: Cli) -> None:
    ca = str(demo.directory / "ca.pem")
    options = ["--ssl-mode=VERIFY_IDENTITY", f"--ssl-ca={ca}"]
    if cli.mariadb:
        options = [f"--ssl-ca={ca}", "--ssl-verify-server-cert"]
    done = cli.run("status;\nSHOW STATUS LIKE 'Ssl_cipher';\n", "-t", *options)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("SSL:"))
    cipher = line.split()[-1]
    assert "Cipher in use is" in line
    assert cipher in done.stdout.split("Ssl_cipher")[1]
    clear = cli.run("SHOW SESSION STATUS LIKE 'ssl_c%';\n", "-t", *cli.without_tls)
    assert clear.returncode == 0, clear.stderr
    assert cipher not in clear.stdout


@pytest.fixture
def cli(demo: Demo, program: Any, unharmed: None) -> Cli:
    return Cli(demo, program)
