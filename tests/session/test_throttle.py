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
    delays = [logins.failed("a", "me") for _ in range(12)]
    assert delays == [0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert logins.failed("b", "me") == 0.0


def test_a_success_forgives() -> None:
    logins = FailedLogins(Clock())
    for _ in range(5):
        logins.failed("a", "me")
    logins.succeeded("a", "me")
    logins.succeeded("never seen", "me")
    assert logins.failed("a", "me") == 0.0


def test_but_only_its_own_account() -> None:
    """Who has an account must not be able to try another's passwords at full speed."""
    logins = FailedLogins(Clock())
    for _ in range(5):
        logins.failed("a", "root")
        logins.succeeded("a", "me")
    assert logins.failed("a", "root") == 0.4
    assert logins.failed("a", "me") == 0.8
    logins.succeeded("a", "me")
    assert logins.failed("a", "admin") == 0.8


def test_accounts_cost_no_memory() -> None:
    logins = FailedLogins(Clock())
    for number in range(1000):
        assert logins.failed("a", f"user {number}") <= 5
    logins.succeeded("a", "user 999")
    assert logins.failed("a", "user 999") == 5
    assert len(logins._failures["a"].accounts) == throttle._ACCOUNTS


def test_so_does_a_minute() -> None:
    clock = Clock()
    logins = FailedLogins(clock)
    for _ in range(5):
        logins.failed("a", "me")
    clock.now += 60
    assert logins.failed("a", "me") > 0
    clock.now += 60.1
    assert logins.failed("a", "me") == 0.0


def test_no_more_addresses_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes from many addresses cannot fill the memory; the oldest are forgotten."""
    monkeypatch.setattr(throttle, "_MOST", 10)
    logins = FailedLogins(Clock())
    for _ in range(4):
        logins.failed("mine", "me")
    for number in range(9):
        logins.failed(f"other {number}", "me")
    assert logins.failed("mine", "me") > 0
    for number in range(100):
        logins.failed(f"another {number}", "me")
    assert len(logins._failures) == 10
    assert logins.failed("mine", "me") == 0.0
