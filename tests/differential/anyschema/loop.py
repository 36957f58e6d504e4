"""Running cases on both sides, making a difference small, and what is printed."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from proxy.errors import REGISTRY
from tests.differential.answers import Answer, Failure, Lost, ask
from tests.differential.anyschema import judge
from tests.differential.anyschema.changes import Changes
from tests.differential.anyschema.judge import Difference
from tests.differential.anyschema.more import More
from tests.differential.anyschema.places import AnyWorld
from tests.differential.anyschema.reads import Reads
from tests.differential.anyschema.steps import ID, Step
from tests.differential.anyschema.tree import fixed, form_of
from tests.differential.arena import Arena
from tests.differential.compare import contents
from tests.differential.refusals import _pattern
from tests.differential.report import show

MOST_TRIES = 250
WRITES = 0.2
MODES = (
    "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "", "HIGH_NOT_PRECEDENCE", "PAD_CHAR_TO_FULL_LENGTH",
    "IGNORE_SPACE", "STRICT_ALL_TABLES", "NO_UNSIGNED_SUBTRACTION", "ONLY_FULL_GROUP_BY", "ANSI",
)  # fmt: skip
SETTINGS = (
    "SET NAMES latin1", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET collation_connection = utf8mb4_unicode_ci",
    "SET div_precision_increment = 8", "SET group_concat_max_len = 64", "SET time_zone = '+05:30'", "SET NAMES utf8mb3",
    "SET sql_auto_is_null = 0", "SET lc_time_names = 'de_DE'", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET character_set_results = NULL", "SET @@session.sql_mode = CONCAT(@@sql_mode, ',ANSI')", "SET timestamp = 1500000000",
    "SET character_set_results = latin1", "SET optimizer_switch = 'materialization=off'", "SET autocommit = 0",
    "SET sql_big_selects = 1, max_join_size = 1000000", "SET default_week_format = 3", "SET NAMES binary",
)  # fmt: skip

_REFUSALS = {
    name: (REGISTRY[name].code, _pattern(REGISTRY[name].text))
    for name in (
        "not_supported_yet", "unroutable_write", "scatter_denied", "routing_column_update", "invalid_id",
        "partial_write", "no_open_shard", "shard_missing", "charset_refused", "gather_limit", "ddl_failed", "no_sequence",
    )
}  # fmt: skip


def refusal(failure: Failure) -> str | None:
    """The registry's name of a refusal; None for any other error."""
    for name, (code, pattern) in _REFUSALS.items():
        if failure.code == code and pattern.match(failure.message):
            return name
    return None


@dataclass(frozen=True)
class Case:
    number: int
    steps: tuple[Step, ...]

    def smaller(self) -> Iterable[Case]:
        for index in reversed(range(len(self.steps))):
            if len(self.steps) > 1:
                yield replace(self, steps=self.steps[:index] + self.steps[index + 1 :])
        for index, step in enumerate(self.steps):
            if step.twin is not None:
                continue
            for tree in step.tree.smaller():
                form = replace(form_of(tree), counted=step.form.counted)
                less = replace(step, tree=tree, form=form)
                yield replace(self, steps=(*self.steps[:index], less, *self.steps[index + 1 :]))


@dataclass
class Finding:
    case: Case
    differences: list[Difference]
    done: list[tuple[str, str, Answer | None, Answer]]
    route: str = ""


@dataclass
class Tally:
    """What a run has seen."""

    cases: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    failed: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    soft: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    ignored: int = 0


class Loop:
    """Runs the cases of a seed in an arena."""

    verify = False
    """Whether it is checked that what a case changes is undone."""

    def __init__(
        self, arena: Arena, seed: object, *, mysql: bool, tally: Tally, writes: float = WRITES
    ) -> None:
        assert isinstance(arena.world, AnyWorld)
        self.arena = arena
        self.world = arena.world
        self.seed = seed
        self.mysql = mysql
        self.tally = tally
        self.writes = writes
        self._torn = False

    def case(self, number: int) -> Case:
        rng = random.Random(f"{self.seed}:{number}")
        if rng.random() < self.writes:
            return Case(number, tuple(Changes(rng, self.world, number, mysql=self.mysql).steps()))
        if rng.random() < 0.3:
            return Case(number, tuple(More(rng, self.world, mysql=self.mysql).steps()))
        kind, tree = Reads(rng, self.world, mysql=self.mysql).statement()
        steps = [Step(tree, kind, form_of(tree))]
        if rng.random() < 0.12:
            steps.insert(0, Step(fixed(f"SET sql_mode = '{rng.choice(MODES)}'"), "set"))
        elif rng.random() < 0.1:
            steps.insert(0, Step(fixed(rng.choice(SETTINGS)), "set"))
        return Case(number, tuple(steps))

    def run(
        self,
        numbers: Iterable[int],
        *,
        shrink: bool,
        most: int,
        ignored: re.Pattern[str] | None,
        seen: Callable[[Finding], None],
    ) -> None:
        for number in numbers:
            if len(self.tally.findings) >= most:
                break
            self.tally.cases += 1
            finding = self.check(self.case(number), count=True)
            if finding is None:
                continue
            if ignored and ignored.search(text_of(finding)):
                self.tally.ignored += 1
                continue
            if shrink:
                finding = self.shrink(finding)
            self.tally.findings.append(finding)
            seen(finding)

    def check(self, case: Case, *, count: bool = False) -> Finding | None:
        """Run a case and undo what it has changed; how it differs, or None."""
        done: list[tuple[str, str, Answer | None, Answer]] = []
        self._torn = False
        tables = frozenset().union(*(one.tables for one in case.steps))
        try:
            found = self._steps(case, done, count)
            if not found and not self._torn:
                for table in sorted(tables):
                    found += [
                        Difference(one.aspect, one.detail)
                        for one in contents(table, *self.arena.contents(table))
                    ]
        except Lost as lost:
            found = [Difference("connection", str(lost))]
        finding = None
        if found:
            self.arena.reconnect()
            finding = Finding(case, found, done)
        elif any(step.kind in ("set", "transaction") for step in case.steps):
            self.arena.reconnect()
        for table in sorted(tables):
            self.arena.restore(table)
            left = contents(table, *self.arena.contents(table)) if self.verify else []
            if left:
                print(f"NOT RESTORED {table} after {[one[0] for one in done]}: {left}")
        return finding

    def _steps(
        self, case: Case, done: list[tuple[str, str, Answer | None, Answer]], count: bool
    ) -> list[Difference]:
        for step in case.steps:
            got = self.got(case, step)
            sql = self.asked(case, step)
            reason = refusal(got.error) if got.error is not None else None
            self._count(step, got, reason, count)
            if reason is not None and reason != "partial_write":
                done.append((sql, "", None, got))
                continue
            plain = sql if step.twin is None else step.twin.replace(ID, str(got.insert_id))
            expected = self.expected(case, step, got)
            done.append((sql, plain, expected, got))
            if reason == "partial_write" and expected.error is not None:
                self._torn = True  # documented: the others have done it
                return []
            if count and expected.error is not None:
                self.tally.failed[expected.error.code] += 1
            if step.twin is not None or "select" in step.kind:  # made here; that of the row read last
                got = replace(got, insert_id=expected.insert_id)
            found = self.judge(step, expected, got)
            if count:
                for one in found:
                    if one.soft:
                        self.tally.soft[one.aspect] += 1
                        self.tally.examples.setdefault("soft " + one.aspect, f"{sql}  [{one.detail[:200]}]")
            if step.tables and any(one.soft and one.aspect.startswith("error") for one in found):
                self._torn = True  # one side has written, the other has not
                return []
            found = [one for one in found if not one.soft]
            if found:
                return found
        return []

    def got(self, case: Case, step: Step) -> Answer:
        """What the proxy answers."""
        return ask(self.arena.proxy, step.sql)

    def expected(self, case: Case, step: Step, got: Answer) -> Answer:
        """What the plain server answers. `got` is the proxy's answer, with the insert id."""
        twin = step.sql if step.twin is None else step.twin.replace(ID, str(got.insert_id))
        return ask(self.arena.plain, twin)

    def asked(self, case: Case, step: Step) -> str:
        """The statement as it is shown."""
        return step.sql

    def judge(self, step: Step, expected: Answer, got: Answer) -> list[Difference]:
        """How the last two answers differ."""
        return judge.judge(step.form, expected, got)

    def _count(self, step: Step, got: Answer, reason: str | None, count: bool) -> None:
        if not count:
            return
        self.tally.statements[step.kind] += 1
        if reason is not None and got.error is not None:
            words = re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+", "…", got.error.message)[:110]
            self.tally.refused[f"{reason}: {words}"] += 1
            self.tally.examples.setdefault(f"{reason}: {words}", step.sql)

    def shrink(self, finding: Finding) -> Finding:
        """The smallest case found that differs in the same aspect."""
        aspect = finding.differences[0].aspect
        tries, progress = 0, True
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
        if finding.done:
            finding.route = self._route(finding.case.steps[len(finding.done) - 1].sql)
        return finding

    def _route(self, sql: str) -> str:
        try:
            answer = ask(self.arena.proxy, "EXPLAIN ROUTE " + sql)
        except Lost as lost:
            self.arena.reconnect()
            return f"connection lost: {lost}"
        if answer.error is not None:
            return str(answer.error)
        return "\n".join(
            "; ".join((one or b"NULL").decode("utf-8", "replace") for one in row) for row in answer.rows[:8]
        )


def text_of(finding: Finding) -> str:
    return "\n".join([*map(str, finding.differences), *(one[0] for one in finding.done)])


def describe(finding: Finding, schema: int, seed: int, world: AnyWorld) -> str:
    """One difference, with what makes it again."""
    lines = [f"--- schema {schema}, seed {seed}, case {finding.case.number}"]
    lines += [f"    {one}"[:1500] for one in finding.differences]
    for sql, *_ in finding.done[:-1]:
        lines.append(f"    before: {sql}")
    if finding.done:
        sql, plain, expected, got = finding.done[-1]
        lines.append(f"    shards: {sql}")
        if plain and plain != sql:
            lines.append(f"    plain:  {plain}")
        if expected is not None:
            lines.append(f"    expected {show(expected)[:1500]}")
        lines.append(f"    got      {show(got)[:1500]}")
        lines += ["        " + one[:600] for one in finding.route.splitlines()]
        lines += _tables(sql, world)
    return "\n".join(lines)


def _tables(sql: str, world: AnyWorld) -> Sequence[str]:
    """The definitions of the tables that a statement names."""
    found = []
    for name, model in world.models.items():
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql):
            stored = ", ".join(f"{one.name} {one.definition}" for one in world.tables[name].columns)
            found.append(f"        {model.kind} {name} in {model.keyspace}: {stored}")
    return found


def total(tally: Tally, seconds: float) -> str:
    """What a run has seen."""
    number = sum(tally.statements.values())
    lines = [f"{tally.cases} cases, {number} statements in {seconds:.1f} s"]
    lines.append("    " + ", ".join(f"{kind} {count}" for kind, count in sorted(tally.statements.items())))
    lines.append(
        "fail on both sides: " + ", ".join(f"{code} {count}" for code, count in tally.failed.most_common(20))
    )
    refused = sum(tally.refused.values())
    lines.append(f"refused: {refused} ({100 * refused / max(1, number):.1f} %)")
    for reason, count in tally.refused.most_common(25):
        lines.append(f"    {count:5d}  {reason}\n           {tally.examples[reason][:300]}")
    for aspect, count in tally.soft.most_common():
        lines.append(f"soft: {count:5d}  {aspect}\n           {tally.examples['soft ' + aspect][:500]}")
    lines.append(
        f"differences: {len(tally.findings)}" + (f", and {tally.ignored} ignored" if tally.ignored else "")
    )
    return "\n".join(lines)
