"""``python -m bench.misses``: the CPU time of planning without the cache, with two readers and with one.

The statements are those of the tests (`tests/rewriter/corpus.py`), planned for the demo's schema. Each is
planned in turn with the second reader and without it, round after round in one process, so that what else
happens on the machine hits both alike; a statement's cost is the median of its rounds, in CPU time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from statistics import mean, median, quantiles
from typing import Annotated, Final, NamedTuple
from unittest.mock import patch

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rewriter.env import Env
from rewriter.planner import Rewriter, lift, not_plain
from rewriter.text.tokens import Source
from rewriter.tree.start import Loaded, load
from rewriter.tree.tree import Tree
from tests.rewriter.corpus import statements
from tests.rewriter.support import rewriter

AIM: Final = 0.6
"""Milliseconds that the second reader may add, at the median of the statements that it reads."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)


class Miss(NamedTuple):
    """One statement: milliseconds of CPU with the second reader and without, and whether it was asked."""

    sql: str
    alone: float
    both: float
    read: bool

    @property
    def more(self) -> float:
        """What the second reader adds."""
        return self.both - self.alone


class _Reading:
    """Switches the second reader on and off, and notes whether it was asked for a tree."""

    def __init__(self) -> None:
        found = load().read
        if found is None:
            raise typer.BadParameter(f"there is no second reader: {load().why_not}")
        self._read: Callable[[Source, Env], Tree] = found
        self.on = True
        self.asked = False

    def _reads(self, source: Source, env: Env) -> Tree:
        self.asked = True
        return self._read(source, env)

    def load(self) -> Loaded:
        """Stands for `rewriter.tree.start.load`."""
        return Loaded(self._reads if self.on else None)


def plan(planner: Rewriter, sql: bytes, env: Env) -> float:
    """Plan a statement as on a miss. Milliseconds of CPU."""
    begun = time.process_time_ns()
    if not_plain(sql, env) is None:
        planner.make(lift(sql, env), env)
    return (time.process_time_ns() - begun) / 1e6


def measure(corpus: Sequence[tuple[str, Env]], rounds: int) -> list[Miss]:
    """Plan every statement so often each way."""
    planner, reading, found = rewriter(), _Reading(), []
    with patch("rewriter.tree.second.load", reading.load):
        for number, (sql, env) in enumerate(corpus):
            text = sql.encode("utf-8", "surrogateescape")
            times: dict[bool, list[float]] = {True: [], False: []}
            reading.asked = False
            for turn in range(-2, 2 * rounds):  # one of each kind first that does not count
                on = (turn + number + turn // 2) % 2 == 0
                reading.on = on
                cost = plan(planner, text, env)
                if turn >= 0:
                    times[on].append(cost)
            found.append(Miss(sql, median(times[False]), median(times[True]), reading.asked))
    return found


def _spread(values: Sequence[float]) -> list[str]:
    """The median, two percentiles and the mean, for a table."""
    cuts = quantiles(values, n=100, method="inclusive")
    return [f"{one:.2f}" for one in (cuts[49], cuts[89], cuts[98], mean(values))]


def table(found: Sequence[Miss]) -> Table:
    """What was measured: of all statements, and of those that the second reader was asked for."""
    shown = Table(title="CPU time of a miss, ms", title_justify="left", title_style="bold")
    for name in ("statements", "number", "planned"):
        shown.add_column(name, justify="right" if name == "number" else "left")
    for name in ("median", "p90", "p99", "mean"):
        shown.add_column(name, justify="right")
    groups = {"all": found, "with a tree": [one for one in found if one.read]}
    for name, some in groups.items():
        ways = {"by one reader": "alone", "by two": "both", "difference": "more"}
        for label, attribute in ways.items():
            values = [getattr(one, attribute) for one in some]
            shown.add_row(name, str(len(some)), label, *_spread(values))
            name = ""
    return shown


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each statement is planned each way.")] = 9,
    slowest: Annotated[int, typer.Option(help="Show so many statements with the largest difference.")] = 0,
) -> None:
    """Measure what planning costs without the cache, with the second reader and without it."""
    corpus = statements()
    gc.freeze()  # as the proxy does when it has started
    gc.set_threshold(20_000, 20, 20)
    found = measure(corpus, rounds)
    console.print(table(found))
    console.print(f"{AIM} ms more at the median of those with a tree is the aim")
    for one in sorted(found, key=lambda one: -one.more)[:slowest]:
        console.print(f"{one.more:6.2f}  {escape(one.sql)}")


if __name__ == "__main__":
    app()
