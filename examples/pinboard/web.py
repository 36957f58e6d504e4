"""What the page asks for."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from examples.common.database import by_id, code_of
from examples.common.people import User, existing_user, locked_viewer, shown
from examples.common.web import Routes, id_field, id_in_path, text_field, viewer
from examples.pinboard.pages import board_shown, page_of, pins_of
from examples.pinboard.tables import Board, BoardPin, Pin, PinBoard, PinLike, UserBoard, UserFollow, UserLike

FOLLOWED = 500  # boards in a feed, the latest followed
STALE = {1020, 1032, 1210}
"""MySQL errors of a list that is not what the page shows: pins have changed places, are gone, or came."""
MEANWHILE = "Somebody else has changed this board meanwhile: this is its order now."

routes = Routes()


# --- reads -------------------------------------------------------------------------------------------


@routes.api("GET", "/api/feed")
async def feed(session: AsyncSession, request: web.Request) -> Any:
    """The newest pins of all boards that one follows."""
    me = viewer(request)
    newest = select(UserFollow.board_id).where(UserFollow.user_id == me).order_by(UserFollow.sequence.desc())
    boards = (await session.scalars(newest.limit(FOLLOWED))).all()
    listed = await pins_of(session, boards, request.query.get("cursor"))
    return await page_of(session, me, listed)


@routes.api("GET", "/api/boards")
async def newest_boards(session: AsyncSession, request: web.Request) -> Any:
    """The one statement here that names no ID: all shards are asked, which a larger site would not do."""
    found = await session.scalars(select(Board).order_by(Board.ts.desc()).limit(12))
    return {"boards": [board_shown(board) for board in found]}


@routes.api("GET", "/api/users/{id}")
async def user(session: AsyncSession, request: web.Request) -> Any:
    """A user and the user's boards."""
    user_id = id_in_path(request)
    mine = select(UserBoard.board_id).where(UserBoard.user_id == user_id).order_by(UserBoard.sequence.desc())
    order = (await session.scalars(mine.limit(200))).all()
    boards = await by_id(session, Board, order)
    return {
        "user": shown(await existing_user(session, user_id)),
        "boards": [board_shown(boards[board]) for board in order if board in boards],
    }


@routes.api("GET", "/api/boards/{id}")
async def board(session: AsyncSession, request: web.Request) -> Any:
    """A board without its pins."""
    found = await existing_board(session, id_in_path(request))
    of_board = BoardPin.board_id == found.id
    owner = await session.get(User, found.data.get("user_id", 0))
    return {
        "board": board_shown(found),
        "pins": await session.scalar(select(func.count()).select_from(BoardPin).where(of_board)),
        "user": shown(owner) if owner else None,
        "following": await session.get(UserFollow, (viewer(request), found.id)) is not None,
    }


@routes.api("GET", "/api/boards/{id}/pins")
async def pins(session: AsyncSession, request: web.Request) -> Any:
    """A page of its pins."""
    listed = await pins_of(session, [id_in_path(request)], request.query.get("cursor"))
    return await page_of(session, viewer(request), listed)


# --- writes ------------------------------------------------------------------------------------------


@routes.api("POST", "/api/boards")
async def new_board(session: AsyncSession, request: web.Request) -> Any:
    """The board lies on its user's shard, as the schema says: so does the row of the user's list."""
    me = await locked_viewer(session, request)
    data = {
        "name": await text_field(request, "name", most=80),
        "description": await text_field(request, "description", most=300, least=0),
        "user_id": me,
    }
    board = Board(data=data)
    session.add(board)
    await session.flush()  # now it has an ID
    await session.execute(insert(UserBoard).values(user_id=me, board_id=board.id))
    return board_shown(board)


@routes.api("POST", "/api/boards/{id}/pins")
async def new_pin(session: AsyncSession, request: web.Request) -> Any:
    """All three rows lie on the board's shard: one server, one commit."""
    board = await own_board(session, request)
    data = {
        "details": await text_field(request, "details", most=200),
        "link": web_address(await text_field(request, "link", most=500, least=0)),
        "user_id": viewer(request),
        "board_id": board.id,
    }
    pin = Pin(data=data)
    session.add(pin)
    await session.flush()
    await session.execute(insert(BoardPin).values(board_id=board.id, pin_id=pin.id))
    await session.execute(insert(PinBoard).values(pin_id=pin.id, board_id=board.id))
    return {"id": str(pin.id)}


@routes.api("POST", "/api/boards/{id}/order", transaction=False)
async def move_pin(session: AsyncSession, request: web.Request) -> Any:
    """Move `pin` right behind `before` and ahead of `after` (null: the list's end). The proxy answers this
    CALL itself, in a short transaction, and writes one row as a rule. When the neighbours are not what the
    page shows, it says so: moved all the same, with a warning, or 409 and not moved.
    """
    board = await own_board(session, request)
    call = text("CALL reorder_board_pin(:board, :pin, :before, :after)")
    places = {name: await id_field(request, name) for name in ("pin", "before", "after")}
    try:
        await session.execute(call, {"board": board.id, **places})
    except OperationalError as error:
        if code_of(error) not in STALE:
            raise
        raise web.HTTPConflict(text=MEANWHILE) from None
    warnings = (await session.execute(text("SHOW WARNINGS"))).all()
    return {"note": MEANWHILE if warnings else None}


@routes.api("PUT", "/api/boards/{id}/follow")
async def follow(session: AsyncSession, request: web.Request) -> Any:
    """The primary key of this list makes it idempotent, by INSERT IGNORE."""
    board = await existing_board(session, id_in_path(request))
    row = {"user_id": viewer(request), "board_id": board.id}
    await session.execute(insert(UserFollow).prefix_with("IGNORE").values(row))
    return {"following": True}


@routes.api("DELETE", "/api/boards/{id}/follow")
async def unfollow(session: AsyncSession, request: web.Request) -> Any:
    """Likewise."""
    mine = UserFollow.user_id == viewer(request)
    await session.execute(delete(UserFollow).where(mine, UserFollow.board_id == id_in_path(request)))
    return {"following": False}


@routes.api("PUT", "/api/pins/{id}/like")
async def like(session: AsyncSession, request: web.Request) -> Any:
    """Two lists, as a rule on two shards: one transaction for both. They have no unique key, so the user's
    row is locked while this looks whether the pin is liked already.
    """
    pin_id = id_in_path(request)
    if await session.get(Pin, pin_id) is None:
        raise web.HTTPNotFound(text="There is no such pin.")
    me = await locked_viewer(session, request)
    mine = select(UserLike.pin_id).where(UserLike.user_id == me, UserLike.pin_id == pin_id)
    if await session.scalar(mine) is None:
        await session.execute(insert(UserLike).values(user_id=me, pin_id=pin_id))
        await session.execute(insert(PinLike).values(pin_id=pin_id, user_id=me))
    return await likes(session, pin_id, liked=True)


@routes.api("DELETE", "/api/pins/{id}/like")
async def unlike(session: AsyncSession, request: web.Request) -> Any:
    """From both lists; behind the same lock, so that a like at the same time is in both or in none."""
    me, pin_id = await locked_viewer(session, request), id_in_path(request)
    await session.execute(delete(UserLike).where(UserLike.user_id == me, UserLike.pin_id == pin_id))
    await session.execute(delete(PinLike).where(PinLike.pin_id == pin_id, PinLike.user_id == me))
    return await likes(session, pin_id, liked=False)


# --- helpers -----------------------------------------------------------------------------------------


async def likes(session: AsyncSession, pin_id: int, *, liked: bool) -> dict[str, Any]:
    """What the heart shows."""
    count = select(func.count()).select_from(PinLike).where(PinLike.pin_id == pin_id)
    return {"liked": liked, "likes": await session.scalar(count)}


async def existing_board(session: AsyncSession, board_id: int) -> Board:
    """404 if there is none."""
    board = await session.get(Board, board_id)
    if board is None:
        raise web.HTTPNotFound(text="There is no such board.")
    return board


async def own_board(session: AsyncSession, request: web.Request) -> Board:
    """The one that the route names; 403 if it is somebody else's."""
    board = await existing_board(session, id_in_path(request))
    if board.data.get("user_id") != viewer(request):
        raise web.HTTPForbidden(text="This is not your board.")
    return board


def web_address(link: str) -> str:
    """A link that may be shown, or none; 400 for `javascript:` and its like."""
    if link and urlsplit(link).scheme not in ("http", "https"):
        raise web.HTTPBadRequest(text="The link must begin with http:// or https://.")
    return link
