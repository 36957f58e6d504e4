"""What all plans have in common, and the plan of not running a statement. See plans/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from config.topology import Topology

from .bound import BindError, Bound, NotSupported
from .sql.statements.effects import ConnectionState, Effects
from .sql.statements.facts import UNREAD, StatementFacts
from .sql.statements.forms import Access as Access

Values = tuple[bytes, ...]
"""The literals of one statement, raw, followed by the values of the plan's session slots."""

Choose = Callable[[Sequence[int]], int]
"""Picks one of some shards (random among the open ones for a new object; tests pass a fixed choice)."""


@dataclass(frozen=True, kw_only=True, eq=False, slots=True, weakref_slot=True)
class Plan:
    """What all plans have.

    `access`: what the user must be allowed. `session_slots`: names of the values that only the session knows,
    in the order in which they follow the literals: function calls as `LAST_INSERT_ID()`, `DATABASE()`,
    `CONNECTION_ID()`, `USER()`, `CURRENT_USER()`, `FOUND_ROWS()`, `ROW_COUNT()`; user variables as `@name`
    (lower case); system variables as `@@last_insert_id`. Values are SQL literals; `databases`: the logical
    (or physical, or unknown) databases that the statement names or implies, for the user's list of allowed
    ones. `reserved`: the system databases among them: `access` is then ADMIN, and `listed_access` is for
    users whose list names them all. `unseen`: in words, the routine or text that the statement has a server
    run and the rewriter does not judge: nothing for users with a list; "" for none. `effects`: what the
    statement leaves behind on the connection it ran on (temporary table, GET_LOCK, LOCK TABLES, PREPARE, user
    variables …); None for nothing. `implicit_commit`: the server commits an open transaction before it (DDL).
    `facts`: its row in the statement table, and what its tokens add to that. `names`: the words of its names
    (`names_in`), by which the host's triggers, functions and procedures are found that it may run; of plans
    that have `runs_code` only.

    `captures`: kinds of connection state that the way of running this variant reads back, or that the
    variant never leaves, because it sends no expression of the client's to a server, or only within
    statements that are planned by themselves. A statement that would leave another kind is refused.
    """

    kind: ClassVar[str]
    captures: ClassVar[ConnectionState] = ConnectionState.NONE
    runs_code: ClassVar[bool] = False
    access: Access = Access.READ
    session_slots: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    listed_access: Access = Access.READ
    unseen: str = ""
    effects: Effects | None = None
    implicit_commit: bool = False
    facts: StatementFacts = UNREAD
    names: frozenset[str] = frozenset()

    @property
    def scatter(self) -> bool:
        """Whether every binding runs on all shards; `Bound.scatter` tells of one binding."""
        return False

    def leaving(self, effects: Effects) -> Plan:
        """The plan, with those of its statement's effects that its way of running has to know of."""
        del effects
        return self

    def at_lock_host(self, topology: Topology) -> bool:
        """Whether the statement runs on the host of all named locks, or calls their functions nowhere."""
        del topology
        return True

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        """The statements for the hosts. Raises BindError; also for plans that have none (Builtin, Reject)."""
        del values, topology, choose
        raise BindError("internal", reason=f"a plan of kind {self.kind} has nothing to send")


@dataclass(frozen=True, kw_only=True, eq=False)
class Reject(Plan):
    """Not run. `error` is an entry of the error registry, `arguments` fill its text.

    `probe`: the rewriter could not read the statement, so that the server may well refuse it too: have a
    server PREPARE the client's bytes, and if that fails with 1064 give this error instead.
    """

    kind: ClassVar[str] = "reject"
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # not run
    access: Access = Access.NONE
    error: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    probe: bool = False

    @property
    def failure(self) -> BindError:
        """The error, for a plan that learns as it is bound that it is refused."""
        if self.error == "not_supported_yet":
            return NotSupported(**self.arguments)
        return BindError(self.error, **self.arguments)

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del values, topology, choose
        raise self.failure
