"""EXPLAIN ROUTE: what would be done with a statement, in words, without doing it.

`explain` gives rows of (section, detail), for the proxy's result set and for the command line alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from config.topology import Keyspace, Topology

from .env import Env
from .plan import Plan, Reject, Values
from .planner import Rewriter
from .plans import (
    AnyHost,
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
    Opened,
    Passthrough,
    Physical,
    ReadThenWrite,
    Reorder,
    SystemViews,
)
from .plans.cached import CachedSelect, Touching
from .plans.gather import Gather
from .plans.inserting import Insert
from .plans.join import Join
from .plans.sharded import Sharded, ShardSelect, ShardWrite
from .route.routing import ALL, Comparison, Route
from .text.literals import NotPlain

Rows = list[tuple[str, str]]

Tell = Callable[[str, Mapping[str, str]], Sequence[str]]
"""What an error or warning of the registry says, with its arguments, in lines."""

_Rows = list[tuple[str, str | Notice]]
"""The same with errors and warnings that are not put into words yet."""

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
    if isinstance(plan, Opened):
        return _explained(rewriter, plan.text, env, topology, slot, cached)
    values = literals + tuple(slot(name) for name in plan.session_slots)
    rows: _Rows = [("plan", _title(plan))]
    bound: Bound | None = None
    gather = plan if isinstance(plan, Gather) else None
    found = plan if isinstance(plan, ReadThenWrite) else None
    if found is not None:
        pass
    elif not isinstance(plan, Reject | Builtin | MultiStatement | Gather | Reorder):
        try:
            bound = plan.bind(values, topology, _first)
        except BindError as error:
            if isinstance(error, NotSupported):  # by one statement a host
                gather = plan.gather if isinstance(plan, ShardSelect) else None
                found = plan.found if isinstance(plan, ShardWrite) else None
            if gather is None and found is None:
                rows[0] = ("plan", "refused")
                rows.append(("error", Notice(error.name, error.arguments)))
    if gather is not None:
        rows[0] = ("plan", _title(gather))
        if gather.full is not None:
            rows[0] = ("plan", "groups made by the shards, combined by one server")
        values = literals + tuple(slot(name) for name in gather.session_slots)
        each = replace(env, each_shard=True)

        def read(sql: bytes, groups: bool) -> _Rows:
            return _bindings(rewriter, sql, each if groups else env, topology, slot)

        if gather.join is not None:
            rows[0] = ("plan", "rows of one table, then those of another that they name, joined by the proxy")
            rows += _joined(gather.join, values, read)
        else:
            rows += _gathered(gather, values, read, topology)
    elif found is not None:
        rows[0] = ("plan", _title(found))
        values = literals + tuple(slot(name) for name in found.session_slots)
        rows.append(("read", found.select.render(values).decode("utf-8", "replace")))
        rows += [("then", sql.decode("utf-8", "replace")) for sql in found.example(values)]
        rows += _about(found, values, topology)
    elif isinstance(plan, Reorder):
        rows += _reordered(plan, values, lambda sql: _bindings(rewriter, sql, env, topology, slot))
    else:
        rows += _about(plan, values, topology)
    if isinstance(plan, Sharded | Gather | Reject):
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
    about = [row for row in _about(plan, values, topology) if row[0] in ("routing", "id", "key")]
    return about + _bound(plan, bound, topology)


def _gathered(
    plan: Gather, values: Values, read: Callable[[bytes, bool], _Rows], topology: Topology
) -> _Rows:
    """The pieces in the order in which they are gathered, and the rest. `read`: how one is read; its second
    argument tells whether it is groups.
    """
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


def _joined(plan: Join, values: Values, read: Callable[[bytes, bool], _Rows]) -> _Rows:
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


def _reordered(plan: Reorder, values: Values, read: Callable[[bytes], _Rows]) -> _Rows:
    """The statements that a CALL takes, all of them on one shard."""
    try:
        first, *rest = plan.example(values)
    except BindError as error:
        return [("error", Notice(error.name, error.arguments))]
    found: _Rows = [("tables", plan.table), ("keyspace", plan.keyspace), ("read", first.decode())]
    found += read(first)
    return found + [("then", sql.decode()) for sql in rest]


def _first(shards: Sequence[int]) -> int:
    return shards[0]


def _title(plan: Plan) -> str:
    if isinstance(plan, Builtin):
        return f"answered by the proxy ({plan.title})"
    titles: dict[type[Plan], str] = {
        Passthrough: "passed through to one host",
        LoadLocal: "a file of the client's, to one host",
        Physical: "physical database, as written",
        SystemViews: "query on information_schema, with the logical databases",
        AnyHost: "no sharded table: any host",
        ShardSelect: "read from shards",
        Gather: "rows gathered from shards, then run by one server",
        ShardWrite: "write to shards",
        Everywhere: "write to every host",
        Ddl: "definition for every shard",
        ReadThenWrite: "read by a SELECT, then written",
        Reorder: "one row of a list moved between two others",
        Insert: "rows to shards",
        MultiStatement: "several statements, each planned when its turn comes",
        Reject: "refused",
    }
    return next((titles[variant] for variant in type(plan).__mro__ if variant in titles), plan.kind)


def _caches(plan: Plan, values: Values, topology: Topology) -> _Rows:
    """What a cache has to do with it."""
    if isinstance(plan, CachedSelect):
        cache, groups = plan.cached.cache, plan.groups(values)
        asked = ", ".join(map(str, groups)) if groups else "not asked: too many IDs"
        return [("asked first", f"{cache.kind} {cache.address}, outside of transactions: {asked}")]
    rows: _Rows = []
    for one in plan.touches(values, topology) if isinstance(plan, Touching) else ():
        told = "all of its rows"
        if one.groups:
            told = ", ".join(map(str, one.groups))
        elif one.shards:
            told = "its rows on shard " + ", ".join(map(str, one.shards))
        rows.append(("invalidates", f"{one.table.name} in {one.table.cache.address}: {told}"))
    return rows


def _about(plan: Plan, values: Values, topology: Topology) -> _Rows:
    if isinstance(plan, Reject):
        return [("error", Notice(plan.error, plan.arguments))]
    rows: _Rows = []
    if isinstance(plan, Sharded):
        keyspace = topology.keyspaces[plan.keyspace]
        rows += [("tables", ", ".join(plan.tables)), ("keyspace", keyspace.name)]
        rows += _ids(plan, values, keyspace)
        rows += [("routing", _route(plan, number)) for number in range(len(plan.routing.routes))]
    elif isinstance(plan, Insert):
        keyspace = topology.keyspaces[plan.keyspace]
        rows += [
            ("tables", plan.table),
            ("keyspace", keyspace.name),
            ("rows", str(len(list(plan.each(values))))),
        ]
        if any(not row.hints for row in plan.rows):
            rows.append(("routing", "a random shard of those open for new objects; the first is shown"))
    elif plan.databases:
        rows.append(("databases", ", ".join(plan.databases)))
    return rows


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
