"""The statement of `shardgate fleet ddl`: one definition of a table that the schema names. Pure.

ALTER TABLE, CREATE INDEX and DROP INDEX, on the table as clients call it. What concerns another table, and
what a definition does not show, is refused here; the rest is judged by what a server makes of it (`ddl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.schema import Kind, Schema, Table, quote
from config.sqltext import END, SqlError, SqlToken, Tokens, by_commas, closing, tokens_of
from fleet.core.errors import Refused

_INDEX_KINDS: Final = ("UNIQUE", "FULLTEXT", "SPATIAL")
_NO_COLUMN: Final = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
    | {"PARTITION", "PERIOD", "SYSTEM"}
)
_ELSEWHERE: Final = {
    "CREATE TABLE": "name the table in the schema, then make it everywhere with `shardgate fleet create`",
    "DROP TABLE": "drop it through the proxy, as an admin, and take it out of the schema",
    "TRUNCATE": "it takes rows away and defines nothing: run it through the proxy, as an admin",
    "RENAME": "a table is called as the schema calls it",
}


@dataclass(frozen=True)
class Statement:
    """`before` and `after` stand around the table's name. `columns`: the definitions that are written out in
    it, by the names of the columns in lower case. `actions`: what an ALTER TABLE does.
    """

    table: Table
    before: str
    after: str
    columns: Mapping[str, str] = field(default_factory=dict)
    actions: str = ""

    @property
    def text(self) -> str:
        """As it is kept in the journal: without a semicolon and spaces around it."""
        return self.sql(self.table.database)

    def sql(self, database: str) -> str:
        """For the table in a database."""
        return f"{self.before}{quote(database)}.{quote(self.table.name)}{self.after}"


def read_statement(text: str, schema: Schema) -> Statement:
    """Refused for anything but one definition of one table of the schema."""
    try:
        tokens = tokens_of(text)
    except SqlError as error:
        raise Refused(f"the statement {error}") from None
    end = len(text)
    if tokens and tokens[-1].is_op(";"):
        end = tokens.pop().start
    if not tokens:
        raise Refused("the statement is empty")
    if any(one.is_op(";") for one in tokens):
        raise Refused("there are several statements: give them one by one")
    at = _name_at(tokens)
    last = at + 2 if _at(tokens, at + 1).is_op(".") else at
    if not _at(tokens, at).is_name or not _at(tokens, last).is_name:
        raise Refused(f"the statement names no table before {_at(tokens, at).text!r}")
    database = tokens[at].text if last > at else None
    table = _table(schema, database, tokens[last].text)
    rest = tokens[last + 1 :]
    _check(table, rest)
    before, after = text[: tokens[at].start].lstrip(), text[tokens[last].end : end].rstrip()
    if tokens[0].word != "ALTER":
        return Statement(table, before, after)
    return Statement(table, before, after, dict(_columns(text, rest)), after.strip())


def _at(tokens: Tokens, index: int) -> SqlToken:
    return tokens[index] if index < len(tokens) else END


def _name_at(tokens: Tokens) -> int:
    """Where the table's name begins. Refused for statements of other kinds."""
    words = [one.word for one in tokens]
    at = 1
    if words[0] == "ALTER":
        while words[at : at + 1] and words[at] in ("ONLINE", "IGNORE"):
            at += 1
        if words[at : at + 1] == ["TABLE"]:
            return at + 1 + 2 * (words[at + 1 : at + 3] == ["IF", "EXISTS"])
    elif words[0] in ("CREATE", "DROP"):
        at += 2 * (words[1:3] == ["OR", "REPLACE"])
        while words[at : at + 1] and words[at] in _INDEX_KINDS:
            at += 1
        if words[at : at + 1] == ["INDEX"] and "ON" in words[at:]:
            return words.index("ON", at) + 1
    what = " ".join(words[:2]) if words[0] in ("CREATE", "DROP", "ALTER") else words[0]
    for start, remedy in _ELSEWHERE.items():
        if " ".join(words).replace("TEMPORARY ", "").startswith(start):
            raise Refused(f"{start} is not for this tool: {remedy}")
    raise Refused(f"{what or tokens[0].text} defines no table: give ALTER TABLE, CREATE INDEX or DROP INDEX")


def _table(schema: Schema, database: str | None, name: str) -> Table:
    if database is not None:
        found = schema.databases.get(database)
        if found is None:
            known = ", ".join(schema.databases)
            raise Refused(f"the schema has no database {database}: there are {known}, as clients see them")
        if found.passes_through:
            raise Refused(f"the database {database} is on one host, as it is: run it through the proxy")
    places = [one for one in schema.databases.values() if database in (None, one.name)]
    tables = [one.tables[name] for one in places if name in one.tables]
    if not tables:
        raise Refused(f"the schema names no table {f'{database}.' if database else ''}{name}")
    if len(tables) > 1:
        names = " or ".join(f"{one.database}.{name}" for one in tables)
        raise Refused(f"{len(tables)} databases have a table {name}: write {names}")
    return tables[0]


def _check(table: Table, rest: Tokens) -> None:
    """Refuse what concerns another table, and what a definition does not show."""
    for action in _actions(rest):
        first, second = _at(action, 0).word, _at(action, 1).word
        if first == "RENAME" and second not in ("COLUMN", "INDEX", "KEY"):
            raise Refused(f"a table is called as the schema calls it: {table.name} cannot be renamed")
        moves = first == "CONVERT" and second in ("PARTITION", "TABLE")
        if moves or first in ("EXCHANGE", "DISCARD", "IMPORT", "TRUNCATE"):
            raise Refused(f"{first} {second} changes rows, not the definition")
    for at, token in enumerate(rest):
        if token.word == "REFERENCES" and _at(rest, at + 2).is_op("."):
            raise Refused("name the table behind REFERENCES without its database: it is the shard's own")
        if table.kind is Kind.OBJECT and token.is_name and token.text.lower() == "id":
            raise Refused(f"`id` of {table.name} is not stored: write local_id")


def _actions(rest: Tokens) -> list[list[SqlToken]]:
    """The parts of an ALTER TABLE, without MariaDB's WAIT before them."""
    skipped = {"WAIT": 2, "NOWAIT": 1}.get(_at(rest, 0).word, 0)
    return by_commas(rest[skipped:])


def _columns(text: str, rest: Tokens) -> Iterator[tuple[str, str]]:
    """The columns that are added or changed, with their definitions as they are written."""
    for action in _actions(rest):
        words = [one.word for one in action]
        if not words or words[0] not in ("ADD", "MODIFY", "CHANGE"):
            continue
        at = 1 + (words[1:2] == ["COLUMN"])
        while words[at : at + 1] and words[at] in ("IF", "NOT", "EXISTS"):
            at += 1
        if _at(action, at).is_op("("):
            for part in by_commas(action[at + 1 : closing(action, at)]):
                yield from _column(text, part)
        else:
            yield from _column(text, action[at + (words[0] == "CHANGE") :])


def _column(text: str, part: Tokens) -> Iterator[tuple[str, str]]:
    words = [one.word for one in part]
    if words and words[0] in _NO_COLUMN:
        return
    if words[-1:] == ["FIRST"]:
        part = part[:-1]
    elif words[-2:-1] == ["AFTER"]:
        part = part[:-2]
    if len(part) > 1:
        yield part[0].text.lower(), text[part[1].start : part[-1].end]
