"""The fields of a row of the statement table, and the values that they may have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, IntEnum, auto
from typing import Final

from config.flavour import Flavour


class Access(IntEnum):
    """The role that a statement needs; each role includes the ones before it."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


class Kind(Enum):
    """The family of a statement. Statements of one family are planned by one rule."""

    QUERY = auto()
    """SELECT, WITH, VALUES, TABLE and queries in parentheses."""
    CHANGE = auto()
    """INSERT, REPLACE, UPDATE, DELETE."""
    LOAD = auto()
    """LOAD DATA and LOAD XML."""
    CALL = auto()
    DO = auto()
    HANDLER = auto()
    SHOW = auto()
    EXPLAIN = auto()
    """EXPLAIN, DESCRIBE, DESC, and MariaDB's ANALYZE of a statement."""
    HELP = auto()
    USE = auto()
    SET = auto()
    TRANSACTION = auto()
    """BEGIN, START TRANSACTION, COMMIT, ROLLBACK, and savepoints."""
    XA = auto()
    LOCK = auto()
    """LOCK TABLES, UNLOCK TABLES, and locks of the whole instance."""
    PREPARED = auto()
    """PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE PREPARE."""
    COMPOUND = auto()
    """MariaDB's BEGIN NOT ATOMIC, IF, CASE and loops outside of a routine."""
    DIAGNOSTICS = auto()
    """GET DIAGNOSTICS, SIGNAL, RESIGNAL."""
    KILL = auto()
    DEFINITION = auto()
    """CREATE, ALTER, DROP, RENAME and TRUNCATE of objects in databases, and of databases."""
    MAINTENANCE = auto()
    """ANALYZE, CHECK, OPTIMIZE, REPAIR and CHECKSUM of tables, CACHE INDEX, LOAD INDEX."""
    ACCOUNT = auto()
    """Accounts, roles and their privileges."""
    SERVER = auto()
    """Statements about the whole server: plugins, logs, replication, tablespaces, shutdown."""
    UNKNOWN = auto()


class Servers(Flag):
    """The servers that have a statement."""

    MARIADB = auto()
    MYSQL = auto()
    BOTH = MARIADB | MYSQL


_SERVER_OF: Final = {"mariadb": Servers.MARIADB, "mysql": Servers.MYSQL}


class Objects(Enum):
    """The kind of object that a statement names, and so what its name is looked up in."""

    NOTHING = auto()
    """It names no object, or objects of no database."""
    ROWS = auto()
    """Tables within clauses, as in a query."""
    TABLE = auto()
    TABLES = auto()
    """A list of tables, separated by commas."""
    INDEX = auto()
    """An index of a table behind ON."""
    VIEW = auto()
    SEQUENCE = auto()
    TRIGGER = auto()
    PROCEDURE = auto()
    FUNCTION = auto()
    EVENT = auto()
    PACKAGE = auto()
    LIBRARY = auto()
    DATABASE = auto()
    ACCOUNT = auto()
    SERVER = auto()
    """An object of the whole server, such as a plugin or a tablespace."""
    PREPARED = auto()
    """A statement that PREPARE has named."""

    @property
    def is_routine(self) -> bool:
        """Whether the object has a body that runs at another time."""
        return self in _ROUTINES

    @property
    def has_code(self) -> bool:
        """Whether statements that use the object run code that they do not show."""
        return self in _WITH_CODE

    @property
    def belongs_to_database(self) -> bool:
        """Whether the object is in a database, which is the current one unless its name says another."""
        return self in _IN_DATABASE


_ROUTINES: Final = frozenset({Objects.PROCEDURE, Objects.FUNCTION, Objects.TRIGGER, Objects.EVENT})
_WITH_CODE: Final = _ROUTINES | {Objects.VIEW, Objects.PACKAGE, Objects.LIBRARY}
_IN_DATABASE: Final = _ROUTINES | {Objects.VIEW, Objects.SEQUENCE, Objects.PACKAGE, Objects.LIBRARY}


class Opens(Enum):
    """Whether a statement opens a transaction where none is open and autocommit is off. If autocommit is on,
    the same statements use up what SET TRANSACTION has set.
    """

    ALWAYS = auto()
    NEVER = auto()
    TABLES = auto()
    """If it names a table or a sequence, or calls a stored function, which may use one."""
    DICTIONARY = auto()
    """It looks at tables or at the dictionary only: on MySQL that opens one, on MariaDB it does not."""


class Keeps(Enum):
    """Whether MariaDB's SHOW WARNINGS still shows the warnings of the statement before."""

    NO = auto()
    YES = auto()
    TABLELESS = auto()
    """If it names no table and derives none."""
    EXPLAIN = auto()
    """If it explains a SELECT that names no table."""
    ALONE = auto()
    """FLUSH TABLES: unless it names some."""


class FoundRows(Enum):
    """What FOUND_ROWS() gives after a statement."""

    ROWS = auto()
    """The number of rows that were sent; what it was before if none were."""
    QUERY = auto()
    """As ROWS, but LIMIT, SQL_CALC_FOUND_ROWS and INTO have to be looked at."""
    INSERT = auto()
    UPDATE = auto()
    DELETE = auto()
    DO = auto()
    CREATE = auto()
    """CREATE TABLE, which may select rows."""
    EXPLAIN = auto()
    KEEP = auto()
    """What it was before: the rows that are sent do not count."""
    SELECTS = auto()
    """KEEP on MariaDB, ROWS on MySQL."""
    ASK = auto()
    """Only the server knows."""
    PRIMED = auto()
    """Only the server knows, and whether it is what it was before."""


class Runs(Enum):
    """Code that a statement may run and that its text does not show."""

    NOTHING = auto()
    FUNCTIONS = auto()
    """Stored functions and triggers."""
    ANYTHING = auto()
    """A procedure, a prepared text or a compound statement: any statement may run."""


class Inner(Enum):
    """A statement that stands within another one."""

    NONE = auto()
    BEHIND = auto()
    """It follows, as in EXPLAIN and SET STATEMENT … FOR."""
    TEXT = auto()
    """It is in a string or a variable, as in PREPARE."""
    BODY = auto()
    """It is the body of a routine, trigger or event, which runs at another time."""


class State(Enum):
    """State of a server connection that outlives a statement and that no other session may meet."""

    LOCK = "lock"
    """A named lock of GET_LOCK."""
    TABLE = "table"
    """A temporary table."""
    PREPARE = "prepare"
    """A statement that PREPARE has named."""
    HANDLER = "handler"
    TABLES = "tables"
    """The locks of LOCK TABLES."""
    FLUSH = "flush"
    """The locks of FLUSH TABLES … WITH READ LOCK and FOR EXPORT."""
    XA = "xa"
    BACKUP = "backup"
    """Locks of BACKUP STAGE, BACKUP LOCK and LOCK INSTANCE FOR BACKUP."""


class Session(Flag):
    """What a statement may change in the session, besides what LAST_INSERT_ID() and its like give."""

    NOTHING = 0
    USER_VARIABLES = auto()
    SYSTEM_VARIABLES = auto()
    DATABASE = auto()
    ROLE = auto()
    ANYTHING = USER_VARIABLES | SYSTEM_VARIABLES | DATABASE | ROLE


_BY_WORDS: Final[dict[str, StatementForm]] = {}
"""All forms that were made, for pickle: each exists once."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StatementForm:
    """One kind of statement; a row of the table.

    Attributes:
        words: The words that it begins with, in capitals, without options between them.
        kind: The family that it belongs to.
        access: The role that it needs at least. Words within it may ask for more.
        servers: The servers that have it.
        objects: The kind of object that it names first.
        commits: Whether a server commits an open transaction before it.
        commits_on: The servers that do so.
        opens: Whether it opens a transaction.
        refused_in_xa: Whether a server refuses it between XA START and XA END.
        keeps_warnings: Whether MariaDB keeps the warnings of the statement before.
        keeps_row_count: Whether ROW_COUNT() stays as it was.
        found_rows: What FOUND_ROWS() gives after it.
        session: What it may change in the session.
        leaves: Connection state that it leaves.
        ends: Connection state that it ends.
        uses: Connection state that it uses, by a name that the session has given it.
        runs: Code that it may run and that its text does not show.
        inner: A statement that stands within it.
        counter: The status variable that counts it, without `Com_`; "" for none.
        words_in_label: The number of its words that name it in logs, metrics and traces.
        named: Another name for logs, metrics and traces; "" for none.
        behind_set_statement: Whether it may stand behind MariaDB's SET STATEMENT … FOR.
        repeatable: Whether running it again, where it may have run, changes nothing.
        writes_rows: Whether it changes rows of the tables that it names.
        filters: Whether a WHERE of its own narrows the rows that it reads or changes.
        of_server: Whether it means the same in whatever current database it runs.
        of_everybody: Whether its rows tell of objects of any database or account.
    """

    words: str
    kind: Kind
    access: Access
    servers: Servers = Servers.BOTH
    objects: Objects = Objects.NOTHING
    commits: bool = False
    commits_on: Servers = Servers.BOTH
    opens: Opens = Opens.ALWAYS
    refused_in_xa: bool = False
    keeps_warnings: Keeps = Keeps.NO
    keeps_row_count: bool = False
    found_rows: FoundRows = FoundRows.ROWS
    session: Session = Session.NOTHING
    leaves: tuple[State, ...] = ()
    ends: tuple[State, ...] = ()
    uses: tuple[State, ...] = ()
    runs: Runs = Runs.NOTHING
    inner: Inner = Inner.NONE
    counter: str = ""
    words_in_label: int = 1
    named: str = ""
    behind_set_statement: bool = False
    repeatable: bool = False
    writes_rows: bool = False
    filters: bool = False
    of_server: bool = False
    of_everybody: bool = False

    def __post_init__(self) -> None:
        assert self.words not in _BY_WORDS, f"two rows for {self.words}"
        _BY_WORDS[self.words] = self

    def __repr__(self) -> str:
        return f"<{self.words}>"

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle: each form exists once."""
        return form_named, (self.words,)

    @property
    def verb(self) -> str:
        """The first word."""
        return self.words.partition(" ")[0]

    def commits_before(self, flavour: Flavour) -> bool:
        """Whether a server of this kind commits an open transaction before the statement."""
        return self.commits and bool(self.commits_on & _SERVER_OF[flavour.name])

    @property
    def label(self) -> str:
        """The words that name the statement in logs, metrics and traces."""
        return self.named or " ".join(self.words.split(" ")[: self.words_in_label])

    @property
    def defines(self) -> bool:
        """Whether it creates, alters, drops or renames an object."""
        return self.kind is Kind.DEFINITION


def form_named(words: str) -> StatementForm:
    """The row with these words. Raises KeyError."""
    return _BY_WORDS[words]
