"""A host that breaks while rows are gathered from it, and a scratch host that breaks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.faults.cluster import Faulty
from tests.integration.raw import Raw
from tests.support.waiting import wait_until

Start = Callable[..., Faulty]

GROUPS = "SELECT ts, COUNT(*), REPEAT('x', 3000) FROM users GROUP BY ts ORDER BY ts"
TWICE = "WITH c AS (SELECT id, ts FROM users) SELECT COUNT(*) FROM c a JOIN c b USING (id)"


def rows_of(client: Raw, sql: str) -> list[tuple[bytes | None, ...]]:
    """The rows; none when it fails."""
    return client.ask(sql).rows


@pytest.mark.either_server
@pytest.mark.parametrize("number", [0, 1], ids=["scratch host", "other host"])
def test_a_host_breaks(faulty: Start, number: int) -> None:
    """A clear error, in a transaction too, and the next statement is answered."""
    cluster = faulty()
    link = cluster.links[number]
    client, other = cluster.client(), cluster.client()
    for sql in (GROUPS, TWICE):
        whole = client.ask(sql).rows
        assert whole
        for cut in (0, 5, 60, 500, 3000, 20_000):
            link.cut_after(cut)
            reply = client.ask(sql)
            link.pass_on()
            if reply.kind == "err":
                assert reply.code in (1429, 1158), (cut, reply)
            assert reply.in_order
            assert wait_until(partial(rows_of, client, sql), "the host is used again") == whole
    client.ask("BEGIN")
    client.ask("SELECT COUNT(*) FROM users")
    link.cut_after(0)
    assert client.ask(GROUPS).kind == "err"
    link.pass_on()
    client.ask("ROLLBACK")
    assert wait_until(partial(rows_of, client, GROUPS), "the host is used again")
    assert other.ask(GROUPS).kind == "rows"
    cluster.proxy.wait_idle()
