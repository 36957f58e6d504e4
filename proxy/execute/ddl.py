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
from proxy.wire.resultset import encode_row
from rewriter.plans import Bound, Ddl, HostStatement

from .aside import borrowed, write_result

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

#: So many definitions run on one host at a time: each rebuilds a table, or waits for its lock.
_AT_ONCE = 2
#: So many shards are named in one row.
_NAMED = 10

Failure = tuple[HostStatement, Err | ProxyError]


async def run_ddl(client: ClientConnection, plan: Ddl, bound: Bound, running: set[BackendConnection]) -> None:
    """Run the statements of `bound`, and answer the client."""
    by_host: dict[str, list[HostStatement]] = {}
    for statement in bound.statements:
        by_host.setdefault(statement.host, []).append(statement)
    failures: list[Failure] = []
    warned: list[int] = []
    results: list[tuple[HostStatement, Collector]] = []
    await asyncio.gather(
        *(
            _run_some(client, part, failures, warned, results, running)
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
    if results:
        _tell(client, plan, results)
        return
    client.session.row_count = 0
    hosts = "host" if len(by_host) == 1 else "hosts"
    what = f"{count} shards" if bound.statements[0].shards else "the table"
    client.reply_ok(info=lenenc_bytes(f"{what} on {len(by_host)} {hosts}, {sum(warned)} warnings".encode()))


async def _run_some(
    client: ClientConnection,
    statements: Sequence[HostStatement],
    failures: list[Failure],
    warned: list[int],
    results: list[tuple[HostStatement, Collector]],
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
                else:
                    results.append((statement, reply))
    except ProxyError as error:
        failures += [(statement, error) for statement in left]


def _tell(client: ClientConnection, plan: Ddl, results: list[tuple[HostStatement, Collector]]) -> None:
    """The rows of ANALYZE TABLE and the like, each but once; of what only some shards say, which they are."""
    said: dict[tuple[bytes, ...], list[HostStatement]] = {}
    for statement, reply in sorted(results, key=lambda pair: (pair[0].shards, pair[0].host)):
        for row in reply.values():
            told = tuple(value or b"" for value in row[1:])
            said.setdefault(told, []).append(statement)
    rows = []
    for told, where in said.items():
        *others, text = told
        if len(where) < len(results):
            places = ", ".join(map(_place, where[:_NAMED])) + (" …" if len(where) > _NAMED else "")
            text = f"{places}: ".encode() + text
        rows.append(encode_row([plan.table.encode(), *others, text]))
    write_result(client, results[0][1].columns, rows)


def _report(client: ClientConnection, count: int, failures: list[Failure]) -> None:
    """An error for the client, and a line for each shard in SHOW WARNINGS."""
    failures.sort(key=lambda failure: (failure[0].shards, failure[0].host))
    first = failures[0][1]
    if len(failures) == count and all(problem.code == first.code for _, problem in failures):
        client.fail(first)  # nothing has changed anywhere: that is what one server would say
        return
    text = first.text() if isinstance(first, Err) else str(first)
    reason = f"{text} (error {first.code})"
    client.fail(ProxyError("ddl_failed", failed=len(failures), count=count, reason=reason))
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
