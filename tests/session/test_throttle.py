"""Failed log-ins are answered later and later, and cost no memory."""

from __future__ import annotations

import pytest

from proxy import throttle
from proxy.throttle import FailedLogins


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_later_and_later() -> None:
    logins = FailedLogins(Clock())
    delays = [logins.failed("a") for _ in range(12)]
    assert delays == [0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert logins.failed("b") == 0.0


def test_a_success_forgives() -> None:
    logins = FailedLogins(Clock())
    for _ in range(5):
        logins.failed("a")
    logins.succeeded("a")
    logins.succeeded("never seen")
    assert logins.failed("a") == 0.0


def test_so_does_a_minute() -> None:
    clock = Clock()
    logins = FailedLogins(clock)
    for _ in range(5):
        logins.failed("a")
    clock.now += 60
    assert logins.failed("a") > 0
    clock.now += 60.1
    assert logins.failed("a") == 0.0


def test_no_more_addresses_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes from many addresses cannot fill the memory; the oldest are forgotten."""
    monkeypatch.setattr(throttle, "_MOST", 10)
    logins = FailedLogins(Clock())
    for _ in range(4):
        logins.failed("mine")
    for number in range(9):
        logins.failed(f"other {number}")
    assert logins.failed("mine") > 0
    for number in range(100):
        logins.failed(f"another {number}")
    assert len(logins._failures) == 10
    assert logins.failed("mine") == 0.0
