"""What `shardgate top` shows of live.json and status.json, as wide as the terminal.

Where that is narrow names stay whole as long as they can: the figures that matter least are left out, and the
oldest ends of charts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_BARS: Final = "▁▂▃▄▅▆▇█"
_STYLES: Final = {"failing": "bold red", "slow": "bold yellow", "": ""}
_SAMPLES: Final = 60
"""So many of the last samples are drawn: two minutes."""
_NAME: Final = 40
_STATEMENT: Final = 30
"""A name, or a statement, is shortened to so many columns before a figure is left out."""


def screen(
    live: dict[str, Any], status: dict[str, Any], height: int = 40, width: int = 160, hint: str = ""
) -> RenderableType:
    """What is shown, in at most about so many lines; `hint` says how to leave."""
    left = max(4, (height - 16 - len(status["hosts"])) // 2)
    return Group(
        _head(live, status, width, hint),
        _hosts(live, status, width),
        _shards(live["hot"][:left], width),
        _statements(status["slowest"][:left], width),
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


def _head(live: dict[str, Any], status: dict[str, Any], width: int, hint: str) -> RenderableType:
    clients = status["clients"] or {}
    topology = status["topology"] or {}
    facts = [
        f"{clients.get('connections', 0)} clients, {clients.get('busy', 0)} busy",
        f"{clients.get('in_transaction', 0)} in a transaction",
        f"{clients.get('waiting', 0)} wait for another topology",
        f"topology version {topology.get('version', '–')}",
        _workers(status["workers"], status["workers_wanted"] if status["ready"] else 0),
    ]
    reason = status["reason"]
    ready = Text("ready", "green") if status["ready"] else Text(reason or "not ready", "yellow")
    title = Text.assemble("shardgate ", (status["version"], "dim"), "  ", ready)
    inside = Group(Text(" · ".join(facts), "dim"), _charts(live["points"], width - 4))
    subtitle = Text(hint, "dim") if hint else None
    return Panel(
        inside, title=title, title_align="left", subtitle=subtitle, subtitle_align="right", width=width
    )


def _workers(answering: int, wanted: int) -> str:
    if answering < wanted:
        return f"ONLY {answering} of {wanted} processes answer"
    return f"{answering} process{'' if answering == 1 else 'es'}"


def _charts(points: Sequence[dict[str, Any]], width: int) -> Table:
    """What there was of late, the newest on the right."""
    table = Table.grid(padding=(0, 2))
    if not points:
        return table
    last = points[-1]
    lines: list[tuple[str, str, str, Callable[[dict[str, Any]], float]]] = [
        ("statements a second", rate(last["statements"]), "cyan", lambda one: one["statements"]),
        ("errors a second", rate(last["errors"]), "red", lambda one: one["errors"]),
        ("answered within, p95", ms(last["p95"]), "magenta", lambda one: one["p95"]),
    ]
    room = width - max(len(line[0]) for line in lines) - max(len(line[1]) for line in lines) - 4
    points = points[max(len(points) - max(min(room, _SAMPLES), 0), 0) :]
    for name, value, style, pick in lines:
        figure = Text(value, "bold", no_wrap=True)
        table.add_row(_name(name), figure, Text(spark([pick(one) for one in points]), style))
    return table


class _Row(NamedTuple):
    cells: list[Text]
    style: str = ""


def _row(*cells: str | Text, style: str = "") -> _Row:
    """Rich would read brackets in a text, as of an IPv6 address, as markup."""
    return _Row([Text(one) if isinstance(one, str) else one for one in cells], style)


def _table(
    title: str, columns: str, rows: Iterable[_Row], width: int, spare: str, longest: int = _NAME
) -> Table:
    """Of columns with `|` between. Those of figures begin with > and are on the right; the others are names.
    Where there is no room names are shortened to `longest`, and then columns in `spare` are left out, the
    first one first.
    """
    rows, headings = list(rows), columns.split("|")
    wanted = []
    for at, heading in enumerate(headings):
        widest = max([len(heading.lstrip(">")), *(row.cells[at].cell_len for row in rows)])
        wanted.append(widest if heading.startswith(">") else min(widest, longest))
    shown = list(range(len(headings)))
    for name in spare.split("|"):
        if sum(wanted[at] + 1 for at in shown) - 1 <= width:
            break
        shown.remove(headings.index(f">{name}"))
    table = Table(
        title=title, title_justify="left", title_style="bold", expand=True, box=None, pad_edge=False,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for at in shown:
        right = headings[at].startswith(">")
        table.add_column(
            headings[at].removeprefix(">") if right else _name(headings[at]),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="ellipsis",
            header_style="dim",
        )
    for row in rows:
        table.add_row(*(row.cells[at] for at in shown), style=row.style)
    return table


def _name(text: str, style: str = "") -> Text:
    """What may be shortened, and stays in its line."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _hosts(live: dict[str, Any], status: dict[str, Any], width: int) -> Table:
    rows = []
    for one in status["hosts"]:
        load = live["hosts"].get(one["host"], {})
        down = one["failures"] > 0 and not one["up"]
        state = "unreachable" if down else load.get("state") or ("up" if one["up"] else "not used yet")
        rows.append(
            _row(
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
        )
    columns = "host|state|>a second|>mean|>p95|>errors|>busy|>idle|>waiting|>limit"
    return _table("Hosts", columns, rows, width, "idle|limit|mean|busy|waiting|p95|errors|a second")


def _shards(hot: Sequence[dict[str, Any]], width: int) -> Table:
    rows = [
        _row(
            _name(f"{one['keyspace']} {one['shard']}"),
            _name(one["host"]),
            _name(one["state"] or "well"),
            rate(one["per_second"]),
            ms(one["mean"]),
            ms(one["p95"]),
            str(one["errors"]),
            str(one["running"]),
            ms(one["oldest"]),
            style=_STYLES.get(one["state"], ""),
        )
        for one in hot
    ]
    columns = "shard|host|state|>a second|>mean|>p95|>errors|>running|>oldest"
    return _table("Hot shards", columns, rows, width, "mean|running|oldest|p95|errors|a second")


def _statements(queries: Sequence[dict[str, Any]], width: int) -> Table:
    rows = []
    for one in queries:
        count = one["count"]
        rows.append(
            _row(
                _name(one["digest"]),
                f"{count:,}",
                ms(one["seconds"]),
                ms(one["seconds"] / count),
                ms(one["longest"]),
                str(one["errors"]),
                f"{one['rows']:,}",
                f"{one['shards'] / count:.3g}",
            )
        )
    columns = "statement, without its values|>count|>total|>mean|>longest|>errors|>rows|>shards"
    spare = "shards|rows|errors|longest|count|mean"
    return _table("Costliest statements", columns, rows, width, spare, _STATEMENT)
