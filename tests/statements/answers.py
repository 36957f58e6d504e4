"""Answers that the rewriter gives about statements, recorded in `answers.txt`.

    python -m tests.statements.answers          records the answers that the code gives now

The statements are the examples of the manuals (`manual.txt`), each with comments and prefixes around it, and
those of the golden plans. A test compares, so that each change of an answer is seen and can be judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from config.flavour import FLAVOURS, Flavour
from rewriter.env import Env
from rewriter.plan import Plan
from tests.rewriter import golden
from tests.rewriter.support import expand, rewriter

HERE: Final = Path(__file__).parent
FILE: Final = HERE / "answers.txt"
_CHANGES: Final = ("SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "VALUES", "TABLE", "(")
_VERSIONS: Final = {"mariadb": 101119, "mysql": 90704}


class Example(NamedTuple):
    """A statement of the manuals. `servers`: "both", "mariadb" or "mysql"."""

    servers: str
    name: str
    sql: str


def examples() -> list[Example]:
    """The statements of `manual.txt`."""
    lines = (HERE / "manual.txt").read_text().splitlines()
    return [Example(*line.split(" | ", 2)) for line in lines if line and not line.startswith("#")]


class Case(NamedTuple):
    """A statement with the environment that it is planned in."""

    sql: str
    env: Env

    @property
    def title(self) -> str:
        """The line of `answers.txt` that the answers stand under."""
        return f"{self.env.flavour.name} {self.env.database or '-'} {self.sql!r}"


def _variants(example: Example, flavour: Flavour) -> Iterator[tuple[str, str | None]]:
    """The texts of an example, each with the current database."""
    sql = example.sql
    yield from ((sql, database) for database in ("legacy", "demo", None))
    yield f"/* app */ {sql}", "legacy"
    yield f"-- app\n {_lowered(sql)} ; ", "legacy"
    first, _, rest = sql.partition(" ")
    yield f"{first}/**/\t{rest}".rstrip(), "demo"
    if flavour.compound_statements:
        yield f"SET STATEMENT max_statement_time=1 FOR {sql}", "legacy"
    if sql.startswith(_CHANGES):
        yield f"EXPLAIN {sql}", "legacy"
    quoted = sql.replace("'", "''")
    yield f"PREPARE q FROM '{quoted}'", "legacy"


def _lowered(sql: str) -> str:
    """The statement in lower case, but for what is quoted."""
    pieces = sql.split("'")
    return "'".join(piece if at % 2 else piece.lower() for at, piece in enumerate(pieces))


def cases() -> list[Case]:
    """All statements, each once."""
    found: dict[str, Case] = {}
    for flavour in FLAVOURS.values():
        version = _VERSIONS[flavour.name]
        for example in examples():
            for sql, database in _variants(example, flavour):
                case = Case(sql, Env(database=database, flavour=flavour, server_version=version))
                found.setdefault(case.title, case)
    for path in sorted(golden.FOLDER.glob("*.yaml")):
        for one in golden.load(path):
            case = Case(expand(one["sql"]), golden.env_of(one))
            found.setdefault(case.title, case)
    return list(found.values())


def answers(plan: Plan) -> str:
    """One line with all that a plan says of its statement."""
    kind = plan.kind
    error = getattr(plan, "error", "")
    name = type(plan).__name__ if kind == "builtin" else ""
    parts = [f"{kind}{f':{name}' if name else ''}{f':{error}' if error else ''}"]
    parts.append(f"access={plan.access.name}")
    if plan.reserved:
        parts.append(f"reserved={','.join(plan.reserved)} listed={plan.listed_access.name}")
    if plan.databases:
        parts.append(f"databases={','.join(plan.databases)}")
    if plan.unseen:
        parts.append(f"unseen={plan.unseen}")
    if plan.hidden:
        parts.append(f"hidden={plan.hidden}")
    if plan.implicit_commit:
        parts.append("commits")
    if plan.effects is not None:
        usual = type(plan.effects)()
        changed = zip(plan.effects._fields, plan.effects, usual, strict=True)
        shown = [f"{field}={value!r}" for field, value, default in changed if value != default]
        parts.append(f"effects({' '.join(shown)})")
    facts = plan.facts
    parts.append(f"form={facts.form.words!r}")
    parts += [flag for flag in ("opens", "keeps_warnings") if getattr(facts, flag)]
    if facts.touches:
        parts.append(f"touches={facts.touches}")
    return " ".join(parts)


def recorded() -> dict[str, str]:
    """The answers of the file: by a case's title."""
    lines = FILE.read_text().splitlines()
    return dict(zip(lines[::2], lines[1::2], strict=True))


def given() -> dict[str, str]:
    """The answers of the code."""
    found, world = {}, rewriter()
    for case in cases():
        plan, _ = world.plan(case.sql.encode(), case.env)
        found[case.title] = answers(plan)
    return found


if __name__ == "__main__":
    text = "".join(f"{title}\n{line}\n" for title, line in given().items())
    FILE.write_text(text)
    print(f"{text.count(chr(10)) // 2} answers, {len(text)} bytes")
