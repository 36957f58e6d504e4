"""The way of a plain statement to its host, and that of its reply to the client, in compiled steps.

Most statements are SELECTs that are known and routed by one ID, by its text or bound to a parameter, or
INSERTs of one row that an ID places, for one host, in one packet, over a connection that is free; most
replies are rows that say nothing but rows, in one piece, or an OK packet. What is to be done is always the
same then. `begin` finds the plan of a packet's statement and binds it (`ClientConnection.received` and
`query`, `pipeline.execute`, `Rewriter.find`; or `prepare.execute_again`), and then does what `ask` or
`send` does: what `Relay.ask` or `run` does, with `PoolState.take` and `BackendConnection.ask`. `answer`
does what follows from the reply to that: it is counted for its host, its shard and its plan, its bytes go
on to the client, the connection goes back to the pool, and the client may go on
(`BackendConnection.data_received`, `Relay.reply_data` and `reply_done`, `HostPool.release`,
`Exchange.finish`). `piece` does the same for a piece of the reply to one of a fan-out's statements, whose
rows are the client's as they come (`FanOut.received` and `branch_done`). What transports call is compiled,
too (`data_received` of both classes), so that a plain statement runs no Python at all: the interpreter,
whose code is large, is not even called into the processor's caches.

What they do is said there. It runs there where there was no compiler, and wherever anything is unusual: the
steps look first, and leave what is not plain to Python before they have done anything of it. `begin` leaves
it to Python, too, to say what a user may do: it takes what nothing restricts. A test runs both beside each
other, and compares all that they leave behind (`tests/execute/test_plain.py`,
`test_plain_prepared.py`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostPool
from proxy.backends.pool import EXTENDED_METADATA, PoolState
from proxy.backends.receiver import Answer
from proxy.backends.settings import Settings
from proxy.backends.waiting import Share, Waiting
from proxy.descriptors import DIRECT
from proxy.engine.definitions import Definitions, PlansDefinitions
from proxy.engine.exchange import Exchange
from proxy.engine.passthrough import Ask, Send
from proxy.engine.relay import Relay
from proxy.engine.serving import Serving
from proxy.engine.snapshot import Snapshot
from proxy.engine.warned import Told
from proxy.engine.work import Leaving
from proxy.execute.fan.branch import Branch
from proxy.execute.fan.fanout import FanOut
from proxy.execute.fan.merge import Concatenation, Window
from proxy.execute.prepared import prepare
from proxy.load import UNIT, Load, loads_of, share, share_compiled
from proxy.session.outcome import RESULT_SET, ROWS_SENT
from proxy.session.prepared import Repeat, Statement, Statements
from proxy.session.state import Session, User
from proxy.session.tracking import Tracker
from proxy.session.transaction import Transaction
from proxy.stats import BUCKETS, KindStats, Stats, Use, Visit
from proxy.wire import replies, row_packets, rows
from proxy.wire.binary import RowEncoder
from proxy.wire.column_metadata import Header
from proxy.wire.packets import Ok, PacketReader, ProtocolError
from proxy.wire.replies import ReplyScanner
from proxy.wire.rows import ResultReader
from rewriter.around import LONGEST, Around
from rewriter.env import Env
from rewriter.plan import Reject
from rewriter.planner import Rewriter
from rewriter.plans import Bound, HostStatement, Insert, Merge, ShardSelect
from rewriter.plans.sharded import UNION, Point
from rewriter.route.by_id import row_by_id, text_by_id
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.route.id_lists import is_list, texts_by_host
from rewriter.sql.statements.facts import UNREAD

from .connection import Begin, ClientConnection

_CLASSES: Final = (
    ClientConnection,
    PacketReader,
    Serving,
    Snapshot,
    Rewriter,
    Around,
    Env,
    ShardSelect,
    Point,
    Insert,
    Relay,
    BackendConnection,
    ReplyScanner,
    Header,
    Settings,
    Exchange,
    Session,
    Transaction,
    User,
    HostPool,
    PoolState,
    Waiting,
    Ok,
    Share,
    Load,
    Stats,
    Use,
    KindStats,
    ColumnMetadata,
    HostStatement,
    Bound,
    Visit,
    FanOut,
    Branch,
    Concatenation,
    ResultReader,
    Definitions,
    Statements,
    Statement,
    Repeat,
    RowEncoder,
    Window,
    Told,
    Tracker,
    PlansDefinitions,
)

begin: Begin | None = None
ask: Ask | None = None
send: Send | None = None
answer: Answer | None = None
piece: Answer | None = None
"""None: they are not compiled."""

with suppress(ImportError):
    from . import _plain  # type: ignore[attr-defined]

    _plain.bind(
        {one.__name__: one for one in _CLASSES},
        {
            "row_count_of_rows": RESULT_SET,
            "leaving_not": Leaving.NOT,
            "state_first": replies.FIRST,
            "state_rows": replies.ROWS,
            "state_done": replies.DONE,
            "reader_rows": rows.ROWS,
            "reader_ended": rows.ENDED,
            "facts_unread": UNREAD,
            "text_by_id": text_by_id,
            "row_by_id": row_by_id,
            "texts_by_host": texts_by_host,
            "is_list": is_list,
            "union_all": UNION,
            "merge_of_all": Merge(),
            "class_of_reject": Reject,
            "rows_sent": ROWS_SENT,
            "extended_metadata": EXTENDED_METADATA,
            "loads_of": loads_of,
            "share_compiled": share_compiled,
            "share": share,
            "protocol_error": ProtocolError,
            "execute_prepared": prepare.execute,
            "partial": partial,
            "binary_rows": row_packets.binary_rows,
            "direct": DIRECT,
        },
        *(UNIT, BUCKETS, LONGEST),
    )
    _plain.receive()
    begin, ask, send, answer, piece = _plain.begin, _plain.ask, _plain.send, _plain.answer, _plain.piece

COMPILED: Final = ask is not None
