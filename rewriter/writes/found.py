"""Planning an UPDATE or DELETE whose rows, or new values, a SELECT must find: over shards, of several tables.

The SELECT reads the keys of the rows to change, and the values of those assignments that need other tables.
It is planned like any SELECT, so it may be gathered; then each table's rows are written by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from config.schema import Kind, Table
from rewriter.plans.read_write import ChangeRows, ReadThenWrite, Setting
from rewriter.plans.read_write import SeveralChanges as SeveralChanges
from rewriter.plans.rowkeys import RowKey, row_key
from rewriter.plans.unchanged import fixed_columns, is_itself
from rewriter.reads.pieces import bounded
from rewriter.route.context import Splicer, Statement
from rewriter.route.hidden import WITH_DELETED, hiding
from rewriter.route.scope import Refuse, Scope, Unsupported, chain_at, chains, chains_within
from rewriter.splice import Part, Template
from rewriter.text.edits import Edits
from rewriter.text.facts import Assigned, Query, Span, TableRef
from rewriter.text.parse_write import Change
from rewriter.text.tokens import Source, quote_name

from .everywhere import differs_at
from .floats import exact_value
from .read_write import databases_of, edits_of, parts_of

_ENDS = ("WHERE", "ORDER", "LIMIT")


class Target(NamedTuple):
    """A table that a statement changes, and its assignments."""

    ref: TableRef
    assigned: tuple[Assigned, ...] = ()


def targets_of(found: Change, scope: Scope) -> list[Target]:
    """The tables that are changed, in the order in which they are named. Raises Refuse."""
    block = found.block
    if found.verb == "DELETE":
        if not found.targets:
            return [Target(block.tables[0])]
        return [Target(_named(one, found, scope)) for one in found.targets]
    if len(block.tables) == 1:
        return [Target(block.tables[0], tuple(block.assignments))]
    targets: dict[TableRef, list[Assigned]] = {}
    for one in block.assignments:
        chain = chain_at(scope.source, one.column.first)
        ref = None if chain is None else scope.table_of(chain, block)
        if ref is None:
            known = all(scope.targets[table].columns is not None for table in block.tables)
            if chain is not None and (known or len(chain.parts) > 1):
                raise Refuse("unknown_column", column=".".join(chain.parts), clause="field list")
            raise _refused(found, f"it cannot be told whose column '{one.name}' is", "Name its table.")
        targets.setdefault(ref, []).append(one)
    return [Target(ref, tuple(mine)) for ref, mine in targets.items()]


def _named(target: TableRef, found: Change, scope: Scope) -> TableRef:
    """The reference that a target of DELETE names."""
    for ref in found.block.tables:
        if target.database is None and ref.label == target.name:
            return ref
        known = scope.targets[ref].database
        if target.database is not None and ref.name == target.name and known == target.database:
            return ref
    raise Refuse("unknown_target", table=target.name)


def plan_found(
    statement: Statement, found: Change, scope: Scope, *, may_scatter: bool
) -> ReadThenWrite | None:
    """The plan of finding the rows first; None when it cannot be so.

    `may_scatter`: the statement may concern all shards. Else its conditions must say which rows. Raises
    Refuse with what such a statement cannot have.
    """
    if found.returning is not None:
        return None
    targets = targets_of(found, scope)
    _check_reading(statement, found, scope, targets)
    if not may_scatter and not _narrowed(statement, found, scope, targets):
        return None
    return _Finding(statement, found, scope, targets).plan()


def _check_reading(statement: Statement, found: Change, scope: Scope, targets: list[Target]) -> None:
    """Refuse, as the server would, subqueries that read what the statement changes; derived tables may."""
    flavour = statement.names.env.flavour
    if flavour.reads_changed_table and not found.targets:
        return
    changed = {scope.targets[target.ref].table: target.ref.label for target in targets}
    pending = list(found.block.queries)
    while pending:
        query = pending.pop()
        for term in query.terms:
            if isinstance(term, Query):
                pending.append(term)
                continue
            pending += term.queries
            for ref in term.tables:
                table = scope.targets[ref].table
                if table is not None and table in changed:
                    raise Refuse(flavour.changed_table_error, table=changed[table], verb=found.verb)


def _narrowed(statement: Statement, found: Change, scope: Scope, targets: list[Target]) -> bool:
    """Whether conditions say which rows of all targets are meant."""
    sharded = [one.ref for one in targets if scope.targets[one.ref].form == "sharded"]
    few = bounded(statement, found.whole, scope)
    first = _clauses(statement.source, found.joined.end)
    for ref in sharded:
        table = scope.targets[ref].table
        by_subquery = table is not None and first is not None and _by_subquery(statement.source, table, first)
        if ref not in few and not (by_subquery and len(found.block.tables) == 1):
            return False
    return True


class _Finding:
    """One statement on its way to a SELECT and the changes."""

    def __init__(self, statement: Statement, found: Change, scope: Scope, targets: list[Target]) -> None:
        self.source = statement.source
        self.flavour = statement.names.env.flavour
        self.splicer = Splicer(statement, scope)
        self.found = found
        self.block = found.block
        self.scope = scope
        self.targets = targets
        self.edits, self.slots = edits_of(self.source)
        self.shown: list[list[Part]] = []
        self.read = False  # a value of an assignment is read

    def plan(self) -> ReadThenWrite | None:
        found, source = self.found, self.source
        keys = [self._key(target) for target in self.targets]
        if any(key is None for key in keys):
            return None
        for at in range(len(source.tokens)):
            if source.is_op(at, ":="):
                raise _refused(found, "it assigns a user variable", "Use SET.")
        self._check_order()
        first = _clauses(source, found.joined.end)
        limited = self.block.limit is not None
        changes = []
        for target, key in zip(self.targets, keys, strict=True):
            assert key is not None
            changes.append(self._change(target, key, limited=limited))
        distinct = b"" if self.read or limited or len(self.targets) > 1 else b"DISTINCT "
        if len(self.block.tables) == 1:
            distinct = b""
        hint = WITH_DELETED + b" " if hiding(self.scope, list(self.scope.targets)) else b""
        parts: list[Part] = [b"SELECT " + hint + distinct]
        if found.first:
            parts = [*parts_of(source, self.edits, 0, found.first), b" ", *parts]
        for number, shown in enumerate(self.shown):
            parts += [b", ", *shown] if number else shown
        parts += [b" FROM ", *self._tables()]
        if first is not None:
            parts += [b" ", *parts_of(source, self.edits, first, len(source.tokens))]
        return ReadThenWrite(
            databases=databases_of(self.scope),
            session_slots=tuple(self.slots.names),
            select=Template(parts),
            writes=changes[0] if len(changes) == 1 else SeveralChanges(tuple(changes)),
            nothing=b"Rows matched: 0  Changed: 0  Warnings: 0" if found.verb == "UPDATE" else b"",
            ignore=found.ignore,
            strict=self._strict(),
        )

    def _strict(self) -> bool:
        """Whether strict mode applies while the server looks for the rows, or to a value that is read."""
        if self.flavour.finding_is_strict or self.read:
            return True
        return self.found.verb == "UPDATE" and (self.found.several or self.block.order_span is None)

    def _key(self, target: Target) -> RowKey | None:
        ref, known = target.ref, self.scope.targets[target.ref]
        if ref.form != "table" or known.table is None or known.form not in ("sharded", "single"):
            return None
        self._check_assigned(target, known.table)
        key = row_key(known.table, ref.label)
        if key is None:
            return None
        nullable = self.block.tables.index(ref) in self.block.nullable
        return None if key.whole and nullable and not known.table.routing else key

    def _check_assigned(self, target: Target, table: Table) -> None:
        fixed = fixed_columns(table)
        strict = table.strict.lower() if table.strict is not None else ""
        for one in target.assigned:
            name = one.name.lower()
            if name not in fixed | {strict} or is_itself(
                self.scope, self.source, self.block, target.ref, one
            ):
                continue
            if name == strict:
                reason = "the rows are on several shards"
                raise Refuse("strict_colocation", table=table.name, column=one.name, reason=reason)
            raise Refuse("routing_column_update", column=one.name, table=table.name)

    def _check_order(self) -> None:
        """Refuse assignments whose outcome depends on which one is made first, unless the write makes all of
        them in their own order.
        """
        names = {(target.ref, one.name.lower()): one for target in self.targets for one in target.assigned}
        for target in self.targets:
            before: set[str] = set()
            for one in target.assigned:
                mixed = len(self.block.tables) > 1 or self._foreign(one, target.ref)
                for ref, name in self._columns(one.value):
                    other = (ref, name) in names and ref is not target.ref
                    if mixed and (other or (ref is target.ref and name in before)):
                        reason = f"'{one.name}' is given a value of '{name}', which it changes, too"
                        raise _refused(self.found, reason, "Write two statements.")
                before.add(one.name.lower())

    def _columns(self, span: Span) -> Iterable[tuple[TableRef, str]]:
        """The columns of the statement's own tables that an expression names, also in its subqueries."""
        for chain, block in chains_within(self.source, span, self.block):
            ref = self.scope.table_of(chain, block)
            if ref is not None and ref in self.block.tables:
                yield ref, chain.column.lower()

    def _foreign(self, one: Assigned, ref: TableRef) -> bool:
        """Whether a value needs more than the row that is changed."""
        value = one.value
        if any(value.first <= query.first < value.end for query in self.block.queries):
            return True
        if self._everywhere(ref) and any(differs_at(self.source, at) for at in range(*value)):
            return True
        known = all(self.scope.targets[table].columns is not None for table in self.block.tables)
        for chain in chains(self.source, value, self.block):
            found = self.scope.table_of(chain, self.block)
            if found is not None and found is not ref:
                return True
            if found is None and not known:
                return True
        return False

    def _everywhere(self, ref: TableRef) -> bool:
        """Whether every host writes it, and all must do the same."""
        table = self.scope.targets[ref].table
        return table is not None and table.kind is Kind.REFERENCE

    # the parts

    def _change(self, target: Target, key: RowKey, *, limited: bool) -> ChangeRows:
        source, ref = self.source, target.ref
        known = self.scope.targets[ref].table
        settings = [self._setting(one, ref) for one in target.assigned]
        written = key
        if self.found.targets and known is not None:  # a DELETE of one table, which has no alias
            written = row_key(known, ref.name) or key
        changed = {one.name.lower() for one in target.assigned}
        by_key = {name for name in changed for column in key.columns if quote_name(name) in column}
        if by_key and len(key.columns) > 1 and sum(isinstance(one.value, int) for one in settings) > 1:
            reason = "it changes the columns that name its rows"
            raise _refused(self.found, reason, "Write them one by one.")
        first = len(self.shown)
        self.shown += [[column] for column in key.columns]
        return ChangeRows(
            head=Template(self._head(ref)),
            settings=tuple(settings),
            key=written,
            first=first,
            tail=Template([] if self._everywhere(ref) else _still_true(source, self.edits, self.found)),
            limited=limited,
        )

    def _setting(self, one: Assigned, ref: TableRef) -> Setting:
        label = quote_name(ref.label) + b"." if len(self.block.tables) > 1 else b""
        column = Template([label + quote_name(one.name)])
        if not self._foreign(one, ref):
            return Setting(column, Template(parts_of(self.source, self.edits, *one.value)))
        self.read = True
        text = tuple(parts_of(self.source, self.edits, *one.value))
        table = self.scope.targets[ref].table
        text = exact_value(self.splicer, self.block, one.value, text, table, one.name)
        self.shown.append([b"(", *text, b")"])
        return Setting(column, len(self.shown) - 1)

    def _head(self, ref: TableRef) -> list[Part]:
        """What stands before SET's assignments, or before WHERE."""
        source, found = self.source, self.found
        first = found.targets[0].span.first if found.targets else found.joined.first
        said = [
            at for at in range(found.first, first) if source.is_word(at, "LOW_PRIORITY", "IGNORE", "QUICK")
        ]
        words: list[Part] = [b" ".join(source.text(at, at + 1) for at in (found.first, *said))]
        name = parts_of(source, self.edits, *ref.span)
        if found.verb == "UPDATE":
            alias = [b" AS " + quote_name(ref.alias)] if ref.alias is not None else []
            return [*words, b" ", *name, *alias, b" SET "]
        alias = [b" AS " + quote_name(ref.alias)] if ref.alias is not None and not found.targets else []
        return [*words, b" FROM ", *name, *alias]

    def _tables(self) -> list[Part]:
        """The tables with their joins."""
        if len(self.block.tables) > 1 or self.block.tables[0].form != "table":
            return parts_of(self.source, self.edits, *self.found.joined)
        ref = self.block.tables[0]
        parts = parts_of(self.source, self.edits, *ref.span)
        return [*parts, b" AS " + quote_name(ref.alias)] if ref.alias is not None else parts


def _refused(found: Change, reason: str, alternative: str) -> Refuse:
    return Unsupported(what=f"this {found.verb}", reason=reason, alternative=alternative)


def _clauses(source: Source, first: int) -> int | None:
    """Where WHERE, ORDER BY or LIMIT begins; None when there is none."""
    at = first
    while at < len(source.tokens):
        if source.is_word(at, *_ENDS) and not source.is_op(at - 1, "."):
            return at
        at = source.closing.get(at, at) + 1
    return None


def _by_subquery(source: Source, table: Table, first: int) -> bool:
    """Whether the routing column is compared with a subquery."""
    for at in range(first, len(source.tokens)):
        chain = chain_at(source, at)
        if chain is None or chain.column != table.routing.upper():
            continue
        opens = chain.end + 1 if source.is_word(chain.end, "IN") or source.is_op(chain.end, "=") else -1
        if opens > 0 and source.is_op(opens, "(") and source.is_word(opens + 1, "SELECT", "WITH"):
            return True
    return False


def _still_true(source: Source, edits: Edits, found: Change) -> list[Part]:
    """The condition once more, so that no row is changed that somebody else has changed meanwhile; nothing
    when it has subqueries or other tables, which the write itself could not answer.
    """
    where = found.block.where
    if where is None or found.several:
        return []
    if any(where.first <= query.first < where.end for query in found.block.queries):
        return []
    return [b" AND (", *parts_of(source, edits, *where), b")"]
