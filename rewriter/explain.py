"""EXPLAIN ROUTE: what would be done with a statement, in words, without doing it.

`explain` gives rows of (section, detail), for the proxy's result set and for the command line alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from config.topology import Keyspace, Topology

from .env import Env
from .plan import Plan, Reject, Values
from .planner import Rewriter
from .plans import (
    BindError,
    Bound,
    Builtin,
    Ddl,
    Everywhere,
    HostStatement,
    LoadLocal,
    Merge,
    MultiStatement,
    Notice,
    NotSupported,
    OneHost,
    Opened,
    ReadThenWrite,
    Reorder,
    SetStatement,
    SystemViews,
)
from .plans.gather import Gather
from .plans.inserting import Insert
from .plans.join import Join
from .plans.limits import Operand
from .plans.sharded import Sharded
from .plans.variants import by_variant
from .route.routing import ALL, Comparison, Route
from .text.literals import NotPlain

Rows = list[tuple[str, str]]

Tell = Callable[[str, Mapping[str, str]], Sequence[str]]
"""What an error or warning of the registry says, with its arguments, in lines."""

_Rows = list[tuple[str, str | Notice]]
"""The same with errors and warnings that are not put into words yet."""

_Read = Callable[[bytes, bool], _Rows]
"""How a further statement is read; the second argument says whether it is groups that the shards make."""

MAX_LISTED: Final = 20
"""So many IDs, shards or statements are listed; the rest is counted."""

MAX_SQL: Final = 2000
"""So many characters of one SELECT are shown."""

MAX_UNION: Final = 4
"""So many SELECTs of a host's UNION ALL are shown."""


def explain(
    rewriter: Rewriter,
    sql: bytes,
    env: Env,
    topology: Topology,
    slot: Callable[[str], bytes],
    tell: Tell = lambda name, arguments: [name, *arguments.values()],
    *,
    cached: bool | None = None,
) -> Rows:
    """What would be done with `sql`. `slot` gives the session's values as SQL literals. `cached`: whether the
    plan is in the cache; None: look into `rewriter`. Never raises.
    """
    found: Rows = []
    known = rewriter.cached(sql, env) if cached is None else cached
    for section, detail in _explained(rewriter, sql, env, topology, slot, known):
        lines = tell(detail.name, detail.arguments) if isinstance(detail, Notice) else (detail,)
        found += [(section if number == 0 else "", line) for number, line in enumerate(lines)]
    return found


def _explained(
    rewriter: Rewriter,
    sql: bytes,
    env: Env,
    topology: Topology,
    slot: Callable[[str], bytes],
    cached: bool,
) -> _Rows:
    plan, literals = rewriter.plan(sql, env)
    if plan.sanitized is not None:
        return _explained(rewriter, plan.sanitized, env, topology, slot, cached)
    inner = plan.inner_text(literals)
    if inner is not None:
        return [
            ("plan", plan.in_words),
            *_explained(rewriter, inner, env, topology, slot, rewriter.cached(inner, env)),
        ]
    values = literals + tuple(slot(name) for name in plan.session_slots)
    run = plan  # in its place: its alternative, where one statement a host cannot run it
    bound: Bound | None = None
    problem: BindError | None = None
    if plan.binds:
        try:
            bound = plan.bind(values, topology, _first)
        except BindError as error:
            if isinstance(error, NotSupported) and plan.alternative is not None:
                run = plan.alternative
            else:
                problem = error
    rows: _Rows = [("plan", run.in_words)]
    if problem is not None:
        rows = [("plan", "refused"), ("error", Notice(problem.name, problem.arguments))]
    each = replace(env, each_shard=True)

    def read(sql: bytes, groups: bool) -> _Rows:
        return _bindings(rewriter, sql, each if groups else env, topology, slot)

    run_values = literals + tuple(slot(name) for name in run.session_slots)
    rows += _STEPS[run.__class__](run, run_values, topology, read)
    if plan.narrowed:
        rows += rewriter.reasons(sql, env)
    if bound is not None:
        rows += _bound(plan, bound, topology)
    rows += _caches(plan, values, topology)
    rows.append(("topology", f"version {topology.version}"))
    rows.append(("cache", "plan was cached" if cached else "plan was made now"))
    return rows


def _bindings(
    rewriter: Rewriter, sql: bytes, env: Env, topology: Topology, slot: Callable[[str], bytes]
) -> _Rows:
    """How one piece is read."""
    plan, literals = rewriter.plan(sql, env)
    values = literals + tuple(slot(name) for name in plan.session_slots)
    try:
        bound = plan.bind(values, topology, _first)
    except BindError as error:
        return [("error", Notice(error.name, error.arguments))]
    steps = _STEPS[plan.__class__](plan, values, topology, lambda sql, groups: [])
    about = [row for row in steps if row[0] in ("routing", "id", "key")]
    return about + _bound(plan, bound, topology)


def _gathered(plan: Gather, values: Values, topology: Topology, read: _Read) -> _Rows:
    """Two reads that are joined; or the pieces in the order in which they are gathered, and the rest."""
    if plan.join is not None:
        return _joined(plan.join, values, read)
    rows: _Rows = []
    names = tuple(b"`g%d`" % number for number in range(1, len(plan.pieces) + 1))
    for number, piece in enumerate(plan.pieces, 1):
        link = piece.link
        where = "" if not piece.real else ", as a table that is not temporary"
        if piece.groups is not None:
            where = ", groups made by the shards"
        if piece.top is not None:
            where += ", the first rows of each shard"
        if link is None:
            rows.append((f"piece {number}", f"{piece.label} into g{number}{where}"))
            rows += read(piece.sql(values, piece.shown), piece.each_shard)
            continue
        by = f"by the values of {link.values} in g{link.source + 1}"
        rows.append((f"piece {number}", f"{piece.label} into g{number}{where}, {by}"))
        if not link.bounded:
            rows.append(("scatter", "only when there are too many values for one list"))
        rows.append(("", piece.sql(values, piece.shown, b"...").decode("utf-8", "replace")[:MAX_SQL]))
    host = topology.default or next(iter(topology.hosts), "")
    rows.append(("rest on" if plan.full is None else "combined on", host))
    rows.append(("", plan.rest_sql(values, names).decode("utf-8", "replace")[:MAX_SQL]))
    return rows


def _joined(plan: Join, values: Values, read: _Read) -> _Rows:
    """The two reads of a join."""
    try:
        rows, offset = plan.window(values)
    except BindError as error:
        return [("error", Notice(error.name, error.arguments))]
    found: _Rows = [("read 1", plan.first.label)]
    found += read(plan.first_sql(values, None if rows is None else rows + offset), False)
    if rows is not None and not plan.outer:
        found.append(("", "further rows only if too few of these have one in the other table"))
    column = plan.first.column.decode("utf-8", "replace").replace("`", "")
    kind = ", or NULLs" if plan.outer else ""
    found.append(("read 2", f"{plan.second.label}, by the values of {column}{kind}"))
    found.append(("", plan.second_sql(values, b"...").decode("utf-8", "replace")[:MAX_SQL]))
    return found


def _written(plan: ReadThenWrite, values: Values, topology: Topology, read: _Read) -> _Rows:
    """The SELECT, and the statements that write its rows."""
    rows: _Rows = [("read", plan.select.render(values).decode("utf-8", "replace"))]
    rows += [("then", sql.decode("utf-8", "replace")) for sql in plan.example(values)]
    return rows + _databases(plan, values, topology, read)


def _reordered(plan: Reorder, values: Values, topology: Topology, read: _Read) -> _Rows:
    """The statements that a CALL takes, all of them on one shard."""
    del topology
    try:
        first, *rest = plan.example(values)
    except BindError as error:
        return [("error", Notice(error.name, error.arguments))]
    found: _Rows = [("tables", plan.table), ("keyspace", plan.keyspace), ("read", first.decode())]
    found += read(first, False)
    return found + [("then", sql.decode()) for sql in rest]


def _first(shards: Sequence[int]) -> int:
    return shards[0]


def _caches(plan: Plan, values: Values, topology: Topology) -> _Rows:
    """What a cache has to do with it."""
    found = plan.asked_first(values)
    if found is not None:
        table, groups = found
        cache = table.cache
        asked = ", ".join(map(str, groups)) if groups else "not asked: too many IDs"
        return [("asked first", f"{cache.kind} {cache.address}, outside of transactions: {asked}")]
    rows: _Rows = []
    for one in plan.touches(values, topology):
        told = "all of its rows"
        if one.groups:
            told = ", ".join(map(str, one.groups))
        elif one.shards:
            told = "its rows on shard " + ", ".join(map(str, one.shards))
        rows.append(("invalidates", f"{one.table.name} in {one.table.cache.address}: {told}"))
    return rows


def _refused(plan: Reject, values: Values, topology: Topology, read: _Read) -> _Rows:
    del values, topology, read
    return [("error", Notice(plan.error, plan.arguments))]


def _routed(plan: Sharded, values: Values, topology: Topology, read: _Read) -> _Rows:
    """The tables, and how their shards are found."""
    del read
    keyspace = topology.keyspaces[plan.keyspace]
    rows: _Rows = [("tables", ", ".join(plan.tables)), ("keyspace", keyspace.name)]
    rows += _ids(plan, values, keyspace)
    return rows + [("routing", _route(plan, number)) for number in range(len(plan.routing.routes))]


def _inserted(plan: Insert, values: Values, topology: Topology, read: _Read) -> _Rows:
    """The table, and how many rows it gets."""
    del read
    keyspace = topology.keyspaces[plan.keyspace]
    rows: _Rows = [
        ("tables", plan.table),
        ("keyspace", keyspace.name),
        ("rows", str(len(list(plan.each(values))))),
    ]
    if any(not row.hints for row in plan.rows):
        rows.append(("routing", "a random shard of those open for new objects; the first is shown"))
    return rows


def _databases(plan: Plan, values: Values, topology: Topology, read: _Read) -> _Rows:
    del values, topology, read
    return [("databases", ", ".join(plan.databases))] if plan.databases else []


def _viewed(plan: SystemViews, values: Values, topology: Topology, read: _Read) -> _Rows:
    """Which rows of each view the query asks for, and which of its columns."""
    rows = _databases(plan, values, topology, read)
    for view, limits in zip(plan.views, plan.limits, strict=True):
        databases = _among(limits.schemas, values) or "all databases that the user sees, on all hosts"
        tables = _among(limits.tables, values)
        rows.append(("rows of", f"{view}: {databases}" + (f"; tables {tables}" if tables else "")))
    if plan.reads is None:
        rows.append(("", "with all columns"))
    return rows


def _among(operands: Sequence[Operand] | None, values: Values) -> str:
    """The values, as they are written; "" for any."""
    texts = [
        (b"'" * one.literal + values[one.value]).decode("utf-8", "replace")
        for one in (operands or ())[:MAX_LISTED]
    ]
    more = len(operands or ()) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


_STEPS: Final[Mapping[type[Plan], Callable[[Any, Values, Topology, _Read], _Rows]]] = by_variant(
    {
        OneHost: _databases,
        SystemViews: _viewed,
        LoadLocal: _databases,
        Sharded: _routed,
        Gather: _gathered,
        Everywhere: _databases,
        Ddl: _databases,
        Insert: _inserted,
        ReadThenWrite: _written,
        Reorder: _reordered,
        Builtin: _databases,
        Opened: _databases,
        SetStatement: _databases,
        MultiStatement: _databases,
        Reject: _refused,
    }
)
"""Rows about what is done with a statement, for each variant."""


def _ids(plan: Sharded, values: Values, keyspace: Keyspace) -> _Rows:
    """The constants of the routing columns, decoded."""
    found: _Rows = []
    for comparison in plan.routing.comparisons:
        for text in _decoded(comparison, values, keyspace):
            found.append(("id" if not comparison.key.takes_text else "key", text))
    if len(found) > MAX_LISTED:
        found[MAX_LISTED:] = [("", f"… and {len(found) - MAX_LISTED} more")]
    return found


def _decoded(comparison: Comparison, values: Values, keyspace: Keyspace) -> list[str]:
    try:
        if comparison.key.takes_text:
            placed = comparison.place(values, keyspace)
            return [f"shard {shard}" for shard in sorted(placed)]
        return [describe_id(number, comparison, keyspace) for number in comparison.integers(values)]
    except NotPlain:
        return ["a value that is no plain constant: it does not narrow"]


def describe_id(number: int, comparison: Comparison, keyspace: Keyspace) -> str:
    """An ID with its fields, or what it is hashed to."""
    shard = comparison.key.shard_of_integer(number, keyspace)
    layout = comparison.key.layout
    if layout is None or comparison.key.rule == "modulo":
        return f"{number}: shard {shard}"
    if layout.shard_of(number) is None:
        return f"{number}: matches nothing"
    decomposed = layout.decompose(number).items()
    fields = ", ".join(f"{name} {value}" for name, value in decomposed if name != "reserved")
    absent = keyspace.host_of(shard) is None
    if shard is None:
        return f"{number}: {fields} (matches nothing)"
    return f"{number}: {fields}" + (" (a shard that is in no range)" if absent else "")


def _route(plan: Sharded, number: int) -> str:
    """One table's route in words."""

    def text(route: Route) -> str:
        if route == ALL:
            return "all shards"
        if route.kind == "none":
            return "nothing can match"
        if route.kind == "shards":
            return "hint: shard " + ", ".join(map(str, sorted(route.fixed)))
        if route.kind == "in":
            comparison = plan.routing.comparisons[route.index]
            many = comparison.list_index >= 0 or len(comparison.values) > 1
            name = "key" if comparison.key.rule in ("hash", "modulo") else "ID"
            return f"{name} in list" if many else f"{name} equals constant"
        if route.kind == "between":
            return "ID between constants"
        return "(" + f" {route.kind} ".join(text(part) for part in route.parts) + ")"

    return text(plan.routing.routes[number])


def _bound(plan: Plan, bound: Bound, topology: Topology) -> _Rows:
    rows: _Rows = []
    if bound.scatter:
        rows.append(("scatter", "yes: no condition names an ID"))
    for notice in bound.warnings:
        rows.append(("warning", notice))
    shards = sorted({shard for statement in bound.statements for shard in statement.shards})
    if shards:
        rows.append(("shards", f"{len(shards)}: {_ranges(shards)}"))
    hosts = list(dict.fromkeys(statement.host for statement in bound.statements))
    rows.append(("hosts", f"{len(hosts)}: {', '.join(hosts)}" if hosts else "none: nothing can match"))
    if bound.merge is not None:
        rows.append(("merge", _merge(bound.merge)))
    del plan, topology
    for statement in bound.statements[:MAX_LISTED]:
        rows += _statement(statement)
    if len(bound.statements) > MAX_LISTED:
        rows.append(("", f"… and {len(bound.statements) - MAX_LISTED} more statements"))
    return rows


def _statement(statement: HostStatement) -> _Rows:
    """One host's statement; of a long UNION ALL the first SELECTs and the last."""
    parts = statement.sql.decode("utf-8", "replace").split(") UNION ALL (")
    if len(parts) != len(statement.shards):  # the text is somewhere in a literal, too
        parts = [") UNION ALL (".join(parts)]
    parts = [f"{one[:MAX_SQL]} … ({len(one)} characters)" if len(one) > MAX_SQL else one for one in parts]
    lines = [
        ("  UNION ALL (" if number else "") + part + (")" if number < len(parts) - 1 else "")
        for number, part in enumerate(parts)
    ]
    if len(lines) > MAX_UNION:
        lines[MAX_UNION - 1 : -1] = [f"  … and {len(lines) - MAX_UNION} more …"]
    return [(statement.host if number == 0 else "", line) for number, line in enumerate(lines)]


def _ranges(shards: list[int]) -> str:
    """Ascending numbers as ranges: 1-3, 7."""
    found: list[list[int]] = []
    for shard in shards:
        if found and found[-1][1] == shard - 1:
            found[-1][1] = shard
        else:
            found.append([shard, shard])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in found]
    if len(texts) > MAX_LISTED:
        texts[MAX_LISTED:] = [f"… and {len(texts) - MAX_LISTED} more"]
    return ", ".join(texts)


def _merge(merge: Merge) -> str:
    parts = []
    if merge.aggregates:
        parts.append("combine " + ", ".join(one.function for one in merge.aggregates))
    if merge.order:
        parts.append(f"ordered by {len(merge.order)} key{'s' if len(merge.order) > 1 else ''}")
    if merge.limit is not None:
        parts.append(f"limit {merge.limit}" + (f" offset {merge.offset}" if merge.offset else ""))
    if not parts:
        parts.append("rows as they come")
    return "; ".join(parts)
