"""The proxy's own rows and what a client wants of them: LIKE, WHERE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed
from proxy.engine.loading import most_rows, results_form
from proxy.engine.outside_transaction import write_result
from proxy.session.outcome import Outcome
from proxy.wire.charsets import bytes_of
from proxy.wire.constants import BINARY_COLLATION, UTF8MB4_GENERAL_CI, ColumnFlag, ColumnType
from proxy.wire.resultset import NUMERIC, TEMPORAL, Column, decode_column, encode_row
from rewriter.plain.views import introducer
from rewriter.plans import Values
from rewriter.plans.builtins import Listing
from rewriter.splice import Template

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

Row = list[bytes | None]

_JSON = 245
_UTF8_BYTES: Final = 4


async def write_kept(
    client: Exchange,
    plan: Listing,
    values: Values,
    columns: Sequence[bytes],
    rows: list[Row],
    *,
    files: bool = False,
) -> None:
    """Answer with the rows that the statement's LIKE (on the first column) or WHERE keeps. `columns` are
    definitions, they and the rows in utf8mb4. `files`: the first column names databases or tables, whose case
    matters.
    """
    if plan.where is not None:
        reply = await _where(client, plan.where.render(values), columns, rows, files=files)
        if reply.err is not None:
            client.fail(reply.err)
            return
        numbers = sorted(int(row[0] or 0) for row in reply.values())
        rows = [rows[number] for number in numbers if number >= 0]
    elif plan.like is not None:
        matches = like_pattern(like_text(plan.like, values, client.session.env.codec), fold=not files)
        rows = [row for row in rows if matches((row[0] or b"").decode("utf-8", "replace"))]
    write_rows(client, columns, rows)


def write_rows(client: Exchange, columns: Sequence[bytes], rows: Sequence[Row]) -> None:
    """Answer with rows, in utf8mb4, that to servers come from a query on tables, of information_schema: they
    give at most `sql_select_limit` of them.
    """
    client.session.apply(Outcome(diagnostics=[]))
    columns, rows = _in_results(client, columns, rows[: most_rows(client.session)])
    write_result(client, list(columns), [encode_row(row) for row in rows])


def _in_results(
    client: Exchange, columns: Sequence[bytes], rows: Sequence[Row]
) -> tuple[Sequence[bytes], Sequence[Row]]:
    """Definitions and rows of utf8mb4 in the character set of the client's results."""
    session = client.session
    number = client.services.collations.of_results(session.settings)
    codec, form = session.results_codec, results_form(session)
    if codec == "utf-8" and number == UTF8MB4_GENERAL_CI:
        return columns, rows
    told = [decode_column(payload) for payload in columns]
    texts = [column.collation != BINARY_COLLATION for column in told]
    width = bytes_of(number)
    shown = []
    for column, text in zip(told, texts, strict=True):
        renamed = column.renamed(column.name.decode("utf-8", "replace").encode(codec, "replace"))
        wide = replace(renamed, collation=number, length=column.length // _UTF8_BYTES * width)
        shown.append((wide if text else renamed).encode())

    def value(one: bytes | None, *, text: bool) -> bytes | None:
        if one is None:
            return None
        return one.decode("utf-8", "replace").encode(codec, "replace") if text else form.stored(one)

    made = [[value(one, text=text) for one, text in zip(row, texts, strict=True)] for row in rows]
    return shown, made


async def _where(
    client: Exchange, where: bytes, columns: Sequence[bytes], rows: Sequence[Row], *, files: bool
) -> Collector:
    """A server evaluates WHERE over the rows as constants, and gives the numbers of those it keeps.

    On MySQL texts are given the collation that the server's own answer has: the constants' would be at odds
    with that of the texts in the condition. There is one row more, of NULLs, with number -1.
    """
    kinds = [decode_column(payload) for payload in columns]
    flavour = client.session.env.flavour
    before = introducer(flavour)
    nothing: Row = [None] * len(kinds)
    selects = []
    for number, row in [*enumerate(rows), (-1, nothing)]:
        constants = [b"%d AS shardgate_row" % number]
        for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
            text = constant(value, kind, before)
            if text.startswith(before) and flavour.constants_need_collation:
                text += b" COLLATE utf8mb4_bin" if files and not place else b" COLLATE utf8mb4_general_ci"
            constants.append(b"%b AS `%b`" % (text, kind.name.replace(b"`", b"``")))
        selects.append(b"SELECT " + b", ".join(constants))
    topology = client.snapshot.topology
    async with borrowed(client, topology.default or topology.hosts[0], all_rows=True) as conn:
        # in parentheses it is an expression and nothing else
        sql = b"SELECT %bshardgate_row FROM (%b) AS shown WHERE (%b)" % (
            AS_WRITTEN if client.session.unsafe_charset else b"",
            b" UNION ALL ".join(selects),
            where,
        )
        return await Collector().query(conn, sql)


def constant(value: bytes | None, column: Column, before: bytes) -> bytes:
    """A value as a constant of its column's type, whatever the session's character sets and sql_mode.
    `before` is the introducer of strings.
    """
    if value is None:
        return b"NULL"
    if column.type in NUMERIC:
        return b"CAST(%b AS UNSIGNED)" % value if column.flags & ColumnFlag.UNSIGNED else value
    if column.type in TEMPORAL and column.type != ColumnType.DATE:
        return b"TIMESTAMP'%b'" % value
    text = b"%b X'%b'" % (before, value.hex().encode())
    return b"CAST(%b AS JSON)" % text if column.type == _JSON else text


AS_WRITTEN: Final = b"/*+ NO_DERIVED_CONDITION_PUSHDOWN() */ "
"""MySQL writes a condition that it pushes into a UNION as text, and reads it again: a sjis or gbk character
whose second byte is a backslash is an error then (1064).
"""
_PARTS: Final = re.compile(r"\\.|%+|.", re.DOTALL)
_LONGEST: Final = 1 << 16
"""Characters of the longest text that is compared."""


def like_pattern(pattern: str, *, fold: bool = True) -> Callable[[str], bool]:
    """A LIKE pattern as a test: % any text, _ one character, backslash escapes; with `fold` case does not
    matter.

    Not a regular expression: many % would let one take for ever.
    """
    if len(pattern.replace("%", "")) > 2 * _LONGEST:
        return lambda text: False  # no text that is shown is so long
    parts = _PARTS.findall(pattern.lower() if fold else pattern)
    wanted = [part[0] if part[0] == "%" or part == "_" else "\\" + part[-1] for part in parts]
    return partial(_matches, wanted, len(wanted) - wanted.count("%"), fold)


def _matches(wanted: list[str], least: int, fold: bool, text: str) -> bool:
    """`wanted`: "%", "_", or a backslash and the character itself; but for the % there are `least` of them.
    In O(length of both, multiplied).
    """
    text = text.lower() if fold else text  # which may be longer then
    if len(text) < least:
        return False
    at = place = 0
    behind, again = -1, 0  # behind the last %, and where in the text its rest is tried next
    while at < len(text):
        here = wanted[place] if place < len(wanted) else ""
        if here == "%":
            place += 1
            behind, again = place, at
        elif here == "_" or here == "\\" + text[at]:
            place += 1
            at += 1
        elif behind >= 0:
            again += 1
            place, at = behind, again
        else:
            return False
    return all(one == "%" for one in wanted[place:])


def like_text(like: Template, values: Values, codec: str = "utf-8") -> str:
    """The pattern in a LIKE's string literal, whose text is in `codec`. Its backslashes stay, for they escape
    in the pattern too.
    """
    sql = like.render(values).strip()
    if sql[:1] not in (b"'", b'"', b"`"):
        return sql.decode(codec, "replace")  # DESCRIBE table column
    text, quote = sql[1:-1].decode(codec, "replace"), sql[:1].decode("latin-1")
    return text.replace(quote * 2, quote)
