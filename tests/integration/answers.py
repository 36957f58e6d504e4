"""Answers of the proxy and of plain servers, to be compared."""

from __future__ import annotations

from typing import Any

import pymysql

from tests.support.servers import Connection


def answer(connection: Connection, sql: str) -> tuple[Any, ...]:
    """The rows of a statement, or its error's number and text."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())
    except pymysql.err.MySQLError as error:
        return error.args
