"""Asks servers what the bytes above 0x7F are outside of quotes, and writes rewriter/text/byte_classes.py:

    SHARDGATE_MYSQL9=… .venv/bin/python -m tests.rewriter.byte_classes

A byte is of a class only where all collations of its character set, on MariaDB and on MySQL, have it there:
the rest is refused. Character sets of several bytes are not in the table: see rewriter/text/characters.py.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from demo.programs import initialise
from tests.support.programs import FLAVOURS, need_program
from tests.support.servers import Connection, LocalServer

TARGET = Path(__file__).parents[2] / "rewriter" / "text" / "byte_classes.py"
HIGH = range(0x80, 0x100)
_SETS = "SELECT character_set_name FROM information_schema.character_sets WHERE maxlen = 1"
_COLLATIONS = (
    "SELECT collation_name, character_set_name FROM information_schema.collations"
    f" WHERE character_set_name IN ({_SETS}) ORDER BY 1"
)
_HEAD = '''"""What the bytes above 0x7F are outside of quotes, in character sets of one byte a character.

Made by `python -m tests.rewriter.byte_classes`, which asks MariaDB 10.11 and MySQL 9.7; a test compares.
"""

from __future__ import annotations

from typing import Final

#: Character set: bytes of names, white space. Ranges of hexadecimal numbers, the last one included.
TABLE: Final = """
'''


def send(connection: Any, sql: bytes) -> None:
    """Run a statement of any bytes."""
    connection._execute_command(3, sql)
    connection._read_query_result()


def runs(connection: Connection, sql: bytes) -> bool:
    """Whether a server takes the statement for one."""
    try:
        send(connection, sql)
        return True
    except UnicodeDecodeError:  # in the message of an error
        return False
    except Exception as error:
        if error.args[0] not in (1064, 1054, 1300):
            raise
        return False


def class_of(connection: Connection, byte: int) -> str:
    """ "word", "space" or "": what a byte is for the session's character set."""
    one = bytes((byte,))
    word = runs(connection, b"SELECT 1 AS a" + one + b"b") and runs(connection, b"SELECT 1 AS " + one)
    space = runs(connection, b"SELECT" + one + b"1") and runs(connection, b"SELECT 1 AS a" + one + b", 2")
    begins_comment = runs(connection, b"SELECT 1--" + one + b")")
    if word and not space and not begins_comment:
        return "word"
    return "space" if space and begins_comment and not word else ""


def classes(connection: Connection) -> dict[str, dict[str, set[int]]]:
    """For each character set the bytes of each class, in all of its collations."""
    found: dict[str, dict[str, set[int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COLLATIONS)
        collations = list(cursor.fetchall())
    for collation, charset in collations:
        send(connection, f"SET NAMES {charset} COLLATE {collation}".encode())
        send(connection, b"SET character_set_results = utf8mb4")
        now: dict[str, set[int]] = defaultdict(set)
        for byte in HIGH:
            now[class_of(connection, byte)].add(byte)
        known = found.setdefault(charset, {"word": set(HIGH), "space": set(HIGH)})
        for name in known:
            known[name] &= now[name]
    return found


def together(scattered: Iterable[dict[str, dict[str, set[int]]]]) -> dict[str, dict[str, set[int]]]:
    """What all servers say that know a character set."""
    found: dict[str, dict[str, set[int]]] = {}
    for one in scattered:
        for charset, kinds in one.items():
            known = found.setdefault(charset, {name: set(HIGH) for name in kinds})
            for name in kinds:
                known[name] &= kinds[name]
    return found


def ranges(numbers: set[int]) -> str:
    """`80-9f,a1`; `-` for none."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a:02x}" if a == b else f"{a:02x}-{b:02x}" for a, b in parts) or "-"


def written(found: dict[str, dict[str, set[int]]]) -> str:
    """The file."""
    lines = []
    for charset, kinds in sorted(found.items()):
        line = f"{charset} {ranges(kinds['word'])} {ranges(kinds['space'])}"
        lines.append(re.sub(r"(.{70,100},)", r"\1\\\n", line))
    return _HEAD + "\n".join(lines) + '\n"""\n'


def main() -> None:
    answers = []
    for flavour in FLAVOURS:
        program = need_program(flavour)
        with tempfile.TemporaryDirectory() as folder:
            initialise(program, Path(folder) / "template")
            with LocalServer(program, Path(folder) / "server", template=Path(folder) / "template") as server:
                answers.append(classes(server.connect()))
    TARGET.write_text(written(together(answers)))


if __name__ == "__main__":
    main()
