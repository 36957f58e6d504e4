"""Contexts that follow their files, by a clock of the test's own."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from config.load import load_settings
from config.tls import ClientTls
from demo.certificates import LocalAuthority
from proxy.certificates import Certificates, CertificateStore
from tests.config.test_settings import LEAST


class Clock:
    """The files of a certificate, and who looks at them."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.authority = LocalAuthority(folder)
        self.stamp = 0
        self.issue()
        self.cert, self.key = folder / "server-cert.pem", folder / "server-key.pem"
        tls = ClientTls(cert=self.cert, key=self.key)
        self.certificates = Certificates("clients", tls, lambda: self.now)

    def issue(self, days: int = 1) -> None:
        for path in self.authority.issue(start=dt.timedelta(days=-5), end=dt.timedelta(days=days)):
            self.touch(path)

    def touch(self, path: Path) -> None:
        """As if some time had passed, however coarse the file system's clock is."""
        self.stamp += 1
        os.utime(path, ns=(self.stamp, self.stamp))

    def look(self, times: int = 1) -> ssl.SSLContext:
        for _ in range(times):
            self.now += 1.0
            self.certificates.tick()
        return self.certificates.context


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def test_nothing_changes_by_itself(clock: Clock) -> None:
    first = clock.certificates.context
    assert clock.look(5) is first


def test_a_change_is_taken_over_when_the_files_rest(clock: Clock) -> None:
    first = clock.certificates.context
    clock.issue()
    assert clock.look() is first
    clock.touch(clock.key)  # still being written
    assert clock.look() is first
    second = clock.look()
    assert second is not first
    assert clock.look(3) is second


def test_one_look_a_second(clock: Clock) -> None:
    first = clock.certificates.context
    clock.issue()
    for _ in range(50):
        clock.certificates.tick()
    assert clock.certificates.context is first


def test_a_bad_one_is_refused_once(clock: Clock) -> None:
    first = clock.certificates.context
    shutil.copy(clock.authority.issue(file="other")[1], clock.key)
    clock.touch(clock.key)
    with capture_logs() as lines:
        assert clock.look(5) is first
        clock.key.unlink()
        assert clock.look(5) is first
    assert [line["event"] for line in lines] == ["certificate refused, the old one stays"] * 2
    assert "does not belong" in lines[0]["reason"]
    assert "No such file" in lines[1]["reason"]
    clock.issue()
    assert clock.look(2) is not first


def test_an_expired_one_is_refused_but_served_at_start(clock: Clock, tmp_path: Path) -> None:
    first = clock.certificates.context
    clock.issue(days=-1)
    with capture_logs() as lines:
        assert clock.look(2) is first
        started = Certificates("clients", ClientTls(cert=clock.cert, key=clock.key))
    assert started.context is not first
    assert [line["log_level"] for line in lines] == ["error", "warning"]
    assert all("expired" in line["reason"] for line in lines)


def test_the_signal_does_not_wait(clock: Clock) -> None:
    first = clock.certificates.context
    clock.issue()
    clock.certificates.reload()
    assert clock.certificates.context is not first


def test_catching_up(clock: Clock) -> None:
    """A worker that takes another's place does not begin with an old certificate."""
    first = clock.certificates.context
    clock.certificates.catch_up()
    assert clock.certificates.context is first
    clock.issue()
    clock.certificates.catch_up()
    assert clock.certificates.context is not first


def test_a_first_one_that_is_bad(clock: Clock) -> None:
    tls = ClientTls(cert=clock.cert, key=clock.key)
    clock.key.write_text("gone bad since the settings were read")
    with pytest.raises(ValueError, match="holds no private key"):
        Certificates("clients", tls)


def test_a_store_outlives_its_files(clock: Clock, tmp_path: Path) -> None:
    """A worker that is forked when the files have gone bad has the contexts of the start."""
    change = {
        "tls": {"cert": clock.cert.name, "key": clock.key.name},
        "backends": {
            "user": "a",
            "tls": {"ca": "ca.pem"},
            "hosts": {"db2": {"tls": "off"}, "db3": {"tls": {"verify": "none"}}},
        },
    }
    settings = load_settings(LEAST | change, base=tmp_path)
    store = CertificateStore(settings)
    clock.key.write_text("bad")
    clock.authority.ca.write_text("bad")
    assert store.clients is not None
    common = store.of_host("db1:3306")
    assert common is not None
    before = store.clients.context, common.context
    with capture_logs() as lines:
        store.reload()
    assert (store.clients.context, common.context) == before
    assert [line["of"] for line in lines if line["log_level"] == "error"] == ["hosts", "clients"]
    assert store.of_host("db4:3306") is common
    assert store.of_host("db2:3306") is None
    assert store.of_host("unix:/run/mysqld.sock") is None
    assert store.of_host("db3:3306") not in (None, common)
    with pytest.raises(ValueError, match=r"ca\.pem|key\.pem"):
        CertificateStore(settings)
    nothing = CertificateStore(load_settings(LEAST, base=tmp_path))
    assert (nothing.clients, nothing.of_host("db1:3306")) == (None, None)
