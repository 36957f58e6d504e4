"""Replies as scripts of packets, which mysql-mimic's codec makes, and a slow reader of them whose answers are
easy to believe.

The real scanner walks bytes that are cut anywhere and keeps almost nothing. `read_reply` here is given all
bytes there are so far, cuts them into packets, and looks at one packet after another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from mysql_mimic import packets as peer
from mysql_mimic.charset import CharacterSet
from mysql_mimic.types import Capabilities, ServerStatus

from proxy.wire.constants import Status

PLAIN = Capabilities.CLIENT_PROTOCOL_41
AUTOCOMMIT = int(Status.AUTOCOMMIT)
MORE = int(Status.MORE_RESULTS_EXISTS)


@dataclass
class Ok:
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    status: int = AUTOCOMMIT
    info: bytes = b""


@dataclass
class Err:
    code: int = 1064
    text: str = "no"


@dataclass
class Rows:
    """A result set. `rows` are payloads, as are `definitions` if given; `error`: it ends in an ERR packet."""

    rows: Sequence[bytes] = ()
    columns: int = 1
    warnings: int = 0
    status: int = AUTOCOMMIT
    error: Err | None = None
    definitions: Sequence[bytes] = ()


Result = Ok | Err | Rows


def definitions(count: int) -> list[bytes]:
    """Real ones, of text columns: those that `Rows` has without any are too short to be read."""
    return [peer.make_column_definition_41(CharacterSet.utf8mb4, name=f"c{n}") for n in range(count)]


def physical(payload: bytes, most: int) -> list[bytes]:
    """A payload as pieces of at most `most` bytes: a full one is followed by another, be it empty."""
    return [payload[start : start + most] for start in range(0, len(payload) + 1, most)]


def reply_payloads(results: Sequence[Result]) -> list[bytes]:
    """The payloads of a reply; all results but the last one say that more follow."""
    payloads: list[bytes] = []
    for number, result in enumerate(results):
        more = MORE if number < len(results) - 1 else 0
        if isinstance(result, Ok):
            given = result.affected, result.insert_id, result.warnings
            info = bytes((len(result.info),)) + result.info if result.info else b""
            payloads.append(_ok(result.status | more, *given) + info)
        elif isinstance(result, Err):
            payloads.append(_error(result.code, result.text))
        else:
            payloads.append(peer.make_column_count(PLAIN, result.columns))
            payloads += result.definitions or [
                b"\x03def" + bytes((number,)) for number in range(result.columns)
            ]
            payloads.append(_eof(0, AUTOCOMMIT))
            payloads += result.rows
            if result.error is not None:
                payloads.append(_error(result.error.code, result.error.text))
            else:
                payloads.append(_eof(result.warnings, result.status | more))
    return payloads


def _ok(status: int, affected: int, insert_id: int, warnings: int) -> bytes:
    return bytes(peer.make_ok(PLAIN, ServerStatus(status), False, affected, insert_id, warnings))


def _error(code: int, text: str, state: str = "42000") -> bytes:
    made = bytes(peer.make_error(PLAIN, CharacterSet.utf8mb4, text, code))
    return made[:4] + state.encode() + made[9:]  # the codec knows few errors' states


def _eof(warnings: int, status: int) -> bytes:
    return bytes(peer.make_eof(PLAIN, ServerStatus(status), warnings))


def ok_packet(
    seq: int, status: int, *, affected: int = 0, insert_id: int = 0, warnings: int = 0, info: bytes = b""
) -> bytes:
    return packet(_ok(status, affected, insert_id, warnings) + info, seq)


def err_packet(seq: int, code: int, state: str, text: str) -> bytes:
    return packet(_error(code, text, state), seq)


def greeting(version: str, plugin: str, capabilities: int, nonce: bytes, number: int = 77) -> bytes:
    """The first packet of a server."""
    status = ServerStatus.SERVER_STATUS_AUTOCOMMIT
    given = Capabilities(capabilities), CharacterSet.utf8mb4, version, number, nonce + b"\0", status, plugin
    return packet(bytes(peer.make_handshake_v10(*given)), 0)


def packet(payload: bytes, seq: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((seq & 0xFF,)) + payload


def reply_packets(results: Sequence[Result], most: int = 0xFFFFFF, seq: int = 1) -> list[bytes]:
    """A reply as physical packets, numbered from `seq`."""
    found: list[bytes] = []
    for payload in reply_payloads(results):
        for piece in physical(payload, most):
            found.append(packet(piece, seq + len(found)))
    return found


@dataclass
class Reading:
    """What is known of a reply after some of its bytes. `end`: how many belong to it, -1 while unknown."""

    end: int = -1
    seq: int = 0
    partial: int = 0
    within_row: bool = False
    status: int = 0
    warnings: int = 0
    ok: tuple[int, int] | None = None
    err: int | None = None
    rows_begun: bool = False
    rows: list[bytes] = field(default_factory=list)
    columns: list[bytes] = field(default_factory=list)


def cut_packets(data: bytes) -> list[tuple[int, int, bytes]]:
    """The whole physical packets of `data`: end, sequence number, payload."""
    found = []
    pos = 0
    while len(data) >= pos + 4 and len(data) >= pos + 4 + int.from_bytes(data[pos : pos + 3], "little"):
        length = int.from_bytes(data[pos : pos + 3], "little")
        found.append((pos + 4 + length, data[pos + 3], data[pos + 4 : pos + 4 + length]))
        pos += 4 + length
    return found


def read_reply(data: bytes, most: int = 0xFFFFFF) -> Reading:
    """Read a well-formed reply, as far as it goes."""
    reading = Reading()
    expect, left = "first", 0
    joined = b""
    goes_on = False
    last = 0
    for end, seq, piece in cut_packets(data):
        last, reading.seq = end, seq
        joined = joined + piece if goes_on else piece
        goes_on = reading.within_row = len(piece) == most
        if goes_on:
            continue
        payload, over = joined, False
        if payload[0] == 0xFF and not (expect == "rows" and len(payload) >= most):
            reading.err = int.from_bytes(payload[1:3], "little")
            over = True
        elif expect == "first" and payload[0] == 0:
            affected, insert_id, status, warnings = _read_ok(payload)
            reading.ok, reading.status, reading.warnings = (affected, insert_id), status, warnings
            over = not status & MORE
        elif expect == "first":
            reading.ok, reading.rows_begun = None, True
            expect, left = "columns", payload[0]
        elif expect == "columns":
            reading.columns.append(payload)
            left -= 1
            expect = "columns" if left else "columns end"
        elif expect == "columns end":
            expect = "rows"
        elif payload[0] == 0xFE and len(payload) == 5:
            reading.warnings = int.from_bytes(payload[1:3], "little")
            reading.status = int.from_bytes(payload[3:5], "little")
            expect, over = "first", not reading.status & MORE
        else:
            reading.rows.append(payload)
        if over:
            reading.end = end
            return reading
    reading.partial = len(data) - last
    return reading


def _read_ok(payload: bytes) -> tuple[int, int, int, int]:
    """Affected rows and insert id below 251, status, warnings."""
    status, warnings = payload[3:5], payload[5:7]
    return payload[1], payload[2], int.from_bytes(status, "little"), int.from_bytes(warnings, "little")


# -- strategies
# ----------------------------------------------------------------------------------------------------------


def row_payloads(most: int) -> st.SearchStrategy[bytes]:
    """Rows with first bytes that could be taken for something else, and lengths around the packets' limit."""
    long = st.builds(
        lambda first, length: (
            bytes((first,)) + b"\xfe\x00\xff"[: length % 4] + b"r" * (length - 1 - length % 4)
        ),
        st.sampled_from((0x00, 0x01, 0xFB, 0xFC, 0xFD, 0xFE)),
        st.one_of(
            st.integers(9, 2 * most + 10),
            st.sampled_from((most - 1, most, most + 1, 2 * most, 2 * most + 1)),
        ),
    )
    short = st.sampled_from((b"\xfb", b"\x00", b"\x01a", b"\x07seventy", b"\xfc\x01\x00a", b"\x00" * 8))
    return st.one_of(long, short)


def results(most: int) -> st.SearchStrategy[list[Result]]:
    """One reply's results: an error can only be the last."""
    oks = st.builds(
        Ok, st.integers(0, 250), st.integers(0, 250), st.integers(0, 9), st.sampled_from((0, 2, 3, 0x2022))
    )
    errs = st.builds(Err, st.integers(1, 65535), st.sampled_from(("", "no", "a duplicate")))
    rows = st.lists(row_payloads(most), max_size=6)
    sets = st.builds(Rows, rows, st.integers(1, 3), st.integers(0, 9), st.sampled_from((0, 2, 3)))
    broken = st.builds(Rows, rows, st.integers(1, 3), error=errs)
    first = st.lists(st.one_of(oks, sets), max_size=2)
    last: st.SearchStrategy[Result] = st.one_of(oks, errs, sets, broken)
    return st.builds(lambda some, one: [*some, one], first, last)


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """`data` in pieces, none of them empty."""
    points = draw(st.lists(st.integers(1, max(1, len(data) - 1)), max_size=8, unique=True))
    edges = [0, *sorted(points), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if b > a]
