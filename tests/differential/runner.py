"""Running cases on both sides, and making a difference small."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tests.differential import compare, refusals
from tests.differential.answers import Answer, Lost, RawRow, ask
from tests.differential.arena import Arena, Contents
from tests.differential.catalog import Catalog
from tests.differential.compare import Difference
from tests.differential.parts import ID, Case, Expr, Item, Select, Statement
from tests.differential.routes import SHARD_SHIFT, TYPE_SHIFT

MOST_TRIES = 300  # at making one difference small


@dataclass(frozen=True)
class Step:
    """A statement as it was run; `expected` is None where the plain server was not asked."""

    statement: Statement
    plain_sql: str
    expected: Answer | None
    got: Answer


@dataclass(frozen=True)
class Finding:
    """A case that differs: how, and all that was run up to there."""

    case: Case
    differences: tuple[Difference, ...]
    steps: tuple[Step, ...]
    route: str = ""

    @property
    def text(self) -> str:
        """Its differences and its last statement."""
        statement = self.steps[-1].statement.sql if self.steps else ""
        return "\n".join([*map(str, self.differences), statement])


@dataclass
class Summary:
    """What a run has seen. `refused` counts (reason, features) of documented refusals."""

    cases: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    ignored: int = 0


class Cases(Protocol):
    """What makes cases, each from its number."""

    @property
    def catalog(self) -> Catalog:
        """What is known of the tables."""

    def case(self, number: int) -> Case:
        """The case of that number, always the same."""


class Runner:
    """Runs the cases of a generator in an arena."""

    def __init__(self, arena: Arena, generator: Cases) -> None:
        self.arena = arena
        self.generator = generator
        self.summary = Summary()

    def run(
        self,
        numbers: Iterable[int],
        *,
        shrink: bool = True,
        most: int = 20,
        ignored: re.Pattern[str] | None = None,
        seen: Callable[[Finding], None] = lambda _: None,
    ) -> Summary:
        """Run these cases, but no more after `most` findings; `seen` is told of each finding at once.

        Differences that look like `ignored` are only counted.
        """
        for number in numbers:
            if len(self.summary.findings) >= most:
                break
            case = self.generator.case(number)
            finding = self.check(case, count=True)
            self.summary.cases += 1
            if finding is not None and ignored and ignored.search(finding.text):
                self.summary.ignored += 1
            elif finding is not None:
                finding = self.shrink(finding) if shrink else finding
                self.summary.findings.append(finding)
                seen(finding)
        return self.summary

    # --- one case --------------------------------------------------------------------------------

    def check(self, case: Case, *, count: bool = False) -> Finding | None:
        """Run a case and undo what it has changed; how it differs, or None."""
        steps: list[Step] = []
        now: dict[str, Contents] = {}
        try:
            found = self._statements(case, steps, count=count) or self._tables(case, now)
        except Lost as lost:
            found = [Difference("connection", str(lost))]
        finding = None
        if found:
            self.arena.reconnect()
            finding = Finding(case, tuple(found), tuple(steps), self._route(steps))
            now = {}  # without what was not committed
        for table in sorted(case.tables):
            self.arena.restore(table, now.get(table))
        return finding

    def _statements(self, case: Case, steps: list[Step], *, count: bool) -> list[Difference]:
        for statement in case.statements:
            found = self._statement(statement, steps)
            step = steps[-1]
            if count:
                self._count(step)
            if found:
                return found
            if _torn(step):
                self.arena.reconnect()
                for table in sorted(case.tables):
                    self.arena.restore(table)
                return []
        return []

    def _tables(self, case: Case, now: dict[str, Contents]) -> list[Difference]:
        """How the tables differ; `now` gets what they hold."""
        found = []
        for table in sorted(case.tables):
            now[table] = self.arena.contents(table)
            found += compare.contents(table, *now[table])
        return found

    def _statement(self, statement: Statement, steps: list[Step]) -> list[Difference]:
        """Run one statement on the proxy and, unless it was refused, on the plain server."""
        got = ask(self.arena.proxy, statement.sql)
        reason = refusals.refusal(got.error) if got.error is not None else None
        if reason is not None and reason != "partial_write":
            steps.append(Step(statement, "", None, got))
            if reason in refusals.allowed(statement.features):
                return []
            return [Difference("refused", f"{reason}: {got.error}")]
        if statement.twin == "":
            steps.append(Step(statement, "", None, got))
            return [Difference("accepted", "what can be no row of the table")]
        plain_sql = statement.sql
        found: list[Difference] = []
        if statement.twin is not None:
            plain_sql = statement.twin.replace(ID, str(got.insert_id))
            found = self._placed(statement, got)
        expected = ask(self.arena.plain, plain_sql)
        got = self._same_texts(statement, expected, got)
        step = Step(statement, plain_sql, expected, got)
        steps.append(step)
        if _torn(step):
            return []
        return found + compare.compare(statement, expected, got, lambda: self._ranked(statement))

    def _placed(self, statement: Statement, got: Answer) -> list[Difference]:
        """What must hold of an ID that shardgate has made."""
        if got.error is not None:
            return []
        id, table = got.insert_id, self.generator.catalog.tables[statement.made or ""]
        found = []
        if id >> TYPE_SHIFT & 0x3FF != table.type or id >> SHARD_SHIFT not in self.generator.catalog.shards:
            found.append(Difference("insert id", f"{id} is no ID of {table.name}"))
        if statement.near is not None and id >> SHARD_SHIFT != statement.near >> SHARD_SHIFT:
            found.append(Difference("colocation", f"{id} is not on the shard of {statement.near}"))
        asked = [ask(side, "SELECT LAST_INSERT_ID()") for side in (self.arena.plain, self.arena.proxy)]
        if asked[1].rows != ((str(id).encode(),),):
            found.append(Difference("LAST_INSERT_ID()", f"expected {id}, got {asked[1].rows}"))
        expected, said = (replace(one, rows=()) for one in asked)
        return found + compare.compare(Statement("", ""), expected, said, lambda: None)

    def _ranked(self, statement: Statement) -> Sequence[RawRow] | None:
        assert statement.select is not None
        answer = ask(self.arena.plain, statement.select.ranked())
        return None if answer.error is not None else answer.rows

    def _same_texts(self, statement: Statement, expected: Answer, got: Answer) -> Answer:
        """`got` with the plain server's choice where MIN or MAX chose another one of equal texts."""
        select = statement.select
        if select is None or len(expected.rows) != 1 or len(got.rows) != 1 or expected.rows == got.rows:
            return got
        row = list(got.rows[0])
        for index in select.texts:
            mine, theirs = row[index], expected.rows[0][index]
            if (
                mine is not None
                and theirs is not None
                and mine != theirs
                and self._equal(select, index, mine)
            ):
                row[index] = theirs
        return replace(got, rows=(tuple(row),))

    def _equal(self, select: Select, index: int, text: bytes) -> bool:
        """Whether the aggregate equals `text` and `text` is one of the values, for the plain server."""
        whole = select.items[index].expression
        inner = whole.parts[1]
        assert isinstance(inner, Expr)
        hexed = text.hex()
        same = Expr((whole, f" <=> CONVERT(x'{hexed}' USING utf8mb4)"), whole.family)
        among = Expr(("MAX(HEX(CONVERT(", inner, f" USING utf8mb4)) = '{hexed.upper()}')"), whole.family)
        answer = ask(self.arena.plain, replace(select, items=(Item(same), Item(among))).sql)
        return answer.rows == ((b"1", b"1"),)

    def _count(self, step: Step) -> None:
        kind = step.statement.kind
        self.summary.statements[kind] += 1
        if step.expected is not None and step.expected.error is not None:
            self.summary.failed[kind] += 1
        if step.expected is None and step.got.error is not None:
            reason = refusals.refusal(step.got.error) or ""
            self.summary.refused[reason, ", ".join(sorted(step.statement.features))] += 1

    def _route(self, steps: Sequence[Step]) -> str:
        """EXPLAIN ROUTE of the last statement."""
        if not steps:
            return ""
        try:
            answer = ask(self.arena.proxy, "EXPLAIN ROUTE " + steps[-1].statement.sql)
        except Lost as lost:
            self.arena.reconnect()
            return f"connection lost: {lost}"
        if answer.error is not None:
            return str(answer.error)
        names = [one.name.decode() for one in answer.columns]
        lines = []
        for row in answer.rows[:6]:
            texts = ((value or b"NULL").decode("utf-8", "replace") for value in row)
            lines.append("; ".join(f"{name}={text}" for name, text in zip(names, texts, strict=True)))
        return "\n".join(lines)

    # --- making it small -------------------------------------------------------------------------

    def shrink(self, finding: Finding) -> Finding:
        """The smallest case found that differs in the same aspect."""
        aspect = finding.differences[0].aspect
        tries = 0
        progress = True
        while progress and tries < MOST_TRIES:
            progress = False
            for simpler in finding.case.smaller():
                tries += 1
                found = self.check(simpler)
                if found is not None and found.differences[0].aspect == aspect:
                    finding, progress = found, True
                    break
                if tries >= MOST_TRIES:
                    break
        return finding


def _torn(step: Step) -> bool:
    """A write that failed on one shard when others had done it: documented, and the end of the case."""
    error = step.got.error
    failed = step.expected is not None and step.expected.error is not None
    return error is not None and failed and refusals.refusal(error) == "partial_write"
