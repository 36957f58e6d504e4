"""Reads of lists: a page of pins, newest first, with all that their cards show."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

from aiohttp import web
from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from examples.common.database import by_id
from examples.pinboard.tables import Board, BoardPin, Pin, PinLike, UserLike

PAGE = 24
CURSOR = re.compile(r"(\d{1,38})-(\d{1,20})")
NEWEST_FIRST = (BoardPin.sequence.desc(), BoardPin.pin_id.desc())

Listed = tuple[int, Decimal, Pin]
"""A pin on a board: the board's ID, the place, the pin."""


def behind(cursor: str | None) -> ColumnElement[bool]:
    """What follows the last row that the client has. Written so that the index finds the place."""
    if cursor is None:
        return BoardPin.sequence.is_not(None)
    if not (match := CURSOR.fullmatch(cursor)):
        raise web.HTTPBadRequest(text="That is no cursor.")
    sequence, pin_id = Decimal(match[1]), int(match[2])
    same = and_(BoardPin.sequence == sequence, BoardPin.pin_id < pin_id)
    return and_(BoardPin.sequence <= sequence, or_(BoardPin.sequence < sequence, same))


async def pins_of(session: AsyncSession, boards: Collection[int], cursor: str | None) -> list[Listed]:
    """One statement: the proxy reads the lists on the boards' shards, all at once, and the pins from theirs.
    It stops when the page is full. Without boards it asks one shard, which says that there is nothing.
    """
    rows = await session.execute(
        select(BoardPin.board_id, BoardPin.sequence, Pin)
        .join(Pin, Pin.id == BoardPin.pin_id)
        .where(BoardPin.board_id.in_(boards), behind(cursor))
        .order_by(*NEWEST_FIRST)
        .limit(PAGE + 1)
    )
    return [(board, sequence, pin) for board, sequence, pin in rows]


async def page_of(session: AsyncSession, user_id: int, listed: Sequence[Listed]) -> dict[str, Any]:
    """The cards of up to PAGE pins, and the cursor for what is behind them (null: nothing)."""
    shown = listed[:PAGE]
    likes, liked = await likes_of(session, user_id, {pin.id for *_, pin in shown})
    boards = await by_id(session, Board, (board for board, *_ in shown))
    cards = [
        {
            "id": str(pin.id),
            "details": pin.data.get("details", ""),
            "link": pin.data.get("link", ""),
            "board": board_shown(boards[board]) if board in boards else None,
            "likes": likes.get(pin.id, 0),
            "liked": pin.id in liked,
            "shard": shard_of(pin.id),
        }
        for board, _, pin in shown
    ]
    last = shown[-1] if len(listed) > PAGE else None
    return {"pins": cards, "cursor": last and f"{last[1]}-{last[2].id}"}


async def likes_of(
    session: AsyncSession, user_id: int, pins: Collection[int]
) -> tuple[dict[int, int], set[int]]:
    """How many users like each pin, which the shards count; and which of them the user likes."""
    counts = select(PinLike.pin_id, func.count()).where(PinLike.pin_id.in_(pins)).group_by(PinLike.pin_id)
    mine = select(UserLike.pin_id).where(UserLike.user_id == user_id, UserLike.pin_id.in_(pins))
    return dict((await session.execute(counts)).tuples().all()), set(await session.scalars(mine))


def board_shown(board: Board) -> dict[str, Any]:
    """As the page gets it."""
    return {
        "id": str(board.id),
        "name": board.data.get("name", ""),
        "description": board.data.get("description", ""),
        "user_id": str(board.data.get("user_id")),
        "shard": shard_of(board.id),
    }


def shard_of(id: int) -> int:
    """An ID says where its row is: 2 bits reserved, 16 of shard, 10 of type, 36 of local ID."""
    return id >> 46 & 0xFFFF
