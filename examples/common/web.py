"""The server of an example: JSON for its own page, and nothing for anybody else's."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from examples.common.database import NO_PROXY, NO_TABLE, Database, code_of
from examples.common.demo import READY_FILE, Demo, DemoError, fill

Answer = Callable[[AsyncSession, web.Request], Awaitable[Any]]

COMMON = Path(__file__).with_name("page")
DATABASE = web.AppKey("database", Database)
USER_COOKIE = "user"
SIGN_IN = "Sign in first."
WHOLE_TEXT = re.compile(r"[^\x00-\x1f\ud800-\udfff]*")  # one line, and no halves of characters
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Routes(web.RouteTableDef):
    """Routes whose handlers get a session and give what becomes JSON (or a response)."""

    def api(self, method: str, path: str, *, transaction: bool | None = None) -> Callable[[Answer], Answer]:
        """GET reads, everything else is a transaction, unless `transaction` says otherwise."""
        writes = method != "GET" if transaction is None else transaction

        def add(answer: Answer) -> Answer:
            async def handle(request: web.Request) -> web.StreamResponse:
                database = request.app[DATABASE]
                run = database.write if writes else database.read
                result = await run(lambda session: answer(session, request))
                return result if isinstance(result, web.StreamResponse) else web.json_response(result)

            self.route(method, path)(handle)
            return answer

        return add


# --- what a request says -----------------------------------------------------------------------------


def viewer(request: web.Request) -> int:
    """The ID of the user who is signed in; 401 if nobody is."""
    try:
        return whole_number(request.cookies.get(USER_COOKIE))
    except web.HTTPBadRequest:
        raise web.HTTPUnauthorized(text=SIGN_IN) from None


def id_in_path(request: web.Request) -> int:
    """The `{id}` of the route."""
    return whole_number(request.match_info["id"])


async def text_field(request: web.Request, name: str, most: int, least: int = 1) -> str:
    """A text of the body, without space around it; 400 if it is none, or has fewer or more characters."""
    text = (await fields(request)).get(name) or ""
    if not isinstance(text, str) or not WHOLE_TEXT.fullmatch(text):
        raise web.HTTPBadRequest(text=f"The {name} must be a text.")
    text = text.strip()
    if not least <= len(text) <= most:
        raise web.HTTPBadRequest(text=f"The {name} must have {least} to {most} characters.")
    return text


async def id_field(request: web.Request, name: str) -> int | None:
    """An ID of the body, or None for null; 400 for anything else."""
    value = (await fields(request)).get(name)
    return None if value is None else whole_number(value)


async def fields(request: web.Request) -> dict[str, Any]:
    """The body, a JSON object."""
    try:
        body = await request.json()
    except (ValueError, LookupError, RecursionError):  # no JSON, an encoding that nobody knows, too deep
        body = None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="The body must be a JSON object.")
    return body


def whole_number(text: Any) -> int:
    """IDs travel as texts, since JavaScript's numbers hold 53 bits. 400 for what is none."""
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,20}", text):
        raise web.HTTPBadRequest(text="An ID is a text of digits.")
    return int(text)


# --- the server --------------------------------------------------------------------------------------


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as JSON. A page elsewhere can make a browser send forms here, but no JSON."""
    try:
        if request.method not in ("GET", "HEAD") and request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="Send JSON.")
        return await handler(request)
    except web.HTTPException as error:
        return web.json_response({"error": error.text}, status=error.status)
    except IntegrityError:
        return web.json_response({"error": "Somebody else was faster. Try again."}, status=409)
    except SQLAlchemyError as error:
        logging.error("%s %s: %s", request.method, request.path, getattr(error, "orig", error))
        return web.json_response({"error": in_words(error)}, status=503)


def in_words(error: SQLAlchemyError) -> str:
    """What a user can make of an error of the database that trying again has not mended."""
    code = code_of(error) if isinstance(error, DBAPIError) else None
    if code == NO_PROXY:
        return "The database cannot be reached. Try again in a moment."
    if code == NO_TABLE:
        return "A new demo runs, which has no tables of this example: start the example anew, too."
    return "The database could not do that, or nobody knows whether it did: look before you try again."


async def _headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def serve(
    about: str, port: int, folder: Path, first_rows: dict[str, str], *routes: web.RouteTableDef
) -> None:
    """The command line of an example: find the demo, add the tables of `folder`/schema.yaml, serve until
    Ctrl-C. `first_rows`: statements that fill such a table when it is empty.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--port", type=int, default=port, help="where to serve (%(default)s)")
    parser.add_argument("--ready-file", type=Path, default=READY_FILE, help="the demo's (%(default)s)")
    options = parser.parse_args()
    try:
        demo = Demo.find(options.ready_file)
        demo.add_tables(folder / "schema.yaml")
    except DemoError as error:
        sys.exit(str(error))

    async def database(app: web.Application) -> AsyncIterator[None]:
        app[DATABASE] = opened = Database(demo.url)
        for table, rows in first_rows.items():
            await fill(opened, table, rows)
        yield
        await opened.close()

    web.run_app(make_app(database, folder / "page", routes), host="127.0.0.1", port=options.port)


def make_app(
    database: Callable[[web.Application], AsyncIterator[None]],
    page: Path,
    routes: Iterable[web.RouteTableDef],
) -> web.Application:
    """The routes, and the files of `page`, index.html first."""

    async def index(request: web.Request) -> web.FileResponse:
        return web.FileResponse(page / "index.html")

    app = web.Application(middlewares=[_guard], client_max_size=64 * 1024)
    app.cleanup_ctx.append(database)
    app.on_response_prepare.append(_headers)
    app.router.add_get("/", index)
    app.router.add_static("/page", page)
    app.router.add_static("/common", COMMON)
    for table in routes:
        app.add_routes(table)
    return app
