"""What the page asks for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from sqlalchemy import ColumnElement, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from examples.common.database import by_id
from examples.common.people import User, existing_user, locked_viewer, shown
from examples.common.web import Routes, id_in_path, text_field, viewer, whole_number
from examples.photos.ids import parts
from examples.photos.tables import Follower, Following, Photo, PhotoLike

PAGE = 12
FOLLOWED = 1000  # users in a feed, the latest followed

routes = Routes()


# --- reads -------------------------------------------------------------------------------------------


@routes.api("GET", "/api/feed")
async def feed(session: AsyncSession, request: web.Request) -> Any:
    """One's own photos and those of whom one follows, from all their shards at once."""
    me = viewer(request)
    latest = select(Following.followed_id).where(Following.user_id == me).order_by(Following.sequence.desc())
    users = [me, *await session.scalars(latest.limit(FOLLOWED))]
    return await page_of(session, request, Photo.user_id.in_(users))


@routes.api("GET", "/api/photos")
async def newest(session: AsyncSession, request: web.Request) -> Any:
    """The one statement here that names no ID: all shards are asked, which a larger site would not do."""
    return await page_of(session, request)


@routes.api("GET", "/api/users/{id}/photos")
async def photos_of_user(session: AsyncSession, request: web.Request) -> Any:
    """From one shard."""
    return await page_of(session, request, Photo.user_id == id_in_path(request))


@routes.api("GET", "/api/users/{id}")
async def user(session: AsyncSession, request: web.Request) -> Any:
    """A user, with numbers."""
    user = await existing_user(session, id_in_path(request))
    me = viewer(request)
    mine = select(Follower.sequence).where(Follower.user_id == user.id, Follower.follower_id == me)
    return {
        "user": shown(user),
        "photos": await count(session, Photo.user_id == user.id),
        "followers": await count(session, Follower.user_id == user.id),
        "follows": await count(session, Following.user_id == user.id),
        "following": await session.scalar(mine) is not None,
    }


@routes.api("GET", "/api/photos/{id}")
async def photo(session: AsyncSession, request: web.Request) -> Any:
    """By its ID alone, which says the shard. What it says of an ID that no photo has is told, too."""
    photo_id = id_in_path(request)
    found = await session.get(Photo, photo_id)
    cards = await cards_of(session, viewer(request), [found] if found else [])
    return {"photo": cards[0] if cards else None, "parts": parts(photo_id)}


# --- writes ------------------------------------------------------------------------------------------


@routes.api("POST", "/api/photos")
async def new_photo(session: AsyncSession, request: web.Request) -> Any:
    """An INSERT without an ID: the proxy makes it, on the user's shard."""
    photo = Photo(
        user_id=await locked_viewer(session, request),
        caption=await text_field(request, "caption", most=255),
        taken_at=datetime.now(UTC).replace(tzinfo=None),
    )
    session.add(photo)
    await session.flush()
    return (await cards_of(session, photo.user_id, [photo]))[0]


@routes.api("PUT", "/api/users/{id}/follow")
async def follow(session: AsyncSession, request: web.Request) -> Any:
    """Two rows, as a rule on two shards: one transaction, behind a lock: so whoever clicks twice at once
    follows once.
    """
    me, user = await locked_viewer(session, request), await existing_user(session, id_in_path(request))
    if user.id == me:
        raise web.HTTPBadRequest(text="Nobody follows oneself here.")
    mine = select(Following.sequence).where(Following.user_id == me, Following.followed_id == user.id)
    if await session.scalar(mine) is None:
        await session.execute(insert(Following).values(user_id=me, followed_id=user.id))
        await session.execute(insert(Follower).values(user_id=user.id, follower_id=me))
    return {"following": True}


@routes.api("DELETE", "/api/users/{id}/follow")
async def unfollow(session: AsyncSession, request: web.Request) -> Any:
    """Both rows, behind the same lock."""
    me, user_id = await locked_viewer(session, request), id_in_path(request)
    await session.execute(delete(Following).where(Following.user_id == me, Following.followed_id == user_id))
    await session.execute(delete(Follower).where(Follower.user_id == user_id, Follower.follower_id == me))
    return {"following": False}


@routes.api("PUT", "/api/photos/{id}/like")
async def like(session: AsyncSession, request: web.Request) -> Any:
    """One row on the photo's shard; its primary key makes it idempotent."""
    photo_id = id_in_path(request)
    if await session.get(Photo, photo_id) is None:
        raise web.HTTPNotFound(text="There is no such photo.")
    row = insert(PhotoLike).values(photo_id=photo_id, user_id=viewer(request))
    await session.execute(row.prefix_with("IGNORE"))
    return {"liked": True, "likes": await count(session, PhotoLike.photo_id == photo_id)}


@routes.api("DELETE", "/api/photos/{id}/like")
async def unlike(session: AsyncSession, request: web.Request) -> Any:
    """Likewise."""
    photo_id, me = id_in_path(request), viewer(request)
    await session.execute(delete(PhotoLike).where(PhotoLike.photo_id == photo_id, PhotoLike.user_id == me))
    return {"liked": False, "likes": await count(session, PhotoLike.photo_id == photo_id)}


# --- helpers -----------------------------------------------------------------------------------------


async def page_of(session: AsyncSession, request: web.Request, *which: ColumnElement[bool]) -> dict[str, Any]:
    """Photos, newest first. Their IDs sort by time: so the last ID shown is the cursor."""
    wanted = select(Photo).where(*which).order_by(Photo.id.desc()).limit(PAGE + 1)
    if "cursor" in request.query:
        wanted = wanted.where(Photo.id < whole_number(request.query["cursor"]))
    photos = (await session.scalars(wanted)).all()
    cards = await cards_of(session, viewer(request), photos[:PAGE])
    return {"photos": cards, "cursor": cards[-1]["id"] if len(photos) > PAGE else None}


async def cards_of(session: AsyncSession, me: int, photos: Sequence[Photo]) -> list[dict[str, Any]]:
    """With all that the page shows of them."""
    these = PhotoLike.photo_id.in_([photo.id for photo in photos])
    counts = select(PhotoLike.photo_id, func.count()).where(these).group_by(PhotoLike.photo_id)
    likes = dict((await session.execute(counts)).tuples().all())
    liked = set(await session.scalars(select(PhotoLike.photo_id).where(these, PhotoLike.user_id == me)))
    users = await by_id(session, User, (photo.user_id for photo in photos))
    return [
        {
            "id": str(photo.id),
            "caption": photo.caption,
            "user": shown(users[photo.user_id]) if photo.user_id in users else None,
            "likes": likes.get(photo.id, 0),
            "liked": photo.id in liked,
            "parts": parts(photo.id),
        }
        for photo in photos
    ]


async def count(session: AsyncSession, which: ColumnElement[bool]) -> int:
    """How many rows fulfil it."""
    return await session.scalar(select(func.count()).where(which)) or 0
