"""What is written into a statement whatever its tables are: the session's values and parameters in the place
of what stands for them, shardgate's functions as arithmetic; and its hints, which are taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from config.layout import Layout
from rewriter.splice import Part
from rewriter.sql.statements.forms import Kind, StatementForm
from rewriter.sql.statements.functions import own_calls
from rewriter.sql.statements.table import form_of
from rewriter.text.edits import Edits, original
from rewriter.text.facts import Span
from rewriter.text.tokens import HINT, STRING, SYSTEM, VARIABLE, WORD, Source
from rewriter.text.written import encoded

from .id_layouts import IdLayouts
from .scope import Refuse, Unsupported
from .values import (
    LOCK_HOLDERS,
    NUMBERED,
    SLOT_TYPES,
    TYPED_BY,
    Slots,
    changed_variable_at,
    slot_at,
    variable_of,
)


@dataclass(frozen=True, slots=True)
class Hints:
    """shardgate's own optimizer hints: `shard(N)`, `same_shard_as(ID)`, `scatter`, `with_deleted`."""

    shard: int | None = None
    same_shard_as: int | None = None
    scatter: bool = False
    with_deleted: bool = False


_OWN_HINTS: Final = re.compile(
    r"\b(?:(shard)\s*\(\s*([0-9]{1,20})\s*\)|(same_shard_as)\s*\(\s*([0-9]{1,20})\s*\)"
    r"|(scatter)\b(?!\s*\()|(with_deleted)\b(?!\s*\())",
    re.IGNORECASE,
)
_OF_STATEMENT: Final = re.compile(
    r"\b(?:SET_VAR|MAX_EXECUTION_TIME|RESOURCE_GROUP)\s*\((?:'[^']*'|\"[^\"]*\"|`[^`]*`|[^)'\"`])*\)",
    re.IGNORECASE,
)
"""Hints with the scope of a statement: a server takes them in the first SELECT of a UNION, once."""
_BLOCK_NAME: Final = re.compile(r"\bQB_NAME\s*\(", re.IGNORECASE)
_INSERT_ID: Final = ("LAST_INSERT_ID()", "@@last_insert_id")


def take_hints(source: Source, edits: Edits) -> Hints:
    """Our hints in the statement, which are taken out of it."""
    shard = same = None
    scatter = with_deleted = False
    for at, token in enumerate(source.tokens):
        if token.kind != HINT:
            continue
        found = list(_OWN_HINTS.finditer(token.text))
        for one in found:
            shard = int(one[2]) if one[1] else shard
            same = int(one[4]) if one[3] else same
            scatter = scatter or bool(one[5])
            with_deleted = with_deleted or bool(one[6])
        if found:
            _keep_hints(edits, at, _OWN_HINTS.sub(" ", token.text[3:-2]))
    return Hints(shard, same, scatter, with_deleted)


def drop_statement_hints(source: Source, edits: Edits) -> bool:
    """Take out hints with the scope of a statement, for a SELECT behind the first one of a UNION. Returns
    whether there are any.
    """
    found = False
    for at, token in enumerate(source.tokens):
        if token.kind == HINT and _OF_STATEMENT.search(token.text):
            found = True
            _keep_hints(edits, at, _OF_STATEMENT.sub(" ", _OWN_HINTS.sub(" ", token.text[3:-2])))
    return found


def names_query_blocks(source: Source) -> bool:
    """Whether a hint names a query block. A statement may have each name once."""
    return any(token.kind == HINT and _BLOCK_NAME.search(token.text) for token in source.tokens)


def _keep_hints(edits: Edits, at: int, hints: str) -> None:
    """Write these in the place of the token of hints, which is at this index."""
    hints = hints.strip()
    edits.replace(Span(at, at + 1), encoded(f"/*+ {hints} */" if hints else " "))


def fill_slots(
    source: Source,
    slots: Slots,
    edits: Edits,
    *,
    typed: bool = True,
    variables: bool = True,
    parameters: bool = True,
    known: bool = False,
    warned: bool = False,
    numbered: bool = False,
    own_id: bool = True,
    on_shards: bool = False,
) -> None:
    """Put the session's values in the place of what stands for them (`typed`: with the type it has), and the
    `parameters` of a prepared statement.

    `warned`: the server shall warn, as MySQL does, that FOUND_ROWS() is deprecated. `numbered`:
    CONNECTION_ID() is an INT UNSIGNED, as on MariaDB. Without `own_id` LAST_INSERT_ID() is left to the
    server, whose connection has it as the session does until the statement assigns it.

    Without `variables` user variables are left to the server, whose connection has them as the session does;
    with `known` their values are slots all the same, for what is routed by them. `on_shards`: so are the
    variables of `CHANGED_ON_SHARDS`.
    """
    tokens = source.tokens
    at = 0
    while at < len(tokens):
        found = slot_at(source, at) or (changed_variable_at(source, at) if on_shards else None)
        if found is not None and not variables and variable_of(found[0]):
            if known:
                slots.index(found[0])
            found = None
        if found is None or (not own_id and found[0] in _INSERT_ID):
            at += 1
            continue
        if found[0][0] == "?" and not parameters:
            at += 1
            continue
        compared = source.is_op(at - 1, *_COMPARISONS) or source.is_op(found[1], *_COMPARISONS)
        parts: tuple[Part, ...] = (slots.index(found[0]),)
        if typed and not (compared and found[0] in TYPED_BY and found[0][0] != "@"):
            parts = _typed(source, slots, found[0], numbered)
        if warned and found[0] == "FOUND_ROWS()":
            parts = (b"CAST(", slots.index(found[0]), b"|0*FOUND_ROWS() AS SIGNED)")
        if STRING in (source.at(at - 1).kind, source.at(found[1]).kind):
            parts = (b"(", *parts, b")")  # neighbouring strings are one
        edits.replace(Span(at, found[1]), *parts)
        at = found[1]


def _typed(source: Source, slots: Slots, name: str, numbered: bool) -> tuple[Part, ...]:
    """A session's value with the type of the server's."""
    if numbered and name == "CONNECTION_ID()":
        return b"CRC32(", slots.index(NUMBERED), b")"
    value = slots.index(name)
    if name in TYPED_BY and _takes_values(form_of(source)):
        return b"IF(1,", value, b"," + TYPED_BY[name] + b")"
    type_ = SLOT_TYPES.get(name)
    # |0: MariaDB's CAST of a short number is an INT, where the functions give a BIGINT
    return (value,) if type_ is None else (b"CAST(", value, b"|0 AS " + type_ + b")")


#: Where the session's texts stay what they are: servers look for literals there (`table_schema = 'x'`).
_COMPARISONS: Final = ("=", "<=>", "<>", "!=", "<", ">", "<=", ">=")


def _takes_values(form: StatementForm) -> bool:
    """Whether CURRENT_USER is a value in the statement, and not an account."""
    defines = form.kind is Kind.DEFINITION and form.verb == "CREATE"
    return defines or form.kind in (Kind.QUERY, Kind.CHANGE, Kind.DO, Kind.CALL, Kind.EXPLAIN)


def fill_parameters(source: Source, slots: Slots, edits: Edits) -> None:
    """Put the parameters of a prepared statement in the place of their marks, and nothing else."""
    for at in range(len(source.tokens)):
        found = slot_at(source, at)
        if found is not None and found[0][0] == "?":
            edits.replace(Span(at, found[1]), slots.index(found[0]))


_OF_DATABASE: Final = re.compile("(character_set|collation)_database$")


def fill_database_facts(source: Source, edits: Edits) -> None:
    """Write the servers' character set and collation in the place of the current database's: for a session
    without one on any server, as the connection that runs the statement may have another session's.
    """
    for at, token in enumerate(source.tokens):
        found = _OF_DATABASE.search(token.text) if token.kind == SYSTEM else None
        if found is not None:
            edits.replace(Span(at, at + 1), f"@@{found[1]}_server".encode())


def fill_lock_holders(source: Source, slots: Slots, edits: Edits) -> None:
    """Have IS_USED_LOCK give the session's number where the server gives its own connection's. What it is
    asked for must be a string, a user variable or a column: it is written twice.
    """
    for at, token in enumerate(source.tokens):
        if token.kind != WORD or token.text != "IS_USED_LOCK" or not source.is_op(at + 1, "("):
            continue
        close = source.closing[at + 1]
        column = all(source.is_name(one) or source.is_op(one, ".") for one in range(at + 2, close))
        if not column and (source.at(at + 2).kind not in (STRING, VARIABLE) or close != at + 3):
            continue
        call = original(source, token.start, source.tokens[close].end)
        parts = (b"(CASE ", *call, slots.index(LOCK_HOLDERS), b" ELSE ", *call, b" END)")
        edits.replace(Span(at, close + 1), *parts)


def fill_functions(source: Source, edits: Edits, layouts: IdLayouts) -> None:
    """Write SHARD_OF, TYPE_OF, LOCAL_OF and MAKE_ID as the arithmetic that they are. Raises Refuse."""
    for at in own_calls(source):
        name, close = source.tokens[at].text, source.closing[at + 1]
        makes = name == "MAKE_ID"
        layout = layouts.default if makes else layouts.of(Span(at + 2, close))
        if layout is None or (makes and not (layout.has_local and layout.has_type)):
            raise Refuse("unknown_function", function=name)
        commas = _commas(source, at + 2, close)
        if len(commas) != (2 if makes else 0) or close == at + 2:
            raise Refuse("wrong_parameter_count", function=name)
        edits.replace(Span(at, at + 2), b"((")
        if makes:
            edits.replace(Span(commas[0], commas[0] + 1), b") << %d | (" % layout.shard_shift)
            edits.replace(Span(commas[1], commas[1] + 1), b") << %d | (" % layout.type_shift)
            edits.replace(Span(close, close + 1), b"))")
        else:
            edits.replace(Span(close, close + 1), b") >> %d & %d)" % _place(name, layout))


def _place(function: str, layout: Layout) -> tuple[int, int]:
    """The place in an ID of the part that a function returns: bits to the right, and mask. Raises Refuse."""
    if function == "SHARD_OF":
        return layout.shard_shift, layout.shard_mask
    if function == "TYPE_OF" and layout.has_type:
        return layout.type_shift, layout.type_mask
    if function == "LOCAL_OF" and layout.has_local:
        return layout.local_shift, layout.local_mask
    raise Unsupported(
        what=function,
        reason=f"IDs of the layout {layout.name} have no such part",
        alternative="Ask for SHARD_OF.",
    )


def _commas(source: Source, at: int, end: int) -> list[int]:
    found = []
    while at < end:
        if source.is_op(at, ","):
            found.append(at)
        at = source.closing.get(at, at) + 1
    return found
