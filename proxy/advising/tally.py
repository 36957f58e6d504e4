"""The kinds of statements of a log: counted by digest, as SHOW PROXY QUERIES does, and planned.

Memory is bounded: of very many kinds those that came seldom are forgotten, but for how many they were and how
they would run.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from config.flavour import Flavour
from proxy.errors import REGISTRY
from rewriter.advice.cost import RANK, Cost, Way, cost_of
from rewriter.advice.samples import Cut, filled, into_of, of_digest
from rewriter.env import Env
from rewriter.fingerprint import digest, digest_of
from rewriter.planner import Lifted, Rewriter, lift, not_plain
from rewriter.text.split import cut, trim

from .entries import CUT_SHORT, Entry, Notes

MAX_KINDS: Final = 20_000
"""So many kinds of statements are kept."""

_SYNTAX: Final = 1064

MAX_KNOWN: Final = 1 << 26
"""So many bytes of fingerprints are known by their kinds, before they are looked up anew."""

MAX_SAMPLE: Final = 1 << 16
LONGEST: Final = 2000
"""Characters of a digest."""

ALWAYS: Final = 50
SELDOM: Final = 64
"""So many executions of each kind are planned with their values, and then one in so many."""


@dataclass(slots=True, eq=False)
class Counted:
    """A kind of statement. `seconds`, `examined` and `sent` are sums, of those executions (`timed`) of which
    the log tells. `ways`: how executions would run; `reached`: the shards of all `measured` ones. `cost` is
    the worst one's, which `sample` and `env` are of.
    """

    digest: str
    database: str | None
    sample: bytes
    env: Env
    cost: Cost
    count: int = 0
    timed: int = 0
    seconds: float = 0.0
    examined: int = 0
    sent: int = 0
    measured: int = 0
    reached: int = 0
    ways: Counter[Way] = field(default_factory=Counter)

    @property
    def shards(self) -> float:
        """How many shards an execution reaches in the mean."""
        return self.reached / self.measured if self.measured else 0.0

    @property
    def unread(self) -> bool:
        """Whether it is a syntax error, which may be because it is no SQL at all."""
        error = self.cost.error
        return error is not None and REGISTRY[error.name].code == _SYNTAX

    @property
    def work(self) -> float:
        """How many times shards are read or written, by all executions."""
        return self.shards * self.count

    @property
    def weight(self) -> float:
        """What it costs, to put those first that cost most."""
        return max(self.work, float(self.count))


class Tally:
    """Counts the statements of a log. `env` has the current database where the log does not tell one; with
    `renamed` also where it tells one that the schema does not have.
    """

    def __init__(self, rewriter: Rewriter, env: Env, notes: Notes, *, renamed: bool = False) -> None:
        self.rewriter = rewriter
        self.kinds: dict[tuple[str, str | None], Counted] = {}
        self.forgotten: Counter[Way] = Counter()
        self.forgotten_kinds: Counter[Way] = Counter()
        self.statements = 0
        self.unread = 0  # of these, such as are `Counted.unread`
        self._env = env
        self._renamed = renamed
        self._notes = notes
        self._envs: dict[tuple[str | None, bool], Env] = {}
        self._known: dict[tuple[bytes, Env], Counted] = {}
        self._known_bytes = 0

    def serve(self, flavour: Flavour, version: str) -> None:
        """From now on statements are read as a server of this version reads them."""
        numbers = [int(one) for one in re.findall(r"\d+", version)[:3]]
        major, minor, patch = [*numbers, 0, 0, 0][:3]
        self._env = replace(self._env, flavour=flavour, server_version=major * 10000 + minor * 100 + patch)
        self._envs.clear()
        self._known.clear()

    def add(self, entry: Entry) -> None:
        """Count a statement."""
        env = self._env_of(entry)
        sql = entry.sql
        if entry.digest:
            try:
                sql = of_digest(sql, self._width(sql, env))
            except Cut:
                self._notes.skipped[CUT_SHORT] += 1
                return
        self._add(sql, env, entry)

    def _env_of(self, entry: Entry) -> Env:
        database = entry.database
        if database is None or (self._renamed and database not in self.rewriter.schema.databases):
            database = self._env.database
        found = self._envs.get((database, entry.parameters))
        if found is None:
            found = replace(
                self._env, database=database, parameters=entry.parameters, ignore_space=entry.digest
            )
            if len(self._envs) > 1000:
                self._envs.clear()
            self._envs[database, entry.parameters] = found
        return found

    def _width(self, sql: bytes, env: Env) -> int:
        """How many columns the table of an INSERT without columns has."""
        table = self.rewriter.schema.table(env.database or "", into_of(sql).decode("utf-8", "replace"))
        return 0 if table is None else len(table.logical_columns)

    def _add(self, sql: bytes, env: Env, entry: Entry) -> None:
        lifted = lift(sql, env)
        fingerprint = lifted.fingerprint if lifted.folded is None else lifted.folded.fingerprint
        counted = self._known.get((fingerprint, env)) if fingerprint else None
        if counted is None:
            odd = not_plain(sql, env)
            if odd is not None and odd.sanitized is not None:
                sql = odd.sanitized
                lifted = lift(sql, env)
                fingerprint = lifted.fingerprint if lifted.folded is None else lifted.folded.fingerprint
            elif (odd is not None and odd.in_parts) or self._many(sql, env):
                self._cut(sql, env, entry)
                return
            counted = self._counted(sql, lifted, fingerprint, env)
        self._count(counted, entry)
        if counted.measured < ALWAYS or counted.count % SELDOM == 0:
            self._measure(counted, sql, lifted, env, entry.times)

    def _many(self, sql: bytes, env: Env) -> bool:
        text = trim(sql)
        return b";" in text and cut(text, 0, env).following is not None

    def _cut(self, sql: bytes, env: Env, entry: Entry) -> None:
        """A text of several statements; the log tells no time of each."""
        text, at = trim(sql), 0
        while at < len(text):
            piece = cut(text, at, env)
            one = text[piece.start : piece.end].strip()
            if one and len(one) < len(sql):
                self._add(one, env, entry._replace(seconds=None, examined=None, sent=None))
            at = piece.following if piece.following is not None and piece.following > at else len(text)

    def _counted(self, sql: bytes, lifted: Lifted, fingerprint: bytes, env: Env) -> Counted:
        """The kind that a statement is of, which may be new."""
        text = digest_of(fingerprint, LONGEST) if fingerprint else digest(sql, env.findall, LONGEST)
        key = (text, env.database)
        found = self.kinds.get(key)
        if found is None:
            if len(self.kinds) >= MAX_KINDS:
                self._forget()
            found = self.kinds[key] = Counted(text, env.database, sql, env, Cost(Way.PROXY))
            self._measure(found, sql, lifted, env, 0)
        if fingerprint:
            self._known_bytes += len(fingerprint)
            if self._known_bytes > MAX_KNOWN:
                self._known.clear()
                self._known_bytes = len(fingerprint)
            self._known[fingerprint, env] = found
        return found

    def _count(self, counted: Counted, entry: Entry) -> None:
        self.statements += entry.times
        if counted.unread:
            self.unread += entry.times
        counted.count += entry.times
        if entry.seconds is not None:
            counted.timed += entry.times
            counted.seconds += entry.seconds
            counted.examined += entry.examined or 0
            counted.sent += entry.sent or 0

    def _measure(self, counted: Counted, sql: bytes, lifted: Lifted, env: Env, weight: int) -> None:
        """What a statement costs. A weight of 0 is for the kind, before it is counted."""
        cost = cost_of(self.rewriter, sql, env)
        if RANK[cost.way] > RANK[counted.cost.way] or not weight:
            counted.cost, counted.env = cost, env
            folded = lifted.fingerprint if lifted.folded is None else lifted.folded.fingerprint
            counted.sample = sql if len(sql) <= MAX_SAMPLE or not folded else filled(folded)[:MAX_SAMPLE]
        counted.ways[cost.way] += weight
        counted.measured += weight
        counted.reached += cost.shards * weight

    def _forget(self) -> None:
        """Half of the kinds, those that cost least."""
        kinds = sorted(self.kinds.items(), key=lambda pair: pair[1].weight)
        for key, one in kinds[: len(kinds) // 2]:
            self.forgotten[one.cost.way] += one.count
            self.forgotten_kinds[one.cost.way] += 1
            del self.kinds[key]
        self._known.clear()
        self._known_bytes = 0
