"""A real browser, headless Chromium, driven over its DevTools protocol: what a user sees and does."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from demo.process import spawn, stop_all, tail
from tests.support.waiting import async_wait_until, wait_until

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDE, PHONE = (1280, 860), (390, 844)


def find_browser() -> str | None:
    """The program; .ci/drivers installs it."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def running_browser(folder: Path) -> Iterator[str]:
    """The address of a browser for several tests, each of which is a `connected` one's; its profile is under
    `folder`.
    """
    program = find_browser()
    assert program, "no browser"
    log, profile = folder / "browser.log", folder / "profile"
    options = [
        "--headless",
        "--no-first-run",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-proxy-server",
    ]
    if os.getuid() == 0:
        options.append("--no-sandbox")  # root cannot have it
    process = spawn(
        [program, *options, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"], log
    )
    try:
        port = profile / "DevToolsActivePort"
        wait_until(
            lambda: process.poll() is not None or (port.exists() and port.read_text().count("\n") >= 1),
            "the browser's port",
        )
        assert process.poll() is None, f"the browser ended:\n{tail(log)}"
        number, path = port.read_text().split("\n")[:2]
        yield f"ws://127.0.0.1:{number}{path}"
    finally:
        stop_all([process], 10)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Browser]:
    """The browser at that address, for one test: its pages end with it, and what they have kept."""
    async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as socket:
        browser = Browser(socket)
        try:
            yield browser
            await browser.forget()
        finally:
            browser.reader.cancel()


class PageLeft(AssertionError):
    """The page went to another address while it was asked."""


_LEFT: Final = (
    "Inspected target navigated or closed",
    "Execution context was destroyed.",
    "Cannot find default execution context",
)


class Browser:
    """Sends commands, each of which has one answer, and keeps events for those who wait for them."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Page] = {}
        self._contexts: list[str] = []
        self.reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            content = message.json()
            if "id" in content:
                answer = self._answers.pop(content["id"])
                if "error" in content:
                    words = content["error"]["message"]
                    answer.set_exception(PageLeft(words) if words in _LEFT else AssertionError(words))
                else:
                    answer.set_result(content["result"])
            elif page := self._pages.get(content.get("sessionId", "")):
                page.events.append(content)

    async def send(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """The result; AssertionError with the browser's words."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message | ({"sessionId": session} if session else {}))
        return await asyncio.wait_for(self._answers[number], 60)

    async def page(self, url: str, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Page:
        """A page of somebody's own: it shares no cookies with others."""
        # it goes with this connection, also when a test fails
        made = await self.send("Target.createBrowserContext", disposeOnDetach=True)
        context = made["browserContextId"]
        self._contexts.append(context)
        target = await self.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"])
        self._pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log"):
            await page.send(f"{domain}.enable")
        await page.look(size, dark=dark)
        await page.go(url)
        return page

    async def forget(self) -> None:
        """Close all pages, and wait until they are gone."""
        for context in self._contexts:
            await self.send("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One tab. `events`: what the browser told of it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.events: list[dict[str, Any]] = []

    async def send(self, method: str, **parameters: Any) -> Any:
        """A command of the protocol."""
        return await self._browser.send(method, self._session, **parameters)

    async def go(self, url: str) -> None:
        """Load a page, and wait until it has."""
        await self._loads("Page.navigate", url=url)

    async def reload(self) -> None:
        """Load it again."""
        await self._loads("Page.reload")

    async def _loads(self, method: str, **parameters: Any) -> None:
        self.events.clear()
        await self.send(method, **parameters)
        await self.event("Page.loadEventFired")

    async def event(self, method: str) -> dict[str, Any]:
        """The first one of that name since the last load."""
        found = await async_wait_until(
            lambda: [one["params"] for one in self.events if one["method"] == method], method, 60
        )
        return dict(found[0])

    @property
    def complaints(self) -> list[str]:
        """Exceptions, and what the browser refused (its answers of an error's status apart)."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["source"] != "network":
                found.append(parameters["entry"]["text"])
        return found

    async def look(self, size: tuple[int, int], *, dark: bool = False) -> None:
        """The window's size, and what the user likes."""
        width, height = size
        phone = width < 600
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        await self.send("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def evaluate(self, script: str) -> Any:
        """The value of an expression, a promise's awaited; AssertionError if it throws."""
        answer = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, script: str, seconds: float = 60) -> None:
        """Until the expression is true there, or where the page has gone meanwhile."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self._holds(script):
            assert asyncio.get_running_loop().time() < deadline, f"not within {seconds:g} s: {script}"
            await asyncio.sleep(0.02)

    async def _holds(self, script: str) -> bool:
        try:
            return bool(await self.evaluate(f"Boolean({script})"))
        except PageLeft:
            return False

    async def texts(self, selector: str) -> list[str]:
        """What the elements say."""
        found = await self.evaluate(
            f"[...document.querySelectorAll({selector!r})].map(one => one.textContent)"
        )
        return list(found)

    async def where(self, selector: str, x: float = 0.5, y: float = 0.5) -> dict[str, float]:
        """A point of an element, in sight: its middle, or where `x` and `y` (0 to 1) say."""
        await self.wait_for(f"document.querySelector({selector!r})")
        found = await self.evaluate(
            f"(() => {{ const one = document.querySelector({selector!r});"
            " one.scrollIntoView({block: 'nearest', behavior: 'instant'});"
            " const {left, top, width, height} = one.getBoundingClientRect();"
            f" return {{x: left + width * {x}, y: top + height * {y}}} }})()"
        )
        return dict(found)

    async def still(self, source: str, target: str, x: float) -> list[dict[str, float]]:
        """Where both are, once nothing moves any more: scrolling goes on after a finger has left."""
        found: list[dict[str, float]] = []
        for _ in range(200):
            before, found = found, [await self.where(source), await self.where(target, x)]
            if found == before:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"{source} and {target} do not come to rest")

    async def click(self, selector: str) -> None:
        """With the mouse, in the middle."""
        point = await self.where(selector)
        await self.mouse("mouseMoved", point)
        await self.mouse("mousePressed", point, clickCount=1)
        await self.mouse("mouseReleased", point, clickCount=1)

    async def mouse(self, kind: str, point: dict[str, float], **parameters: Any) -> None:
        """One event of the left button."""
        held = {} if kind == "mouseMoved" and "buttons" not in parameters else {"button": "left"}
        await self.send("Input.dispatchMouseEvent", type=kind, **point, **held, **parameters)

    async def write(self, selector: str, text: str) -> None:
        """Click there and type."""
        await self.click(selector)
        await self.send("Input.insertText", text=text)

    async def key(self, key: str, code: int) -> None:
        """Press and release, for example Enter (13)."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text
            )

    async def drag(self, source: str, target: str, *, x: float = 0.25, drop: bool = True) -> None:
        """One element to another with the mouse, and drop it at `x` (0 to 1) of its width; or Escape."""
        start = await self.where(source)
        await self.mouse("mouseMoved", start)
        await self.mouse("mousePressed", start, clickCount=1)
        end = await self.where(target, x)
        # over it again and again, as long as it is held there: the page may have moved things meanwhile
        for point in ({"x": start["x"] + 12, "y": start["y"] + 12}, end, end):
            await self.mouse("mouseMoved", point, buttons=1)
        if not drop:
            await self.key("Escape", 27)
        await self.mouse("mouseReleased", end, clickCount=1)

    async def drag_by_finger(self, source: str, target: str, *, x: float = 0.25) -> None:
        """The same on a touch screen."""
        start, end = await self.still(source, target, x)
        near = {"x": start["x"] + 12, "y": start["y"] + 12}
        for kind, points in (
            ("touchStart", [start]),
            *(("touchMove", [point]) for point in (near, end, end)),
            ("touchEnd", []),
        ):
            await self.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    async def screenshot(self) -> bytes:
        """A PNG of what is in sight."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])
