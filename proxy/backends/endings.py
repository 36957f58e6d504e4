"""Why a connection to a server has ended, in plain words."""

from __future__ import annotations

from typing import Final

_CLOSED: Final = "the server closed the connection"


def ending(error: Exception | None) -> str:
    """`error`: what the transport says of the end; None: the server has said that there is no more. A server
    that is killed is seen to do this or that, by what was under way: it is the same for who reads of it.
    """
    if error is None or isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError):
        return _CLOSED
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
