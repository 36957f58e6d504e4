"""Throw-away database servers for the log-in tests, one of each kind a module, on loopback, with TLS."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from demo.programs import Program
from tests.support.programs import need_program
from tests.support.servers import LocalServer


class Server:
    """A running server that shows a certificate of its own."""

    def __init__(self, local: LocalServer, certificate: Path) -> None:
        self.local = local
        self.certificate = certificate

    @property
    def port(self) -> int:
        return self.local.port

    @property
    def socket(self) -> str:
        return str(self.local.socket)

    def admin(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements as root; the last one's rows."""
        with contextlib.closing(self.local.connect()) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def tls(self) -> ssl.SSLContext:
        """A client's context that trusts this server's certificate only."""
        return ssl.create_default_context(cafile=str(self.certificate))


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


@contextlib.contextmanager
def _running(program: Program, folder: Path) -> Iterator[Server]:
    _write_certificate(folder)
    options = [
        f"--ssl-cert={folder / 'cert.pem'}",
        f"--ssl-key={folder / 'key.pem'}",
        "--performance-schema=ON",
    ]
    with LocalServer(program, folder / "server", options=options) as local:
        yield Server(local, folder / "cert.pem")


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with _running(need_program("mariadb"), tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="module")
def mysql9(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with _running(need_program("mysql9"), tmp_path_factory.mktemp("mysql")) as server:
        yield server
