"""The file descriptor that a transport writes to, for those that write there themselves (`plain`).

While nothing waits to be sent, a write of uvloop's goes to the socket at once, too, but by way of a buffer
and of checks that cost a plain statement about a thousand instructions.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final


def _direct() -> tuple[object, ...]:
    module = import_module("uvloop.loop")
    names = ("TCPTransport", "UnixTransport", "UVBaseTransport")
    tcp, unix, base = (getattr(module, name, None) for name in names)
    asked = (getattr(base, "is_closing", None), getattr(base, "get_write_buffer_size", None))
    found = (tcp, unix, *asked)
    return () if None in found else found  # another version has other names for them: its own way is taken


DIRECT: Final = _direct()
"""The classes, and how to ask one of these whether it is closing, and what waits to be sent; or nothing."""


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """That of a transport of one of these classes, or -1. It is open while the transport is not closing."""
    if type(transport) not in DIRECT[:2]:
        return -1
    found = transport.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())
