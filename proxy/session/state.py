"""What a session knows between two statements. Values only; its connection is `frontend.connection`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from math import inf

from config.flavour import flavour_of
from proxy.backends.memory import Memory
from proxy.backends.pool import CAPABILITY_SETS, EXTENDED_METADATA
from proxy.backends.settings import LOGIN, NEXT, Settings
from proxy.errors import ProxyError
from proxy.wire.charsets import NOT_ASCII, codec_named
from proxy.wire.constants import Capability, Status
from rewriter.plans import Env
from rewriter.plans.characteristics import PLAIN, Characteristics
from rewriter.route.scope import SYSTEM_DATABASES

from .outcome import RESULT_SET, Diagnostic, Diagnostics, Outcome
from .prepared import Statements
from .reading import charset_of, connection_of, sql_modes
from .tracking import Tracker, follows_replies
from .transaction import Transaction, modes_of

_NONE = Capability(0)
_MATCHED = re.compile(rb"matched: ([0-9]{1,18})")
# as plain integers: Status makes an object of every result
_AUTOCOMMIT = int(Status.AUTOCOMMIT)
_IN_TRANS = int(Status.IN_TRANS)
_NO_BACKSLASH_ESCAPES = int(Status.NO_BACKSLASH_ESCAPES)
_ANSI_QUOTES = int(Status.ANSI_QUOTES)
_READ_ONLY = int(Status.IN_TRANS_READONLY)


#: The modes in sql_mode that change how statements are read.
_READING_MODES = frozenset(
    ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE")
)


class Role(IntEnum):
    """What a user may do; each includes the ones before."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True)
class User:
    """A proxy user, as the settings name it."""

    name: str
    role: Role
    databases: frozenset[str] | None = None  # None: all
    scatter_allowed: bool = True
    scatter_rows: int | None = None  # at most so many rows of a scatter; None: the limit for all
    transaction_mode: str = "multi"
    max_connections: int | None = None
    account: int = 0  # in the capability set of its connections to servers: see backends.pool

    @property
    def sees_others(self) -> bool:
        """Whether the user may see and end what other users run, and change servers: an administrator without
        a list of databases.
        """
        return self.role is Role.ADMIN and self.databases is None

    def may_use(self, database: str) -> bool:
        """Whether the user may choose a database and name it. The system databases are for admins, and for
        users whose list has them; information_schema can be chosen by all, and is asked for here for views
        that tell of others.
        """
        if self.databases is not None:
            return database in self.databases
        return self.role is Role.ADMIN or database.lower() not in SYSTEM_DATABASES


@dataclass(slots=True)
class Introduction:
    """What the log-in settled for the connection's life, and COM_CHANGE_USER goes by."""

    nonce: bytes = field(repr=False)
    address: str
    local: bool  # on a Unix socket
    tls: bool = False
    capabilities: Capability = _NONE
    collation: int = 0
    extended: int = 0  # MariaDB's capabilities that were agreed on

    @property
    def host(self) -> str:
        """The client's address without its port."""
        return self.address.rpartition(":")[0] or self.address


class Session:
    """One client's session. `id` is its connection id, as KILL and CONNECTION_ID() use it."""

    __slots__ = (
        "_utf8",
        "accounted",
        "address",
        "autocommit",
        "capability_set",
        "counts",
        "counts_matched",
        "database",
        "defaults",
        "diagnostics",
        "digests",
        "env",
        "found_rows",
        "holders_elsewhere",
        "id",
        "identities",
        "idle_default",
        "introduction",
        "last_insert_id",
        "local_files",
        "lock_holders",
        "login_settings",
        "memory",
        "memory_limit",
        "modes_status",
        "multi_results",
        "multi_statements",
        "no_backslash_escapes",
        "prepared",
        "row_count",
        "scatter_writes",
        "server_version",
        "settings",
        "shown_settings",
        "tls",
        "tracker",
        "tracks_replies",
        "transaction",
        "transaction_mode",
        "undeciding",
        "unsafe_charset",
        "user",
        "variables_limit",
        "with_deleted",
    )

    def __init__(
        self,
        id: int,
        user: User,
        address: str,
        server_version: str,
        defaults: Mapping[str, bytes] | None = None,
        database: str | None = None,
        settings: Settings = LOGIN,
        *,
        digests: bool = True,
    ) -> None:
        self.id = id
        self.user = user
        self.address = address
        self.server_version = server_version
        self.defaults: Mapping[str, bytes] = defaults or {}  # the servers' own: sql_mode, autocommit
        self.digests = digests  # MD5, SHA and SHA1 are functions of the servers
        self.database = database
        self.settings = settings
        self.shown_settings: Settings | None = None  # what statements read, while the proxy has set others
        self.capability_set = 0  # of the connections to servers that serve it: see backends.pool
        self.multi_statements = False  # CLIENT_MULTI_STATEMENTS, or COM_SET_OPTION: several in one text
        self.multi_results = True  # CLIENT_MULTI_RESULTS: it can read what CALL may give
        self.local_files = False  # CLIENT_LOCAL_FILES: LOAD DATA LOCAL may ask the client for a file
        self.autocommit = True
        self.no_backslash_escapes = False
        self.modes_status = 0  # the status flags that sql_mode sets
        self.transaction_mode: str = "multi"
        self.scatter_writes = False
        self.with_deleted = False
        self.last_insert_id = 0
        self.row_count = -1
        self.found_rows = 0
        self.counts_matched = False  # the rows that an UPDATE finds are FOUND_ROWS(), too
        self.diagnostics: list[Diagnostic] = []
        self.transaction = Transaction()
        self.prepared = Statements()
        self._utf8 = True
        self.unsafe_charset = False  # bytes of its characters can look like quotes: see wire.charsets
        self.env: Env = None  # type: ignore[assignment]  # made by refresh_env, which the constructor's user calls
        self.introduction: Introduction | None = None
        self.login_settings: Settings = LOGIN  # what COM_RESET_CONNECTION goes back to
        self.idle_default: float = inf  # the servers' own `wait_timeout`, when the session began
        #: Sessions by the numbers of the servers' connections that they keep, for IS_USED_LOCK().
        self.lock_holders: Callable[[], Mapping[int, int]] = dict
        #: Those of other worker processes, while a statement is sent that asks for them.
        self.holders_elsewhere: Mapping[int, int] | None = None
        #: Its statements by status variable, once it has asked for them.
        self.counts: Counter[bytes] | None = None
        self.tls = False  # the proxy offers it
        self.memory: Memory | None = None  # the books of the worker
        self.memory_limit = 0  # bytes that it may keep
        self.variables_limit = 4 << 20  # and in user variables
        self.accounted = 0  # what the books say that it keeps
        #: Of the hosts that can hold decisions of distributed transactions: it is the worker's.
        self.identities: Mapping[str, str] = {}
        self.undeciding: Mapping[str, str] = {}  # those that can hold none, and why
        self.tracker: Tracker | None = None  # for a client with CLIENT_SESSION_TRACK
        self.tracks_replies = False  # and servers' own OK packets have something to tell it as well

    def become(self, user: User) -> None:
        """The user's rights are others now: from the next statement on they hold, on connections of the
        account that goes with them.
        """
        self.user = user
        self.capability_set = self.capability_set % CAPABILITY_SETS + user.account

    @property
    def extended(self) -> bool:
        """Whether column definitions have MariaDB's extended metadata."""
        return bool(self.capability_set & EXTENDED_METADATA)

    @property
    def idle_limit(self) -> float:
        """The seconds of `wait_timeout`."""
        own = self.settings.idle_limit
        return self.idle_default if own == inf else own

    @property
    def default_autocommit(self) -> bool:
        """What autocommit is when the session has not set it."""
        return self.defaults.get("autocommit", b"1") != b"0"

    @property
    def reading(self) -> dict[str, bytes]:
        """The settings that a session begins with besides its character set: the servers' sql_mode, and that
        autocommit is off where it is off there. They are said to every connection, since they decide how
        statements are read, and whether they last, and hosts may differ in them.
        """
        mode = self.defaults.get("sql_mode")
        found = {} if mode is None else {"sql_mode": mode}
        return found if self.default_autocommit else {**found, "autocommit": b"0"}

    @property
    def kept(self) -> int:
        """Bytes of what it keeps from one statement to the next."""
        return self.settings.user_bytes + self.prepared.kept + self.prepared.sent

    def keep(self, more: int = 0) -> None:
        """Say how much it keeps, and how much more it is about to. ProxyError when that is too much."""
        wanted = self.kept + more
        if self.memory is None or wanted == self.accounted:
            return
        if more > 0 and wanted > self.memory_limit:
            raise ProxyError("session_memory", limit=self.memory_limit)
        if self.memory.hold(self.user.name, self.accounted, wanted):
            self.accounted = wanted
        elif more > 0:
            raise ProxyError("client_memory")

    def let_go(self) -> None:
        """Its client is gone: drop what may be large."""
        self.prepared.clear()
        self.settings = self.login_settings
        self.diagnostics = []
        self.memory = None  # what a statement of it learns behind that is in nobody's books

    def names(self, variable: str) -> bool:
        """Whether it is sure how a user variable's name is written: beyond ASCII in UTF-8 only."""
        return variable.isascii() or (self._utf8 and variable.isprintable())

    @property
    def results_codec(self) -> str:
        """Python's codec of the texts that the client gets."""
        return codec_named(self.settings.get("character_set_results"))

    def take_settings(self, settings: Settings) -> None:
        """Have these settings, which may have other user variables. ProxyError when those are too large."""
        if settings.user_bytes != self.settings.user_bytes:
            if settings.user_bytes > self.variables_limit and self.memory is not None:
                raise ProxyError("variables_too_large", limit=self.variables_limit)
            self.keep(settings.user_bytes - self.settings.user_bytes)
        self.settings = settings

    def status(self) -> int:
        """The status flags as MySQL would show them now."""
        flags = self.modes_status | _AUTOCOMMIT if self.autocommit else self.modes_status
        transaction = self.transaction
        if transaction.explicit or transaction.held:  # else there is none
            if transaction.open:
                flags |= _IN_TRANS
            if self.in_read_only:
                flags |= _READ_ONLY
        return flags

    @property
    def distributes(self) -> bool:
        """Whether its transactions are committed on all hosts or on none. Who may only read has nothing to
        commit, and no right to decide.
        """
        return self.transaction_mode == "xa" and self.user.role is not Role.READ

    @property
    def in_read_only(self) -> bool:
        """Whether the session is in a read-only transaction."""
        transaction = self.transaction
        if not transaction.explicit:
            return any(conn.scanner.status & _READ_ONLY for conn in transaction.held.values())
        said = transaction.said.over(transaction.modes or modes_of(self.settings))
        return bool(said.read_only)

    @property
    def writes_nothing(self) -> bool:
        """Whether a write now would run in a read-only transaction, the open one or one of its own."""
        alone = (self.transaction.next or PLAIN).over(modes_of(self.settings))
        return self.in_read_only or (bool(alone.read_only) and not self.transaction.open)

    def refuse_in_read_only(self) -> None:
        """What a server says to a write in a read-only transaction, before it looks at anything else."""
        if self.writes_nothing:
            raise ProxyError(self.env.flavour.read_only_error)

    def apply(self, outcome: Outcome) -> None:
        """Note what a statement has done that has succeeded; `note_error` is for one that has not."""
        affected, insert_id, found, diagnostics, tables, touched = outcome
        if tables and self.transaction.next is not None and self.autocommit:
            self.use_up()
        if touched and self.tracker is not None:
            self.tracker.touched.update(touched)
        if affected is not None:
            self.row_count = affected
        if insert_id is not None:
            self.last_insert_id = insert_id
        if found is not None:
            self.found_rows = found
        if diagnostics is not None:
            # what was kept is as it was, whatever `max_error_count` is now
            self.diagnostics = diagnostics if diagnostics is self.diagnostics else self._kept(diagnostics)

    def matched(self, info: bytes) -> int | None:
        """The rows that an UPDATE has found, by the text of its OK packet, where FOUND_ROWS() tells them."""
        found = _MATCHED.search(info) if self.counts_matched else None
        return None if found is None else int(found[1])

    def passed(self, rows: int) -> None:
        """`apply` for what most statements do, without an object: a result set of so many rows went by."""
        self.row_count = RESULT_SET
        self.found_rows = rows

    def without_tables(self, warnings: list[Diagnostic] | None = None) -> list[Diagnostic]:
        """What SHOW WARNINGS shows after a statement without tables, which gave these `warnings`: without
        any, on MariaDB what it showed before, on MySQL nothing.
        """
        return warnings or (self.diagnostics if self.env.flavour.keeps_warnings else [])

    def set_next(self, characteristics: Characteristics) -> None:
        """SET TRANSACTION: for the next transaction, or the next statement that is one by itself. What was
        set before holds too, but for another of its kind.
        """
        self.transaction.next = characteristics.over(self.transaction.next or PLAIN)
        self.settings = self.settings.with_values({NEXT: b"1"})

    def drop_next(self, *, isolation: bool) -> None:
        """SET SESSION TRANSACTION: what was said for the next transaction gives way to it; `isolation`: of
        the isolation level, else of READ ONLY.
        """
        if self.transaction.next is None or self.transaction.open:
            return
        said = self.transaction.next
        left = replace(said, isolation=None) if isolation else replace(said, read_only=None)
        self.transaction.next = left if left != PLAIN else None
        if left == PLAIN:
            self.settings = self.settings.base

    def use_up(self) -> None:
        """What was set for the next transaction has had its turn, or has gone over to the one that begins."""
        self.settings = self.settings.base
        if not self.transaction.explicit:
            self.transaction.next = None

    @property
    def strict(self) -> bool:
        """Whether sql_mode makes errors of bad values that are written."""
        mode = (self.settings.get("sql_mode") or self.defaults.get("sql_mode") or b"").upper()
        return b"STRICT_" in mode or b"TRADITIONAL" in mode

    def refresh_env(self) -> None:
        """Make `env` anew after a change of what plans depend on: database, sql_mode, character set, scatter
        permission; and note what else the settings decide. Raises ProxyError when statements cannot be read
        under them, and changes nothing then.
        """
        modes = sql_modes(self.settings.get("sql_mode") or self.defaults.get("sql_mode") or b"''")
        charset = charset_of(self.settings.get("character_set_client") or b"utf8mb4")
        connection = connection_of(self.settings.get("character_set_connection") or b"utf8mb4")
        self.no_backslash_escapes = "NO_BACKSLASH_ESCAPES" in modes
        self.autocommit = self.settings.get("autocommit") == b"1"
        self.unsafe_charset = charset in NOT_ASCII
        self.tracks_replies = self.tracker is not None and follows_replies(self.settings)
        self._utf8 = charset in ("utf8mb4", "utf8mb3", "utf8")
        self.counts_matched = not flavour_of(self.server_version).found_rows_of_selects
        self.env = _env(
            self.database,
            modes & _READING_MODES,
            self.scatter_writes,
            self.with_deleted,
            self.server_version,
            self.digests,
            charset,
            "" if connection == charset else connection,
            codec_named(charset.encode()),
        )
        self.modes_status = _NO_BACKSLASH_ESCAPES if self.no_backslash_escapes else 0
        if self.env.ansi_quotes and self.env.flavour.tells_ansi_quotes:
            self.modes_status |= _ANSI_QUOTES

    @property
    def warning_count(self) -> int:
        """@@warning_count, which counts what SHOW WARNINGS would show if `max_error_count` let it."""
        return max(len(self.diagnostics), getattr(self.diagnostics, "total", 0))

    @property
    def error_count(self) -> int:
        """@@error_count."""
        shown = sum(one.level == "Error" for one in self.diagnostics)
        return shown + getattr(self.diagnostics, "errors", 0)

    def _kept(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """The first `max_error_count` of these: several servers keep so many each. All are counted."""
        most = self.settings.get("max_error_count")
        if most is None or not most.isdigit() or len(diagnostics) <= int(most):
            return diagnostics
        kept = Diagnostics(diagnostics[: int(most)])
        kept.total = max(len(diagnostics), getattr(diagnostics, "total", 0))
        kept.errors = getattr(diagnostics, "errors", 0)
        kept.errors += sum(one.level == "Error" for one in diagnostics[int(most) :])
        return kept

    def note_error(self, code: int, message: str, sqlstate: str = "") -> None:
        """An error: what SHOW WARNINGS shows next."""
        self.diagnostics = [Diagnostic("Error", code, message, sqlstate)]
        if self.settings.get("max_error_count") == b"0":
            self.diagnostics = left = Diagnostics()
            left.total = left.errors = 1
        self.row_count = -1

    def note_condition(self, condition: Diagnostic) -> None:
        """An error condition of a statement that succeeds: it is shown behind those that are there."""
        noted = Diagnostics(self.diagnostics)
        noted.total, noted.errors = self.warning_count + 1, self.error_count + 1
        most = self.settings.get("max_error_count")
        if most is None or not most.isdigit() or len(noted) < int(most):
            noted.append(condition)
        noted.errors -= sum(one.level == "Error" for one in noted)
        self.diagnostics = noted


@lru_cache(maxsize=1024)
def _env(
    database: str | None,
    modes: frozenset[str],
    scatter_writes: bool,
    with_deleted: bool,
    server_version: str,
    digests: bool,
    charset: str,
    connection: str,
    codec: str,
) -> Env:
    """One for all sessions that have the same settings: most have."""
    return Env(
        database=database,
        ansi_quotes="ANSI_QUOTES" in modes,
        no_backslash_escapes="NO_BACKSLASH_ESCAPES" in modes,
        pipes_as_concat="PIPES_AS_CONCAT" in modes,
        high_not_precedence="HIGH_NOT_PRECEDENCE" in modes,
        ignore_space="IGNORE_SPACE" in modes,
        scatter_writes=scatter_writes,
        with_deleted=with_deleted,
        server_version=_version_number(server_version),
        flavour=flavour_of(server_version, digests=digests),
        charset=charset,
        connection=connection,
        codec=codec,
    )


def _version_number(version: str) -> int:
    """`10.11.4-MariaDB` → 101104, as executable comments number versions."""
    version = version.removeprefix("5.5.5-")  # MariaDB's disguise from the days of 5.5 replicas
    parts = [int("".join(filter(str.isdigit, part)) or 0) for part in version.split("-")[0].split(".")[:3]]
    while len(parts) < 3:
        parts.append(0)
    return parts[0] * 10000 + parts[1] * 100 + parts[2]
