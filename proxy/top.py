"""`shardgate top`: the status page's news in a terminal, from live.json and status.json of a proxy."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .printable import all_printable, printable

_TIMEOUT: Final = 5.0
"""Seconds without a byte."""
_PATIENCE: Final = 15.0
"""Seconds for a whole page."""
_LARGEST: Final = 64 << 20
"""Bytes of a page: those of the largest fleets have a few MB."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_STYLES: Final = {"failing": "bold red", "slow": "bold yellow", "": ""}
_WIDTH: Final = 60
"""So many of the last samples are drawn: two minutes."""


class TopError(Exception):
    """The proxy does not answer; the text says what to do."""


def fetch(url: str) -> dict[str, Any]:
    """A JSON page of the proxy, all of its texts printable. Raises TopError, whatever answers there."""
    if not url.startswith(("http://", "https://")):
        raise TopError(f"{url} is no address of a page: it begins with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            found = json.loads(_whole(answer))
    except (OSError, ValueError, HTTPException, RecursionError) as error:
        reason = printable(str(getattr(error, "reason", None) or error))
        raise TopError(
            f"{url} does not answer: {reason}. Is the proxy up, and is this its status.listen?"
        ) from None
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


def _not_ours(url: str) -> TopError:
    return TopError(f"{url} is not the status page of a shardgate, or of one of another version")


def news(base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """live.json and status.json of the proxy whose page is at `base`. Raises TopError."""
    base = base.rstrip("/")
    live, status = fetch(f"{base}/live.json"), fetch(f"{base}/status.json")
    if "points" not in live or "slowest" not in status:
        raise _not_ours(base)
    return live, status


def _look(console: Console, base: str) -> RenderableType:
    """What is shown of now. Raises TopError."""
    live, status = news(base)
    try:
        return screen(live, status, console.height)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _not_ours(base) from None


def watch(console: Console, base: str, interval: float, *, once: bool = False) -> None:
    """Show it until Ctrl-C. Raises TopError when there is no answer at the beginning; later it waits for
    one.
    """
    look = _look(console, base)
    if once:
        console.print(look)
        return
    with Live(console=console, screen=True, auto_refresh=False) as shown, suppress(KeyboardInterrupt):
        while True:
            shown.update(look, refresh=True)
            time.sleep(interval)
            try:
                look = _look(console, base)
            except TopError as error:
                look = Panel(Text(str(error), "yellow"), title="no answer")


def screen(live: dict[str, Any], status: dict[str, Any], height: int = 40) -> RenderableType:
    """What is shown, in at most about so many lines."""
    left = max(4, (height - 16 - len(status["hosts"])) // 2)
    return Group(
        _head(live, status),
        _hosts(live, status),
        _shards(live["hot"][:left]),
        _statements(status["slowest"][:left]),
    )


def ms(seconds: float) -> str:
    """Milliseconds with as many digits as matter."""
    return "–" if seconds <= 0 else f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def rate(value: float) -> str:
    """A rate with as many digits as matter."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def spark(values: Sequence[float]) -> str:
    """A line of bars, the highest as high as a line."""
    top = max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in values)


def _head(live: dict[str, Any], status: dict[str, Any]) -> RenderableType:
    points = live["points"][-_WIDTH:]
    last = points[-1] if points else None
    table = Table.grid(padding=(0, 2))
    lines: list[tuple[str, str, str, Callable[[dict[str, Any]], float]]] = []
    if last is not None:
        lines = [
            ("statements a second", rate(last["statements"]), "cyan", lambda one: one["statements"]),
            ("errors a second", rate(last["errors"]), "red", lambda one: one["errors"]),
            ("answered within, p95", ms(last["p95"]), "magenta", lambda one: one["p95"]),
        ]
    for name, value, style, pick in lines:
        table.add_row(name, Text(value, "bold"), Text(spark([pick(one) for one in points]), style))
    clients = status["clients"] or {}
    topology = status["topology"] or {}
    facts = [
        f"{clients.get('connections', 0)} clients, {clients.get('busy', 0)} busy",
        f"{clients.get('in_transaction', 0)} in a transaction",
        f"{clients.get('waiting', 0)} wait for another topology",
        f"topology version {topology.get('version', '–')}",
        _workers(status["workers"], status["workers_wanted"]),
    ]
    reason = status["reason"]
    ready = Text("ready", "green") if status["ready"] else Text(reason or "not ready", "yellow")
    title = Text.assemble("shardgate ", (status["version"], "dim"), "  ", ready)
    return Panel(Group(Text(" · ".join(facts), "dim"), table), title=title, title_align="left")


def _workers(answering: int, wanted: int) -> str:
    if answering < wanted:
        return f"ONLY {answering} of {wanted} processes answer"
    return f"{answering} process{'' if answering == 1 else 'es'}"


def _add(table: Table, *cells: str | Text, style: str = "") -> None:
    """A row of what it is: rich would read brackets in a text, as of an IPv6 address, as markup."""
    table.add_row(*(Text(one) if isinstance(one, str) else one for one in cells), style=style)


def _table(title: str, *columns: str) -> Table:
    """With the last columns, from the first that begins with >, to the right. Where a terminal is narrow, the
    others are shortened: their cells are of `_name`.
    """
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        expand=True,
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.removeprefix(">") if right else _name(column),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="ellipsis",
            header_style="dim",
        )
    return table


def _name(text: str, style: str = "") -> Text:
    """What may be shortened, and stays in its line."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _hosts(live: dict[str, Any], status: dict[str, Any]) -> Table:
    table = _table(
        "Hosts",
        "host",
        "state",
        ">a second",
        ">mean",
        ">p95",
        ">errors",
        ">busy",
        ">idle",
        ">waiting",
        ">limit",
    )
    for one in status["hosts"]:
        load = live["hosts"].get(one["host"], {})
        down = one["failures"] > 0 and not one["up"]
        state = "unreachable" if down else load.get("state") or ("up" if one["up"] else "not used yet")
        _add(
            table,
            _name(one["host"]),
            _name(state, "bold red" if down else _STYLES.get(load.get("state", ""), "")),
            rate(load.get("per_second", 0.0)),
            ms(load.get("mean", 0.0)),
            ms(load.get("p95", 0.0)),
            str(load.get("errors", 0)),
            str(one["busy"]),
            str(one["idle"]),
            Text(str(one["waiting"]), "bold red" if one["waiting"] else ""),
            str(one["limit"]),
        )
    return table


def _shards(hot: Sequence[dict[str, Any]]) -> Table:
    table = _table(
        "Hot shards", "shard", "host", "state", ">a second", ">mean", ">p95", ">errors", ">running", ">oldest"
    )
    for one in hot:
        style = _STYLES.get(one["state"], "")
        _add(
            table,
            _name(f"{one['keyspace']} {one['shard']}"),
            _name(one["host"]),
            _name(one["state"] or "well"),
            rate(one["per_second"]),
            ms(one["mean"]),
            ms(one["p95"]),
            str(one["errors"]),
            str(one["running"]),
            ms(one["oldest"]),
            style=style,
        )
    return table


def _statements(queries: Sequence[dict[str, Any]]) -> Table:
    table = _table(
        "Costliest statements", "statement, without its values", ">count", ">total", ">mean", ">longest",
        ">errors", ">rows", ">shards",
    )  # fmt: skip
    for one in queries:
        count = one["count"]
        _add(
            table,
            _name(one["digest"]),
            f"{count:,}",
            ms(one["seconds"]),
            ms(one["seconds"] / count),
            ms(one["longest"]),
            str(one["errors"]),
            f"{one['rows']:,}",
            f"{one['shards'] / count:.3g}",
        )
    return table
