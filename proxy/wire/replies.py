"""Where a server's reply ends, found without decoding its rows.

A reply to COM_QUERY is an OK packet, an ERR packet, or a result set: a column count, that many definitions,
an EOF packet, rows, and an EOF or ERR packet. MORE_RESULTS_EXISTS in the last one announces another reply.
The request for a local file (LOAD DATA LOCAL INFILE) is allowed only where `files` says so, and once; behind
the file an OK or ERR packet ends the reply. shardgate never asks a server for DEPRECATE_EOF, so there is
nothing else.

`ReplyScanner.feed` walks the packet headers of whatever arrives, cut anywhere, and remembers the little a
session must know: the last status flags, the warning count, the insert id, an error. It keeps a few bytes
only where a header or one of the short packets it reads is cut. A row's bytes are never touched. What cannot
be a reply raises `ProtocolError`, nothing else; the scanner is of no use after that.

Prepared statements add two forms. The reply to COM_STMT_PREPARE (`start` with PREPARED) is a packet with
the numbers of parameters and columns, then the definitions of both, each with its EOF. And when an EXECUTE
opens a cursor, the EOF behind the column definitions says so (CURSOR_EXISTS), and no rows follow. Behind the
values of a routine's OUT parameters (PS_OUT_PARAMS, in the same place) comes one more reply, though MySQL's
EOF behind the row does not say so.
"""

from __future__ import annotations

from struct import Struct

from .column_metadata import Header
from .constants import MAX_PAYLOAD, Status
from .packets import Err, Ok, ProtocolError, parse_err, parse_ok, read_lenenc
from .pieces import piece
from .row_packets import walk_rows, whole_rows

_U32 = Struct("<I")
_EOF = Struct("<HH")

FIRST, COLUMNS, COLUMNS_END, ROWS, DONE, PREPARED = range(6)
_HEADER_LIMIT = 1 << 13
_MORE = int(Status.MORE_RESULTS_EXISTS)
_CURSOR = int(Status.CURSOR_EXISTS)
_OUT = int(Status.PS_OUT_PARAMS)
_PREPARE_OK = Struct("<xIHHxH")


class ReplyScanner:
    """Finds the end of one reply.

    `feed(data)` returns how many bytes of `data` belong to the reply when its end is among them, else -1.
    What was said is in `status`, `warnings`, `ok` (the last OK packet, if the last result was one), `err` (an
    error ended the reply), `rows_begun` (a result set was announced) and `rows` (how many the last one has).
    Between feeds `partial` is how many bytes of an unfinished packet have been seen, `seq` is the sequence
    number of the last finished one, and `within_row` tells that its row of 16 MB and more goes on in the
    next: with them a relay can stop between packets.
    """

    __slots__ = (
        "_carry",
        "_columns",
        "_continued",
        "_definitions",
        "_fed",
        "_header",
        "_new",
        "_out",
        "_skip",
        "database",
        "ending",
        "err",
        "expected",
        "files",
        "first_number",
        "matched",
        "ok",
        "ok_size",
        "partial",
        "rows",
        "rows_begun",
        "seq",
        "state",
        "status",
        "warnings",
        "within_row",
    )  # fmt: skip

    def __init__(self, first: int | None = None) -> None:
        """`first`: the number that a reply's first packet must have, at most (an error may come before all of
        a command was read). None: any.
        """
        self.first_number = first
        self.status = 0
        self.rows = 0
        self.ok_size = 0  # of the last OK packet, with its header
        self.files = False
        self._header = b""  # count, definitions and EOF of the last result set that came in one piece
        self._out = False  # the result set at hand has a routine's OUT parameters
        self._definitions = -1  # of a COM_STMT_PREPARE: how many follow the block at hand; else -1
        self.database = b""
        self._fed = True
        self._new = True  # nothing of the reply was read
        self.start()

    def start(self, state: int = FIRST) -> None:
        """Expect a new reply. `state` is ROWS for COM_FIELD_LIST and COM_STMT_FETCH, whose packets come
        without a count, and PREPARED for COM_STMT_PREPARE.
        """
        self.state = state
        self.warnings = 0
        self.ok: Ok | None = None
        self.err: Err | None = None
        self.ending = 0
        self.rows_begun = False
        self.expected: Header | None = None
        self.matched: Header | None = None
        if self._fed:  # else the last reply was `whole`, which leaves these as they were
            self._fed = False
            self.partial = 0
            self.seq = 0
            self.within_row = False
            self._carry = b""
            self._columns = 0
            self._skip = 0
            self._continued = False
            self._out = False
            self._new = True

    def whole(self, data: bytes) -> bool:
        """Whether `data` is a whole reply of one of the two usual forms: rows under known columns, or an OK
        packet. Then `status`, `warnings` and `ok` are as after `feed`; else nothing has happened, and `feed`
        has to look at it.

        Known are the columns of the last time, and those that are `expected`, from any shard: `database` is
        the one that is asked. Then `matched` tells so.
        """
        expected, last = self.expected, len(data) - 9
        begin = b"" if expected is None else self.database.join(expected.pieces)
        if expected is not None and len(begin) == expected.size and data.startswith(begin):
            pos = expected.size
        else:
            expected = None
            pos = len(self._header) if data.startswith(self._header) else 0
        if pos:
            found = whole_rows(data, pos, MAX_PAYLOAD)
            if found is None or found[2] & _MORE:
                return False
            self.rows, self.warnings, self.status = found
            self.rows_begun = True
            self.ending = 9
            self.matched = expected
        elif last > 1 and data[4] == 0 and _U32.unpack_from(data)[0] & 0xFFFFFF == last + 5:
            try:
                ok = parse_ok(piece(data, 4, len(data)))
            except ProtocolError:
                return False  # `feed` will tell
            if ok.status & _MORE or (self.first_number is not None and not 0 < data[3] <= self.first_number):
                return False
            self.ok_size = last + 9
            self.ok, self.warnings, self.status = ok, ok.warnings, ok.status
        else:
            return False
        self.state = DONE
        return True

    @property
    def in_definitions(self) -> bool:
        """Whether there is more to come of column definitions, or of the EOF packet behind them."""
        return self.state == COLUMNS or self.state == COLUMNS_END

    def feed(self, data: bytes) -> int:
        self._fed = True
        kept = len(self._carry)
        if kept:
            data = self._carry + data
            self._carry = b""
        pos, end = self._skip, len(data)
        if pos > end:
            self._skip = pos - end
            self.partial += end
            return -1
        self._skip = 0
        if self._new and end > 4:
            self._new = False
            if self.first_number is not None and not 0 < data[3] <= self.first_number:
                raise ProtocolError(_no_answer(data[4:]))
        unpack = _U32.unpack_from
        state = self.state
        begun = state == FIRST and not kept
        rows = 0 if begun else self.rows
        if begun and self._header and data.startswith(self._header):
            # the same columns as last time, as with every point select: one comparison instead of a walk
            state = ROWS
            self.rows_begun = True
            self.ok = None
            pos = len(self._header)
            self.seq = self._header[-6]
        # the last finished packet's header; one that was being skipped is finished now
        header = (self.seq + (pos > 0 and not begun) & 0xFF) << 24 | (MAX_PAYLOAD if self._continued else 0)
        while state != DONE:
            if end - pos < 5:
                if end - pos == 4 and data[pos : pos + 3] == b"\0\0\0":
                    if not self._continued:
                        raise ProtocolError("an empty packet")
                    header = data[pos + 3] << 24  # the empty end of a payload of exactly 16 MB - 1
                    self._continued = False
                    pos = end
                break
            following = unpack(data, pos)[0]
            length = following & 0xFFFFFF
            first = data[pos + 4]
            stop = pos + 4 + length
            whole = stop <= end and not self._continued
            if whole and state == ROWS and first < 0xFE and 0 < length < MAX_PAYLOAD:
                pos, plain, header = walk_rows(data, pos, MAX_PAYLOAD)  # rows: nearly all that passes here
                rows += plain
                continue
            if self._continued:
                self._continued = length == MAX_PAYLOAD
            elif state == ROWS:
                if (first == 0xFE and length < 9) or first == 0xFF:
                    if stop > end:
                        break
                    state = self._end(data[pos + 4 : stop])
                    begun = begun and state != FIRST
                else:
                    rows += 1
                    if not 0 < length < MAX_PAYLOAD:
                        if not length:
                            raise ProtocolError("an empty packet")
                        self._continued = True
            elif first == 0xFF:
                if stop > end:
                    break
                state = self._end(data[pos + 4 : stop])
            elif state == COLUMNS:
                if not 0 < length < MAX_PAYLOAD:
                    raise ProtocolError("a column definition has an impossible length")
                self._columns -= 1
                if not self._columns:
                    state = COLUMNS_END
            else:
                if stop > end:
                    break
                if state == FIRST:
                    state = self._first(data[pos + 4 : stop])
                    begun = begun and state != FIRST
                elif state == PREPARED:
                    state = self._prepared(data[pos + 4 : stop])
                else:
                    if first != 0xFE or length != 5:
                        raise ProtocolError("no EOF packet ends the column definitions")
                    state = self._definitions_end(data[pos + 4 : stop])
                    if begun and state == ROWS and stop <= _HEADER_LIMIT and not self._out:
                        self._header = data[:stop]
            if stop > end:
                self._skip = stop - end
                self.rows = rows
                self.state = state
                self.seq = header >> 24
                self.partial = end - pos
                self.within_row = header & 0xFFFFFF == MAX_PAYLOAD
                return -1
            header = following
            pos = stop
        self.rows = rows
        self.state = state
        self.seq = header >> 24
        self.within_row = self._continued
        if state == DONE:
            self.partial = 0
            return pos - kept
        self._carry = data[pos:end]
        self.partial = end - pos
        return -1

    def _first(self, payload: bytes) -> int:
        """An OK packet or a column count; returns the next state."""
        if not payload:
            raise ProtocolError("an empty packet")
        first = payload[0]
        if first == 0:
            ok = self.ok = parse_ok(payload)
            self.ok_size = len(payload) + 4
            self.status = ok.status
            self.warnings = ok.warnings
            return FIRST if ok.status & _MORE else DONE
        if first == 0xFB:
            if not self.files:
                raise ProtocolError("the server asked for a local file, which was not offered")
            self.files = False
            return FIRST  # behind the file comes an OK or ERR packet
        columns, end = read_lenenc(payload, 0)
        if not columns or columns > 0xFFFF or end != len(payload):
            raise ProtocolError("not a column count")
        self._columns = columns
        self.ok = None
        self.rows_begun = True
        return COLUMNS

    def _prepared(self, payload: bytes) -> int:
        """The first packet of a COM_STMT_PREPARE's reply; returns the next state."""
        if len(payload) < _PREPARE_OK.size or payload[0]:
            raise ProtocolError("no COM_STMT_PREPARE response")
        _, columns, parameters, self.warnings = _PREPARE_OK.unpack_from(payload)
        return self._block(parameters, columns)

    def _block(self, count: int, following: int) -> int:
        """Expect `count` definitions and then `following` more; returns the next state."""
        if not count:
            count, following = following, 0
        self._columns, self._definitions = count, following
        if not count:
            self._definitions = -1
        return COLUMNS if count else DONE

    def _definitions_end(self, payload: bytes) -> int:
        """The EOF packet behind definitions; returns the next state."""
        warnings, status = _EOF.unpack_from(payload, 1)
        if self._definitions >= 0:
            self.status = status
            return self._block(self._definitions, 0)
        if status & _CURSOR and not status & _MORE:  # in a CALL the flag may be that of a cursor of its own
            self.warnings, self.status = warnings, status
            return DONE
        self._out = bool(status & _OUT)
        return ROWS

    def _end(self, payload: bytes) -> int:
        """The EOF packet behind the rows, or an ERR packet anywhere; returns the next state."""
        self.ending = len(payload) + 4
        if payload[:1] == b"\xff":
            self.err = parse_err(payload)
            self._definitions = -1
            return DONE
        if len(payload) != 5:
            raise ProtocolError("not an EOF packet")
        self.warnings, self.status = _EOF.unpack_from(payload, 1)
        more = self.status & _MORE or self._out
        self._out = False
        return FIRST if more else DONE


def _no_answer(payload: bytes) -> str:
    """What is wrong with a packet that does not have a reply's first number: it answers nothing that was
    asked. A server says so that it ends the connection.
    """
    if payload[:1] == b"\xff" and len(payload) > 2:
        return f"it says, unasked: {parse_err(payload).text()}"
    return "what it sent is not an answer to what was asked"
