"""Statements that come with a `traceparent` are spans of its trace, and what servers get for them, too."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeOwn, shard_of
from tests.integration.own import OwnProxy
from tests.integration.raw import MULTI_STATEMENTS, QUERY, Raw, command, packet, query
from tests.support.collector import CLIENT, SERVER, Collector, Span
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

ATTRIBUTES = 0x08000000
FAST = {"interval": 0.05}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found


@pytest.fixture
def proxy(own: MakeOwn, collector: Collector) -> OwnProxy:
    return own({"tracing": {"endpoint": collector.endpoint, **FAST}})


class Context:
    """A trace of an application's own."""

    def __init__(self, flags: int = 1) -> None:
        self.trace = secrets.token_hex(16)
        self.span = secrets.token_hex(8)
        self.value = f"00-{self.trace}-{self.span}-{flags:02x}"

    def behind(self, sql: str, state: str = "") -> str:
        more = f",tracestate='{quote(state, safe='')}'" if state else ""
        return f"{sql} /*action='x',traceparent='{self.value}'{more}*/"

    def attribute(self) -> bytes:
        """As the attributes of a COM_QUERY."""
        text = self.value.encode()
        return b"\2\1\0\1" + b"\x08\0\1n" + b"\xfd\0\x0btraceparent" + b"\7\0\0\0\0\0\0\0" + b"\x37" + text


def boards_of(client: Raw) -> dict[int, int]:
    """A board's ID of each shard that has one."""
    found = client.ask("SELECT id FROM boards").rows
    return {shard_of(int(row[0] or 0)): int(row[0] or 0) for row in found}


def one_and_calls(spans: list[Span], context: Context) -> tuple[Span, list[Span]]:
    """The span of the statement, and those of the servers' statements, which are its children."""
    one, *calls = spans
    assert (one.kind, one.parent) == (SERVER, context.span)
    for call in calls:
        assert (call.kind, call.parent) == (CLIENT, one.id)
        assert one.at <= call.at <= call.until <= one.until
    assert len({span.id for span in spans}) == len(spans)
    return one, calls


def test_a_comment_s_trace_goes_on(proxy: OwnProxy, collector: Collector, flavour: str) -> None:
    client = proxy.raw()
    board = next(iter(boards_of(client).values()))
    context = Context()
    sql = context.behind(f"SELECT data FROM boards WHERE id = {board}", "congo=t61,rojo=00f0")
    assert len(client.ask(sql).rows) == 1
    one, (call,) = one_and_calls(collector.of(context.trace, 2), context)
    system = "mysql" if flavour == "mysql9" else flavour
    assert one.name == call.name == "SELECT boards"
    assert one.state == call.state == "congo=t61,rojo=00f0"
    assert (one.flags & 0x3FF, call.flags & 0x3FF) == (0x301, 0x101)
    assert not one.failed
    assert not call.failed
    about = dict(one.about)
    assert about.pop("shardgate.session") == client.id
    assert about.pop("shardgate.queue_seconds") >= 0
    (host,) = about.pop("shardgate.hosts")
    assert about == {
        "db.system.name": system,
        "db.namespace": "demo",
        "db.operation.name": "SELECT",
        "db.query.summary": "SELECT boards",
        "db.query.text": "SELECT data FROM boards WHERE id = ? /*?",
        "db.response.returned_rows": 1,
        "client.address": "127.0.0.1",
        "shardgate.plan": "select",
        "shardgate.shards": 1,
        "shardgate.user": "demo",
    }
    address, _, port = host.rpartition(":")
    assert call.about == {
        "db.system.name": system,
        "db.operation.name": "SELECT",
        "db.query.summary": "SELECT boards",
        "db.response.returned_rows": 1,
        "server.address": address,
        "server.port": int(port),
        "shardgate.shards": 1,
        "shardgate.shard_names": [f"main/{shard_of(board)}"],
    }
    assert one.resource["service.name"] == "shardgate"
    assert one.resource["process.pid"] == proxy.proxy.pid


def test_a_fan_out_has_a_span_for_each_host(proxy: OwnProxy, collector: Collector) -> None:
    client = proxy.raw()
    boards = boards_of(client)
    context = Context()
    client.ask(context.behind("SELECT id FROM boards ORDER BY id LIMIT 3"))
    hosts = len(proxy.demo.masters)
    one, calls = one_and_calls(collector.of(context.trace, 1 + hosts), context)
    assert {f"{call.about['server.address']}:{call.about['server.port']}" for call in calls} == set(
        one.about["shardgate.hosts"]
    )
    assert len(one.about["shardgate.hosts"]) == hosts
    shards = sum(call.about["shardgate.shards"] for call in calls)
    assert one.about["shardgate.shards"] == shards >= len(boards)
    assert one.about["db.response.returned_rows"] == 3
