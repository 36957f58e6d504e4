"""Throw-away database servers for the log-in tests, one of each kind a module, on loopback.

MariaDB: the program SHARDGATE_MYSQLD names if it is a mariadbd, else the one on PATH. MySQL 9.7: `mysqld` in
the folder that SHARDGATE_MYSQL9 names. Tests of a kind that is not installed are skipped, and say so.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

START_TIMEOUT = 60.0


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, and the certificate it shows."""

    port: int
    socket: str
    certificate: str

    def admin(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements as root; the last one's rows."""
        with contextlib.closing(pymysql.connect(unix_socket=self.socket, user="root")) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def tls(self) -> ssl.SSLContext:
        """A client's context that trusts this server's certificate only."""
        return ssl.create_default_context(cafile=self.certificate)


def _write_certificate(folder: Path) -> None:
    """A self-signed certificate for 127.0.0.1, `cert.pem` and `key.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test server")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
    )
    certificate = builder.sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _running(program: str, initialize: list[str], *options: str) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="sgwire"))
    log = folder / "log"
    account = ["--user=root"] if os.geteuid() == 0 else []
    common = ["--no-defaults", f"--datadir={folder / 'data'}", *account]
    process: subprocess.Popen[bytes] | None = None
    try:
        _write_certificate(folder)
        with log.open("wb") as out:
            command = [initialize[0], *common, *initialize[1:]]
            subprocess.run(command, check=True, stdout=out, stderr=out, timeout=START_TIMEOUT)
            server = Server(_free_port(), str(folder / "s"), str(folder / "cert.pem"))
            where = [f"--port={server.port}", f"--socket={server.socket}", f"--pid-file={folder / 'pid'}"]
            tls = [f"--ssl-cert={folder / 'cert.pem'}", f"--ssl-key={folder / 'key.pem'}"]
            small = ["--innodb-buffer-pool-size=16M", "--bind-address=127.0.0.1"]
            command = [program, *common, *where, *tls, *small, *options]
            process = subprocess.Popen(command, stdout=out, stderr=out)
        _await(server, process, log)
        yield server
    finally:
        if process is not None:
            process.terminate()
            try:
                process.wait(START_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _await(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            server.admin("SELECT 1")
            return
        except pymysql.MySQLError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.1)


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Server]:
    named = os.environ.get("SHARDGATE_MYSQLD", "")
    program = named if "mariadbd" in Path(named).name else shutil.which("mariadbd")
    install = shutil.which("mariadb-install-db")
    if not program or not install:
        pytest.skip("MariaDB is not installed (mariadbd and mariadb-install-db)")
    options = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    with _running(program, [install, *options]) as server:
        yield server


@pytest.fixture(scope="module")
def mysql9() -> Iterator[Server]:
    folder = os.environ.get("SHARDGATE_MYSQL9")
    if not folder:
        pytest.skip("MySQL 9.7 is not installed (SHARDGATE_MYSQL9 names the folder of its programs)")
    program = str(Path(folder) / "mysqld")
    plain = ["--secure-file-priv=NULL"]
    initialize = [program, "--initialize-insecure", *plain]
    with _running(program, initialize, *plain, "--mysqlx=OFF", "--skip-log-bin") as server:
        yield server
