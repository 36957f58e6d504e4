"""Words that are keywords in one place and names in another: which place reads which word as a name.

    python -m tests.rewriter.words READY_FILE …     asks servers, and writes words.json

Each READY_FILE is of a running `shardgate demo`, one on MariaDB and one on MySQL. The words are all that
information_schema.KEYWORDS lists on either. A server reads a word as a name where the statement with the bare
word does what the statement with the quoted word does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pymysql

FILE: Final = Path(__file__).with_suffix(".json")

#: `{w}` is the word. There are a table k with the columns x and `{w}`, a table j with the column z, and a
#: table `{w}` with the columns x and y.
SELECTS: Final = (
    "SELECT {w} FROM k",
    "SELECT x, {w} FROM k",
    "SELECT {w}, x FROM k",
    "SELECT x AS {w} FROM k",
    "SELECT x {w} FROM k",
    "SELECT 1 {w} FROM k",
    "SELECT 'a' {w} FROM k",
    "SELECT NULL {w} FROM k",
    "SELECT (x) {w} FROM k",
    "SELECT x + 1 {w} FROM k",
    "SELECT COUNT(*) {w} FROM k",
    "SELECT `x` {w} FROM k",
    "SELECT x {w}, 1 FROM k",
    "SELECT {w} AS y FROM k",
    "SELECT {w} y FROM k",
    "SELECT {w} + 1 FROM k",
    "SELECT 1 + {w} FROM k",
    "SELECT DISTINCT {w} FROM k",
    "SELECT -{w} FROM k",
    "SELECT ({w}) FROM k",
    "SELECT SUM({w}) FROM k",
    "SELECT (SELECT {w} FROM k LIMIT 1)",
    "SELECT (SELECT 1) {w}",
    "SELECT CASE {w} WHEN 1 THEN {w} ELSE {w} END FROM k",
    "SELECT k.{w} FROM k",
    "SELECT {w}.x FROM k AS {w}",
    "SELECT {w}.x FROM k {w}",
    "SELECT {w}.* FROM k {w}",
    "SELECT x FROM k AS {w}",
    "SELECT x FROM k {w}",
    "SELECT x FROM k {w} WHERE x = 1",
    "SELECT x FROM k {w} ORDER BY x DESC",
    "SELECT x FROM k {w} LIMIT 1",
    "SELECT x FROM k {w}, j",
    "SELECT x FROM k {w} JOIN j ON z = x",
    "SELECT x FROM k {w} LEFT JOIN j ON z = x WHERE x = 1",
    "SELECT x FROM j JOIN k {w} ON z = x",
    "SELECT x FROM k {w} USE INDEX ()",
    "SELECT x FROM {w}",
    "SELECT x FROM {w} WHERE x = 1",
    "SELECT x FROM {w} a WHERE a.x = 1",
    "SELECT x FROM j, {w} WHERE z = x",
    "SELECT x FROM j JOIN {w} ON z = x",
    "SELECT x FROM j LEFT JOIN {w} ON z = x",
    "SELECT x FROM ({w}, j)",
    "SELECT x FROM (SELECT 1 AS x) {w}",
    "SELECT x FROM (SELECT 1 AS x) AS {w} WHERE x = 1",
    "WITH {w} AS (SELECT 1 AS x) SELECT x FROM {w} WHERE x = 1",
    "WITH {w} (x) AS (SELECT 1) SELECT x FROM {w}",
    "SELECT x FROM k WHERE {w}",
    "SELECT x FROM k WHERE NOT {w}",
    "SELECT x FROM k WHERE x = {w}",
    "SELECT x FROM k WHERE x = 1 OR {w} OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND x < {w} OR x = 3",
    "SELECT x FROM k WHERE x BETWEEN {w} AND 3 OR x = 1",
    "SELECT x FROM k WHERE x IN ({w}, 2) OR x = 3",
    "SELECT x FROM k WHERE (x, {w}) = (1, 5) OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} IS NULL OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} IN (5, 6) OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} NOT IN (6) OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} BETWEEN 1 AND 9 OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} LIKE '5' OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} REGEXP '5' OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} COLLATE utf8mb4_bin = '5' OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND k.{w} < 6 OR x = 3",
    *(
        f"SELECT x FROM k WHERE x = 1 AND {{w}} {one} 5 OR x = 3"
        for one in (
            "=",
            "<",
            ">",
            "<=",
            ">=",
            "<>",
            "!=",
            "<=>",
            "+",
            "-",
            "*",
            "/",
            "%",
            "&",
            "|",
            "^",
            "<<",
            ">>",
            "DIV",
            "MOD",
            "XOR",
            "&&",
            "AND",
            "OR",
        )
    ),
    "SELECT x FROM k JOIN j ON x = z AND {w} < 5 OR x = 3",
    "SELECT x FROM k JOIN j ON x = z AND {w} = 5 WHERE x = 1 OR x = 3",
    "SELECT x FROM k LEFT JOIN j ON z = {w} WHERE x = 1",
    "SELECT x FROM k ORDER BY {w}",
    "SELECT x FROM k ORDER BY {w} DESC",
    "SELECT x FROM k ORDER BY {w} DESC, x LIMIT 2",
    "SELECT x FROM k ORDER BY x, {w}",
    "SELECT x FROM k ORDER BY {w} LIMIT 1",
    "SELECT x FROM k ORDER BY {w} + 1 DESC",
    "SELECT COUNT(*) FROM k GROUP BY {w}",
    "SELECT COUNT(*) FROM k GROUP BY {w}, x",
    "SELECT COUNT(*) FROM k GROUP BY {w} HAVING COUNT(*) > 1",
    "SELECT COUNT(*) FROM k GROUP BY {w} WITH ROLLUP",
    "SELECT {w} FROM k HAVING {w} > 5",
    "SELECT x AS {w} FROM j, k HAVING {w} > 1 ORDER BY 1",
    "SELECT SUM(x) OVER (PARTITION BY {w} ORDER BY x) FROM k",
    "SELECT SUM(x) OVER (ORDER BY {w}, x ROWS UNBOUNDED PRECEDING) FROM k",
    "SELECT SUM(x) OVER {w} FROM k WINDOW {w} AS (ORDER BY x)",
    "SELECT x FROM k WHERE x = 1 UNION SELECT {w} FROM k",
    "(SELECT {w} FROM k) ORDER BY {w} LIMIT 1",
    "SELECT x FROM k WHERE x = (SELECT MAX({w}) FROM k) OR x = 3",
    "SELECT x FROM k WHERE EXISTS (SELECT 1 FROM j WHERE z = x AND {w} < 6 OR z = 3)",
)
WRITES: Final = (
    "DELETE FROM k WHERE x = 1 AND {w} < 6 OR x = 3",
    "DELETE FROM k WHERE x = 1 AND {w} + 1 OR x = 3",
    "DELETE FROM k WHERE x = 1 ORDER BY {w} LIMIT 1",
    "DELETE FROM {w} WHERE x = 1",
    "DELETE FROM k AS {w} WHERE x = 1",
    "DELETE FROM k {w} WHERE x = 1",
    "DELETE {w} FROM k {w} WHERE x = 1",
    "DELETE {w} FROM k AS {w} JOIN j ON z = x WHERE x = 1",
    "DELETE FROM {w} USING k AS {w} WHERE x = 1",
    "UPDATE k SET {w} = 7 WHERE x = 1",
    "UPDATE k SET x = {w} WHERE x = 1",
    "UPDATE k SET x = {w} + 1, {w} = 9 WHERE x = 1 OR x = 3",
    "UPDATE k SET x = 9 WHERE x = 1 AND {w} < 6 OR x = 3",
    "UPDATE k {w} SET x = 9 WHERE x = 1",
    "UPDATE k AS {w} SET {w}.x = 9 WHERE x = 1",
    "UPDATE {w} SET x = 9 WHERE x = 1",
    "UPDATE k JOIN j ON z = x SET {w} = 9 WHERE x = 1",
    "UPDATE k, j {w} SET x = 9 WHERE x = {w}.z",
    "INSERT INTO k ({w}, x) VALUES (1, 2)",
    "INSERT INTO k SET {w} = 1, x = 2",
    "INSERT INTO {w} (x) VALUES (4)",
    "INSERT INTO {w} VALUES (4, 2)",
    "INSERT {w} (x) VALUES (4)",
    "INSERT INTO k (x) SELECT {w} FROM k",
    "INSERT INTO k (x) SELECT z FROM j {w}",
    "INSERT INTO k (x) SELECT z AS {w} FROM j",
    "INSERT INTO k (x) SELECT x FROM k q WHERE x = 1 AND {w} < 6 OR x = 3",
    "INSERT INTO k (x) VALUES (1) ON DUPLICATE KEY UPDATE {w} = 8",
    "INSERT INTO k (x) VALUES (1) ON DUPLICATE KEY UPDATE x = {w} + 3",
    "INSERT INTO k (x) VALUES (1) ON DUPLICATE KEY UPDATE {w} = VALUES({w}), x = 8",
    "INSERT INTO k (x) VALUES (1) AS {w} ON DUPLICATE KEY UPDATE x = {w}.x + 7",
    "REPLACE INTO k ({w}, x) VALUES (9, 1)",
    "INSERT INTO k (x) VALUES (4) RETURNING {w}",
    "DELETE FROM k WHERE x = 1 RETURNING {w}",
)  # fmt: skip
PLACES: Final = SELECTS + WRITES


def profiles(mariadb: bool) -> dict[str, list[str]]:
    """For each profile (a character a place, 1: the word is a name there) the words that have it."""
    found = json.loads(FILE.read_text())["mariadb" if mariadb else "mysql"]
    return {profile: words.split() for profile, words in found.items()}


def cases(mariadb: bool) -> Iterator[tuple[str, str]]:
    """(word, place) for each that the server reads as a name."""
    for profile, words in profiles(mariadb).items():
        for word in words:
            for place, mark in zip(PLACES, profile, strict=True):
                if mark == "1":
                    yield word, place


# -- asking


class Asked:
    """One server."""

    def __init__(self, host: dict[str, Any]) -> None:
        self.connection = pymysql.connect(
            unix_socket=host["socket"], user=host["user"], password=host["password"]
        )
        self.mariadb = "mariadb" in self.connection.get_server_info().lower()
        self.cursor = self.connection.cursor()
        for sql in (
            "DROP DATABASE IF EXISTS words",
            "CREATE DATABASE words",
            "USE words",
            "SET SESSION sql_mode = ''",
            "SET timestamp = 1700000000",  # some of the words are the time
        ):
            self.cursor.execute(sql)

    def keywords(self) -> set[str]:
        self.cursor.execute("SELECT WORD FROM information_schema.KEYWORDS")
        return {str(row[0]).upper() for row in self.cursor.fetchall()}

    def profile(self, word: str, places: Sequence[str] = PLACES) -> str:
        """A character for each place: 1 where the word is a name."""
        self._tables(word)
        marks = []
        for place in places:
            bare = self._outcome(place.format(w=word))
            named = bare is not None and bare == self._outcome(place.format(w=f"`{word}`"))
            marks.append("1" if named else "0")
        return "".join(marks)

    def close(self) -> None:
        self.cursor.execute("DROP DATABASE words")
        self.connection.close()

    def _tables(self, word: str) -> None:
        for sql in (
            "DROP DATABASE words",
            "CREATE DATABASE words",
            "USE words",
            "CREATE TABLE j (z INT PRIMARY KEY)",
            "INSERT INTO j VALUES (1), (2), (3)",
            f"CREATE TABLE k (x INT PRIMARY KEY, `{word}` VARCHAR(10) CHARACTER SET utf8mb4)",
            "INSERT INTO k VALUES (1, '5'), (2, '4'), (3, '6')",
            f"CREATE TABLE `{word}` (x INT PRIMARY KEY, y INT)",
            f"INSERT INTO `{word}` VALUES (1, 7), (2, 8), (3, 9)",
            "COMMIT",
        ):
            self.cursor.execute(sql)

    def _outcome(self, sql: str) -> object:
        """What the statement does: rows and their names, or what it changed; None for an error."""
        try:
            self.cursor.execute(sql)
            rows = self.cursor.fetchall()
        except pymysql.err.MySQLError:
            return None
        if sql.startswith(("SELECT", "WITH", "(")):
            names = [column[0].replace("`", "") for column in self.cursor.description or ()]
            return names, rows
        changed: list[object] = [rows, self.cursor.rowcount]
        self.cursor.execute("SELECT * FROM k ORDER BY 1")
        changed.append(self.cursor.fetchall())
        self.connection.rollback()
        return changed


def ask(ready_files: list[str]) -> None:
    """Ask the servers for all words and places, and write what they say."""
    servers = [Asked(json.loads(Path(name).read_text())["hosts"][0]) for name in ready_files]
    words = sorted(set().union(*(server.keywords() for server in servers)) - {"J", "K", "X", "Y", "Z"})
    words = [word for word in words if word.replace("_", "").isalnum()]
    found: dict[str, dict[str, list[str]]] = {}
    for server in servers:
        mine: dict[str, list[str]] = {}
        for word in words:
            mine.setdefault(server.profile(word), []).append(word)
        found["mariadb" if server.mariadb else "mysql"] = mine
        server.close()
    lines = {
        name: {profile: " ".join(each) for profile, each in sorted(mine.items())}
        for name, mine in found.items()
    }
    FILE.write_text(json.dumps(lines, indent=0) + "\n")


if __name__ == "__main__":
    ask(sys.argv[1:])
