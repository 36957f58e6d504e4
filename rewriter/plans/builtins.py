"""Statements that the proxy answers by itself: one variant for each, by subject.

A `Template` among their fields renders, with the values, the SQL text of a part of the statement: a quoted
string (`like`), a number, an expression (`where`). Names are without quotes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from config.topology import Topology
from rewriter.plan import Access, AfterLoss, Execution, Plan, Unmasked
from rewriter.splice import Template
from rewriter.sql.privileges.beyond import EVERY_DATABASE
from rewriter.sql.statements.effects import ConnectionState

from .characteristics import PLAIN, Characteristics, Completion


@dataclass(frozen=True, kw_only=True, eq=False)
class Builtin(Plan):
    """What they have in common. `title`: the statement in words. `runs_for_columns`: PREPARE runs it for its
    columns, of which no server knows.
    """

    kind: ClassVar[str] = "builtin"
    unmasked: ClassVar[Unmasked] = Unmasked.LITERALS
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.BY_PROXY
    learns_columns: ClassVar[bool] = False
    runs_for_columns: ClassVar[bool] = False
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # what evaluates expressions reads them back
    access: Access = Access.NONE

    @property
    def in_words(self) -> str:
        return f"answered by the proxy ({self.title})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Empty(Builtin):
    """Comments only, or nothing at all."""

    title: ClassVar[str] = "empty"


# -- transactions
# --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Begin(Builtin):
    """BEGIN and START TRANSACTION."""

    answers_ok: ClassVar[bool] = True
    title: ClassVar[str] = "begin"
    after_loss: ClassVar[AfterLoss] = AfterLoss.BEGINS
    characteristics: Characteristics = PLAIN


@dataclass(frozen=True, kw_only=True, eq=False)
class EndTransaction(Builtin):
    """`chain` and `release`: as AND [NO] CHAIN and [NO] RELEASE say; None when they do not."""

    answers_ok: ClassVar[bool] = True
    chain: bool | None = None
    release: bool | None = None

    def completion(self, usual: Completion) -> Completion:
        """What follows. `usual`: the session's `completion_type`, which counts for what is not said."""
        release = usual is Completion.RELEASE if self.release is None else self.release
        if release:
            return Completion.RELEASE
        chain = usual is Completion.CHAIN if self.chain is None else self.chain
        return Completion.CHAIN if chain else Completion.NO_CHAIN


@dataclass(frozen=True, kw_only=True, eq=False)
class Commit(EndTransaction):
    """COMMIT."""

    title: ClassVar[str] = "commit"
    after_loss: ClassVar[AfterLoss] = AfterLoss.COMMITS


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollback(EndTransaction):
    """ROLLBACK of the whole transaction."""

    title: ClassVar[str] = "rollback"
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS


@dataclass(frozen=True, kw_only=True, eq=False)
class OfSavepoint(Builtin):
    """What savepoints are set and ended by. `name` is the savepoint's."""

    answers_ok: ClassVar[bool] = True
    name: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SetSavepoint(OfSavepoint):
    """SAVEPOINT."""

    title: ClassVar[str] = "savepoint"


@dataclass(frozen=True, kw_only=True, eq=False)
class RollbackTo(OfSavepoint):
    """ROLLBACK TO SAVEPOINT."""

    title: ClassVar[str] = "rollback to"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseSavepoint(OfSavepoint):
    """RELEASE SAVEPOINT."""

    title: ClassVar[str] = "release savepoint"


# -- the session
# --------------------------------------------------------------------------------------------------------


class SetScope(StrEnum):
    """How the name of an `Assignment` is to be read."""

    USER = "user"  # @name, lower case
    SESSION = "session"  # a system variable, lower case; a bare name and LOCAL, too
    GLOBAL = "global"
    PERSIST = "persist"
    PERSIST_ONLY = "persist_only"
    NEXT = "next"  # for the next transaction only: SET @@x and SET TRANSACTION without SESSION
    NAMES = "names"  # the value is the character set, `collate` the collation
    CHARSET = "charset"  # SET CHARACTER SET


FOR_ALL = frozenset({SetScope.GLOBAL, SetScope.PERSIST, SetScope.PERSIST_ONLY})
"""What is set for all sessions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """One part of SET. `value` renders the right side as the client wrote it; None is DEFAULT. `constant`:
    the right side is one literal or one bare word, so that no server is needed to evaluate it (SET CHARACTER
    SET also says what the current database has).
    """

    scope: SetScope
    name: str
    value: Template | None
    collate: Template | None = None
    constant: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class SetVariables(Builtin):
    """SET. `home`: the plan of the same text as for a server, where it has expressions that only a certain
    one can evaluate (functions and tables of the current database); None where any can. `reads_tables`: in a
    subquery, or perhaps by a function that it calls.
    """

    title: ClassVar[str] = "set"
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    runs_code: ClassVar[bool] = True
    assignments: tuple[Assignment, ...]
    home: Plan | None = None
    reads_tables: bool = False

    @property
    def runs_at(self) -> Plan | None:
        return None if self.home is None else self.home.runs_at

    @property
    def assigns(self) -> tuple[str, ...] | None:
        return tuple([assignment.name for assignment in self.assignments])

    def at_lock_host(self, topology: Topology) -> bool:
        return self.home is None or self.home.at_lock_host(topology)


@dataclass(frozen=True, kw_only=True, eq=False)
class Use(Builtin):
    """USE database."""

    title: ClassVar[str] = "use"
    database: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Kill(Builtin):
    """KILL [CONNECTION | QUERY] id. `query`: only what it runs."""

    title: ClassVar[str] = "kill"
    id: Template
    query: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class CreateExisting(Builtin):
    """CREATE DATABASE of a sharded one."""

    title: ClassVar[str] = "create existing"
    database: str
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class DropUnknown(Builtin):
    """DROP TABLE of `tables` that the schema does not name, as written with their databases."""

    title: ClassVar[str] = "drop unknown"
    tables: tuple[str, ...]
    if_exists: bool = False

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return self.tables


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainRoute(Builtin):
    """EXPLAIN ROUTE. The inner statement is the rest of the text from byte `offset`."""

    title: ClassVar[str] = "explain route"
    evaluates: ClassVar[bool] = False
    filters_views: ClassVar[bool] = True
    runs_for_columns: ClassVar[bool] = True
    access: Access = Access.READ
    offset: int


# -- locks and keys
# --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class LockTables(Builtin):
    """LOCK TABLES. `tables`: those that are not locked."""

    title: ClassVar[str] = "lock tables"
    tables: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SwitchKeys(Builtin):
    """ALTER TABLE … DISABLE KEYS and ENABLE KEYS."""

    title: ClassVar[str] = "switch keys"


# -- SHOW
# --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Show(Builtin):
    """SHOW."""

    runs_for_columns: ClassVar[bool] = True
    access: Access = Access.READ


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing(Show):
    """A list, of which LIKE or WHERE choose rows."""

    like: Template | None = None
    where: Template | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowShards(Listing):
    """SHOW SHARDS."""

    title: ClassVar[str] = "show shards"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowHotShards(Listing):
    """SHOW HOT SHARDS."""

    title: ClassVar[str] = "show hot shards"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowTopology(Listing):
    """SHOW TOPOLOGY."""

    title: ClassVar[str] = "show topology"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowPools(Listing):
    """SHOW POOLS: hosts have the load of all databases on them."""

    title: ClassVar[str] = "show pools"
    databases: tuple[str, ...] = (EVERY_DATABASE,)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxyStatus(Listing):
    """SHOW PROXY STATUS."""

    title: ClassVar[str] = "show proxy status"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxyQueries(Listing):
    """SHOW PROXY QUERIES."""

    title: ClassVar[str] = "show proxy queries"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxyAdvice(Listing):
    """SHOW PROXY ADVICE."""

    title: ClassVar[str] = "show proxy advice"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxySessions(Listing):
    """SHOW PROXY SESSIONS."""

    title: ClassVar[str] = "show proxy sessions"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxyTransactions(Listing):
    """SHOW PROXY TRANSACTIONS."""

    title: ClassVar[str] = "show proxy transactions"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProxyCaches(Listing):
    """SHOW PROXY CACHES: a cache may hold rows of any database."""

    title: ClassVar[str] = "show proxy caches"
    databases: tuple[str, ...] = (EVERY_DATABASE,)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowStatus(Show):
    """SHOW [SESSION] STATUS. `text` is the statement."""

    title: ClassVar[str] = "show status"
    text: Template


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowVariables(Show):
    """SHOW VARIABLES. `home`: the plan of the same text as for a server."""

    title: ClassVar[str] = "show variables"
    home: Plan

    @property
    def runs_at(self) -> Plan | None:
        return self.home.runs_at

    def at_lock_host(self, topology: Topology) -> bool:
        return self.home.at_lock_host(topology)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowRoutines(Listing):
    """SHOW PROCEDURE STATUS and its kin; `what`: the words between SHOW and STATUS. `home`: the plan of the
    same text as for a server.
    """

    title: ClassVar[str] = "show routines"
    what: str
    home: Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowDiagnostics(Show):
    """What the statement before has left. `count`: only how many rows there are. `offset`, `limit`: of
    LIMIT.
    """

    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    shows_diagnostics: ClassVar[bool] = True
    count: bool = False
    offset: Template | None = None
    limit: Template | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowWarnings(ShowDiagnostics):
    """SHOW WARNINGS and SHOW COUNT(*) WARNINGS."""

    title: ClassVar[str] = "show warnings"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowErrors(ShowDiagnostics):
    """SHOW ERRORS and SHOW COUNT(*) ERRORS."""

    title: ClassVar[str] = "show errors"


@dataclass(frozen=True, kw_only=True, eq=False)
class GetDiagnostics(Builtin):
    """GET DIAGNOSTICS. `items`: user variables without @, each with the name of what it gets. `condition`:
    the number of the condition that is asked for; None: the statement as a whole is.
    """

    title: ClassVar[str] = "get diagnostics"
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    shows_diagnostics: ClassVar[bool] = True
    access: Access = Access.READ
    items: tuple[tuple[str, str], ...]
    condition: Template | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowProcessList(Show):
    """SHOW [FULL] PROCESSLIST."""

    title: ClassVar[str] = "show process list"
    full: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowGrants(Show):
    """SHOW GRANTS [FOR user]; `user` None: one's own."""

    title: ClassVar[str] = "show grants"
    user: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowDatabases(Listing):
    """SHOW DATABASES."""

    title: ClassVar[str] = "show databases"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowCreateDatabase(Show):
    """SHOW CREATE DATABASE [IF NOT EXISTS]."""

    title: ClassVar[str] = "show create database"
    database: str
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowTables(Listing):
    """SHOW [FULL] TABLES."""

    title: ClassVar[str] = "show tables"
    database: str
    full: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowTableStatus(Listing):
    """SHOW TABLE STATUS."""

    title: ClassVar[str] = "show table status"
    database: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowNothing(Show):
    """SHOW TRIGGERS, EVENTS or OPEN TABLES (`what`) of a sharded database."""

    title: ClassVar[str] = "show nothing"
    database: str
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowOfTable(Listing):
    """What one shard tells of a table."""

    database: str
    table: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowColumns(ShowOfTable):
    """SHOW [EXTENDED] [FULL] COLUMNS, and DESCRIBE table [column], whose `like` may be a bare name."""

    title: ClassVar[str] = "show columns"
    full: bool = False
    extended: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowIndex(ShowOfTable):
    """SHOW [EXTENDED] INDEX."""

    title: ClassVar[str] = "show index"
    extended: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ShowCreateTable(ShowOfTable):
    """SHOW CREATE TABLE."""

    title: ClassVar[str] = "show create table"
