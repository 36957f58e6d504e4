"""Users. Signing in asks for a name and for no password: put your own in its place."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from aiohttp import web
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from examples.common.database import Base, Id, Object
from examples.common.web import SIGN_IN, USER_COOKIE, Routes, text_field, viewer

NAMES = re.compile(r"[a-z0-9_.]{2,30}")

routes = Routes()


class User(Object, Base):
    """data: name, username, about. A new one is put on any shard."""

    __tablename__ = "users"


class Username(Base):
    """On one server, since each must be unique."""

    __tablename__ = "usernames"
    username: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[Id]


def shown(user: User) -> dict[str, str]:
    """As the page gets it."""
    known = {name: str(user.data.get(name, "")) for name in ("name", "username", "about")}
    return {"id": str(user.id), **known}


async def existing_user(session: AsyncSession, user_id: int) -> User:
    """404 if there is none."""
    user = await session.get(User, user_id)
    if user is None:
        raise web.HTTPNotFound(text="There is no such user.")
    return user


async def locked_viewer(session: AsyncSession, request: web.Request) -> int:
    """The user who is signed in, whose row is locked until the transaction ends: so what one user clicks
    twice at once, or in two windows, is done one after another. 401 if there is no such user.
    """
    me = viewer(request)
    if await session.scalar(select(User.id).where(User.id == me).with_for_update()) is None:
        raise web.HTTPUnauthorized(text=SIGN_IN)
    return me


@routes.api("GET", "/api/session")
async def who(session: AsyncSession, request: web.Request) -> Any:
    """The user who is signed in, or null and some whom one can be."""
    with suppress(web.HTTPUnauthorized):
        if user := await session.get(User, viewer(request)):
            return {"user": shown(user)}
    some = select(Username.username).order_by(Username.user_id).limit(8)
    return {"user": None, "known": list(await session.scalars(some))}


@routes.api("POST", "/api/session")
async def sign_in(session: AsyncSession, request: web.Request) -> web.Response:
    """As the user of that name, who is made if there is none."""
    username = (await text_field(request, "username", most=30)).lower()
    if not NAMES.fullmatch(username):
        raise web.HTTPBadRequest(text="A name has 2 to 30 letters, digits, dots and underscores.")
    user_id = await session.scalar(select(Username.user_id).where(Username.username == username))
    if user_id is None:
        user = User(data={"name": username.capitalize(), "username": username})
        session.add(user)
        await session.flush()  # now it has an ID
        session.add(Username(username=username, user_id=user.id))
        user_id = user.id
    response = web.json_response({"id": str(user_id)})
    response.set_cookie(USER_COOKIE, str(user_id), httponly=True, samesite="Strict")
    return response


@routes.api("DELETE", "/api/session")
async def sign_out(session: AsyncSession, request: web.Request) -> web.Response:
    """As nobody."""
    response = web.json_response({})
    response.del_cookie(USER_COOKIE, httponly=True, samesite="Strict")
    return response
