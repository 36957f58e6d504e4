"""`shardgate top`: the status page's news in a terminal, from live.json and status.json of a proxy."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import BadStatusLine, HTTPException, RemoteDisconnected
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from .keys import Keys
from .printable import all_printable, printable
from .screen import screen

_TIMEOUT: Final = 5.0
"""Seconds without a byte."""
_PATIENCE: Final = 15.0
"""Seconds for a whole page."""
_LARGEST: Final = 64 << 20
"""Bytes of a page: those of the largest fleets have a few MB."""
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP)


class TopError(Exception):
    """The proxy does not answer; the text says what to do."""


def fetch(url: str) -> dict[str, Any]:
    """A JSON page of the proxy, all of its texts printable. Raises TopError, whatever answers there."""
    if not url.startswith(("http://", "https://")):
        raise TopError(f"{url} is no address of a page: it begins with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            found = json.loads(_whole(answer))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise _not_ours(url) from None
    except BadStatusLine as error:
        if isinstance(error, RemoteDisconnected):
            raise _silent(url, error) from None
        raise _no_page(url, str(error)) from None
    except (OSError, ValueError, HTTPException) as error:
        raise _silent(url, error) from None
    if not isinstance(found, dict):
        raise _not_ours(url)
    return all_printable(found)  # type: ignore[no-any-return]


def _whole(answer: Any) -> bytes:
    """All of an answer that is neither endless nor comes byte by byte. Raises ValueError."""
    pieces, size, end = [], 0, time.monotonic() + _PATIENCE
    while piece := answer.read1(1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST:
            raise ValueError(f"its page has more than {_LARGEST >> 20} MB")
        if time.monotonic() > end:
            raise ValueError(f"its page takes longer than {_PATIENCE:g} s")
    if answer.length:
        raise ValueError("its page is cut short")
    return b"".join(pieces)


def _silent(url: str, error: Exception) -> TopError:
    cause = getattr(error, "reason", None) or error
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return TopError(
        f"{url} does not answer: {printable(why)}. Is the proxy up, and is this its status.listen?"
    )


def _no_page(url: str, line: str) -> TopError:
    """Of what answers there, and not as web servers do: it begins with that line."""
    mysql = line[2:4] == "\0\0" and line[4:5] in ("\n", "\xff")  # the first packet: a greeting, or an error
    who = "a MySQL server or proxy answers there" if mysql else "what answers there does not speak HTTP"
    return TopError(f"{url} is no status page: {who}. The page's address is status.listen in the settings")


def _not_ours(url: str) -> TopError:
    return TopError(f"{url} is not the status page of a shardgate, or of one of another version")


def news(base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """live.json and status.json of the proxy whose page is at `base`. Raises TopError."""
    base = base.rstrip("/")
    live, status = fetch(f"{base}/live.json"), fetch(f"{base}/status.json")
    if "points" not in live or "slowest" not in status:
        raise _not_ours(base)
    return live, status


def _look(console: Console, base: str, hint: str = "") -> RenderableType:
    """What is shown of now. Raises TopError."""
    live, status = news(base)
    try:
        return screen(live, status, console.height, console.width, hint)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _not_ours(base) from None


def watch(console: Console, base: str, interval: float, *, once: bool = False) -> None:
    """Show it until Ctrl-C, or q; where there is no terminal one look below the other. Raises TopError when
    there is no answer at the beginning; later it waits for one.
    """
    look = _look(console, base)
    if once:
        console.print(look)
        return
    with _until_told():
        if console.is_terminal and not console.is_dumb_terminal:
            _show(console, base, interval)
        else:
            _tell(console, base, interval, look)


@contextmanager
def _until_told() -> Iterator[None]:
    """Ctrl-C, or a signal that ends programs, is the usual end of what is within: the terminal gets back what
    it was.
    """

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    mine = [one for one in _ENDS if main and signal.getsignal(one) is signal.SIG_DFL]  # nohup ignores one
    try:
        for number in mine:
            signal.signal(number, end)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _show(console: Console, base: str, interval: float) -> None:
    """On the whole of a terminal."""
    with Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as shown:
        hint = "q or Ctrl-C leaves" if keys.heard else "Ctrl-C leaves"
        while True:
            try:
                look = _look(console, base, hint)
            except TopError as error:
                look = Panel(Text(str(error), "yellow"), title="no answer", subtitle=hint)
            shown.update(look, refresh=True)
            if keys.wait(interval, b"q"):
                return


def _tell(console: Console, base: str, interval: float, look: RenderableType) -> None:
    """Line by line, for a file or another program."""
    while True:
        try:
            console.print(Text(time.strftime("%Y-%m-%d %H:%M:%S")), look, "", sep="\n")
        except (
            SystemExit
        ):  # so Rich ends a program whose output nobody reads any more: here that is no failure
            return
        time.sleep(interval)
        try:
            look = _look(console, base)
        except TopError as error:
            look = Text(str(error))
