"""SHOW statements about the proxy and the session: shards, topology, pools, status, sessions, warnings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from config.flavour import Flavour
from config.topology import Keyspace
from proxy.engine.loading import results_form
from proxy.engine.observe import shown
from proxy.engine.seen import places_now, waits_now
from proxy.engine.task import TaskWork
from proxy.engine.waiting_room import Ticket
from proxy.peers import of_all
from proxy.session.outcome import RESULT_SET, Outcome
from proxy.wire.charsets import bytes_of
from proxy.wire.constants import BINARY_COLLATION, ColumnFlag, ColumnType
from proxy.wire.packets import eof_packet, frame
from proxy.wire.resultset import (
    Column,
    encode_row,
    header_packets,
    integer_column,
    text_column,
    text_resultset,
)
from rewriter.plans import Values
from rewriter.plans.builtins import Empty, Listing, ShowDiagnostics, ShowErrors, ShowWarnings

from .rows import like_pattern, like_text

if TYPE_CHECKING:
    from proxy.engine.clients import Connected
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services
    from proxy.session.transaction import Transaction


_AT_ONCE: Final = 500
"""So many ranges are told of in one turn of the loop."""

_SESSIONS_AT_ONCE: Final = 100
"""The same of sessions, whose statements are looked at."""


def answer_rows(client: Exchange, columns: Sequence[Column], rows: Iterable[Iterable[object]]) -> None:
    """A result set of the proxy's own, and the statement is done."""
    session = client.session
    client.write(
        text_resultset(columns, rows, session.status(), seq=client.seq + 1, extended=session.extended)
    )
    client.finish("ok")


class LongAnswer:
    """As `answer_rows`, of rows that are added a part in each turn of the loop: there may be 65,536. Nothing
    is written before the end, so that what fails meanwhile can say so.
    """

    def __init__(self, client: Exchange, columns: Sequence[Column]) -> None:
        session = client.session
        encoded = [column.encode() for column in columns]
        self._client = client
        head, self._seq = header_packets(
            encoded, session.status(), client.seq + 1, 0, extended=session.extended
        )
        self._pieces = [head]

    def add(self, rows: Iterable[Iterable[object]]) -> None:
        """The next rows."""
        for row in rows:
            payload = encode_row(row)
            self._pieces.append(frame(payload, self._seq))
            self._seq += 1 + len(payload) // 0xFFFFFF

    def end(self) -> None:
        """These were all: the statement is done."""
        client = self._client
        client.write(b"".join([*self._pieces, eof_packet(self._seq, client.session.status(), 0)]))
        client.finish("ok")


def liked(plan: Listing, values: Values, rows: list[list[object]], *columns: int) -> list[list[object]]:
    """The rows of which one of these columns (the first) is LIKE what the statement says."""
    if plan.like is None:
        return rows
    matches = like_pattern(like_text(plan.like, values))
    return [row for row in rows if any(matches(str(row[column])) for column in columns or (0,))]


def empty(client: Exchange, plan: Empty, values: Values) -> None:
    """A statement of comments only."""
    client.session.apply(Outcome(0))
    client.reply_ok()


class SeenPlaces:
    """The keyspaces and shards that a user may hear of: those of the databases in the user's list."""

    def __init__(self, client: Exchange) -> None:
        schema, topology = client.snapshot.schema, client.snapshot.topology
        listed = client.session.user.databases
        self.all = listed is None
        self.keyspaces: set[str] = set()
        self._shards: set[tuple[str, int]] = set()
        for name in listed or ():
            logical, place = schema.databases.get(name), topology.physical(name.encode())
            if logical is not None:
                found = (logical.keyspace, logical.others, *(one.keyspace for one in logical.tables.values()))
                self.keyspaces |= {one for one in found if one}
            elif place is None:
                self.keyspaces.add("")  # of the default host
            elif place[1] is None:
                self.keyspaces.add(place[0].name)
            else:
                self._shards.add((place[0].name, place[1]))

    def has(self, keyspace: str, first: int, last: int) -> bool:
        """Whether one of these shards is among them."""
        if self.all or keyspace in self.keyspaces:
            return True
        return any(name == keyspace and first <= shard <= last for name, shard in self._shards)


# -- the fleet
# ----------------------------------------------------------------------------------------------------------


def topology(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each range, and the version."""
    TaskWork(client).start(_topology(client, plan, values))


async def _topology(client: Exchange, plan: Listing, values: Values) -> None:
    current = client.snapshot.topology
    columns = [
        integer_column("Version"),
        text_column("Keyspace"),
        integer_column("First"),
        integer_column("Last"),
        text_column("Master"),
        text_column("Slave"),
        text_column("State"),
    ]
    answer, places = LongAnswer(client, columns), SeenPlaces(client)
    for keyspace in current.keyspaces.values():
        for at in range(0, len(keyspace.ranges) if keyspace.sharded else 1, _AT_ONCE):
            rows = _ranges(keyspace, current.version, at, places)
            answer.add(liked(plan, values, rows, 1))
            await asyncio.sleep(0)
    if current.default is not None and (places.all or "" in places.keyspaces):
        row = [current.version, "(default)", None, None, current.default, current.default_slave, "serving"]
        answer.add(liked(plan, values, [row], 1))
    answer.end()


def _ranges(keyspace: Keyspace, version: int, at: int, places: SeenPlaces) -> list[list[object]]:
    """Some rows of a keyspace, from the range with that number on."""
    if not keyspace.sharded:
        if not places.all and keyspace.name not in places.keyspaces:
            return []
        return [[version, keyspace.name, None, None, keyspace.master, keyspace.slave, "serving"]]
    return [
        [version, keyspace.name, found.first, found.last, found.master, found.slave, str(found.state)]
        for found in keyspace.ranges[at : at + _AT_ONCE]
        if places.has(keyspace.name, found.first, found.last)
    ]


def proxy_status(client: Exchange, plan: Listing, values: Values) -> None:
    """Counters of this worker process."""
    rows: list[list[object]] = [[name, value] for name, value in client.services.status_values().items()]
    answer_rows(client, [text_column("Variable_name"), text_column("Value")], liked(plan, values, rows))


def proxy_sessions(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each client that the user may see, of all worker processes."""
    TaskWork(client).start(_proxy_sessions(client, plan, values))


async def _proxy_sessions(client: Exchange, plan: Listing, values: Values) -> None:
    columns = [
        integer_column("Id"),
        text_column("User"),
        text_column("Host"),
        text_column("Db"),
        text_column("Command"),
        text_column("Time"),
        text_column("Plan"),
        text_column("Held"),
        text_column("Statement"),
        text_column("Runs_on"),
        text_column("Transaction"),
        text_column("Waits_for"),
    ]
    user = client.session.user
    admin = user.sees_others
    own = await sessions(client.services, user.name, admin=admin)
    parts = await of_all(client.services.peers, "sessions", own, user=user.name, admin=admin)
    found = [row for part in parts for row in part]
    found.sort(key=lambda row: int(str(row[0])))
    answer = LongAnswer(client, columns)
    for at in range(0, len(found), _AT_ONCE):
        answer.add(liked(plan, values, found[at : at + _AT_ONCE], 1))
        await asyncio.sleep(0)
    answer.end()


_LONGEST_SHOWN = 4096
"""Bytes of a statement that are looked at for a list of sessions."""


def last_statement(client: Connected) -> str | None:
    """The digest of the client's statement; of a very long one its beginning."""
    return shown(client, _LONGEST_SHOWN) or None


def transaction_age(transaction: Transaction, now: float) -> float | None:
    """Seconds since the open transaction was begun; None when there is none, or nobody knows."""
    return round(max(0.0, now - transaction.since), 3) if transaction.since and transaction.open else None


async def sessions(services: Services, user: str, *, admin: bool) -> list[list[object]]:
    """The sessions of this worker process: all of them, or the user's own; some in each turn of the loop. A
    statement is told without its literals: the one at work, or the last one of an open transaction.
    `Transaction`: for so many seconds.
    """
    rows: list[list[object]] = []
    now = time.monotonic()
    running, waiting = places_now(services), waits_now(services)
    for number, (id, other) in enumerate(list(services.clients.sessions.items())):
        session = other.session
        if not number % _SESSIONS_AT_ONCE:
            await asyncio.sleep(0)
        if services.clients.sessions.get(id) is not other or (not admin and session.user.name != user):
            continue
        busy = other.work is not None
        rows.append(
            [
                id,
                session.user.name,
                session.address,
                session.database,
                "Query" if busy else "Sleep",
                round(now - other.begun, 3) if other.begun else None,
                other.kind if busy else None,
                ", ".join(session.transaction.held) or None,
                last_statement(other) if busy or session.transaction.open else None,
                ", ".join(running.get(id, ())) or None,
                transaction_age(session.transaction, now),
                other.work.reason if isinstance(other.work, Ticket) else waiting.get(id),
            ]
        )
    return rows


# -- diagnostics
# --------------------------------------------------------------------------------------------------------


def warnings(client: Exchange, plan: ShowWarnings, values: Values) -> None:
    _diagnostics(client, plan, values, errors_only=False)


def errors(client: Exchange, plan: ShowErrors, values: Values) -> None:
    _diagnostics(client, plan, values, errors_only=True)


def _diagnostics(client: Exchange, plan: ShowDiagnostics, values: Values, *, errors_only: bool) -> None:
    """What the last statement left; showing it leaves it as it is."""
    session = client.session
    found = [item for item in session.diagnostics if item.level == "Error" or not errors_only]
    session.apply(Outcome(RESULT_SET))
    codec, form = session.results_codec, results_form(session)
    if plan.count:
        name = "@@session.error_count" if errors_only else "@@session.warning_count"
        count = session.error_count if errors_only else session.warning_count
        answer_rows(client, [_count(name, codec)], [[form.stored(b"%d" % count)]])
        session.apply(Outcome(found=1))
        return
    if plan.offset is not None:
        found = found[int(plan.offset.render(values)) :]
    if plan.limit is not None:
        found = found[: int(plan.limit.render(values))]
    number = client.services.collations.of_results(session.settings)
    columns = _diagnostics_columns(session.env.flavour, number, codec)
    rows = [
        [
            item.level.encode(codec),
            form.stored(b"%d" % item.code),
            item.message.encode(codec, "replace"),
        ]
        for item in found
    ]
    answer_rows(client, columns, rows)


def _count(name: str, codec: str) -> Column:
    flags = ColumnFlag.UNSIGNED | ColumnFlag.BINARY
    return Column(name.encode(codec), ColumnType.LONGLONG, BINARY_COLLATION, 21, int(flags))


def _diagnostics_columns(flavour: Flavour, collation: int, codec: str) -> list[Column]:
    """As the servers define them, with names in `codec` and texts in the collation of that number."""
    flags = int(ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED | ColumnFlag.BINARY)
    decimals, digits = flavour.counter_width
    width = bytes_of(collation)
    level = Column(
        "Level".encode(codec), ColumnType.VAR_STRING, collation, 7 * width, flags=1, decimals=decimals
    )
    code = Column("Code".encode(codec), ColumnType.LONG, BINARY_COLLATION, digits, flags)
    return [level, code, replace(level, name="Message".encode(codec), length=512 * width)]
