"""Formats by what is in a file, statement by statement; garbage is counted and stops nothing."""

from __future__ import annotations

import doctest
import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.advising.entries import CUT_SHORT, MAX_STATEMENT, Entry, Notes
from proxy.advising.lines import MAX_LINE, PEEK, Lines
from proxy.advising.logs import READERS, Format, format_of
from rewriter.advice.cost import Way
from rewriter.advice.samples import into_of, of_digest

from .world import Read

START = (
    b"/usr/sbin/mysqld, Version: 8.0.36 (Source). started with:\n"
    b"Tcp port: 0  Unix socket: s\nTime Id Command Argument\n"
)

GENERAL = START + (
    b"2026-11-23T12:46:00.799714Z\t   10 Connect\troot@localhost on shop using Socket\n"
    b"2026-11-23T12:46:00.806395Z\t   10 Query\tSELECT *\n"
    b"FROM users\n"
    b"WHERE id = 1\n"
    b"2026-11-23T12:46:00.806396+02:00\t   11 Connect\troot@localhost on  using Socket\n"
    b"2026-11-23T12:46:00.806396+02:00\t   11 Query\tSELECT 1\n"
    b"2026-11-23T12:46:00.806397Z\t   11 Init DB\tother\n"
    b"2026-11-23T12:46:00.806397Z\t   11 Query\tSELECT 2\n"
    b"2026-11-23T12:46:00.806397Z\t   10 Query\tUSE `odd``name`\n"
    b"2026-11-23T12:46:00.806397Z\t   10 Execute\tSELECT 3\n"
    b"2026-11-23T12:46:00.806397Z\t   10 Quit\t\n"
) + START + (
    b"\t\t   10 Query\tSELECT 4\n"
)  # fmt: skip

SLOW = START + (
    b"# Time: 2026-11-23T12:46:00.806473Z\n"
    b"# User@Host: root[root] @ localhost []  Id:    10\n"
    b"# Query_time: 1.500000  Lock_time: 0.000000 Rows_sent: 3  Rows_examined: 70\n"
    b"use shop;\n"
    b"SET timestamp=1795437960;\n"
    b"SELECT *\n"
    b"FROM users\n"
    b"# a comment of the statement's own\n"
    b"WHERE id = 1;\n"
    b"# User@Host: root[root] @ localhost []\n"
    b"# Thread_id: 5  Schema: other  QC_hit: No\n"
    b"# Query_time: 0.250000  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1\n"
    b"SET last_insert_id=3,insert_id=4,timestamp=1795437956;\n"
    b"SELECT 2;\n"
    b"# Time: 2026-11-23T12:46:01.806473Z\n"
    b"# User@Host: root[root] @ localhost []  Id:    10\n"
    b"# Query_time: 0.1  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0\n"
    b"# administrator command: Ping;\n"
)  # fmt: skip

SQL = (
    b"-- a dump\nUSE shop;\nSELECT 1; SELECT 'a;b', \"c;'d\", `e;` -- no; end\n, 2; /* ; */\n"
    b"DELIMITER //\nSELECT 3; SELECT 4//\nDELIMITER ;\n# SELECT 5;\nSELECT 'it''s\n\\'still; it'\n"
)


def read(data: bytes, format: Format) -> tuple[list[Entry], Notes]:
    notes = Notes()
    return list(READERS[format](notes).read(data.removesuffix(b"\n").split(b"\n"))), notes


def test_a_general_log() -> None:
    found, notes = read(GENERAL, Format.GENERAL)
    assert [(one.sql, one.database) for one in found] == [
        (b"SELECT *\nFROM users\nWHERE id = 1", "shop"),
        (b"SELECT 1", None),
        (b"SELECT 2", "other"),
        (b"USE `odd``name`", "shop"),
        (b"SELECT 3", "odd`name"),
        (b"SELECT 4", None),
    ]
    assert notes.version == "8.0.36"
    assert not notes.skipped


def test_a_slow_log() -> None:
    found, notes = read(SLOW, Format.SLOW)
    statement = b"SELECT *\nFROM users\n# a comment of the statement's own\nWHERE id = 1"
    assert found == [
        Entry(statement, "shop", seconds=1.5, examined=70, sent=3),
        Entry(b"SELECT 2", "other", seconds=0.25, examined=1, sent=1),
    ]
    assert not notes.skipped


def test_sql() -> None:
    found, notes = read(SQL, Format.SQL)
    assert [one.sql.strip() for one in found] == [
        b"-- a dump\nUSE shop",
        b"SELECT 1",
        b"SELECT 'a;b', \"c;'d\", `e;` -- no; end\n, 2",
        b"SELECT 3; SELECT 4",
        b"# SELECT 5;\nSELECT 'it''s\n\\'still; it'",
    ]
    assert found[1].database == "shop"
    assert not notes.skipped
    assert read(b"SELECT 1; SELECT 'open", Format.SQL)[1].skipped.total() == 1


def test_several_statements_in_one_text(tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_bytes(b"DELIMITER //\nSELECT id FROM users WHERE id = 1; SELECT name FROM users//\n")
    assert {text: one.cost.way for text, one in Read(log).kinds.items()} == {
        "SELECT id FROM users WHERE id = ?": Way.POINT,
        "SELECT name FROM users": Way.SCATTER,
    }


def test_digests_that_are_cut_or_have_no_room() -> None:
    text = b"SCHEMA_NAME\tDIGEST_TEXT\tCOUNT_STAR\tSUM_TIMER_WAIT\n"
    text += b"shop\tSELECT `a` FROM ...\t7\t1000000000000\n"
    text += b"NULL\tNULL\t40\t9\n"
    text += b"shop\tEXECUTE SELECT * FROM `users` WHERE `id` = ?\t2\t3000000000000\n"
    text += b"shop\tPREPARE SELECT * FROM `users` WHERE `id` = ?\t2\t3\n"
    text += b"shop\ttoo few\n"
    found, notes = read(text, Format.DIGEST)
    (only,) = found
    assert only == Entry(
        b"SELECT * FROM `users` WHERE `id` = ?", "shop", 2, 3.0, parameters=True, digest=True
    )
    assert notes.skipped[CUT_SHORT] == 1
    assert notes.skipped["statements of which the server had no room for a digest"] == 40
    assert notes.skipped.total() == 43


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (GENERAL, Format.GENERAL),
        (b"\t\t    3 Query\tSELECT 1\n", Format.GENERAL),
        (SLOW, Format.SLOW),
        (b"SELECT 1;\n", Format.SQL),
        (b"", Format.SQL),
        (b'"SCHEMA_NAME","DIGEST_TEXT","COUNT_STAR"\n', Format.DIGEST),
        (b"\xef\xbb\xbfdigest_text,count_star\r\n", Format.DIGEST),
        (b"DIGEST\tDIGEST_TEXT\n", Format.DIGEST),
    ],
)
def test_the_format_is_found(data: bytes, expected: Format) -> None:
    assert format_of(data) is expected


@pytest.mark.parametrize("data", [GENERAL, SLOW, SQL])
def test_compressed_and_from_stdin(data: bytes, tmp_path: Path) -> None:
    plain, packed = tmp_path / "log", tmp_path / "log.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    expected = data.removesuffix(b"\n").split(b"\n")
    for path in (plain, packed):
        lines = Lines(path)
        assert lines.beginning() == data
        assert list(lines) == expected
        assert lines.size in (len(data), len(data) + 1)
        lines.close()
    code = "import sys; from pathlib import Path; from proxy.advising.lines import Lines; "
    code += "lines = Lines(Path('-')); lines.beginning(); sys.stdout.buffer.write(b'\\n'.join(lines))"
    for sent in (data, gzip.compress(data)):
        told = subprocess.run([sys.executable, "-c", code], input=sent, stdout=subprocess.PIPE, check=True)
        assert told.stdout.split(b"\n") == expected


def test_long_lines_and_statements_take_no_memory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    long = b"SELECT '" + b"x" * (3 * MAX_LINE) + b"'"
    log.write_bytes(
        b"SELECT 1;\n"
        + long
        + b";\nSELECT 2;\nSELECT 3,\n"
        + b"4,\n" * (MAX_STATEMENT // 3 + 9)
        + b"5;\nSELECT 6;\n"
    )
    assert log.stat().st_size > PEEK
    lines = Lines(log)
    notes = Notes()
    assert format_of(lines.beginning()) is Format.SQL
    found = [one.sql for one in READERS[Format.SQL](notes).read(lines)]
    lines.close()
    assert found == [b"SELECT 1", b"\nSELECT 2".strip(), b"SELECT 6"]
    assert notes.skipped == {"statements longer than 1 MB": 2}
    assert lines.size == log.stat().st_size
    general = START + b"\t\t   1 Query\t" + long + b"\n\t\t   1 Query\tSELECT 7\n"
    assert [one.sql for one in read(general, Format.GENERAL)[0]] == [b"SELECT 7"]
    assert read(general, Format.GENERAL)[1].skipped == {"statements longer than 1 MB": 1}


PIECES = st.sampled_from(
    [
        *GENERAL.split(b"\n"),
        *SLOW.split(b"\n"),
        *SQL.split(b"\n"),
        b"DIGEST_TEXT\tCOUNT_STAR",
        b"SELECT `x` FROM `users` WHERE `id` IN (...)\t5",
        b"INSERT INTO `users` VALUES (...) /* , ... */\t5",
        b"DIGEST_TEXT,COUNT_STAR",
        b'"SELECT ""x"" FROM users","5',
        b"/*! SELECT */ 1; SELECT",
    ]
)


def test_examples_in_the_code() -> None:
    from proxy.advising import words as numbers
    from rewriter.advice import samples, words

    for module in (numbers, samples, words):
        tried = doctest.testmod(module)
        assert tried.attempted
        assert not tried.failed


@given(st.lists(PIECES | st.binary(max_size=40), max_size=30), st.sampled_from([*Format, None]))
def test_garbage_stops_nothing(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], format: Format
) -> None:
    log = tmp_path_factory.getbasetemp() / "garbage.log"
    log.write_bytes(b"\n".join(parts))
    found = Read(log, format)
    assert found.tally.statements == sum(one.count for one in found.tally.kinds.values())
    assert all(one.measured > 0 and sum(one.ways.values()) == one.measured for one in found.kinds.values())


_MEGA = 1 << 20


@pytest.mark.parametrize(
    ("format", "line"),
    [
        (Format.GENERAL, b"a Version: a" * (_MEGA // 12)),
        (Format.GENERAL, b"\t\t    8 Query\tUSE a" + b" " * (_MEGA - 100) + b"x"),
        (Format.GENERAL, b"\t\t    8 Query\tUSE `" + b"``" * (_MEGA // 2 - 100) + b"x"),
        (Format.GENERAL, b"\t\t    8 Connect\ta" + b" on a" * (_MEGA // 5 - 100)),
        (Format.SLOW, b"# User@Host: " + b"Schema:a" * (_MEGA // 8)),
        (Format.SLOW, b"# Query_time: " + b"1." * (_MEGA // 2)),
        (Format.SLOW, b"# Query_time: 1  Rows_sent: 1  Rows_examined: " + b"9" * (_MEGA - 100)),
        (Format.SQL, b"DELIMITER " + b"a" * 5000 + b"b\n" + b"a" * _MEGA),
        (Format.SQL, b"SELECT " + b"'`" * (_MEGA // 2)),
    ],
)
def test_a_line_of_a_megabyte_is_passed_once(format: Format, line: bytes) -> None:
    """Whatever is in it: what is looked for from each of its bytes to its end would take hours."""
    list(READERS[format](Notes()).read([b"# Time: 2026", line, b"SELECT 1;"]))
    format_of(line[:PEEK])


@pytest.mark.parametrize(
    "text",
    [
        b"SELECT " + b"x" * _MEGA,
        b"SELECT " + b"`a" * (_MEGA // 2),
        b"SELECT " + b"``" * (_MEGA // 2) + b"`",
        b"SELECT " + b"a" * _MEGA + b" `f` ( 1 )",
        b"INSERT INTO " + b"x" * _MEGA,
        b"INSERT INTO " + b"``" * (_MEGA // 2) + b"`a VALUES (...)",
    ],
)
def test_a_digest_of_a_megabyte_is_passed_once(text: bytes) -> None:
    of_digest(text)
    into_of(text)


def test_names_of_a_digest() -> None:
    assert of_digest(b"SELECT a . `b . c` , `d` . * , x1.y . `z` FROM `a``b` . `t`") == (
        b"SELECT a.`b . c` , `d`.* , x1.y.`z` FROM `a``b`.`t`"
    )
    assert of_digest(b"SELECT `left` ( `a` . `b` , ? ) , `x` FROM `t` WHERE `f` ( )") == (
        b"SELECT left( `a`.`b` , ? ) , `x` FROM `t` WHERE f()"
    )
    assert into_of(b"INSERT INTO `my t` VALUES (...)") == b"my t"
