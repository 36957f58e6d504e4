"""What names the shard of a row that is inserted."""

from __future__ import annotations

import re
from typing import Final

from config.schema import KeyType, Kind, Table
from rewriter.plans.insert_rows import Hint, Strict
from rewriter.plans.unchanged import takes_null
from rewriter.route.context import Splicer, Statement
from rewriter.route.keys import Keys
from rewriter.route.routing import Key
from rewriter.route.scope import Refuse
from rewriter.route.values import Value
from rewriter.text.facts import Span
from rewriter.text.literals import unquote
from rewriter.text.tokens import STRING

from .returning import by_commas

TEXTS: Final = ("string", "hex", "bytes", "bits", "binary", "slot", "parameter")
"""The kinds of constants that may be a text key."""

_STEP: Final = re.compile(r"""\.(?:([A-Za-z_$][\w$]*)|"((?:[^"\\]|\\.)*)")|\[(\d+)\]""")


class Placing:
    """Reads off a row's values what names its shard. `ignore`: the statement says IGNORE."""

    def __init__(self, statement: Statement, splicer: Splicer, table: Table, *, ignore: bool) -> None:
        self.source = statement.source
        self.statement = statement
        self.splicer = splicer
        self.table = table
        self.ignore = ignore
        self.keys = Keys(statement.names.topology, statement.names.env)
        self.strict = Strict(table.strict, takes_null(table)) if table.strict is not None else None
        self.backslashes = not statement.names.env.no_backslash_escapes

    def hints(self, columns: dict[str, Span]) -> tuple[Hint, ...]:
        """What names a row's shard, in order of precedence. `columns`: its values, by names in lower case.
        Raises Refuse.
        """
        hints: list[Hint] = []
        if self.table.kind is Kind.OBJECT:
            if "local_id" in columns:
                raise self._unroutable("a local_id means a row only on its shard", "Give the full `id`.")
            key = self._key("ID")
            if "id" in columns and not self.is_default(columns["id"]):
                hints.append(Hint("id", key, self._constant(columns["id"], "id")))
            by_hand = self._hand_made(key)
            hints += by_hand
            if not by_hand or self.table.strict is not None:  # which goes without no ID of its own
                hints += self._colocated(columns)
            return tuple(hints)
        if self.table.kind is Kind.TIMED:
            return self._timed_hints(columns)
        key = self._key(self.table.routing.upper())
        hints += self._hand_made(key)
        value = columns.get(self.table.routing.lower())
        if value is None or self.source.is_word(value.first, "DEFAULT"):
            left_out = value is None or self.is_default(value)
            if left_out and self.ignore and self._has_no_default(self.table.routing):
                return (*hints, Hint("key", key, Value("empty")))  # the server takes the type's own default
            raise Refuse("key_missing", column=self.table.routing)
        if self.is_default(value):
            if not self.ignore:
                raise Refuse("key_null", column=self.table.routing)
            hints.append(Hint("key", key, Value("empty")))  # which the server makes of it
        else:
            hints.append(
                Hint("key", key, self._constant(value, self.table.routing), column=self.table.routing)
            )
        return tuple(hints)

    def _has_no_default(self, name: str) -> bool:
        """Whether a column is known to take no NULL and to have no default."""
        column = self.table.column(name)
        if column is None or column.facts.generated or column.facts.auto_increment:
            return False
        return column.facts.not_null and column.facts.default is None

    def _timed_hints(self, columns: dict[str, Span]) -> tuple[Hint, ...]:
        key = self._key("ID")
        hints = self._hand_made(key)
        if "id" in columns and not self.is_default(columns["id"]):
            hints.append(Hint("id", key, self._constant(columns["id"], "id")))
        shard_key = self.table.shard_key
        value = columns.get(shard_key.lower()) if shard_key is not None else None
        if shard_key is not None and value is not None and not self.is_default(value):
            hints.append(Hint("key", self._key(shard_key.upper()), self._constant(value, shard_key)))
        if not hints:
            named = f"neither an 'id' nor a '{shard_key}'" if shard_key else "no 'id'"
            raise self._unroutable(f"it has {named}", "Give one, or a hint: /*+ shard(N) */.")
        return tuple(hints)

    def _key(self, column: str) -> Key:
        key = self.keys.key(self.table, column)
        if key is None:
            raise Refuse("unknown_database", database=self.table.keyspace)
        return key

    def _hand_made(self, key: Key) -> list[Hint]:
        """The shard that a hint in a comment names."""
        hinted = self.splicer.hints
        keyspace = self.statement.names.topology.keyspaces[self.table.keyspace]
        shard = hinted.shard
        if hinted.same_shard_as is not None and keyspace.layout is not None:
            shard = keyspace.layout.shard_of(hinted.same_shard_as)
        elif shard is None:
            return []
        if shard is None or keyspace.host_of(shard) is None:
            raise Refuse("unknown_shard", keyspace=keyspace.name, shard=str(shard))
        return [Hint("shard", key, shard=shard)]

    def _colocated(self, columns: dict[str, Span]) -> list[Hint]:
        colocate = self.table.colocate
        if colocate is None:
            return []
        value = columns.get(colocate.column.lower())
        if value is None or self.is_default(value):
            if self.strict is not None and not self.strict.nullable:
                given = value is not None and self.source.is_word(value.first, "NULL")
                raise Refuse("key_null" if given else "key_missing", column=colocate.column)
            return []
        layout = self.statement.names.topology.keyspaces[self.table.keyspace].layout
        key = Key("id", layout)
        if colocate.path is None:
            return [Hint("same", key, self._constant(value, colocate.column))]
        return self._in_json(key, value, json_path(colocate.path))

    def _in_json(self, key: Key, value: Span, path: tuple[str | int, ...]) -> list[Hint]:
        """The ID at a path of a JSON text, or of a JSON_OBJECT of constants."""
        source = self.source
        call = source.is_word(value.first, "JSON_OBJECT") and source.is_op(value.first + 1, "(")
        if path and call and source.closing[value.first + 1] == value.end - 1:
            return self._in_object(key, Span(value.first + 2, value.end - 1), path)
        constant = self.splicer.conditions.constant(value)
        if constant is None or constant.kind not in ("string", "slot", "parameter"):
            raise self._unroutable(
                "its JSON is no constant, so that the ID in it is not known",
                "Give the JSON as a string, or the `id`, or a hint: /*+ same_shard_as(ID) */.",
            )
        return [Hint("json", key, constant, path)] if path else []

    def _in_object(self, key: Key, arguments: Span, path: tuple[str | int, ...]) -> list[Hint]:
        source, found = self.source, None
        spans = list(by_commas(source, arguments))
        for name, value in zip(spans[::2], spans[1::2], strict=False):
            token = source.tokens[name.first]
            if name.end - name.first != 1 or token.kind != STRING or token.literal < 0:
                raise self._unroutable("a name in its JSON_OBJECT is no string", "Give the JSON as a string.")
            raw = source.literals[token.literal]
            self.statement.guard(name)
            if unquote(raw, self.backslashes).decode("utf-8", "replace") == path[0]:
                found = value
        if found is None or self.is_default(found):
            return []
        if len(path) > 1:
            return self._in_json(key, found, path[1:])
        return [Hint("same", key, self._constant(found, str(path[0])))]

    def _constant(self, value: Span, column: str) -> Value:
        constant = self.splicer.conditions.constant(value)
        text = column == self.table.routing and self.table.key_type in (KeyType.TEXT, KeyType.BINARY)
        odd = constant is not None and (
            constant.kind == "binary"
            or (constant.kind == "bytes" and self.statement.names.env.flavour.hex_is_text)
        )  # a text, which an integer column makes a number of by itself
        if constant is None or (text and constant.kind not in TEXTS) or (odd and not text):
            raise self._unroutable(f"its '{column}' is no constant", "Give the value itself.")
        return constant

    def is_default(self, value: Span) -> bool:
        """Whether a value is NULL or DEFAULT."""
        return value.end - value.first == 1 and self.source.is_word(value.first, "NULL", "DEFAULT")

    def _unroutable(self, reason: str, alternative: str) -> Refuse:
        what = f"a row of {self.table.database}.{self.table.name}"
        return Refuse("unroutable_write", what=what, reason=reason, alternative=alternative)


def json_path(path: str) -> tuple[str | int, ...]:
    """The steps of a JSON path (`$.a[0]."b c"`)."""
    steps: list[str | int] = []
    for name, quoted, number in _STEP.findall(path):
        steps.append(int(number) if number else name or quoted.replace('\\"', '"').replace("\\\\", "\\"))
    return tuple(steps)
