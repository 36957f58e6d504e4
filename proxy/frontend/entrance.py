"""Where connections come in that may be a load balancer's: the PROXY header, then the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, cast

import structlog

from proxy.wire.packets import ProtocolError
from proxy.wire.proxy_header import read_proxy_header

from .traced import client_for

if TYPE_CHECKING:
    from proxy.engine.services import Services

log = structlog.get_logger("session")

Networks = Sequence[IPv4Network | IPv6Network]


class Entrance(asyncio.Protocol):
    """The protocol of a connection until its client is known; then a `Client` takes the transport.

    From an address in `networks` nothing is believed but a PROXY header, and nothing is said before it.
    Everybody else is a client at once.
    """

    def __init__(self, services: Services, networks: Networks) -> None:
        self._services = services
        self._networks = networks
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._address = ""
        self._data = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer is None:  # gone already, as balancers go that only look whether there is a port
            self._transport.close()
            return
        self._address = f"{peer[0]}:{peer[1]}"
        if not self._trusted(peer[0]):
            self._hand_over(None, b"")
            return
        seconds = self._services.settings.timeouts.login
        self._timer = asyncio.get_running_loop().call_later(seconds, self._refuse, "none came in time")

    def data_received(self, data: bytes) -> None:
        self._data += data
        try:
            header = read_proxy_header(self._data)
        except ProtocolError as problem:
            self._refuse(str(problem))
            return
        if header is not None:
            self._hand_over(header.source, self._data[header.length :])

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _trusted(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        if address.version == 6 and address.ipv4_mapped is not None:
            address = address.ipv4_mapped  # of a listener for both families
        return any(address in network for network in self._networks)

    def _hand_over(self, source: tuple[str, int] | None, rest: bytes) -> None:
        if self._timer is not None:
            self._timer.cancel()
        client = client_for(self._services)
        client.peer = source
        self._transport.set_protocol(cast(asyncio.Protocol, client))
        client.connection_made(self._transport)
        if rest:
            client.data_received(rest)

    def _refuse(self, reason: str) -> None:
        log.warning("PROXY header refused", address=self._address, reason=reason)
        self._services.stats.refused("proxy_header")
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
