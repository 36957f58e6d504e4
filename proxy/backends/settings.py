"""What a session has set: session and user variables by name, as SQL text, immutable and interned.

Two sessions with the same settings share one `Settings` object, and a backend connection remembers the object
that was applied to it, so that "does this connection fit?" is one `is`. When it does not,
`Settings.statement_from` gives the one SET statement that turns one into the other; a variable that only the
connection has goes back to DEFAULT, the server's own value. User variables are among them, as `@name`: so a
server has them whatever reads them there, a trigger or a function too, and no other session's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import ClassVar, Final
from weakref import ReferenceType, WeakValueDictionary, ref

from proxy.wire.packets import query_packet

from .followed import FOLLOWED

_UTF8 = b"utf8mb4"
_AUTOCOMMIT = 0x0002
"""The status flag."""

#: Applied before anything else, in this order: later variables may be read in the character set they choose.
_FIRST = ("character_set_client", "character_set_results", "character_set_connection", "collation_connection")

#: To go back to the server's own value: on MySQL DEFAULT turns the first two off, whatever that is. The seeds
#: of RAND() have no DEFAULT; they become such that nobody knows what it gives to the next session.
_BACK = {
    "foreign_key_checks": b"@@global.foreign_key_checks",
    "unique_checks": b"@@global.unique_checks",
    "rand_seed1": b"CRC32(UUID())",
    "rand_seed2": b"CRC32(UUID())",
}

#: Stands among the settings for the collation of results, where it is not their character set's default one:
#: the number in column definitions. It comes with a log-in or SET NAMES … COLLATE, and in no other way.
RESULTS = "(results)"

#: What a fresh backend connection has (it logs in with utf8mb4_general_ci): these have no useful DEFAULT to
#: go back to. `sql_auto_is_null` is never on, whatever a server's default is: it reads the connection's last
#: insert id, which may be another session's. Nor does autocommit depend on what a server's default was when
#: a connection was opened: SET GLOBAL changes it, and hosts may differ; a session has what it began with.
LOGIN_VALUES: Mapping[str, bytes] = {
    "character_set_client": b"utf8mb4",
    "character_set_results": b"utf8mb4",
    "character_set_connection": b"utf8mb4",
    "collation_connection": b"utf8mb4_general_ci",
    RESULTS: b"",
    "sql_auto_is_null": b"0",
    "autocommit": b"1",
}


#: What every connection has, whatever its session sets: the server then tells of each statement that changes
#: something of its session, and what. What sessions set of these variables, the proxy keeps for itself.
_TRACKED = (
    b",session_track_state_change=1,session_track_schema=1,session_track_system_variables="
    b"IF(@@version LIKE '%%MariaDB%%','*','%s')" % FOLLOWED
)
TRACK = b"SET " + _TRACKED[1:]
"""Has session tracking tell changes again, where a statement has switched it off."""
TRACKING = frozenset(
    {
        "session_track_schema",
        "session_track_state_change",
        "session_track_system_variables",
        "session_track_transaction_info",
    }
)

#: How NULL is written as the value of a user variable that has a type.
TYPED_NULL = b"CAST(NULL AS "

#: While it is on, a connection keeps the statements that it runs, and no reset takes them from it.
PROFILING = "profiling"

#: Stands among a session's settings while something is set for its next transaction only: so no connection
#: ever has the same settings, and what must be said before that transaction is.
NEXT = "(next transaction)"


#: No part in how a text is read; and to set one of them ends the transaction, or is refused within one.
OF_TRANSACTIONS: Final = frozenset(
    {
        "autocommit",
        "binlog_direct_non_transactional_updates",
        "binlog_format",
        "gtid_domain_id",
        "gtid_next",
        "gtid_seq_no",
        "session_track_gtids",
        "skip_replication",
        "sql_log_bin",
    }
)

#: Longer SET statements are not remembered: they have large user variables.
_LONG = 4096
#: What a user variable takes besides its name and value.
_ENTRY = 200

_UNKNOWN, _LOGGED_IN = b"(unknown)", b"(log-in)"


class Settings:
    """An immutable, interned mapping from variable (lower case; `@name` for users') to its value as SQL
    text.
    """

    __slots__ = (
        "__weakref__",
        "_statements",
        "base",
        "idle_limit",
        "named",
        "status",
        "system",
        "user_bytes",
        "values",
    )

    _interned: ClassVar[WeakValueDictionary[frozenset[tuple[str, bytes]], Settings]] = WeakValueDictionary()
    values: Mapping[str, bytes]
    #: What a connection has that these were applied to: these, without what is meant for one statement only.
    base: Settings
    #: The seconds of `wait_timeout` when the session has set it, else infinite.
    idle_limit: float
    #: Bytes of the user variables.
    user_bytes: int
    #: Whether the name of a user variable is not ASCII: it must be read in UTF-8.
    named: bool
    #: The status flags of a connection with them, outside of a transaction.
    status: int
    #: These without user variables and `OF_TRANSACTIONS`: what the reading of a statement depends on.
    system: Settings
    _statements: dict[int, tuple[ReferenceType[Settings], bytes]]

    @property
    def profiles(self) -> bool:
        """Whether `profiling` is on."""
        return self.values.get(PROFILING, b"0") != b"0"

    @classmethod
    def of(cls, values: Mapping[str, bytes]) -> Settings:
        """The one object for these values. A value equal to the log-in's is the same as none."""
        kept = {
            name: value
            for name, value in values.items()
            if LOGIN_VALUES.get(name) != value and not (value == b"NULL" and name[0] == "@")
        }
        if RESULTS in kept and not _of_charset(kept[RESULTS], kept.get("character_set_results", b"utf8mb4")):
            del kept[RESULTS]  # the character set was changed without it
        key = frozenset(kept.items())
        found = cls._interned.get(key)
        if found is None:
            found = cls.__new__(cls)
            found.values = kept
            found.status = 0 if kept.get("autocommit") == b"0" else _AUTOCOMMIT
            found.idle_limit = _seconds(kept.get("wait_timeout"))
            found._statements = {}
            found.named = not all(map(str.isascii, kept))
            found.user_bytes = sum(
                len(name) + len(value) + _ENTRY for name, value in kept.items() if name[0] == "@"
            )
            rest = {name: value for name, value in kept.items() if name != NEXT}
            found.base = cls.of(rest) if len(rest) < len(kept) else found
            rest = {
                name: value for name, value in rest.items() if name[0] != "@" and name not in OF_TRANSACTIONS
            }
            found.system = cls.of(rest) if len(rest) < len(kept) else found
            cls._interned[key] = found
        return found

    def with_values(self, changed: Mapping[str, bytes]) -> Settings:
        return Settings.of({**self.values, **changed})

    def without(self, names: Iterable[str]) -> Settings:
        """These but for some variables, which are the server's own then."""
        if self.values.keys().isdisjoint(names):
            return self
        return Settings.of({name: value for name, value in self.values.items() if name not in names})

    def unsure_of(self, names: Iterable[str]) -> Settings:
        """What a connection has that was to get new values for these, where nobody knows whether it did."""
        return Settings.of({**self.values, **dict.fromkeys(names, _UNKNOWN)})

    def read_as(self, system: Settings) -> Settings:
        """These, where the reading of a statement is to be that of `system`: it may be for a connection in
        the middle of a transaction, so nothing of `OF_TRANSACTIONS` moves.
        """
        if system is self.system:
            return self
        own = {name: value for name, value in self.values.items() if name in OF_TRANSACTIONS}
        return system.with_values(own) if own else system

    def get(self, name: str) -> bytes | None:
        """The SQL text of a variable's value, None where the server's own default holds."""
        return self.values.get(name, LOGIN_VALUES.get(name))

    def packets_from(self, other: Settings) -> tuple[bytes, int]:
        """`statements_from` as commands, and how many they are."""
        statements = self.statements_from(other)
        return b"".join(map(query_packet, statements)), len(statements)

    def statements_from(self, other: Settings) -> tuple[bytes, ...]:
        """What turns a connection with `other` into one with these; nothing for the same.

        A SET is read in the character set that the connection has before it. In some of them a byte of a name
        takes the backtick behind it along; so where names are not ASCII, UTF-8 is set first.
        """
        if other is self:
            return ()
        read_in = other.values.get("character_set_client", _UTF8)
        if not (self.named or other.named) or read_in == _UTF8:
            return (self.statement_from(other),)
        between = other.with_values({"character_set_client": _UTF8})
        last = () if between is self else (self.statement_from(between),)
        return (b"SET character_set_client=utf8mb4", *last)

    def statement_from(self, other: Settings) -> bytes:
        """The SET statement that turns a connection with `other` into one with these; both differ."""
        key = id(other)
        statement = self._statements.get(key)
        if statement is None or statement[0]() is not other:
            statement = (ref(other), _set_statement(other.values, self.values))
            if len(statement[1]) > _LONG:
                return statement[1]
            if len(self._statements) > 256:
                self._statements.clear()
            self._statements[key] = statement
        return statement[1]


def _seconds(value: bytes | None) -> float:
    return float(value) if value is not None and value.isdigit() else inf


def _set_statement(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> bytes:
    wanted = {
        name: LOGIN_VALUES.get(name) or _BACK.get(name, _never_set(name) if name[0] == "@" else b"DEFAULT")
        for name in old
        if name not in new
    }
    wanted.update({name: value for name, value in new.items() if old.get(name) != value})
    for name in TRACKING & wanted.keys():
        del wanted[name]
    first = b""
    if wanted.pop(RESULTS, None) is not None or "character_set_results" in wanted:
        first = _set_results(wanted, new)
    if "character_set_connection" in wanted and "collation_connection" not in wanted:
        # setting the character set moves the collation to that set's default
        wanted["collation_connection"] = new.get("collation_connection", LOGIN_VALUES["collation_connection"])
    if old.get("autocommit") == _LOGGED_IN and wanted.get("autocommit") == b"0":
        first += b"autocommit=1,"  # MySQL's status flags say so wrongly where it was off from the begin
    last = _TRACKED if old.get(RESULTS) == _LOGGED_IN else b""
    if not wanted:
        if last:
            return b"SET " + first + last[1:]
        return b"SET " + first.rstrip(b",") if first else b"DO 0"
    names = [name for name in _FIRST if name in wanted] + sorted(
        name for name in wanted if name not in _FIRST
    )
    return b"SET " + first + b",".join(_assigned(name, wanted[name]) for name in names) + last


def _assigned(name: str, value: bytes) -> bytes:
    """`name = value`. On MySQL a variable that becomes NULL is unsigned if another session's was before it:
    so it is a number of its own type first.
    """
    if name[0] != "@":
        return name.encode("utf-8", "surrogateescape") + b"=" + value
    variable = variable_name(name[1:])
    number = value.removeprefix(TYPED_NULL) if value.startswith(TYPED_NULL) else b""
    if number in (b"SIGNED)", b"UNSIGNED)"):
        return b"%s=CAST(0 AS %s,%s=%s" % (variable, number, variable, value)
    return variable + b"=" + value


def _set_results(wanted: dict[str, bytes], new: Mapping[str, bytes]) -> bytes:
    """What gives the results their collation, if it is not the character set's default: only SET NAMES can,
    and it sets the rest, too. Otherwise the character set is among those `wanted`.
    """
    charset, collation = new.get("character_set_results", b"utf8mb4"), new.get(RESULTS)
    wanted["character_set_results"] = charset
    if not collation or collation == _UNKNOWN or charset == _UNKNOWN:
        return b""
    del wanted["character_set_results"]
    given = {
        "character_set_client": charset,
        "character_set_connection": charset,
        "collation_connection": collation,
    }
    for name, value in given.items():
        target = new.get(name, LOGIN_VALUES[name])
        if target == value:
            wanted.pop(name, None)
        else:
            wanted[name] = target
    if "character_set_connection" in wanted:
        wanted["collation_connection"] = new.get("collation_connection", LOGIN_VALUES["collation_connection"])
    return b"NAMES %s COLLATE %s," % (charset, collation)


def _of_charset(collation: bytes, charset: bytes) -> bool:
    """Whether the collation may be one of that character set's."""
    unknown = _UNKNOWN in (collation, charset) or collation == _LOGGED_IN
    return unknown or collation.strip(b"'").partition(b"_")[0] == charset.strip(b"'")


def _never_set(name: str) -> bytes:
    """To take a user variable away. NULL alone would leave it the character set of its last value."""
    return b"x''," + variable_name(name[1:]) + b"=NULL"


def variable_name(name: str) -> bytes:
    """A user variable as SQL text; `name` without the @."""
    return b"@`" + name.replace("`", "``").encode("utf-8", "surrogateescape") + b"`"


#: Sent after a reset: both servers then have just these values.
LOGIN_STATEMENT = _set_statement({}, LOGIN_VALUES) + _TRACKED

#: What a session has that has set nothing.
LOGIN = Settings.of({})

#: What a connection has that has just logged in: these character sets, but results in the collation that the
#: log-in named, where a character set set by name gives them the server's default one. So the first statement
#: sets them, whatever its session wants.
FRESH = Settings.of(dict.fromkeys(LOGIN_VALUES, _LOGGED_IN))

#: What a connection has that is being reset: whatever the server says.
UNKNOWN = Settings.of({"autocommit": _UNKNOWN})
