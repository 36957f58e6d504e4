"""File descriptors: a client takes one, and so does a connection to a server. A process that has none left
can neither tell a client why it is turned away nor answer /healthz, so clients are refused before that.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_OWN: Final = 64
"""For listeners, the status page, logs, planning processes, files."""


def raise_limit() -> None:
    """Take as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit() -> int:
    """How many there are: `ulimit -n`."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def room(clients: int, servers: int, files: int) -> int:
    """How many clients there may be, of `clients` wished, beside so many connections to servers, with `files`
    descriptors. Clients get at least half.
    """
    return min(clients, max(files - servers - _OWN, files // 2))
