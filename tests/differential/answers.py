"""Running a statement, and all that a client learns of its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pymysql

from tests.support.servers import Connection

RawRow = tuple[bytes | None, ...]

RAW: dict[str, Any] = {"use_unicode": False, "conv": {}}
"""PyMySQL's arguments for values as they come over the wire."""


@dataclass(frozen=True)
class ColumnInfo:
    """A column definition. `charset` is the number of its collation; 63 is binary."""

    name: bytes
    type: int
    flags: int
    charset: int
    decimals: int


@dataclass(frozen=True)
class Failure:
    """An error packet."""

    code: int
    message: str

    def __str__(self) -> str:
        return f"ERROR {self.code}: {self.message}"


@dataclass(frozen=True)
class Answer:
    """What came back: a result set (`columns` not empty), an OK packet, or an error."""

    columns: tuple[ColumnInfo, ...] = ()
    rows: tuple[RawRow, ...] = ()
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    info: bytes = b""
    error: Failure | None = None


class Lost(Exception):
    """A connection ended: nothing can be compared any more."""


def ask(connection: Connection, sql: str) -> Answer:
    """Run one statement on a connection made with RAW. Raises Lost when the connection ends."""
    try:
        connection.query(sql)
    except pymysql.MySQLError as error:
        if not connection.open or not error.args or not isinstance(error.args[0], int):
            raise Lost(f"{error}: {sql[:2000]}") from error
        return Answer(error=Failure(error.args[0] & 0xFFFF, str(error.args[-1])))
    result: Any = connection._result  # type: ignore[attr-defined]
    if result.description is None:
        return Answer(
            affected=result.affected_rows,
            insert_id=result.insert_id or 0,
            warnings=result.warning_count,
            info=(result.message or b"")[1:],  # behind its length
        )
    columns = tuple(
        ColumnInfo(one.name.encode(), one.type_code, one.flags, one.charsetnr, one.scale)
        for one in result.fields
    )
    return Answer(columns=columns, rows=tuple(result.rows), warnings=result.warning_count)


def value(connection: Connection, sql: str) -> bytes | None:
    """The first value of a query's first row. Raises ValueError when the server refuses it."""
    answer = ask(connection, sql)
    if answer.error is not None or not answer.rows:
        raise ValueError(f"{sql}: {answer.error or 'no rows'}")
    return answer.rows[0][0]
