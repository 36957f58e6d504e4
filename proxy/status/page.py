"""A snapshot as the status page: one HTML document that is whole without its script, which makes it live."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from . import figures
from .snapshot import Segment, Snapshot, Statements, TopologyState

if TYPE_CHECKING:
    from jinja2 import Template

_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

#: Seconds between reloads that a reader may ask for.
REFRESHES = (0, 5, 30)


def render(taken: Snapshot, refresh: int = 0) -> str:
    """The page. `refresh`: seconds after which the browser loads it again, 0 for never."""
    count = sum(figures.total(one) for one in taken["statements"])
    cache = taken["plan_cache"]
    asked = cache["hits"] + cache["misses"] if cache else 0
    text = _template().render(
        s=taken,
        refresh=refresh,
        refreshes=REFRESHES,
        hues=hues([one["host"] for one in taken["hosts"]]),
        count=count,
        per_second=count / max(1.0, taken["uptime"]),
        hit_rate=cache["hits"] / asked if cache and asked else 0.0,
        mean=figures.mean,
        quantile=figures.quantile,
        within=figures.within,
        total=figures.total,
    )
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)  # somebody may look at it in a terminal


def refresh_of(text: str) -> int:
    """The reload interval in a request's query, 0 when it is none of those offered."""
    return next((seconds for seconds in REFRESHES if str(seconds) == text), 0)


def hues(hosts: list[str]) -> dict[str, int]:
    """A hue in degrees for each host; neighbours in the list lie far apart (steps of the golden angle)."""
    return {host: round(212 + index * 137.508) % 360 for index, host in enumerate(hosts)}


@cache
def script() -> str:
    """What makes the page live: charts, the map's heat, columns to sort by."""
    return files("proxy.status").joinpath("templates/status.js").read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # 2 MB, when somebody looks at the page

    environment = Environment(
        loader=PackageLoader("proxy.status"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for show in _FILTERS:
        environment.filters[show.__name__] = show
    return environment.get_template("status.html")


def number(value: float) -> str:
    """A count with thin spaces between thousands."""
    return f"{int(value):,}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter: `3 d 4 h`, `12 min 5 s`."""
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= length or (unit == "s" and not parts):
            parts.append(f"{left // length} {unit}")
            left %= length
    return " ".join(parts[:2])


def latency(seconds: float) -> str:
    """A latency with a unit that fits."""
    if seconds <= 0:
        return "–"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else duration(seconds)


def cpu(seconds: float) -> str:
    """CPU time: exact while it is short."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


def rate(per_second: float) -> str:
    """A rate with as many digits as matter."""
    return number(per_second) if per_second >= 100 else f"{per_second:.2g}"


def percent(part: float) -> str:
    """A share of 0 to 1 as per cent; only a whole one is 100."""
    return f"{min(part * 100, 99.9):.1f} %" if part < 1 else "100 %"


def share(pair: tuple[float, float]) -> str:
    """Part and whole as a CSS width."""
    part, whole = pair
    return f"{100 * part / whole:.1f}%" if whole else "0"


def server(version: str) -> str:
    """A server's version as people know it: MariaDB greets with 5.5.5- before it."""
    return version.removeprefix("5.5.5-") or "–"


def moment(when: float) -> str:
    """A time as UTC."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plural(count: int, one: str, many: str) -> str:
    """A count with its noun."""
    return f"{number(count)} {one if count == 1 else many}"


def changes(topology: TopologyState) -> str:
    """How often the topology changed, and how often somebody tried in vain."""
    text = plural(topology["changes"], "change", "changes")
    return f"{text}, {number(topology['refused'])} refused" if topology["refused"] else text


def outcomes(statements: Statements) -> list[tuple[str, int]]:
    """Outcomes and counts: ok first, then the most frequent."""
    return sorted(statements["outcomes"].items(), key=lambda one: (one[0] != "ok", -one[1], one[0]))


def size(value: float) -> str:
    """Bytes with a unit that fits."""
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def title(segment: Segment) -> str:
    """What hovering over a segment says."""
    first, last = segment["first"], segment["last"]
    if first is None or last is None:
        parts = [f"on {segment['host']}"]
    elif first == last:
        parts = [f"shard {first} on {segment['host']}"]
    else:
        parts = [f"shards {first}–{last} ({last - first + 1}) on {segment['host']}"]
    if segment["slave"]:
        parts.append(f"slave {segment['slave']}")
    parts.append(segment["state"])
    if first is not None:
        parts.append("open for new objects" if segment["open"] else "closed for new objects")
    return ", ".join(parts)


_FILTERS = (
    changes, cpu, duration, latency, moment, number, outcomes, percent, plural, rate, server, share, size,
    title,
)  # fmt: skip
