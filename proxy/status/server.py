"""The small HTTP server for operators: /metrics, /healthz, /readyz, /, /status.json and /live.json.

An answer from /healthz says that the worker's event loop turns (`apart`). Before there are
services (no topology yet, or no server has answered) every page answers all the same. A TCP port is shared
with a proxy's successor (SO_REUSEPORT), so that it can start while the old one drains, which then leaves it
to the new one; with nobody else (`proxy.taken`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from config.address import Address
from proxy.kept import Past
from proxy.taken import ALONE, HEADER, StatusPlace, cannot_listen, claim_status

from . import page, snapshot
from .apart import PATIENCE as LOOP_PATIENCE
from .apart import Home, here
from .calls import NOT_MINE, may_call
from .combine import everyone, silent_ones
from .doors import Doors, Site
from .keeping import Keeper
from .live import PATIENCE, History, Live
from .metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from proxy.engine.services import Services
    from proxy.peers import Peers

log = structlog.get_logger("proxy")
#: Not that of other servers of the kind: the filter is for this one's.
_requests = logging.getLogger("aiohttp.server.status")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Page = Callable[[web.Request], Awaitable[web.Response]]

#: Seconds that an answer under way has to end when the server stops.
_GRACE = 0.5

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PAGE_HEADERS = _HEADERS | {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


class StatusServer:
    """Answers for all worker processes. `start` once, then `stop`.

    `services` gives the worker's services, None before they exist; `ready` whether clients are welcome;
    `source` one line about where the topology comes from, `loaded` whether it has given one; `trouble` why
    no server could be asked; `peers` the other workers, who are asked each time; `names` what the address
    may be called by (see `calls.may_call`); `keeper` when the proxy was started, and what is left of workers
    before this one; `place` with whom the address may be shared.
    """

    def __init__(
        self,
        services: Callable[[], Services | None],
        ready: Callable[[], bool],
        source: Callable[[], str] = lambda: "",
        now: Callable[[], float] = snapshot.clock,
        peers: Peers | None = None,
        loaded: Callable[[], bool] = lambda: True,
        doors: Doors | None = None,
        trouble: Callable[[], str] = lambda: "",
        history: History | None = None,
        home: Home = here,
        names: Collection[str] | None = None,
        keeper: Keeper | None = None,
        place: StatusPlace = ALONE,
    ) -> None:
        self._names = None if names is None else frozenset(name.lower() for name in names)
        self._services = services
        self._ready = ready
        self._source = source
        self._loaded = loaded
        self._trouble = trouble
        self._now = now
        self._taken = now()
        self._keeper = Keeper(None, Past(self._taken)) if keeper is None else keeper
        self._started = self._keeper.started
        self._peers = peers
        self._doors = Doors() if doors is None else doors
        self._metrics = Metrics()
        self._home = home
        self._last: snapshot.Snapshot | None = None
        self._live = Live(services, History() if history is None else history, peers)
        self._runner: web.AppRunner | None = None
        self._listen: Address | None = None
        self._inode = 0  # of the Unix socket
        self._place = place
        self.address = ""

    @property
    def url(self) -> str:
        """Where a browser finds the page; empty before `start` and on a Unix socket."""
        return f"http://{self.address}/" if self._listen is not None and self._listen.path is None else ""

    async def everything(self) -> snapshot.Snapshot:
        """The state of all worker processes now; or as it was, while this one's loop does not turn."""
        try:
            taken = await self._home(self._everything, LOOP_PATIENCE)
        except TimeoutError:
            ago = "" if self._last is None else f": all of this is of {self._now() - self._taken:.0f} s ago"
            last = self._last or self._nothing()
            return {**last, "reason": f"busy for longer than {LOOP_PATIENCE:g} s{ago}"}
        self._last, self._taken = taken, self._now()
        return taken

    def _nothing(self) -> snapshot.Snapshot:
        return snapshot.take(None, ready=False, started=self._started, now=self._now())

    async def _everything(self) -> snapshot.Snapshot:
        if self._peers is None:
            return self.snapshot()
        others, kept = await self._peers.ask_or_look("snapshot", patience=PATIENCE)
        return everyone(self.snapshot(), others, silent_ones(kept), self._peers.count)

    def snapshot(self) -> snapshot.Snapshot:
        """The state of this process now."""
        services = self._services()
        taken = snapshot.take(
            services,
            ready=self._ready(),
            started=self._started,
            now=self._now(),
            source=self._source(),
            loaded=self._loaded(),
            trouble=self._trouble(),
        )
        return self._keeper.whole(taken, services)

    async def start(self, listen: Address) -> None:
        """Listen at a TCP address (port 0: a free one) or a Unix socket; `address` then says where.

        Raises OSError when that cannot be done.
        """
        app = web.Application(middlewares=[self._one_request])
        app.router.add_get("/", partial(self._in_turn, self._page))
        app.router.add_get("/status.json", partial(self._in_turn, self._status))
        app.router.add_get("/live.json", partial(self._in_turn, self._live_json))
        app.router.add_get("/status.js", self._script)
        app.router.add_get("/metrics", partial(self._in_turn, self._scrape))
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=_GRACE, logger=_requests
        )
        await runner.setup()
        try:
            await self._open(runner, listen)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self._listen = listen if listen.path is not None else _bound(listen, runner)
        self._inode = _inode(listen.path)
        self.address = str(self._listen)

    async def _open(self, runner: web.AppRunner, listen: Address) -> None:
        await asyncio.to_thread(claim_status, listen, self._place)
        try:
            await Site(runner, listen, self._doors).start()
        except OSError as error:
            raise cannot_listen(listen, "status.listen", error) from error

    async def step_aside(self) -> None:
        """This process drains: leave the port to another one that listens there too, if there is one."""
        runner, listen = self._runner, self._listen
        if runner is None or listen is None or listen.path is not None:
            return
        names = runner.addresses
        if not names:
            return
        for site in list(runner.sites):
            await site.stop()
        if any([await _answered(name) for name in names]):
            log.info("another process answers at the status address", address=self.address)
        else:
            await Site(runner, listen, self._doors).start()

    async def stop(self) -> None:
        """Stop listening; answers under way get half a second. May be called again, or without `start`."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        await runner.cleanup()
        self._doors.close()
        path = self._listen.path if self._listen is not None else None
        if (
            path is not None and _inode(path) == self._inode
        ):  # not that of a process which came after this one
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    @web.middleware
    async def _one_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A connection serves one request, for who calls the server by a name of its own."""
        if may_call(request.headers.get("Host", ""), self._listen, self._names):
            response = await handler(request)
        else:
            response = web.Response(status=421, text=NOT_MINE, headers=_HEADERS)
        if self._place.proxy:
            response.headers[HEADER] = self._place.proxy
        response.force_close()
        return response

    async def _in_turn(self, make: Page, request: web.Request) -> web.Response:
        return await self._doors.page(partial(make, request))

    # -- pages
    # -------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        text = page.render(await self.everything(), refresh=page.refresh_of(request.query.get("refresh", "")))
        return web.Response(text=text, content_type="text/html", headers=_PAGE_HEADERS)

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response(await self.everything(), headers=_HEADERS)

    async def _live_json(self, request: web.Request) -> web.Response:
        after = request.query.get("after", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 12 else 0
        try:
            state = await self._home(partial(self._live.state, number), LOOP_PATIENCE)
        except TimeoutError:
            return web.json_response({"reason": "busy"}, status=503, headers=_HEADERS)
        return web.json_response(state, headers=_HEADERS)

    async def _script(self, request: web.Request) -> web.Response:
        return web.Response(text=page.script(), content_type="text/javascript", headers=_HEADERS)

    async def _scrape(self, request: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.render(await self.everything()),
            headers=_HEADERS | {"Content-Type": CONTENT_TYPE},
        )

    # -- health
    # ------------------------------------------------------------------------------------------------------

    async def _healthz(self, request: web.Request) -> web.Response:
        await self._home(_turn, None)
        return web.json_response({"status": "alive"}, headers=_HEADERS)

    async def _readiness(self) -> tuple[bool, str]:
        """Whether clients are welcome, and why not."""
        ready = self._ready()
        return ready, snapshot.why_not_ready(self._services(), ready, self._loaded(), self._trouble())

    async def _readyz(self, request: web.Request) -> web.Response:
        try:
            ready, reason = await self._home(self._readiness, LOOP_PATIENCE)
        except TimeoutError:
            ready, reason = False, f"busy for longer than {LOOP_PATIENCE:g} s"
        body = {"status": "ready"} if ready else {"status": "not ready", "reason": reason}
        return web.json_response(body, status=200 if ready else 503, headers=_HEADERS)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a line is for who runs the proxy: a request that is none is its sender's mistake."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_requests.addFilter(_is_ours)


async def _turn() -> None:
    """Done when the loop turns."""


def _inode(path: str | None) -> int:
    """The number of a file; 0 when there is none."""
    try:
        return os.stat(path).st_ino if path is not None else 0
    except FileNotFoundError:
        return 0


async def _answered(name: tuple[Any, ...]) -> bool:
    """Whether somebody listens at this socket address. Who only holds it does not take its connections."""
    try:
        async with asyncio.timeout(_GRACE):
            _, writer = await asyncio.open_connection(name[0], name[1])
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _bound(listen: Address, runner: web.AppRunner) -> Address:
    """`listen` with the port that was really taken."""
    name = runner.addresses[0]
    assert isinstance(name, tuple), socket.AF_INET
    return Address(listen.host, int(name[1]))
