"""Plots as SVG: some series over one axis, each point with its median and how far the rounds lay apart.

A line plot of a few dozen points, with logarithmic axes and whiskers, readable on light and dark pages; there
is no more to it, so that no plotting library is needed. Every number drawn is in a `<title>` as well, which
browsers show beside the mouse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 596, 64, 336
"""The field; beside it are the names of the series, below it the axis and the notes."""
LINE: Final = 15
"""Pixels from one line of text to the next."""

COLOURS: Final = {
    "direct": ("#6b7280", "#9ca3af"),
    "HAProxy": ("#0072b2", "#56b4e9"),
    "shardgate": ("#c2410c", "#fb923c"),
}
"""On light and on dark ground, told apart by those who do not see all colours; others take from `SPARE`."""
SPARE: Final = (("#007a5a", "#34d399"), ("#8e44ad", "#d6a4e8"), ("#8a6d00", "#e3c44a"))

_STYLE: Final = """\
svg{{font:13px system-ui,sans-serif;background:#fff}}
.ground{{fill:#fff}}text{{fill:#1f2937}}.quiet{{fill:#5b6472;font-size:11px}}.title{{font-size:15px;font-weight:600}}
.grid{{stroke:#e5e7eb}}.axis{{stroke:#6b7280}}path{{fill:none;stroke-width:2}}.whisker{{stroke-width:1.2}}
{light}
@media (prefers-color-scheme:dark){{
svg{{background:#0d1117}}.ground{{fill:#0d1117}}text{{fill:#e6edf3}}.quiet{{fill:#a0a8b4}}
.grid{{stroke:#262d37}}.axis{{stroke:#8b949e}}
{dark}}}"""


@dataclass(frozen=True)
class Point:
    """A median with the least and the greatest of the rounds."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """One line, its points by ascending x."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Plot:
    """What is drawn. The labels of the axes hold the units; `notes` stand below, a line each."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    log_x: bool = True
    log_y: bool = False


def svg(plot: Plot) -> str:
    """The document. ValueError when there is no point, or one that a logarithmic axis cannot show."""
    points = [point for one in plot.series for point in one.points]
    if not points:
        raise ValueError(f"{plot.title}: nothing to draw")
    across = _Axis.over((one.x for one in points), LEFT, RIGHT, log=plot.log_x, from_zero=False)
    least, most = (one.low for one in points), (one.high for one in points)
    up = _Axis.over((*least, *most), BOTTOM, TOP, log=plot.log_y, from_zero=True)
    parts = [*_grid(plot, across, up, sorted({one.x for one in points})), *_lines(plot, across, up)]
    colours = [_colour(plot, number) for number in range(len(plot.series))]
    style = _STYLE.format(light=_rules(colours, 0), dark=_rules(colours, 1))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img">'
    )
    about = f"<title>{escape(plot.title)}</title><desc>{escape('; '.join(plot.notes))}</desc>"
    ground = f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join((head, about, f"<style>{style}</style>", ground, *parts, "</svg>", ""))


@dataclass(frozen=True)
class _Axis:
    """Values from `first` to `last` on pixels from `start` to `end`."""

    first: float
    last: float
    start: float
    end: float
    log: bool

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, log: bool, from_zero: bool) -> _Axis:
        known = list(values)
        low, high = min(known), max(known)
        if log and low <= 0:
            raise ValueError(f"{low:g} has no place on a logarithmic axis")
        if log and from_zero:  # steps of 1, 2, 5 around all values
            low, high = _round(low, up=False), _round(high, up=True)
        elif from_zero:
            low, high = 0.0, high * 1.05 or 1.0
        return cls(low, high, start, end, log)

    def at(self, value: float) -> float:
        scale = math.log if self.log else float
        first, last = scale(self.first), scale(self.last)
        share = (scale(value) - first) / (last - first) if last > first else 0.5
        return self.start + share * (self.end - self.start)

    def steps(self) -> list[float]:
        """Round values for the grid's lines."""
        if self.log:
            found, value = [], self.first
            while value <= self.last * 1.0001:
                found.append(value)
                value = _round(value * 1.5, up=True)
            return found
        step = _round((self.last - self.first) / 5, up=True)
        return [self.first + step * n for n in range(int((self.last - self.first) / step * 1.0001) + 1)]


def _round(value: float, *, up: bool) -> float:
    """The next of …, 0.5, 1, 2, 5, 10, …, which may be the value."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [power * one for one in (1, 2, 5, 10)]
    if up:
        return next(one for one in steps if one >= value * 0.9999)
    return next(one for one in reversed(steps) if one <= value * 1.0001)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def shown(value: float) -> str:
    """65,536; 200; 1.5; 0.05."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _grid(plot: Plot, across: _Axis, up: _Axis, values: Sequence[float]) -> list[str]:
    parts = [_text(16, 26, plot.title, ' class="title"'), _text(16, 48, plot.y_label, ' class="quiet"')]
    for value in up.steps():
        y = up.at(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 8, y + 4, shown(value), ' class="quiet" text-anchor="end"'))
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
    for value in values:
        x = across.at(value)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{BOTTOM}" y2="{BOTTOM + 5}"/>')
        parts.append(_text(x, BOTTOM + 19, shown(value), ' class="quiet" text-anchor="middle"'))
    parts.append(_text((LEFT + RIGHT) / 2, BOTTOM + 37, plot.x_label, ' text-anchor="middle"'))
    below = BOTTOM + 56
    parts += [_text(16, below + LINE * n, note, ' class="quiet"') for n, note in enumerate(plot.notes)]
    return parts


def _lines(plot: Plot, across: _Axis, up: _Axis) -> list[str]:
    parts = []
    for number, series in enumerate(plot.series):
        way = " L".join(f"{across.at(one.x):.1f} {up.at(one.y):.1f}" for one in series.points)
        parts += [f'<g class="s{number}">', f'<path d="M{way}"/>']
        for one in series.points:
            x, said = across.at(one.x), f"{shown(one.y)} ({shown(one.low)}–{shown(one.high)})"
            extent = f'y1="{up.at(one.low):.1f}" y2="{up.at(one.high):.1f}"'
            parts.append(f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" {extent}/>')
            told = f"<title>{escape(series.name)}, {shown(one.x)}: {said}</title>"
            parts.append(f'<circle cx="{x:.1f}" cy="{up.at(one.y):.1f}" r="3.5">{told}</circle>')
        parts.append("</g>")
    ends = sorted((up.at(one.points[-1].y), number) for number, one in enumerate(plot.series))
    for place, (_, number) in zip(_apart([y for y, _ in ends]), ends, strict=True):
        last = across.at(plot.series[number].points[-1].x)
        parts.append(_text(last + 9, place + 4, plot.series[number].name, f' class="n{number}"'))
    return parts


def _apart(places: Sequence[float]) -> list[float]:
    """Ascending places, moved down where they are nearer than a line, and all up when the last is too low."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + LINE) if moved else place)
    over = max(0.0, moved[-1] - BOTTOM) if moved else 0.0
    return [place - over for place in moved]


def _colour(plot: Plot, number: int) -> tuple[str, str]:
    named = [one.name for one in plot.series]
    if named[number] in COLOURS:
        return COLOURS[named[number]]
    spare = [name for name in named if name not in COLOURS]
    return SPARE[spare.index(named[number]) % len(SPARE)]


def _rules(colours: Sequence[tuple[str, str]], which: int) -> str:
    """The colours of the series on light (0) or on dark (1) ground."""
    lines = []
    for number, pair in enumerate(colours):
        lines.append(f".s{number} path,.s{number} line{{stroke:{pair[which]}}}")
        lines.append(f".s{number} circle,text.n{number}{{fill:{pair[which]}}}")
    return "\n".join(lines)
