"""The files of the TLS settings: what is wrong with them is said at their place."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from config.document import ConfigError
from config.load import load_settings
from config.tls import BackendTls, ClientTls
from demo.certificates import LocalAuthority
from tests.config.test_settings import LEAST


@pytest.fixture
def authority(tmp_path: Path) -> LocalAuthority:
    return LocalAuthority(tmp_path)


def lock(key: Path) -> Path:
    """The same key behind a passphrase."""
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    path = key.with_name("locked.pem")
    path.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    return path


def problems(tmp_path: Path, **change: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(LEAST | change, base=tmp_path)
    return [str(problem) for problem in caught.value.problems]


def test_files_that_cannot_be_used(tmp_path: Path, authority: LocalAuthority) -> None:
    authority.issue()
    other = authority.issue(file="other")[1]
    locked = lock(other)
    (tmp_path / "empty").touch()
    good = {"cert": "server-cert.pem", "key": "server-key.pem"}
    assert load_settings(LEAST | {"tls": good}, base=tmp_path).tls is not None
    for change, message in (
        (
            {"cert": "server-key.pem"},
            f"tls.cert: {tmp_path}/server-key.pem: holds no certificate in PEM form",
        ),
        ({"cert": "empty"}, f"tls.cert: {tmp_path}/empty: holds no certificate in PEM form"),
        (
            {"key": "server-cert.pem"},
            f"tls.key: {tmp_path}/server-cert.pem: holds no private key in PEM form",
        ),
        ({"key": "."}, f"tls.key: {tmp_path}: Is a directory"),
        (
            {"key": locked.name},
            f"tls.key: {locked}: the key is locked by a passphrase: store it without one",
        ),
        (
            {"key": other.name},
            f"tls: the key {other} does not belong to the certificate {tmp_path}/server-cert.pem",
        ),
        ({"client_ca": "none"}, f"tls.client_ca: {tmp_path}/none: No such file or directory"),
    ):
        assert problems(tmp_path, tls=good | change) == [message]
    backends = {"user": "a", "tls": {"cert": "server-cert.pem"}}
    assert problems(tmp_path, backends=backends) == [
        "backends.tls: cert and key are given together, or neither"
    ]


def test_contexts(authority: LocalAuthority) -> None:
    cert, key = authority.issue()
    made = ClientTls(cert=cert, key=key).context()
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2
    assert made.verify_mode is ssl.CERT_NONE
    made = ClientTls(cert=cert, key=key, client_ca=authority.ca, min_version="TLSv1.3").context()
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3
    assert made.verify_mode is ssl.CERT_REQUIRED
    made = BackendTls().context()
    assert (made.verify_mode, made.check_hostname) == (ssl.CERT_REQUIRED, True)
    made = BackendTls(ca=authority.ca, verify="ca").context()
    assert (made.verify_mode, made.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert BackendTls(verify="none").context().verify_mode is ssl.CERT_NONE


def test_both_spellings_of_versions(authority: LocalAuthority) -> None:
    cert, key = authority.issue()
    document = {"cert": cert, "key": key, "min_version": "1.3"}
    assert ClientTls.model_validate(document).min_version == "TLSv1.3"


def test_a_certificate_out_of_its_time(authority: LocalAuthority) -> None:
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    cert, key = authority.issue(start=-2 * day, end=day)
    tls = ClientTls(cert=cert, key=key)
    assert tls.validity_problem(now) is None
    assert "expired on" in str(tls.validity_problem(now + 2 * day))
    assert "not valid before" in str(tls.validity_problem(now - 3 * day))
    assert BackendTls().validity_problem(now) is None
    assert "expired" in str(BackendTls(cert=cert, key=key).validity_problem(now + 2 * day))


def test_hosts_of_their_own(authority: LocalAuthority, tmp_path: Path) -> None:
    tls = {"ca": "ca.pem", "verify": "ca"}
    hosts = {"db2": {"tls": "off"}, "db3": {"tls": {"verify": "none"}}, "db4": {"max_connections": 2}}
    backends = {"user": "a", "password": "b", "tls": tls, "hosts": hosts}
    made = load_settings(LEAST | {"backends": backends}, base=tmp_path).backends
    common = BackendTls(ca=authority.ca, verify="ca")
    assert made.tls_for("db1:3306") == made.tls_for("db4:3306") == common
    assert made.tls_for("db2:3306") is None
    assert made.tls_for("db3:3306") == BackendTls(verify="none")
    with pytest.raises(ValueError, match="replication_ca is to verify by"):
        BackendTls(verify="none", replication_ca="/etc/mysql/ca.pem")
    assert made.tls_for("unix:/run/mysqld.sock") is None
    assert load_settings(LEAST, base=tmp_path).backends.tls_for("db1:3306") is None
