"""A definition (ALTER TABLE and the like) on every shard of a table, with a report.

Every host works through its shards, one after another over a few connections, all hosts in parallel. A shard
that refuses does not stop the others: the error tells how many have done it, and SHOW WARNINGS has a line for
each that has not. Nothing is undone: servers commit a definition at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.state import Diagnostic
from proxy.wire.packets import Err, lenenc_bytes, query_packet
from rewriter.plans import Bound, HostStatement

from .aside import borrowed

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

#: So many definitions run on one host at a time: each rebuilds a table, or waits for its lock.
_AT_ONCE = 2

Failure = tuple[HostStatement, Err | ProxyError]


async def run_ddl(client: ClientConnection, bound: Bound, running: set[BackendConnection]) -> None:
    """Run the statements of `bound`, and answer the client."""
    by_host: dict[str, list[HostStatement]] = {}
    for statement in bound.statements:
        by_host.setdefault(statement.host, []).append(statement)
    failures: list[Failure] = []
    warned: list[int] = []
    await asyncio.gather(
        *(
            _run_some(client, part, failures, warned, running)
            for statements in by_host.values()
            for part in (statements[offset::_AT_ONCE] for offset in range(_AT_ONCE))
            if part
        )
    )
    count = len(bound.statements)
    await client.services.tables_changed()
    if failures:
        _report(client, count, failures)
        return
    client.session.diagnostics = []
    client.session.row_count = 0
    hosts = "host" if len(by_host) == 1 else "hosts"
    what = f"{count} shards" if bound.statements[0].shards else "the table"
    client.reply_ok(info=lenenc_bytes(f"{what} on {len(by_host)} {hosts}, {sum(warned)} warnings".encode()))


async def _run_some(
    client: ClientConnection,
    statements: Sequence[HostStatement],
    failures: list[Failure],
    warned: list[int],
    running: set[BackendConnection],
) -> None:
    """Some of one host's shards, over one connection."""
    left = list(statements)
    try:
        async with borrowed(client, statements[0].host) as conn:
            running.add(conn)
            while left:
                reply = await Collector().run(conn, query_packet(left[0].sql))
                statement = left.pop(0)
                if reply.err is not None:
                    failures.append((statement, reply.err))
                elif reply.ok is not None:
                    warned.append(reply.ok.warnings)
    except ProxyError as error:
        failures += [(statement, error) for statement in left]


def _report(client: ClientConnection, count: int, failures: list[Failure]) -> None:
    """An error for the client, and a line for each shard in SHOW WARNINGS."""
    failures.sort(key=lambda failure: (failure[0].shards, failure[0].host))
    first = failures[0][1]
    text = first.text() if isinstance(first, Err) else str(first)
    error = ProxyError("ddl_failed", failed=len(failures), count=count, reason=f"{text} (error {first.code})")
    client.fail(error)
    client.session.diagnostics += [
        Diagnostic(
            "Error",
            problem.code,
            f"{_place(statement)}: {problem.text() if isinstance(problem, Err) else problem}",
        )
        for statement, problem in failures
    ]


def _place(statement: HostStatement) -> str:
    shards = f"shard {statement.shards[0]} on " if statement.shards else ""
    return f"{shards}{statement.host}"
