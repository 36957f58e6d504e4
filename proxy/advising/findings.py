"""What there is to say of the statements of a log: kinds by how they would run, remedies, and which changes
would help most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from rewriter.advice.changes import Change, Trials
from rewriter.advice.cost import RANK, Cost, Way
from rewriter.advice.remedies import Advice, advise

from .tally import Counted, Tally

MAX_ADVISED: Final = 1000
"""For so many kinds of statements, those that cost most, remedies are looked for."""


class Group(Enum):
    """How statements would run: a title, and what that means. From the worst to the best."""

    REFUSED = ("refused", "the application would get an error")
    GATHER = ("gathered", "rows are copied to one server, which runs the statement")
    SCATTER = ("every shard", "nothing tells which shards have the rows")
    SEVERAL = ("some shards", "one for each value of a list or row, or two reads one after the other")
    ALL = ("all hosts at once", "definitions, and writes to reference tables")
    ONE = ("one shard", "an ID or a key tells which")
    HOST = ("one host", "tables that are not sharded")
    PROXY = ("the proxy", "answered without a server, or for the session only")


GROUPS: Final = {
    Way.REFUSED: Group.REFUSED,
    Way.GATHER: Group.GATHER,
    Way.SCATTER: Group.SCATTER,
    Way.LIST: Group.SEVERAL,
    Way.JOIN: Group.SEVERAL,
    Way.EVERYWHERE: Group.ALL,
    Way.DEFINITION: Group.ALL,
    Way.ONE: Group.ONE,
    Way.POINT: Group.ONE,
    Way.HOST: Group.HOST,
    Way.PROXY: Group.PROXY,
}


@dataclass(frozen=True, eq=False)
class Finding:
    """A kind of statement and what would route it."""

    counted: Counted
    advice: tuple[Advice, ...] = ()

    @property
    def group(self) -> Group:
        return GROUPS[self.counted.cost.way]


@dataclass(eq=False)
class Helps:
    """A change of the schema, and what it would be worth. `to`: what the worst of its statements costs then.
    `sql`: some need to be written otherwise, too.
    """

    change: Change
    kinds: int = 0
    executions: int = 0
    saved: float = 0.0
    to: Cost | None = None
    sql: bool = False


@dataclass(eq=False)
class Findings:
    """`of`: the kinds of each group, those that cost most first. `changes`: those that help most first."""

    of: dict[Group, list[Finding]] = field(default_factory=lambda: {group: [] for group in Group})
    kinds: dict[Group, int] = field(default_factory=lambda: dict.fromkeys(Group, 0))
    executions: dict[Group, int] = field(default_factory=lambda: dict.fromkeys(Group, 0))
    seconds: dict[Group, float] = field(default_factory=lambda: dict.fromkeys(Group, 0.0))
    changes: list[Helps] = field(default_factory=list)
    mended: int = 0
    """Executions of statements for which there is a remedy that was tried."""
    estimated: bool = False
    timed: bool = False


def findings(tally: Tally) -> Findings:
    """What there is to say."""
    found = Findings()
    trials = Trials(tally.rewriter)
    ordered = sorted(tally.kinds.values(), key=lambda one: (-one.weight, one.digest))
    advised = [one for one in ordered if not one.cost.good][:MAX_ADVISED]
    remedies = {one: tuple(advise(trials, one.sample, one.env, one.cost)) for one in advised}
    helps: dict[Change, Helps] = {}
    for one in ordered:
        finding = Finding(one, remedies.get(one, ()))
        group = finding.group
        found.of[group].append(finding)
        found.kinds[group] += 1
        found.executions[group] += one.count
        found.seconds[group] += one.seconds
        found.estimated = found.estimated or one.cost.estimated
        found.timed = found.timed or one.timed > 0
        if any(each.to is not None and each.to.good for each in finding.advice):
            found.mended += one.count
        best = next((each for each in finding.advice if each.change is not None), None)
        if best is not None and best.change is not None and best.to is not None:
            _help(helps, one, best, best.change, best.to)
    for way, count in tally.forgotten.items():
        found.executions[GROUPS[way]] += count
        found.kinds[GROUPS[way]] += tally.forgotten_kinds[way]
    found.changes = sorted(helps.values(), key=lambda one: (-one.saved, -one.executions, one.change.title))
    return found


def _help(helps: dict[Change, Helps], one: Counted, advice: Advice, change: Change, to: Cost) -> None:
    helped = helps.setdefault(change, Helps(change))
    helped.kinds += 1
    helped.executions += one.count
    helped.saved += max(one.work - to.shards * one.count, 0.0)
    helped.sql = helped.sql or bool(advice.sql)
    if helped.to is None or RANK[to.way] > RANK[helped.to.way]:
        helped.to = to
