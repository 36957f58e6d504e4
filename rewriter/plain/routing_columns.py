"""Definitions of tables, looked at for the columns that say on which shard a row is: CREATE, ALTER and
CONVERT are judged alike, by `config/routing_columns.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from config.column_type import definition_of
from config.routing_columns import SOUND_COLLATIONS, column_problem, is_sound, routing_columns
from config.schema import KeyType, Kind, Table
from rewriter.route.scope import Refuse, Unsupported
from rewriter.text.facts import Span
from rewriter.text.tokens import STRING, Source

from .definitions import Element, actions, elements, query_of

_RENAMING: Final = "Rename it shard by shard, by their databases' names, and then in the schema."
_MOVING: Final = ("DROP", "CHANGE", "MODIFY", "RENAME", "ALTER", "COLUMN", "TO")
_COLLATION: Final = f"Give it the collation {' or '.join(SOUND_COLLATIONS)}."
_LEAVE: Final = "Leave that column as it is."


def check_altered(source: Source, span: Span, table: Table) -> None:
    """Refuse what would take a table's rows or its routing away. Raises Refuse."""
    fixed = set(routing_columns(table))
    added = _added(source, span, table)
    for at in range(span.end, len(source.tokens)):
        if source.is_word(at, "RENAME") and not source.is_word(at + 1, "COLUMN", "INDEX", "KEY"):
            raise refused(source, table, "the schema names the table", _RENAMING)
        if source.is_word(at, "CONVERT") and source.is_word(at + 1, "TO"):
            _check_converted(source, at, table)
        name = source.at(at).name.lower()
        virtual = table.kind is Kind.OBJECT and name == "id"
        if not source.is_name(at) or not (name in fixed or virtual) or at in added:
            continue
        if source.is_word(at - 1, *_MOVING) or source.is_word(at - 1, "EXISTS"):
            raise refused(source, table, _places(source, at), _LEAVE)
        if virtual and not source.is_word(at - 1, "AFTER"):
            raise refused(source, table, "`id` is not stored", "Write local_id.")


def _added(source: Source, span: Span, table: Table) -> set[int]:
    """Where the names of columns stand that place rows and are added. Raises Refuse for those that would
    place rows elsewhere than they are.
    """
    if not source.is_word(0, "ALTER"):
        return set()
    found = set[int]()
    for action in actions(source, span):
        if not source.is_word(action.first, "ADD"):
            continue
        for element in elements(source, span, action):
            name = (element.column or "").lower()
            if name not in routing_columns(table):
                continue
            definition = definition_of(element.definition)
            if table.strict is None or name != table.strict.lower() or definition.not_null:
                advice = "Add it while the table has no rows: DROP TABLE and CREATE TABLE."
                raise refused(source, table, _places(source, element.at), advice)
            if problem := column_problem(table, name, definition):
                raise refused(source, table, _places(source, element.at), problem)
            found.add(element.at)
    return found


def _check_converted(source: Source, at: int, table: Table) -> None:
    """CONVERT TO CHARACTER SET, which gives all texts another collation. Raises Refuse."""
    if table.kind is not Kind.HASHED or table.key_type is not KeyType.TEXT:
        return
    action = next(one for one in actions(source, Span(at, at)) if one.first == at)
    if not is_sound(_collations(source, action)):
        raise refused(source, table, f"'{table.routing}' says on which shard a row is", _LEAVE)


def check_created(source: Source, span: Span, table: Table) -> None:
    """Refuse a CREATE TABLE without the columns that route, or with others than the schema may have, or that
    is none of columns. Raises Refuse.
    """
    if not source.is_op(span.end, "("):
        raise refused(source, table, "its columns are not written out", "Write them.")
    close = source.closing[span.end]
    found = {one.column.lower(): one for one in elements(source, span) if one.column is not None}
    wanted = {name: name for name in routing_columns(table)}
    if table.kind is Kind.OBJECT and "local_id" not in found:
        wanted["local_id"] = "id"  # as clients see it; its type is judged where it is made to count
    if missing := sorted(name for name in wanted.values() if name not in found):
        listed = ", ".join(missing)
        raise refused(source, table, f"the schema's column {listed} is missing", "Give it that column.")
    collations = _collations(source, Span(close + 1, len(source.tokens)))
    _check_columns(source, table, {name: found[wanted[name]] for name in wanted}, collations)
    rest = Span(close, close + 1)
    copied = any(source.is_word(at, "LIKE") for at in range(close, len(source.tokens)))
    if copied or query_of(source, rest) < len(source.tokens):
        raise refused(source, table, "its rows come from a SELECT", "CREATE it, then INSERT … SELECT.")


def _check_columns(
    source: Source, table: Table, columns: Mapping[str, Element], collations: tuple[str, ...]
) -> None:
    for name, element in columns.items():
        if name == "local_id":
            continue
        definition = definition_of(element.definition)
        problem = column_problem(table, name, definition, collations)
        if problem is None:
            continue
        if column_problem(table, name, definition, SOUND_COLLATIONS) is None:
            reason = f"texts in '{table.routing}' must be equal only when their bytes are"
            raise refused(source, table, reason, _COLLATION)
        raise refused(source, table, _places(source, element.at), problem)


def _collations(source: Source, span: Span) -> tuple[str, ...]:
    """The collations that the options of a table name there, outside of parentheses."""
    found, at = [], span.first
    while at < span.end:
        if source.is_word(at, "COLLATE"):
            found.append(source.at(at + 1 + source.is_op(at + 1, "=")))
        at = source.closing.get(at, at) + 1
    return tuple(token.name if token.kind != STRING else token.text[1:-1] for token in found)


def _places(source: Source, at: int) -> str:
    return f"'{source.at(at).name}' says on which shard a row is"


def refused(source: Source, table: Table, reason: str, alternative: str) -> Refuse:
    """The refusal of a definition of `table`."""
    what = f"this {source.tokens[0].text} of {table.database}.{table.name}"
    return Unsupported(what=what, reason=reason, alternative=alternative)
