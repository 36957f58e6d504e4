"""What all plans have in common, and the plan of not running a statement. See plans/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from config.topology import Topology

from .bound import BindError, Bound, HostStatement, NotSupported
from .rows import Folded
from .sql.statements.effects import ConnectionState, Effects
from .sql.statements.facts import UNREAD, StatementFacts
from .sql.statements.forms import Access as Access
from .touched import CachedTable, Touched

Values = tuple[bytes, ...]
"""The literals of one statement, raw, followed by the values of the plan's session slots."""

Choose = Callable[[Sequence[int]], int]
"""Picks one of some shards (random among the open ones for a new object; tests pass a fixed choice)."""


class Execution(Enum):
    """How the EXECUTE of a prepared statement runs."""

    RELAYED = "relayed"
    """Its one host prepared it, and executes it."""
    WITH_VALUES = "with values"
    """As text; the plan takes the parameters as it takes a session's values."""
    BY_PROXY = "by the proxy"
    """The same, by the proxy itself."""
    AS_TEXT = "as text"
    """As text that has the parameters in it, and is planned anew."""


class Unmasked(Enum):
    """How a statement runs whose text has multibyte characters of gbk or its kin."""

    WHOLE = "whole"
    """A server gets the client's own bytes."""
    LITERALS = "literals"
    """Only if all of these characters are in its literals."""
    REFUSED = "refused"


class AfterLoss(Enum):
    """Whether a statement runs after the session has lost its transaction with a connection."""

    REFUSED = "refused"
    RUNS = "runs"
    BEGINS = "begins"
    """It commits what is open. It runs once the client knows of the loss."""
    COMMITS = "commits"
    """It is refused with the error that the transaction has ended with."""


class TextRights(Enum):
    """Which of the rights that a statement's text asks for its user needs."""

    ALL = "all"
    NO_ROUTINES = "no routines"
    """All but those on routines: the one that it names is the proxy's own."""
    OWN_ACCESS = "own access"
    """Those on databases; `Plan.access` is the access, whatever the text asks for."""


@dataclass(frozen=True, kw_only=True, eq=False, slots=True, weakref_slot=True)
class Plan:
    """A way of running a statement. Its classes are the *variants*; those that only other variants inherit
    from are listed in plans/variants.py.

    `access`: what the user must be allowed. `session_slots`: names of the values that only the session knows,
    in the order in which they follow the literals: function calls as `LAST_INSERT_ID()`, `DATABASE()`,
    `CONNECTION_ID()`, `USER()`, `CURRENT_USER()`, `FOUND_ROWS()`, `ROW_COUNT()`; user variables as `@name`
    (lower case); system variables as `@@last_insert_id`. Values are SQL literals; `databases`: the logical
    (or physical, or unknown) databases that the statement names or implies, for the user's list of allowed
    ones. `reserved`: the system databases among them: `access` is then ADMIN, and `listed_access` is for
    users whose list names them all. `unseen`: in words, the routine that the statement has a server run and
    the rewriter does not judge: for users with a list only under accounts of their own; "" for none.
    `hidden`: a text of the client's that a server runs unjudged: nothing for these. `effects`: what the
    statement leaves behind on the connection it ran on (temporary table, GET_LOCK, LOCK TABLES, PREPARE, user
    variables …); None for nothing. `implicit_commit`: the server commits an open transaction before it (DDL).
    `facts`: its row in the statement table, and what its tokens add to that. `names`: the words of its names
    (`names_in`), by which the host's triggers, functions and procedures are found that it may run; of plans
    that have `runs_code` only.

    The rest are questions that others ask of any plan. Each variant answers them for itself, so that nobody
    asks for its class. Those without a default have no safe one: a variant must declare them, or inherit
    them from a class that does.

    `kind`: the variant's name in metrics and logs. `title`: the way of running in words, see `in_words`.
    `binds`: `bind` gives statements for hosts. `on_one_host`: one host runs the whole statement (`OneHost`).
    `without_functions`: it runs where stored functions are not. `executed_as`: how a prepared one runs.
    `learns_columns`: PREPARE learns which of its result's columns are rounded as text, for it is another plan
    then.

    `captures`: kinds of connection state that the way of running this variant reads back, or that the
    variant never leaves, because it sends no expression of the client's to a server, or only within
    statements that are planned by themselves. A statement that would leave another kind is refused.
    `evaluates`: a server evaluates expressions of the statement. `text_rights`: which rights it needs.
    `filters_views`: the proxy chooses rows of information_schema by who asks. `after_loss`: whether it runs
    after a transaction was lost. `unmasked`: how it runs with characters of gbk. `in_parts`: it is several
    statements, each of which is planned by itself.

    `routed`: the statement's conditions say on which shards it runs, so that binding it again finds the same
    ones (`Sharded`). `narrowed`: EXPLAIN ROUTE gives reasons why its conditions do not narrow it.
    `lists_columns`: its statements may list the columns of tables, as they were when it was planned.
    `names_physical`: the client itself names physical databases. `repeats`: an EXECUTE of a point query may
    take the way of the one before. `invalidates`: it may change rows that are in caches, see `touches`.
    `shows_diagnostics`: it shows what the statement before has left. `answers_ok`: the proxy runs it, and its
    answer never has rows.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    binds: ClassVar[bool]
    on_one_host: ClassVar[bool]
    without_functions: ClassVar[bool]
    executed_as: ClassVar[Execution]
    learns_columns: ClassVar[bool]

    captures: ClassVar[ConnectionState] = ConnectionState.NONE
    evaluates: ClassVar[bool] = True
    text_rights: ClassVar[TextRights] = TextRights.ALL
    filters_views: ClassVar[bool] = False
    after_loss: ClassVar[AfterLoss] = AfterLoss.REFUSED
    unmasked: ClassVar[Unmasked] = Unmasked.REFUSED
    in_parts: ClassVar[bool] = False
    routed: ClassVar[bool] = False
    narrowed: ClassVar[bool] = False
    lists_columns: ClassVar[bool] = False
    names_physical: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    invalidates: ClassVar[bool] = False
    shows_diagnostics: ClassVar[bool] = False
    answers_ok: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False

    access: Access = Access.READ
    session_slots: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    listed_access: Access = Access.READ
    unseen: str = ""
    hidden: str = ""
    effects: Effects | None = None
    implicit_commit: bool = False
    facts: StatementFacts = UNREAD
    names: frozenset[str] = frozenset()

    @property
    def in_words(self) -> str:
        """How it runs, as EXPLAIN ROUTE shows it."""
        return self.title

    @property
    def refusal(self) -> Reject | None:
        """The plan itself, if it refuses the statement."""
        return None

    @property
    def sanitized(self) -> bytes | None:
        """The text that is planned and executed in the place of the statement's."""
        return None

    @property
    def only_first(self) -> bool:
        """Whether only comments stand behind the first statement of a text."""
        return False

    @property
    def runs_at(self) -> Plan | None:
        """The plan of one host that says where the statement runs; None: no single host runs it."""
        return self if self.on_one_host else None

    @property
    def unplaced_calls(self) -> tuple[str, ...]:
        """The functions, as written, that it calls without a database and that no database of the
        session's can have. It runs in a database without functions then.
        """
        place = self.runs_at
        return () if place is None else place.unplaced_calls

    @property
    def scatter_refusal(self) -> Reject | None:
        """The refusal to run it on several shards by one statement a host; None: it may run so, or never
        does.
        """
        return None

    @property
    def alternative(self) -> Plan | None:
        """The plan that runs it where `scatter_refusal` says that this one cannot."""
        return None

    def with_alternative(self, other: Plan | None) -> Plan:
        """The plan with this alternative. An `other` that refuses becomes its `scatter_refusal`."""
        del other
        return self

    @property
    def is_expensive(self) -> bool:
        """Whether it does not run on one shard or a few: there may be advice."""
        return self.scatter

    @property
    def routing_literal(self) -> int | None:
        """The index of the literal that alone routes the statement, as an ID."""
        return None

    @property
    def sharded_keyspace(self) -> str:
        """The keyspace on whose shards its statements run; "" for none, or several."""
        return ""

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        """The sharded tables that it reads or writes, as `database.table`, each once. Those of statements
        that are planned by themselves are not among them.
        """
        return ()

    @property
    def unknown_table(self) -> str:
        """The table that the schema does not have, if the statement is refused for that; else ""."""
        return ""

    @property
    def has_returning(self) -> bool:
        """Whether it writes to shards, and has a RETURNING clause."""
        return False

    @property
    def updates(self) -> bool:
        """Whether it is an UPDATE of shards or of reference tables."""
        return False

    @property
    def rounds_columns(self) -> bool:
        """Whether it reads shards, and its answer need not have all digits (`Env.exact`)."""
        return False

    @property
    def assigns(self) -> tuple[str, ...] | None:
        """The names that a SET assigns to; None: the proxy does not run it as a SET."""
        return None

    @property
    def scatter(self) -> bool:
        """Whether every binding runs on all shards; `Bound.scatter` tells of one binding."""
        return False

    def inner_text(self, literals: Values) -> bytes | None:
        """The statement within this one that is planned and executed by itself, where there is one."""
        del literals
        return None

    def takes_rows(self, folded: Folded) -> bool:
        """Whether the plan of a statement with one row of each kind does for any number of rows."""
        del folded
        return False

    def with_rows(self, folded: Folded) -> Plan:
        """That plan for a statement with all of its rows."""
        del folded
        raise AssertionError(f"a plan of kind {self.kind} takes no rows")

    def touches(self, values: Values, topology: Topology) -> tuple[Touched, ...]:
        """The rows in caches that the statement may change with these values."""
        del values, topology
        return ()

    def asked_first(self, values: Values) -> tuple[CachedTable, tuple[int, ...]] | None:
        """The cache that is asked before any server, and the IDs of the groups that it is asked for."""
        del values
        return None

    def to_prepare(self, values: Values, topology: Topology) -> HostStatement | None:
        """A statement that a server prepares for the definitions of the columns: `values` has a `?` for each
        parameter. None: no server knows it. Raises BindError.
        """
        del values, topology
        return None

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

    `probe`: the statement may be no SQL at all, since the rewriter has not read it or has read a word as an
    unknown name: have a server PREPARE the client's bytes, and give its error instead if that is 1064.
    `place`: a database that the text advises to use; a user without rights there reads `confined` in place of
    the `alternative`.
    """

    kind: ClassVar[str] = "reject"
    title: ClassVar[str] = "refused"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    evaluates: ClassVar[bool] = False
    unmasked: ClassVar[Unmasked] = Unmasked.WHOLE
    narrowed: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # not run
    access: Access = Access.NONE
    error: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    probe: bool = False
    place: str = ""
    confined: str = ""

    @property
    def refusal(self) -> Reject | None:
        return self

    @property
    def unknown_table(self) -> str:
        return self.arguments["table"] if self.error == "unknown_table" else ""

    @property
    def is_expensive(self) -> bool:
        return True

    @property
    def failure(self) -> BindError:
        """The error, for a plan that learns as it is bound that it is refused."""
        if self.error == "not_supported_yet":
            return NotSupported(**self.arguments)
        return BindError(self.error, **self.arguments)

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del values, topology, choose
        raise self.failure
