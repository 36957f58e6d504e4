"""What a request may call the status server, so that pages of others cannot read it through a browser.

The page asks for no password: who reaches it may read it, and a browser on that machine reaches it for any
page that it shows, once the page's own name leads to this address (DNS rebinding). What tells such a request
is the name in it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from ipaddress import ip_address
from typing import Final

from config.address import Address

NOT_MINE: Final = "This is not called so: use its address, or add the name to status.names of the settings.\n"


def may_call(host: str, listen: Address | None, names: AbstractSet[str] | None) -> bool:
    """Whether a request with this Host is answered. `names`: those that the settings give, in lower case;
    None: any, but at a loopback address only such as no page of others can have.
    """
    if names is None and (listen is None or not _loopback(listen)):
        return True
    name = _name(host)
    if not name or _is_address(name) or name == "localhost" or name.endswith(".localhost"):
        return True
    return name in names if names is not None else "." not in name


def _name(host: str) -> str:
    """Without the port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _loopback(listen: Address) -> bool:
    if listen.path is not None:
        return False
    return listen.host == "localhost" or (_is_address(listen.host) and ip_address(listen.host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
