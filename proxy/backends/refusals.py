"""Accounts that a host does not let in: the host is there, and serves those who need another."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.errors import ProxyError


class AccountRefused(ProxyError):
    """A host does not let one of the proxy's accounts in; `account` is its user name, for the log alone.
    `error`: the server's number of it. `version`: as its greeting had it. `own`: it is `backends.user`.
    """

    def __init__(
        self, host: str, account: str, reason: str, error: int = 0, version: str = "", *, own: bool = False
    ) -> None:
        whose = "the proxy's own account" if own else "the account that the proxy uses for this user"
        super().__init__("account_refused", host=host, reason=reason, account=whose)
        self.account = account
        self.error = error
        self.version = version


@dataclass(frozen=True, slots=True)
class Refusal:
    """An account that was refused `count` times in a row, the last time `at`; another try comes at `until` at
    the earliest, and when nobody needs the account at `look_at`.
    """

    at: float
    until: float
    look_at: float
    count: int
    error: AccountRefused
