"""The front door: a statement in, its plan out.

On a hit: one regular-expression pass and one look-up. On a miss the statement is opened (executable
comments, see text/opening.py), cut into tokens and shown to `RULES`, in order, until one of them knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from config.schema import Schema
from config.topology import Topology

from .around import Around
from .cache import Cache, Guarded, Leaving
from .caching import with_caches
from .checked import checked, judged
from .connection_state import with_effects
from .enclosed import enclosed
from .env import Env, database_of
from .fingerprint import digest_of
from .plain.builtins import kill, set_, transaction, use
from .plain.caches import flush_cache
from .plain.ddl import define
from .plain.diagnostics import get_diagnostics
from .plain.load import load
from .plain.locks import lock, switch_keys
from .plain.maintenance import maintain
from .plain.show import describe, show
from .plain.views import system_views
from .plan import Plan, Reject
from .plans import MultiStatement, Opened
from .plans.builtins import Empty
from .reasons import Reasons, reasons
from .route.context import Statement, refused
from .route.scope import Limits, Names, Refuse
from .route.values import slot_at
from .rows import Folded, fold
from .rules import admin, confined, crowded, do, explain, explain_route, prepared_text, query, too_deep
from .sql.statements.calls import with_plain_calls
from .sql.statements.facts import facts_of
from .sql.statements.functions import DIGESTS, foreign_calls
from .sql.statements.routines import names_in
from .text.characters import MASKED
from .text.names import with_plain_names
from .text.opening import opened
from .text.split import has_many_statements, only_first
from .text.tokens import Source, Unreadable, read
from .text.written import writing
from .writes.change import change
from .writes.insert import insert
from .writes.reorder import reorder


class Parameters(NamedTuple):
    """The parameters of a prepared statement: its text, and the byte offset and slot of each `?` in it."""

    text: bytes
    places: tuple[tuple[int, str], ...]

    def fill(self, values: Iterable[bytes]) -> bytes:
        """The text with literals in the place of the parameters."""
        pieces, at = [], 0
        for (offset, _), value in zip(self.places, values, strict=True):
            pieces += [self.text[at:offset], b" ", value, b" "]
            at = offset + 1
        return b"".join([*pieces, self.text[at:]])


Rule = Callable[[Statement], Plan | None]

Differ = Callable[[str, tuple[str, ...]], None]
"""Is told a statement's digest, and what its readers did not agree on."""

RULES: Final[tuple[Rule, ...]] = (
    crowded,
    transaction,
    set_,
    use,
    kill,
    flush_cache,
    explain_route,
    show,
    get_diagnostics,
    describe,
    load,
    system_views,
    confined,
    lock,
    switch_keys,
    too_deep,
    explain,
    query,
    insert,
    change,
    reorder,
    do,
    maintain,
    define,
    admin,
)
"""Each takes a statement and gives its plan, or None when it is not for this rule to say."""


LONG: Final = 1 << 15
"""Statements of more bytes take a while to plan: `Rewriter.lookup`, `make` and `keep` do it in steps. Longer
fingerprints are not kept: they are worth little, and many of them would fill the memory."""

VALUES_FOR_EACH: Final = 5
"""So many times limits.in_list literals a statement on sharded tables may have, besides lists. Not INSERT."""

MAX_SHORT: Final = 1000
"""Capacity of each of the dictionaries that find a plan without cutting the statement: by all of it but an
integer at its end (behind a space, or not), by all but a string or a list, by the first row of an INSERT."""

SHORT_TEXT: Final = 2000
"""What the former are found by has at most so many bytes."""

_DIGITS: Final = b"0123456789"

MAX_FOLDED: Final = 1 << 21
"""The last ones' fingerprints have at most so many together."""


class Lifted(NamedTuple):
    """A statement, cut. The fingerprint b"" is none: it cannot be cut. `folded`: an INSERT of many rows with
    its first one only.
    """

    sql: bytes
    fingerprint: bytes
    literals: tuple[bytes, ...]
    folded: Folded | None = None


class Made(NamedTuple):
    """A plan, and the literals that it depends on. `guards` None: it is not for other statements. `folded`:
    the plan of the statement with less rows, of which this one was made. `differences`: what the two readers
    of the statement did not agree on, in words without literals.
    """

    plan: Plan
    literals: tuple[bytes, ...]
    guards: set[int] | None = None
    folded: Plan | None = None
    differences: tuple[str, ...] = ()


def lift(sql: bytes, env: Env) -> Lifted:
    """Cut a statement. For any thread."""
    fingerprint, literals = _fingerprint(sql, env)
    return Lifted(sql, fingerprint, literals, fold(fingerprint, literals))


def not_plain(sql: bytes, env: Env, *, raw: bool = False) -> Plan | None:
    """What is done with a text that might be read in several ways (see opening.py); None when it cannot.
    `raw`: it is not masked yet, though its character set asks for it. For any thread.
    """
    if not raw and env.charset in MASKED and not sql.isascii():
        return None  # it was opened before it was masked
    many = has_many_statements(sql, env)
    try:
        text = opened(sql, env)
    except Unreadable as error:
        return MultiStatement() if many else _unreadable(str(error))
    if text is sql:
        return None
    if many:
        return MultiStatement(comments=only_first(sql, env))
    if not text.strip(b" \t\r\n\f\v;"):
        return Empty()  # a comment for servers of another kind
    return Opened(text=text)


class Rewriter:
    """Plans statements for one schema and one topology. Not for several threads, except where a method says
    so.
    """

    __slots__ = (
        "_around",
        "_behind_stem",
        "_cache",
        "_differ",
        "_enclosed",
        "_folded",
        "_folded_bytes",
        "_leaving",
        "_limits",
        "_schema",
        "_short",
        "_topology",
        "differences",
        "generation",
        "hits",
        "misses",
    )

    def __init__(
        self,
        schema: Schema,
        topology: Topology,
        *,
        cache_size: int = 10_000,
        in_list: int = 10_000,
        parse_depth: int = 200,
        differ: Differ | None = None,
        leaving: Leaving | None = None,
    ) -> None:
        """`in_list`: so many values may be in one IN list of a routing column. `parse_depth`: so deep may
        parentheses nest in a statement that has to be looked into. `differ` is told of statements that the
        two readers have not read alike, `leaving` of plans that the cache drops to make room, with their
        keys.
        """
        self._leaving = leaving
        self._limits = Limits(in_list, parse_depth)
        self._schema = schema
        self._topology = topology
        self._cache = Cache(cache_size, leaving)
        self._short: dict[tuple[bytes, bytes], Plan] = {}
        self._behind_stem: dict[tuple[bytes, bytes], Plan] = {}
        self._enclosed: dict[tuple[tuple[bytes, ...], bytes], Plan] = {}
        self._around = Around()
        self._folded: dict[tuple[bytes, bytes], Plan] = {}
        self._folded_bytes = 0  # of their fingerprints
        self.generation = object()
        """What a plan that is kept elsewhere is known by to be of this rewriter."""
        self._differ = differ
        self.hits = 0
        self.misses = 0
        self.differences = 0
        """So many plans are wider because the two readers of their statements did not agree."""

    @property
    def schema(self) -> Schema:
        """The schema that plans are made for."""
        return self._schema

    @property
    def limits(self) -> Limits:
        """What statements may ask for."""
        return self._limits

    @property
    def topology(self) -> Topology:
        """The topology that plans are made for."""
        return self._topology

    @property
    def entries(self) -> int:
        """How many fingerprints are in the cache."""
        return len(self._cache)

    @property
    def dropped(self) -> int:
        """How often a part of the cache was dropped to make room."""
        return self._cache.dropped

    def kept(self, only: Container[Plan] | None = None) -> Iterator[tuple[Plan, str, str]]:
        """The plans in the cache (or `only` these), each with its statement's digest and current database (""
        for none).
        """
        for (fingerprint, key), plan in self._cache.items():
            if only is None or plan in only:
                yield plan, digest_of(fingerprint), database_of(key)

    def fingerprints(self) -> Iterator[tuple[Plan, bytes, bytes]]:
        """The same plans, each with its statement's fingerprint and the key of its environment."""
        for (fingerprint, key), plan in self._cache.items():
            yield plan, fingerprint, key

    def replaced(self, topology: Topology, schema: Schema | None = None) -> Rewriter:
        """One for another topology (and schema), which counts on. This one plans on for the statements at
        work, but has forgotten its plans.
        """
        made = Rewriter(
            schema or self._schema,
            topology,
            cache_size=self._cache.capacity,
            in_list=self._limits.in_list,
            parse_depth=self._limits.parse_depth,
            differ=self._differ,
            leaving=self._leaving,
        )
        made.hits, made.misses, made.differences = self.hits, self.misses, self.differences
        self._cache.clear()
        self._short.clear()
        self._behind_stem.clear()
        self._enclosed.clear()
        self._around.clear()
        self._folded.clear()
        self._folded_bytes = 0
        return made

    def plan(self, sql: bytes, env: Env) -> tuple[Plan, tuple[bytes, ...]]:
        """The plan of a statement and its literals, to bind it with. Never raises."""
        found = self.find(sql, env)
        return found if found is not None else self._miss(sql, env)

    def find(self, sql: bytes, env: Env) -> tuple[Plan, tuple[bytes, ...]] | None:
        """As `plan`; None for a statement that is to be planned first."""
        before, _, last = sql.rpartition(b" ")
        stem = b""
        if last.isdigit():
            short = self._short.get((before, env.key))
            if short is not None:
                self.hits += 1
                return short, (last, b"")
            around = self._around.find(sql, env.key)
            if around is not None:  # LIMIT 50
                self.hits += 1
                return around
        elif last[-1:].isdigit():  # id=5
            stem = sql.rstrip(_DIGITS)
            plan = self._behind_stem.get((stem, env.key))
            if plan is not None:
                self.hits += 1
                return plan, (sql[len(stem) :], b"")
        outside, literal = enclosed(sql)
        if outside:
            plan = self._enclosed.get((outside, env.key))
            if plan is not None:
                self.hits += 1
                return plan, (literal, b"")
        if not last.isdigit():
            around = self._around.find(sql, env.key)
            if around is not None:
                self.hits += 1
                return around
        texts, literals = zip(*env.findall(sql + b"\0"), strict=True)
        if not literals[-1] and literals.count(b"") == 1:
            entry = self._cache.get((b"\0".join(texts), env.key))
            if entry is not None:
                if not isinstance(entry, Guarded):
                    self.hits += 1
                    if literals == (last, b"") and texts == (before + b" ", b"\0"):
                        self._remember(self._short, before, len(before), env, entry)
                    elif stem and texts == (stem, b"\0"):
                        self._remember(self._behind_stem, stem, len(stem), env, entry)
                    elif outside and literals == (literal, b"") and texts == outside:
                        self._remember(self._enclosed, outside, sum(map(len, outside)), env, entry)
                    else:
                        self._around.put(sql, env.key, entry, texts, literals)
                    return entry, literals
                plan = entry.plans.get(tuple([literals[index] for index in entry.literals]))
                if plan is not None:
                    self.hits += 1
                    self._around.put(sql, env.key, plan, texts, literals, entry.literals)
                    return plan, literals
        return None

    def parameters(self, sql: bytes, env: Env) -> Parameters:
        """Where the parameters of a prepared statement stand."""
        sql = sql.removesuffix(b"\0")
        fingerprint, literals = _fingerprint(sql, env)
        try:
            source = _without_end(read(sql, literals, env)) if fingerprint else None
            source = source and _plain(source, env)
        except Unreadable:
            source = None
        if source is None:
            return Parameters(sql, ())
        places = [(source.tokens[at].start, _slot_of(source, at)) for at in source.marks]
        return Parameters(sql, tuple(places))

    def reasons(self, sql: bytes, env: Env) -> Reasons:
        """Which conditions narrow a statement, or would: for EXPLAIN ROUTE. Never raises."""
        statement = self.statement(sql, env)
        return reasons(statement) if statement is not None else []

    def statement(self, sql: bytes, env: Env) -> Statement | None:
        """A statement as rules get it, for who wants to know more of it than its plan; None for one that
        cannot be read.
        """
        fingerprint, literals = _fingerprint(sql.removesuffix(b"\0"), env)
        try:
            source = _without_end(read(sql, literals, env)) if fingerprint else None
            names = Names(self._schema, self._topology, env, self._limits)
            return Statement(_plain(source, env), names) if source is not None else None
        except Unreadable:
            return None

    def names(self, sql: bytes, env: Env, behind: str = "") -> frozenset[str]:
        """Unqualified names in a statement and `*`, in lower case. `behind`: only those behind the last of
        these words.
        """
        statement = self.statement(sql, env)
        if statement is None:
            return frozenset()
        source = statement.source
        tokens = range(len(source.tokens))
        first = max((at for at in tokens if behind and source.is_word(at, behind)), default=-1)
        return frozenset(
            source.at(at).name.lower()
            for at in tokens[first + 1 :]
            if source.is_op(at, "*") or (source.is_name(at) and not source.is_op(at + 1, "."))
        )

    def cached(self, sql: bytes, env: Env) -> bool:
        """Whether `plan` would find the statement's plan without making it."""
        fingerprint, literals = _fingerprint(sql, env)
        entry = self._cache.get((fingerprint, env.key)) if fingerprint else None
        if isinstance(entry, Guarded):
            return tuple(literals[index] for index in entry.literals) in entry.plans
        return entry is not None

    def _remember(self, kept: dict[Any, Plan], text: Any, size: int, env: Env, plan: Plan) -> None:
        """The plan of a statement whose only literal is an integer at its end, a string or a list: the next
        one with the same `text` around it, of `size` bytes, needs no cutting.
        """
        if size > SHORT_TEXT:
            return
        if len(kept) >= MAX_SHORT:
            kept.clear()
        kept[text, env.key] = plan

    def _miss(self, sql: bytes, env: Env) -> tuple[Plan, tuple[bytes, ...]]:
        sql = sql.removesuffix(b"\0")  # to the servers it ends there, and some clients send the NUL of C
        odd = not_plain(sql, env)
        if odd is not None:
            return odd, (b"",)
        lifted = lift(sql, env)
        found = self.lookup(lifted, env) if lifted.folded is not None else None
        if found is not None:
            return found
        made = self.make(lifted, env)
        self.keep(lifted, env, made)
        return made.plan, made.literals

    def lookup(self, lifted: Lifted, env: Env) -> tuple[Plan, tuple[bytes, ...]] | None:
        """What the cache has for a statement."""
        entry = self._cache.get((lifted.fingerprint, env.key)) if lifted.fingerprint else None
        if isinstance(entry, Guarded):
            entry = entry.plans.get(tuple([lifted.literals[index] for index in entry.literals]))
        if entry is None and lifted.folded is not None:
            plan = self._folded.get((lifted.folded.fingerprint, env.key))
            entry = plan.with_rows(lifted.folded) if plan is not None else None
            if entry is not None and 0 < len(lifted.fingerprint) <= LONG:
                self._cache.put((lifted.fingerprint, env.key), entry)
        if entry is None:
            return None
        self.hits += 1
        return entry, lifted.literals

    def make(self, lifted: Lifted, env: Env) -> Made:
        """Plan a statement that is plain (`not_plain`), without the cache. For any thread; `keep` the result
        then.
        """
        with writing(env):
            return self._make(lifted, env)

    def _make(self, lifted: Lifted, env: Env) -> Made:
        sql, fingerprint, literals, folded = lifted
        if folded is not None:
            one = self._make(Lifted(folded.sql, folded.fingerprint, folded.literals), env)
            if one.guards == set() and one.plan.takes_rows(folded):
                return Made(one.plan.with_rows(folded), literals, set(), one.plan)
        many = has_many_statements(sql, env)
        if not fingerprint:
            reason = "a quote or a comment is not closed, or there is a NUL byte"
            return Made(MultiStatement() if many else _unreadable(reason), (b"",))
        names = Names(self._schema, self._topology, env, self._limits)
        most = VALUES_FOR_EACH * self._limits.in_list
        if len(literals) > most and _looked_into(sql, names):
            told = {"count": str(len(literals) - 1), "limit": str(most)}
            return Made(Reject(error="too_many_values", arguments=told), literals)
        try:
            source = _without_end(read(sql, literals, env))
            statement = Statement(_plain(source, env), names)
        except Unreadable as error:
            return Made(MultiStatement() if many else _unreadable(str(error)), (b"",))
        plan = MultiStatement(comments=only_first(sql, env)) if many else _planned(statement)
        differences = tuple(statement.second.differences)
        return Made(plan, literals, statement.guards, differences=differences)

    def keep(self, lifted: Lifted, env: Env, made: Made) -> None:
        """Remember what `make` gave, for the schema and topology of now."""
        self.misses += 1
        if made.differences:
            self.differences += 1
            if self._differ is not None:
                self._differ(digest_of(lifted.fingerprint), made.differences)
        if lifted.folded is not None and made.folded is not None:
            self._folded_bytes += len(lifted.folded.fingerprint)
            if len(self._folded) >= MAX_SHORT or self._folded_bytes > MAX_FOLDED:
                self._folded.clear()
                self._folded_bytes = len(lifted.folded.fingerprint)
            self._folded[lifted.folded.fingerprint, env.key] = made.folded
        if made.guards is not None and len(lifted.fingerprint) <= LONG:
            dropped = self._cache.dropped
            self._cache.put_plan((lifted.fingerprint, env.key), made.plan, made.guards, made.literals)
            if self._cache.dropped != dropped:  # the plans that are in use are to be looked for in it again
                self._short.clear()
                self._behind_stem.clear()
                self._enclosed.clear()
                self._around.clear()


def _looked_into(sql: bytes, names: Names) -> bool:
    """Whether a long statement, if it is no INSERT, would have to be read as one on sharded tables."""
    logical = names.schema.databases.get(names.env.database or "")
    inserts = sql.lstrip()[:7].upper().startswith((b"INSERT", b"REPLACE"))
    return logical is not None and logical.keyspace is None and not inserts


def _slot_of(source: Source, at: int) -> str:
    found = slot_at(source, at)
    return found[0] if found is not None else ""


def _fingerprint(sql: bytes, env: Env) -> tuple[bytes, tuple[bytes, ...]]:
    texts, literals = zip(*env.findall(sql + b"\0"), strict=True)
    complete = not literals[-1] and literals.count(b"") == 1
    return (b"\0".join(texts), literals) if complete else (b"", ())


def _without_end(source: Source) -> Source:
    """The statement without semicolons at its end."""
    tokens = list(source.tokens)
    while tokens and tokens[-1].text == ";" and tokens[-1].kind == "operator":
        tokens.pop()
    return source if len(tokens) == len(source.tokens) else replace(source, tokens=tuple(tokens))


def _plain(source: Source, env: Env) -> Source:
    """The source with its names and calls as the server of `env` takes them."""
    return with_plain_calls(with_plain_names(source, flavour=env.flavour), flavour=env.flavour)


def _planned(statement: Statement) -> Plan:
    if not statement.source.tokens:
        if statement.source.sql.strip(b" \t\r\n\f\v;"):
            return Empty()  # comments
        return Reject(error="empty_query")
    source, prepared = statement.source, prepared_text(statement)
    plan = _by_rules(statement)
    names = frozenset[str]()
    if plan.runs_code:
        names = names_in(source) if prepared is None else names_in(source) | names_in(prepared)
    facts = facts_of(source, flavour=statement.names.env.flavour, prepared=prepared)
    # a server commits before it looks for the table
    reaches = plan.runs_code or bool(plan.unknown_table)
    commits = plan.implicit_commit or (reaches and facts.commits)
    return replace(plan, facts=facts, names=names, implicit_commit=commits)


def _by_rules(statement: Statement) -> Plan:
    plan = _first_that_knows(statement)
    return plan if plan.refusal is None else judged(statement, plan.refusal)


def _first_that_knows(statement: Statement) -> Plan:
    """The plan of the first rule that takes the statement."""
    try:
        for rule in RULES:
            plan = rule(statement)
            if plan is not None:
                plan = with_effects(statement, _without_functions(statement, checked(statement, plan)))
                return with_caches(statement, plan) if statement.names.schema.cached else plan
    except Refuse as refusal:
        return refused(refusal)
    except RecursionError:
        return _unreadable("the statement is nested too deep")
    except Unreadable as error:
        return _unreadable(str(error))
    return _unreadable(f"unknown statement {statement.source.tokens[0].text}")


def _without_functions(statement: Statement, plan: Plan) -> Plan:
    """The plan, but stored functions are not where the shards are."""
    source, env = statement.source, statement.names.env
    if plan.without_functions:
        for at in foreign_calls(source, flavour=env.flavour):
            if source.is_word(at, *DIGESTS) and not source.is_op(at - 1, "."):
                continue  # the server knows whether it has it
            database = source.at(at - 2).name if source.is_op(at - 1, ".") else env.database
            name = f"{database}.{source.at(at).name}" if database else source.at(at).name
            # probe: it may be no call, as LATERAL (…) on a server that does not have that
            return Reject(error="function_not_on_shards", arguments={"function": name}, probe=True)
    return plan


def _unreadable(reason: str) -> Plan:
    """The plan of what this cannot read: a server shall say what is wrong with it."""
    arguments = {"reason": f"You have an error in your SQL syntax: {reason}"}
    return Reject(error="syntax_error", arguments=arguments, probe=True)
