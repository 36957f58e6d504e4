"""What statements are made of: expressions, tables and conditions; rules.py makes statements of them.

A rule gives a text whose tokens have blanks between them (a blank within a token is `␣`). `T:db.name` is a
table or routine, which mangling may quote and qualify; `F:NAME` a function that may be quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from random import Random

from tests.fuzz.sessions.world import SHARDED, SINGLE, Table, own

MODES = (
    "''",
    "'ANSI'",
    "'ANSI_QUOTES'",
    "'PIPES_AS_CONCAT'",
    "'NO_BACKSLASH_ESCAPES'",
    "'STRICT_TRANS_TABLES'",
    "'STRICT_ALL_TABLES,NO_ZERO_DATE'",
    "'IGNORE_SPACE'",
    "DEFAULT",
)
CHARSETS = ("utf8mb4", "latin1", "binary", "cp1251", "koi8r", "latin2", "utf8mb3", "ascii")
RESULTS = (*CHARSETS, "utf16", "utf32", "ucs2", "NULL", "gbk", "sjis")
COLLATIONS = ("utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_unicode_ci")

Rule = Callable[["Grammar"], str]
Rules = Sequence[tuple[float, str, Rule]]
"""Each with its weight, and the only flavour that has it, or "" for both."""


class Grammar:
    """Statements for session `session`, whose current database is `database` ("" for none)."""

    def __init__(
        self, random: Random, number: int, rules: Rules, *, mariadb: bool, without: Container[str] = ()
    ) -> None:
        self.random, self.number, self.mariadb = random, number, mariadb
        self.session = 0
        self.databases: list[str] = []
        self.rules = [
            (weight, rule)
            for weight, only, rule in rules
            if only in ("", self._flavour) and rule.__name__ not in without
        ]
        self.locked: set[int] = set()
        self._weights = [weight for weight, _ in self.rules]

    @property
    def _flavour(self) -> str:
        return "mariadb" if self.mariadb else "mysql"

    @property
    def database(self) -> str:
        return self.databases[self.session]

    @database.setter
    def database(self, name: str) -> None:
        self.databases[self.session] = name

    def statement(self) -> tuple[str, str]:
        """A rule's name and text."""
        if self.session in self.locked:
            rule: Rule = Grammar.while_locked
        else:
            ((_, rule),) = self.random.choices(self.rules, self._weights)
        text = rule(self)
        return rule.__name__, " ".join(text.split())

    # --- parts -----------------------------------------------------------------------------------

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def var(self) -> str:
        return "@" + self.random.choice("aaabbcd")

    def lock(self) -> str:
        return f"'l{self.random.choice('112')}_{self.number}'"

    def num(self) -> str:
        return str(self.random.choice((0, 1, 2, 3, 5, 7, 42, 100)))

    def text(self) -> str:
        return self.pick("'x'", "'abc'", "'Zz'", "'é'", "''", "'a␣b'", "'it''s'", "'3'")

    def mutate(self, *, insert_id: bool = True) -> str:
        """An expression that leaves something in the session. `insert_id`: LAST_INSERT_ID(), too, which is
        not kept where several shards run it.
        """
        var, num = self.var(), self.num()
        found = [
            f"F:GET_LOCK ( {self.lock()} , 0 )",
            f"F:GET_LOCK ( {self.lock()} , 0 )",
            f"F:RELEASE_LOCK ( {self.lock()} )",
            f"( {var} := {num} )",
            f"( {var} := {self.text()} )",
            f"( {var} := CONCAT( {self.text()} , {num} ) )",
            f"F:LAST_INSERT_ID ( {num} )",
        ]
        return self.random.choice(found if insert_id else found[:-1])

    def routine(self) -> str:
        found = [
            f"T:legacy.setv ( {self.num()} )",
            f"T:legacy.deep ( {self.num()} )",
            f"T:legacy.calm ( {self.num()} )",
            f"T:legacy.lockf ( {self.lock()} )",
        ]
        if self.mariadb:
            found += ["NEXTVAL ( T:legacy.sq )", "LASTVAL ( T:legacy.sq )", "NEXT VALUE FOR T:legacy.sq"]
        return self.random.choice(found)

    def show(self) -> str:
        """An expression that shows something of the session."""
        return self.pick(
            self.var(),
            self.var(),
            "F:LAST_INSERT_ID ( )",
            f"F:IS_FREE_LOCK ( {self.lock()} )",
            "DATABASE ( )",
            "@@sql_mode",
            "@@character_set_results",
            "@@session.autocommit",
            "'a' || 'b'",
            "CHARSET( 'x' )",
            "COLLATION( 'x' )",
            "HEX( 'é' )",
            f"F:CONCAT ( {self.text()} , {self.text()} )",
            "CAST( 'zz' AS SIGNED )",
            f"{self.num()} + {self.num()}",
            "@@sort_buffer_size",
        )

    def any(self, *, insert_id: bool = True) -> str:
        return self.mutate(insert_id=insert_id) if self.random.random() < 0.6 else self.show()

    def table(self) -> Table:
        return self.random.choice((*SHARDED, *SHARDED, *SINGLE, own(self.session), own(self.session)))

    def sharded(self) -> Table:
        return self.random.choice(SHARDED)

    def key(self, table: Table) -> str:
        if table.name.startswith("legacy"):
            return self.random.choice(table.keys[0])
        return self.random.choice(table.keys[self.session])

    def where(self, table: Table, *, write: bool = False) -> str:
        """A condition that names the session's rows."""
        kind = self.random.random()
        if kind < 0.5:
            return f"{table.key} = {self.key(table)}"
        if kind < 0.8:
            return f"{table.key} IN ( {self.key(table)} , {self.key(table)} )"
        if kind < 0.9 and not write and table.shared:
            return f"{table.key} IN ( {self.key(table)} , {self.random.choice(table.shared)} )"
        return f"{table.key} = {self.key(table)} AND {self.pick('1 = 1', '1', 'NOT 0')}"

    def hint(self) -> str:
        if self.mariadb or self.random.random() < 0.9:
            return ""
        return self.pick(
            "/*+␣SET_VAR(sort_buffer_size=300000)␣*/",
            "/*+␣MAX_EXECUTION_TIME(5000)␣*/",
            "/*+␣SET_VAR(sql_mode='')␣*/",
            "/*+␣NO_SUCH()␣*/",
        )

    def while_locked(self) -> str:
        """Under LOCK TABLES of the session's own table, which then is all that it uses."""
        table = own(self.session)
        if self.random.random() < 0.35:
            self.locked.discard(self.session)
            return "UNLOCK TABLES"
        return self.pick(
            f"SELECT v FROM T:{table.name} WHERE {self.where(table)} ORDER BY id",
            f"UPDATE T:{table.name} SET v = {self.any()} WHERE {self.where(table)}",
            f"INSERT INTO T:{table.name} ( v ) VALUES ( {self.any()} )",
            f"SELECT {self.any()}",
            f"SET {self.var()} = {self.num()}",
        )
