"""Writing to the socket of a transport at once.

While nothing waits to be sent, a write of uvloop's goes to the socket at once, too, but by way of a buffer, a
queue and an event of the loop, which cost a statement some microseconds.
"""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import Final


def _direct() -> tuple[object, ...]:
    module = import_module("uvloop.loop")
    found = tuple(getattr(module, name, None) for name in ("TCPTransport", "UnixTransport"))
    return () if None in found else found  # another version has other names for them: its own way is taken


_DIRECT: Final = _direct()
"""The classes of transports whose bytes are those of the socket."""


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """The descriptor of a transport's socket, or -1. It is open while the transport is not closing."""
    found = transport.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())


def write_out(transport: asyncio.Transport, descriptor: int, data: bytes) -> None:
    """`transport.write(data)`, to the socket itself where nothing waits to be sent. What that does not take,
    and every error, is the transport's. `descriptor`: that of the transport.
    """
    if descriptor >= 0 and transport.__class__ in _DIRECT and _is_idle(transport):
        try:
            sent = os.write(descriptor, data)
        except OSError:
            sent = 0
        if sent == len(data):
            return
        data = data[sent:]
    transport.write(data)


def _is_idle(transport: asyncio.Transport) -> bool:
    """Whether the socket is open, and nothing waits to be sent."""
    return not (transport.is_closing() or transport.get_write_buffer_size())
