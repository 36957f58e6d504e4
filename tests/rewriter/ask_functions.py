"""Asks servers which functions they bring along, and writes rewriter/sql/statements/function_names.py and
rewriter/text/names_apart.py.

    python -m tests.rewriter.ask_functions READY_FILE …

Each READY_FILE is of a running `shardgate demo`, one on MariaDB and one on MySQL. The candidates are the
words in the servers' programs, and those that their catalogs and help tables list.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

import pymysql

from config.flavour import flavour_of

ROOT: Final = Path(__file__).parents[2] / "rewriter"
OUT: Final = ROOT / "sql" / "statements" / "function_names.py"
OUT_APART: Final = ROOT / "text" / "names_apart.py"
_NO_SUCH: Final = (1305, 1630, 1046)
_SYNTAX: Final = 1064
_WAITING: Final = ("SLEEP", "BENCHMARK")
_PLACES: Final = ("SELECT {}", "SELECT 1 + {}", "DO {}", "SET @x = {}")
"""The words behind SELECT, such as SQL_CACHE, are options there."""
_LISTS: Final = (
    "SELECT WORD FROM information_schema.KEYWORDS",
    "SELECT * FROM information_schema.SQL_FUNCTIONS",
    "SELECT name FROM mysql.help_topic",
    "SELECT name FROM mysql.help_keyword",
)
_HEAD: Final = '''\
"""The functions that servers bring along, as they say themselves. All others are stored or loaded ones.

Written by tests/rewriter/ask_functions.py. NATIVE has the words that are never the name of a stored function
where they stand unquoted in front of a parenthesis: functions, and keywords. CALLABLE_QUOTED are those of
them that a quoted name calls, too.
"""

# fmt: off
from __future__ import annotations

from typing import Final

'''

_HEAD_APART: Final = '''\
"""Functions of the servers whose names are ordinary names when a blank or a comment stands in front of the
parenthesis, unless sql_mode has IGNORE_SPACE: `COUNT (1)` calls a stored function.

Written by tests/rewriter/ask_functions.py.
"""

# fmt: off
from __future__ import annotations

from typing import Final

'''


def main(ready_files: list[str]) -> None:
    hosts = [json.loads(Path(name).read_text())["hosts"][0] for name in ready_files]
    connections = [_connect(host) for host in hosts]
    words: set[str] = set()
    for host, connection in zip(hosts, connections, strict=True):
        words |= _candidates(host["pid"], connection)
    native: dict[str, set[str]] = {}
    quoted: dict[str, set[str]] = {}
    apart: dict[str, set[str]] = {}
    for connection in connections:
        flavour = flavour_of(connection.get_server_info()).name
        found = {word: one for word in sorted(words) if (one := _asked(connection, word)) is not None}
        native[flavour] = set(found)
        quoted[flavour] = {word for word, callable_ in found.items() if callable_}
        apart[flavour] = {word for word in found if _is_name(connection, f"{word} ")}
    OUT.write_text(_HEAD + _sets("NATIVE", native) + "\n" + _sets("CALLABLE_QUOTED", quoted))
    OUT_APART.write_text(_HEAD_APART + _sets("NAMES_APART", apart))


def _connect(host: dict[str, Any]) -> pymysql.connections.Connection[Any]:
    return pymysql.connect(
        unix_socket=host["socket"], user=host["user"], password=host["password"], autocommit=True
    )


def _candidates(pid: int, connection: pymysql.connections.Connection[Any]) -> set[str]:
    found: set[str] = set()
    maps = Path(f"/proc/{pid}/maps").read_text()
    programs = set(re.findall(r"\s(/\S*(?:mysqld|mariadbd))$", maps, re.MULTILINE))
    for program in programs:
        text = subprocess.run(
            ["strings", "-n", "2", program], capture_output=True, text=True, check=True
        ).stdout
        found |= {word.upper() for word in re.findall(r"^[A-Za-z_][A-Za-z0-9_]{1,48}$", text, re.MULTILINE)}
    with connection.cursor() as cursor:
        for sql in _LISTS:
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                continue  # the other kind of server has it
            found |= {str(row[0]).upper().partition("(")[0].strip() for row in cursor.fetchall()}
    return {word for word in found if re.fullmatch("[A-Z_][A-Z0-9_]*", word)}


def _asked(connection: pymysql.connections.Connection[Any], word: str) -> bool | None:
    """None when a stored function may have that name; else whether its quoted name calls it, too."""
    if word in _WAITING:
        return True
    if _is_name(connection, word):
        return None
    return _code(connection, f"SELECT `{word}`()") not in (*_NO_SUCH, _SYNTAX)


def _is_name(connection: pymysql.connections.Connection[Any], before: str) -> bool:
    """Whether what stands `before` a parenthesis is the name of a stored function, in some place."""
    calls = [f"{before}({arguments})" for arguments in ("", "1", "1,1", "1,1,1")]
    return any(_code(connection, place.format(call)) in _NO_SUCH for place in _PLACES for call in calls)


def _code(connection: pymysql.connections.Connection[Any], sql: str) -> int:
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
            cursor.fetchall()
        except pymysql.err.MySQLError as error:
            return int(error.args[0])
    return 0


def _sets(name: str, found: dict[str, set[str]]) -> str:
    both = found["mariadb"] & found["mysql"]
    return (
        f'_{name}_BOTH: Final = """\n{_lines(both)}\n"""\n'
        f'_{name}_MARIADB: Final = """\n{_lines(found["mariadb"] - both)}\n"""\n'
        f'_{name}_MYSQL: Final = """\n{_lines(found["mysql"] - both)}\n"""\n'
        f"{name}: Final = {{\n"
        f'    "mariadb": frozenset((_{name}_BOTH + _{name}_MARIADB).split()),\n'
        f'    "mysql": frozenset((_{name}_BOTH + _{name}_MYSQL).split()),\n'
        f"}}\n"
        f'"""By the flavour."""\n'
    )


def _lines(words: set[str]) -> str:
    return textwrap.fill(" ".join(sorted(words)), 108, break_long_words=False)


if __name__ == "__main__":
    main(sys.argv[1:])
