"""How a tool ends when it does not end well. Each says what happened, where, and what to do."""

from __future__ import annotations


class Refused(Exception):
    """Nothing was changed (exit status 2)."""


class NoWayBack(Refused):
    """What is to be taken back is final."""


class Failed(Exception):
    """Something may have been changed: which step, on which host, how to go on (exit status 1)."""


class LockLost(Failed):
    """The lock is gone, so another tool may be at work."""


class HostError(Exception):
    """What a host said, or why it says nothing; `code` is MySQL's, or 0. `lost`: the connection, too."""

    def __init__(self, host: str, text: str, code: int = 0, *, lost: bool = False) -> None:
        super().__init__(host, text, code)
        self.host, self.text, self.code, self.lost = host, text, code, lost

    def __str__(self) -> str:
        return f"{self.text} ({self.code})" if self.code else self.text
