"""A session with a server or proxy: statements as text or prepared, and all that their replies say."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Self

from tests.integration.binary import EXECUTE, PREPARE
from tests.integration.raw import (
    AUTOCOMMIT,
    IN_TRANS,
    MORE_RESULTS,
    MULTI_STATEMENTS,
    QUERY,
    RESET_CONNECTION,
    Closed,
    Raw,
    command,
)
from tests.integration.replies import error_of, is_eof, lenenc, text

SESSION_TRACK = 0x00800000
STATE_CHANGED = 0x4000
CLOSE = 0x19
VARIABLE, SCHEMA = 0, 1
"""The types of notices about a system variable and about the current database."""

#: autocommit, in a transaction, NO_BACKSLASH_ESCAPES, in a read-only transaction
STATUS = AUTOCOMMIT | IN_TRANS | 0x0200 | 0x2000


@dataclass(frozen=True)
class Answer:
    """A reply. `rows` are payloads; `columns` names with types and collations; `tracked` are (type, data)."""

    kind: str
    code: int = 0
    sqlstate: str = ""
    message: str = ""
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    status: int = 0
    info: bytes = b""
    columns: tuple[tuple[bytes, int, int], ...] = ()
    rows: tuple[bytes, ...] = ()
    tracked: tuple[tuple[int, bytes], ...] = ()

    def __str__(self) -> str:
        if self.kind == "err":
            return f"ERROR {self.code} ({self.sqlstate}): {self.message}"
        tracked = f" tracked {list(self.tracked)}" if self.tracked else ""
        if self.kind == "ok":
            return (
                f"OK affected={self.affected} id={self.insert_id} warnings={self.warnings} "
                f"status={self.status:#x} {self.info.decode(errors='replace')}{tracked}"
            )
        names = [name.decode(errors="replace") for name, *_ in self.columns]
        return (
            f"{len(self.rows)} rows {names} {list(self.rows[:4])} "
            f"warnings={self.warnings} status={self.status:#x}{tracked}"
        )


GONE = Answer("closed")


@dataclass
class Session:
    """A client's session, with session tracking and several statements in one text. `host`, `port`, `user`,
    `password` and `database` are those of the log-in.
    """

    host: str
    port: int
    user: str
    password: str
    database: str | None
    raw: Raw = field(init=False)
    schema: bytes = field(init=False)
    variables: dict[bytes, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.raw = Raw(self.host, self.port, timeout=30)
        reply = self.raw.login(
            self.user, self.password, self.database, flags=MULTI_STATEMENTS | SESSION_TRACK
        )
        assert reply.kind == "ok", reply
        self.schema = (self.database or "").encode()
        self.variables = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def ask(self, sql: bytes) -> list[Answer]:
        """All replies to a text."""
        try:
            self.raw.write(command(QUERY, sql))
            return self._replies(binary=False)
        except (Closed, ConnectionError):
            return [GONE]

    def prepared(self, sql: bytes) -> list[Answer]:
        """The replies to the statement, prepared and executed without parameters, or the error."""
        try:
            self.raw.write(command(PREPARE, sql))
            first = self.raw.packet()
            if first[:1] == b"\xff":
                return [_error(first)]
            id_, columns, parameters, _ = struct.unpack("<xIHHxH", first)
            for count in (parameters, columns):
                if count:
                    while not is_eof(self.raw.packet()):
                        pass
            assert not parameters
            self.raw.write(command(EXECUTE, struct.pack("<IBI", id_, 0, 1)))
            answers = self._replies(binary=True)
            self.raw.write(command(CLOSE, struct.pack("<I", id_)))
            return answers
        except (Closed, ConnectionError):
            return [GONE]

    def reset(self) -> list[Answer]:
        """COM_RESET_CONNECTION."""
        try:
            self.raw.write(command(RESET_CONNECTION))
            self.variables = {}
            return self._replies(binary=False)
        except (Closed, ConnectionError):
            return [GONE]

    def _replies(self, *, binary: bool) -> list[Answer]:
        found = []
        while True:
            answer, more = self._reply(binary=binary)
            found.append(answer)
            if not more:
                return found

    def _reply(self, *, binary: bool) -> tuple[Answer, bool]:
        first = self.raw.packet()
        if first[:1] == b"\x00":
            answer, more = _ok(first)
            return self._told(answer), more
        if first[:1] == b"\xff":
            return _error(first), False
        count, _ = lenenc(first, 0)
        assert count is not None
        columns = tuple(_column(self.raw.packet()) for _ in range(count))
        end = self.raw.packet()
        assert is_eof(end), end
        rows = []
        while not is_eof(row := self.raw.packet()):
            if row[:1] == b"\xff":
                return _error(row), False
            rows.append(row)
        warnings, status = struct.unpack_from("<HH", row, 1)
        answer = Answer("rows", warnings=warnings, status=status & STATUS, columns=columns, rows=tuple(rows))
        return answer, bool(status & MORE_RESULTS)

    def _told(self, answer: Answer) -> Answer:
        """The answer without notices that say nothing new: routines cause some of the current database, the
        proxy's own SET some of system variables.
        """
        kept = []
        for type_, data in answer.tracked:
            if type_ == SCHEMA:
                name = text(data, 0)[0] or b""
                if name == self.schema:
                    continue
                self.schema = name
            elif type_ == VARIABLE:
                variable, pos = text(data, 0)
                value, _ = text(data, pos)
                if self.variables.get(variable or b"") == value:
                    continue
                self.variables[variable or b""] = value or b""
            kept.append((type_, data))
        return replace(answer, tracked=tuple(kept))


def _error(payload: bytes) -> Answer:
    reply = error_of(payload, [])
    return Answer("err", code=reply.code, sqlstate=reply.sqlstate, message=reply.message)


def _column(definition: bytes) -> tuple[bytes, int, int]:
    pos = 0
    for _ in range(4):
        _, pos = text(definition, pos)
    name, pos = text(definition, pos)
    _, pos = text(definition, pos)
    charset, type_ = struct.unpack_from("<HxxxxB", definition, pos + 1)
    return name or b"", type_, charset


def _ok(payload: bytes) -> tuple[Answer, bool]:
    affected, pos = lenenc(payload, 1)
    insert_id, pos = lenenc(payload, pos)
    status, warnings = struct.unpack_from("<HH", payload, pos)
    pos += 4
    info, tracked = b"", []
    if pos < len(payload):
        words, pos = text(payload, pos)
        info = words or b""
        if status & STATE_CHANGED and pos < len(payload):
            changes, _ = text(payload, pos)
            tracked = _changes(changes or b"")
    answer = Answer(
        "ok",
        affected=affected or 0,
        insert_id=insert_id or 0,
        warnings=warnings,
        status=status & STATUS,
        info=info,
        tracked=tuple(sorted(tracked)),
    )
    return answer, bool(status & MORE_RESULTS)


def _changes(data: bytes) -> list[tuple[int, bytes]]:
    found, pos = [], 0
    while pos < len(data):
        type_ = data[pos]
        entry, pos = text(data, pos + 1)
        found.append((type_, entry or b""))
    return found
