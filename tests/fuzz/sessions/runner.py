"""Cases: several sessions on both sides, every answer compared, and a failing case made small."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from random import Random

from proxy.errors import REGISTRY
from tests.fuzz.sessions import world
from tests.fuzz.sessions.client import Answer, Session
from tests.fuzz.sessions.grammar import Grammar
from tests.fuzz.sessions.mangle import Mangler, Statement
from tests.fuzz.sessions.rules import RULES
from tests.integration.replies import row_of, text

Connect = Callable[[str | None], Session]
"""Opens a session on a database, or on none."""

BEGIN = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION innodb_lock_wait_timeout = 1",
    "SELECT 1",
)
"""What every session is told first: no statement locks more than its rows, none waits for long. MariaDB's
FOUND_ROWS() is 1 before the first query."""

_FAULTS = frozenset(
    {
        "internal",
        "unclean_connection",
        "settings_failed",
        "merge_failed",
        "transaction_lost",
        "unread_definition",
        "planning_lost",
        "host_lost",
    }
)
"""Errors of the registry that no statement of the grammar may get."""
_REFUSING = frozenset({1235, 1105, 1104, 1115})
_PATTERNS = {
    name: (kind.code, re.compile(".*".join(map(re.escape, re.split(r"\{\w+\}", kind.text))), re.DOTALL))
    for name, kind in REGISTRY.items()
    if (kind.code in _REFUSING or name == "function_not_on_shards") and name not in _FAULTS
}

_COMMENT = re.compile(
    rb"/\*M! x \*/|/\*(?!M?!).*?\*/|--[ ][^\n]*\n|--\n|#[^\n]*\n|/\*M?!(?:50000|50503)?|\*/", re.DOTALL
)

PROBE = ("@a", "@b", "@c", "@d", "DATABASE()", "LAST_INSERT_ID()", "@@autocommit", "@@sql_mode",
         "@@character_set_client", "@@character_set_connection", "@@character_set_results",
         "@@collation_connection", "@@time_zone", "@@sort_buffer_size", "@@foreign_key_checks",
         "@@sql_select_limit")  # fmt: skip


def refusal(answer: Answer) -> str | None:
    """The registry's name of a refusal; None for any other answer."""
    if answer.kind != "err":
        return None
    message = answer.message.replace(
        "\0", ""
    )  # with wide characters, after SET character_set_results = utf16
    if answer.code == 1064 and "unknown statement BEGIN" in message:
        return "syntax_error"
    for name, (code, pattern) in _PATTERNS.items():
        if answer.code == code and pattern.match(message):
            return name
    return None


@dataclass(frozen=True)
class Step:
    """What one session does. `manner`: "text", "prepared", "multi" (one text with several statements) or
    "reset".
    """

    session: int
    manner: str
    statements: tuple[Statement, ...] = ()
    separator: str = "; "

    @property
    def text(self) -> str:
        return self.separator.join(one.text for one in self.statements)

    @property
    def name(self) -> str:
        return "+".join(one.name for one in self.statements) or self.manner

    def simpler(self) -> Iterable[Step]:
        """Steps that do a little less, or the same in a simpler form."""
        if self.manner == "multi":
            for number in range(len(self.statements)):
                rest = self.statements[:number] + self.statements[number + 1 :]
                yield replace(self, statements=rest, manner="multi" if len(rest) > 1 else "text")
        if self.manner == "prepared":
            yield replace(self, manner="text")
        plain = tuple(one.plain() for one in self.statements)
        if plain != self.statements:
            yield replace(self, statements=plain, separator="; ")
        for number, statement in enumerate(self.statements):
            for simpler in statement.simpler():
                changed = (*self.statements[:number], simpler, *self.statements[number + 1 :])
                yield replace(self, statements=changed)

    def __str__(self) -> str:
        return f"session {self.session} {self.manner}: {self.text!r}"


@dataclass(frozen=True)
class Case:
    """`databases`: of each session at its beginning. `probes`: the share of steps behind which all sessions
    are asked for their state.
    """

    number: int
    databases: tuple[str, ...]
    steps: tuple[Step, ...]
    probes: float


@dataclass(frozen=True)
class Difference:
    """`label`: what differs; `at`: the number of the step."""

    label: str
    at: int
    expected: str
    got: str
    name: str


@dataclass
class Tally:
    """What a run has seen."""

    statements: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refused_rules: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    soft: dict[str, str] = field(default_factory=dict)
    soft_counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Finding:
    """A case that differs, made small."""

    case: Case
    difference: Difference

    @property
    def group(self) -> str:
        """Findings of one cause mostly have the same."""
        names = sorted({step.name for step in self.case.steps[: self.difference.at]})
        return f"{self.difference.label} | {self.difference.name} | {' '.join(names)}"

    def describe(self, seed: int) -> str:
        lines = [f"--- case {self.case.number} of seed {seed}: {self.difference.label}"]
        lines += [f"    sessions begin on {', '.join(map(repr, self.case.databases))}"]
        lines += [f"    {step}" for step in self.case.steps[: self.difference.at + 1]]
        lines += [f"    expected {self.difference.expected}", f"    got      {self.difference.got}"]
        return "\n".join(lines)


class Cases:
    """Makes cases from a seed."""

    def __init__(self, seed: int, *, mariadb: bool, without: Container[str] = ()) -> None:
        self.seed, self.mariadb, self.without = seed, mariadb, without

    def case(self, number: int) -> Case:
        random = Random(f"{self.seed}/{number}")
        grammar = Grammar(random, number, RULES, mariadb=self.mariadb, without=self.without)
        mangler = Mangler(random, mariadb=self.mariadb)
        databases = tuple(
            random.choice(("demo", "demo", "legacy", "")) for _ in range(random.choice((2, 2, 3)))
        )
        grammar.databases = list(databases)
        much = random.choice((0.2, 0.5, 0.8))
        steps = []
        focus = 0
        for _ in range(random.randrange(10, 26)):
            if random.random() < 0.35:
                focus = random.randrange(len(databases))
            grammar.session = focus
            kind = random.random()
            count = random.choice((2, 2, 3)) if kind < 0.15 else 1
            if 0.15 <= kind < 0.165:
                steps.append(Step(focus, "reset"))
                grammar.locked.discard(focus)
                continue
            statements = []
            for _ in range(count):
                before = grammar.database
                name, plain = grammar.statement()
                statements.append(mangler.statement(name, plain, before, much=much))
            manner = "multi" if count > 1 else "prepared" if kind > 0.75 else "text"
            separator = random.choice((";", "; ", " ;\n", "; /* x */ ")) if count > 1 else ""
            steps.append(Step(focus, manner, tuple(statements), separator))
        return Case(number, databases, tuple(steps), random.choice((0.0, 0.2, 1.0)))


class Runner:
    """Runs cases. `proxy` and `plain` open sessions on either side."""

    def __init__(self, proxy: Connect, plain: Connect, *, mariadb: bool) -> None:
        self.proxy, self.plain, self.mariadb = proxy, plain, mariadb
        self.tally = Tally()
        self._keepers = (proxy("demo"), plain("demo"))
        self._restore = world.restore()
        self.silent = False

    def close(self) -> None:
        for keeper in self._keepers:
            keeper.raw.close()

    def restart(self) -> None:
        for keeper in self._keepers:
            world.run(keeper, world.restart(mariadb=self.mariadb))

    def run(self, case: Case) -> Difference | None:
        """The case's first difference."""
        for keeper in self._keepers:
            world.run(keeper, self._restore)
        random = Random(case.number)
        with ExitStack() as stack:
            sides = [
                [stack.enter_context(connect(database or None)) for connect in (self.proxy, self.plain)]
                for database in case.databases
            ]
            for pair in sides:
                self._begin(pair)
            for at, step in enumerate(case.steps):
                found = self._step(sides[step.session], step)
                if found is None and (random.random() < case.probes or at + 1 == len(case.steps)):
                    found = self._probe(sides, case.number)
                if found is not None:
                    label, expected, got = found
                    return Difference(label, at, expected, got, step.name)
        return None

    def _begin(self, pair: Sequence[Session]) -> None:
        for session in pair:
            for statement in BEGIN:
                assert session.ask(statement.encode())[-1].kind != "err"

    def _step(self, pair: Sequence[Session], step: Step) -> tuple[str, str, str] | None:
        proxy, plain = pair
        if step.manner == "reset":
            got, expected = proxy.reset(), plain.reset()
            difference = self._compare(step, expected, got)
            if difference is None:
                self._begin(pair)
            return difference
        self._count(step)
        sql = step.text.encode()
        got = proxy.prepared(sql) if step.manner == "prepared" else proxy.ask(sql)
        refused = refusal(got[-1])
        if refused is not None:
            if not self.silent:
                self.tally.refused[refused] += 1
                self.tally.refused_rules[f"{refused}: {step.name}"] += 1
            expected = []
            for statement in step.statements[:-1]:
                if len(expected) < len(got) - 1:
                    expected += plain.ask(statement.text.encode())
            plain.ask(_signal(got[-1]))
            return self._compare(step, expected, got[:-1])
        expected = plain.prepared(sql) if step.manner == "prepared" else plain.ask(sql)
        return self._compare(step, expected, got)

    def _count(self, step: Step) -> None:
        if not self.silent:
            self.tally.statements += len(step.statements)

    def _compare(
        self, step: Step, expected: Sequence[Answer], got: Sequence[Answer]
    ) -> tuple[str, str, str] | None:
        for wanted, given in zip(expected, got, strict=False):
            label = self._differs(step, wanted, given)
            if not self.silent:
                self.tally.outcomes[wanted.kind] += 1
                if wanted.kind == "err":
                    self.tally.errors[f"{wanted.code}"] += 1
            if label:
                return label, str(wanted), str(given)
        if len(expected) != len(got):
            return (
                "number of results",
                f"{len(expected)} results, the last {_last(expected)}",
                (f"{len(got)} results, the last {_last(got)}"),
            )
        return None

    def _differs(self, step: Step, wanted: Answer, given: Answer) -> str:
        if wanted.kind != given.kind:
            return f"{wanted.kind} {wanted.code or ''}/ {given.kind} {given.code or ''}"
        if (wanted.code, wanted.sqlstate) != (given.code, given.sqlstate):
            return f"error {wanted.code} {wanted.sqlstate} / {given.code} {given.sqlstate}"
        for name in ("affected", "insert_id", "status"):
            if getattr(wanted, name) != getattr(given, name):
                if name != "affected" or self.mariadb or "call" not in step.name:
                    return name
                self._soft(name, step, wanted, given)  # see docs/sql.md: MySQL's CALL tells older rows
        if _told(wanted, mariadb=self.mariadb) != _told(given, mariadb=self.mariadb):
            return "tracked"
        if (wanted.warnings, wanted.info) != (given.warnings, given.info):
            if not _by_shard(step, wanted, given) or _plain_info(wanted) != _plain_info(given):
                return "warnings"
            self._soft("warnings", step, wanted, given)
        if _names(step, wanted) != _names(step, given):
            return "column names"
        diagnostics = any(one.name == "show_diagnostics" for one in step.statements)
        if diagnostics and wanted.columns and _names(step, wanted)[0] == b"Level":
            one, other = _warned(step, wanted), _warned(step, given)
            if [row[:-1] for row in one] != [row[:-1] for row in other]:
                return "warnings shown"
            if one != other:
                self._soft("texts of warnings", step, wanted, given)
            return ""
        if step.manner == "prepared" and _types(wanted) != _types(given):
            self._soft("types", step, wanted, given)
            return "" if len(wanted.rows) == len(given.rows) else "rows"
        ordered = all(one.ordered for one in step.statements)
        if wanted.rows != given.rows and (ordered or sorted(wanted.rows) != sorted(given.rows)):
            return "rows"
        if wanted.message != given.message:
            self._soft("message", step, wanted, given)
        if wanted.columns != given.columns:
            self._soft("types", step, replace(wanted, rows=()), replace(given, rows=()))
        return ""

    def _soft(self, label: str, step: Step, wanted: Answer, given: Answer) -> None:
        if self.silent:
            return
        key = f"{label} {wanted.code or ''} {step.name}"
        self.tally.soft_counts[key] += 1
        if key not in self.tally.soft:
            both = (
                f"\n        {one} {answer} {answer.columns}"
                for one, answer in (("expected", wanted), ("got", given))
            )
            self.tally.soft[key] = f"{step}{''.join(both)}"

    def _probe(self, sides: Sequence[Sequence[Session]], number: int) -> tuple[str, str, str] | None:
        locks = [f"IS_USED_LOCK('l{n}_{number}') IS NOT NULL" for n in "12"]
        held = [f"IS_USED_LOCK('l{n}_{number}') = CONNECTION_ID()" for n in "12"]
        names = (*PROBE, *locks, *held)
        query = f"SELECT {', '.join(names)}".encode()
        for session, (proxy, plain) in enumerate(sides):
            (got,), (expected,) = proxy.ask(query), plain.ask(query)
            if got.kind != "rows" or expected.kind != "rows":
                return f"probe of session {session}", str(expected), str(got)
            wanted, given = row_of(expected.rows[0], len(names)), row_of(got.rows[0], len(names))
            for name, one, other in zip(names, wanted, given, strict=True):
                if one != other:
                    shown = name.replace(f"_{number}", "")
                    return f"state {shown}", f"session {session}: {one!r}", f"{other!r}"
        return None

    # --- making it small -------------------------------------------------------------------------

    def shrink(self, case: Case, difference: Difference, most: int = 60) -> Finding:
        """The case with what is not needed for its difference taken away."""
        self.silent = True
        try:
            case = replace(case, steps=case.steps[: difference.at + 1])
            small = self._without_steps(case, difference, most)
            return self._simpler(*small, most)
        finally:
            self.silent = False

    def _again(self, case: Case, label: str) -> Difference | None:
        self.restart()
        found = self.run(case)
        return found if found is not None and found.label == label else None

    def _without_steps(self, case: Case, difference: Difference, most: int) -> tuple[Case, Difference]:
        size = max(1, len(case.steps) // 2)
        while most > 0:
            start, changed = 0, False
            while start < len(case.steps) and most > 0:
                steps = case.steps[:start] + case.steps[start + size :]
                tried = replace(case, steps=steps)
                most -= 1
                found = self._again(tried, difference.label) if steps else None
                if found is not None:
                    case = replace(tried, steps=steps[: found.at + 1])
                    difference, changed = found, True
                else:
                    start += size
            if size == 1 and not changed:
                break
            size = max(1, size // 2)
        return case, difference

    def _simpler(self, case: Case, difference: Difference, most: int) -> Finding:
        for probes in (0.0, 1.0):
            tried = replace(case, probes=probes)
            found = self._again(tried, difference.label) if probes != case.probes else None
            if found is not None:
                case, difference = tried, found
                break
        number = 0
        while number < len(case.steps):
            for step in case.steps[number].simpler():
                most -= 1
                if most < 0:
                    return Finding(case, difference)
                tried = replace(case, steps=(*case.steps[:number], step, *case.steps[number + 1 :]))
                found = self._again(tried, difference.label)
                if found is not None and found.at == difference.at:
                    case, difference = tried, found
                    break
            else:
                number += 1
        return Finding(case, difference)


def _names(step: Step, answer: Answer) -> list[bytes]:
    """The columns' names without blanks and comments: executable comments are opened before a server gets
    them, and what the proxy answers itself is named by its tokens.
    """
    names = [name for name, *_ in answer.columns]
    return [b"".join(_COMMENT.sub(b"", name.replace(b"\0", b"")).split()) for name in names]


def _by_shard(step: Step, wanted: Answer, given: Answer) -> bool:
    """Whether the numbers of warnings may differ: each shard has its own, and what a server says at PREPARE
    of a statement on shards is said at EXECUTE.
    """
    if step.manner == "prepared":
        return given.warnings > wanted.warnings
    sharded = any(table.name.partition(".")[2] in step.text for table in world.SHARDED)
    return sharded and bool(wanted.warnings and given.warnings)


def _plain_info(answer: Answer) -> bytes:
    return answer.info.partition(b"Warnings:")[0]


def _types(answer: Answer) -> list[int]:
    return [type_ for _, type_, _ in answer.columns]


def _told(answer: Answer, *, mariadb: bool) -> list[tuple[int, bytes]]:
    """What session tracking tells. MySQL 9.7 tells the transaction's state also when it shall not."""
    return [one for one in answer.tracked if mariadb or one[0] != 5]


def _last(answers: Sequence[Answer]) -> str:
    return str(answers[-1]) if answers else ""


def _warned(step: Step, answer: Answer) -> list[tuple[bytes | None, ...]]:
    """Level, code and message of each row that SHOW WARNINGS gives."""
    if step.manner != "prepared":
        return [row_of(row, 3) for row in answer.rows]
    found: list[tuple[bytes | None, ...]] = []
    for row in answer.rows:
        level, pos = text(row, 2)
        message, _ = text(row, pos + 4)
        found.append((level, row[pos : pos + 4], message))
    return found


def _signal(answer: Answer) -> bytes:
    """A statement that fails on a server as the refused one did."""
    message = (
        answer.message.replace("\0", "")
        .encode("ascii", "replace")
        .decode()
        .replace("'", "''")
        .replace("\\", "/")[:100]
    )
    message = message[:-1] if message.endswith("'") and not message.endswith("''") else message
    return (
        f"SIGNAL SQLSTATE '{answer.sqlstate}' SET MYSQL_ERRNO = {answer.code}, MESSAGE_TEXT = '{message}'"
    ).encode()
