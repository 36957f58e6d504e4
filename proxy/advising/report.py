"""What `shardgate advise` prints: a summary, the changes that help most, and what costs most."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from proxy.errors import error_lines
from proxy.printable import printable
from rewriter.advice.cost import Way

from .findings import Finding, Findings, Group, Helps
from .tally import Counted, Tally
from .words import count, mean, seconds, size


class Line(NamedTuple):
    """A line and how it is printed."""

    text: str = ""
    style: str = ""


class About(NamedTuple):
    """The log that was read."""

    name: str
    format: str
    size: int
    version: str = ""


_SHOWN = (Group.REFUSED, Group.GATHER, Group.SCATTER)
_ORDER = (
    *(Group.ONE, Group.HOST, Group.PROXY, Group.SEVERAL, Group.ALL),
    *(Group.SCATTER, Group.GATHER, Group.REFUSED),
)
_STYLES = {Group.REFUSED: "bold red", Group.GATHER: "bold yellow", Group.SCATTER: "bold yellow"}
_LONGEST = 400
_WHITE = re.compile(r"\s")


class Report:
    """Makes the lines. `width` of the terminal; at most `limit` statements of a group, `everything`: of the
    others, too.
    """

    def __init__(self, width: int, limit: int, *, everything: bool) -> None:
        self._width = max(width, 40)
        self._limit = limit
        self._everything = everything

    def lines(self, about: About, tally: Tally, found: Findings, skipped: dict[str, int]) -> Iterator[Line]:
        """All of it."""
        yield from self._summary(about, tally, found, skipped)
        if found.changes:
            yield Line()
            yield Line("What would help most", "bold")
            for number, one in enumerate(found.changes[: self._limit], 1):
                yield from self._change(number, one)
        for group in Group:
            if found.of[group] and (group in _SHOWN or self._everything):
                yield from self._group(group, found)

    def _wrapped(self, text: str, first: str, then: str, style: str = "") -> Iterator[Line]:
        for line in textwrap.wrap(
            printable(_WHITE.sub(" ", text)),
            self._width - 1,
            initial_indent=first,
            subsequent_indent=then,
            break_on_hyphens=False,
            break_long_words=True,
        ):
            yield Line(line, style)

    # what there is

    def _summary(
        self, about: About, tally: Tally, found: Findings, skipped: dict[str, int]
    ) -> Iterator[Line]:
        kinds = sum(found.kinds.values())
        log = f"{about.name}: {about.format}, {size(about.size)}"
        yield from self._wrapped(log + (f", of {about.version}" if about.version else ""), "", "  ", "dim")
        told = [
            f"{found.kinds[group]:,} {_verb(group, found.kinds[group])}"
            for group in _ORDER
            if found.kinds[group]
        ]
        text = f"{count(kinds, 'kind')} of statements, {count(tally.statements, 'execution')}"
        yield from self._wrapped(f"{text}: {', '.join(told)}." if told else f"{text}.", "", "  ", "bold")
        yield Line()
        most = max([len("executions"), *(len(f"{one:,}") for one in found.executions.values())])
        timed = f"  {'time':>8}" if found.timed else ""
        yield Line(f"  {'kinds':>6}  {'executions':>{most}}  {'share':>6}{timed}", "dim")
        for group in Group:
            if not found.kinds[group]:
                continue
            share = 100 * found.executions[group] / max(tally.statements, 1)
            took = f"  {seconds(found.seconds[group]):>8}" if found.timed else ""
            start = f"  {found.kinds[group]:>6,}  {found.executions[group]:>{most},}  {share:5.1f}%{took}  "
            title, meaning = group.value
            line = f"{start}{title}: {meaning}"
            yield Line(line if len(line) < self._width else start + title, _STYLES.get(group, ""))
        yield from self._notes(found, skipped, tally)

    def _notes(self, found: Findings, skipped: dict[str, int], tally: Tally) -> Iterator[Line]:
        bad = sum(found.executions[group] for group in _SHOWN)
        if bad and found.mended:
            yield Line()
            text = (
                f"With what is advised below, {found.mended:,} of the {bad:,} executions that scatter, are "
                "gathered or refused would go to one shard, or to few."
            )
            yield from self._wrapped(text, "", "  ", "bold")
        notes = [f"Not looked at: {what}: {number:,}." for what, number in sorted(skipped.items()) if number]
        if found.estimated:
            notes.append(
                "IDs are those of an application that is not sharded yet: each one is counted as if it were "
                "on a shard of its own."
            )
        forgotten = sum(tally.forgotten_kinds.values())
        if forgotten:
            notes.append(f"Of {count(forgotten, 'kind')} that came seldom only the numbers are told.")
        for text in notes:
            yield from self._wrapped(text, "  ", "  ", "dim")

    def _change(self, number: int, one: Helps) -> Iterator[Line]:
        then = "" if one.to is None else f", then {one.to.words}"
        again = ", and other statements" if one.sql else ""
        worth = f"{count(one.kinds, 'kind')}, {count(one.executions, 'execution')}"
        text = f"{one.change.title}{again}: {worth}{then}"
        yield from self._wrapped(text, f"  {number}. ", "     ")
        for line in one.change.lines:
            yield from self._wrapped(line, "       ", "         ", "cyan")

    # statements

    def _group(self, group: Group, found: Findings) -> Iterator[Line]:
        title, meaning = group.value
        yield Line()
        yield from self._wrapped(f"{title.capitalize()}: {meaning}", "", "  ", _STYLES.get(group, "bold"))
        shown = found.of[group][: self._limit]
        for finding in shown:
            yield from self._finding(finding)
        left = len(found.of[group]) - len(shown)
        if left:
            yield Line(f"  … and {count(left, 'kind')} more (--limit)", "dim")

    def _finding(self, finding: Finding) -> Iterator[Line]:
        one = finding.counted
        text = one.digest if len(one.digest) <= _LONGEST else one.digest[:_LONGEST] + " …"
        yield Line()
        yield from self._wrapped(text, "  ", "    ")
        yield from self._wrapped(self._figures(one), "      ", "      ", "dim")
        if one.cost.error is not None:
            for line in error_lines(one.cost.error.name, one.cost.error.arguments):
                yield from self._wrapped(line, "      ", "      ", "red")
        for advice in finding.advice:
            to = "" if advice.to is None else f" ({advice.to.words})"
            yield from self._wrapped(advice.text + to, "    → ", "      ", "green")
            lines = advice.change.lines if advice.change is not None else ()
            for line in (*lines, *(f"{sql};" for sql in advice.sql)):
                yield from self._wrapped(line, "        ", "          ", "cyan")

    def _figures(self, one: Counted) -> str:
        parts = [count(one.count, "time")]
        if one.timed:
            parts.append(f"{seconds(one.seconds)} in all, {seconds(one.seconds / one.timed)} each")
        if one.cost.shards and one.cost.way not in ("definition",):
            what = "read" if one.cost.way is Way.GATHER else "shard"
            each = f"{mean(one.shards)} {what}{'' if mean(one.shards) == '1' else 's'}"
            parts.append(f"{each} each, {one.work:,.0f} in all")
        if one.cost.pieces:
            parts.append("all rows of " + ", ".join(one.cost.pieces) + " are asked for")
        if one.timed and one.examined:
            parts.append(f"{one.examined / one.timed:,.0f} rows examined each")
        if one.database is not None:
            parts.append(f"in {one.database}")
        return " · ".join(parts)


def _verb(group: Group, kinds: int) -> str:
    one = kinds == 1
    return {
        Group.PROXY: "needs no server" if one else "need no server",
        Group.ALL: "goes to all hosts" if one else "go to all hosts",
        Group.ONE: "goes to one shard" if one else "go to one shard",
        Group.HOST: "goes to one host" if one else "go to one host",
        Group.SEVERAL: "goes to some shards" if one else "go to some shards",
        Group.SCATTER: "scatters" if one else "scatter",
        Group.GATHER: "is gathered" if one else "are gathered",
        Group.REFUSED: "is refused" if one else "are refused",
    }[group]
