"""Nothing is kept of clients that are gone, wherever in their conversation they went."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.integration.binary import Binary
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw, packet, query
from tests.integration.test_compression import COMPRESS, Compressed
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

MB = 1 << 20
#: Two whole packets of a statement that goes on.
UNFINISHED = b"".join(struct.pack("<I", 0xFFFFFF | seq << 24) + b"\x03" * 0xFFFFFF for seq in (0, 1))


def in_mid_packet(proxy: OwnProxy) -> Raw:
    client = proxy.raw(timeout=30)
    client.write(UNFINISHED)
    return client


def compressed(proxy: OwnProxy) -> Raw:
    client = Compressed(proxy.proxy.host, proxy.proxy.port, timeout=30)
    assert client.login(flags=COMPRESS).kind == "ok"
    client.start("zlib")
    client.write(UNFINISHED)
    return client


def at_work(proxy: OwnProxy) -> Raw:
    client = proxy.raw(timeout=30)
    client.write(query("SELECT SLEEP(30), LENGTH('" + "x" * (30 * MB) + "')"))
    return client


def behind_a_command(proxy: OwnProxy) -> Raw:
    client = proxy.raw(timeout=30)
    client.write(query("SELECT 1") + UNFINISHED)
    return client


def long_data(proxy: OwnProxy) -> Raw:
    client = proxy.raw(timeout=30)
    statement = Binary(client).statement("SELECT LENGTH(?)")
    head = b"\x18" + struct.pack("<IH", statement.id, 0)
    for _ in range(3):
        client.write(packet(head + b"x" * (5 * MB)))
    assert client.ping().kind == "ok"
    return client


WAYS = [in_mid_packet, compressed, at_work, behind_a_command, long_data]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
def test_clients_that_leave(own: MakeOwn, way: Callable[[OwnProxy], Raw]) -> None:
    """14 of them, one after another, with some 15 to 30 MB each: the memory is that of one or two."""
    proxy = own({"limits": {"client_memory": "200M", "session_memory": "20M"}})
    before = 0
    for number in range(14):
        way(proxy).close()
        wait_until(lambda: proxy.status()["clients"]["connections"] == 0, "it is gone")
        if number == 3:
            before = proxy.status()["process"]["memory_bytes"]
    assert proxy.status()["clients"]["memory"] == 0
    wait_until(lambda: proxy.status()["process"]["memory_bytes"] - before < 60 * MB, "the memory is let go")
