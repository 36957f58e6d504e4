"""Every type of column, every type of parameter, for comparing prepared statements with a plain server."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.integration import binary as b
from tests.integration.binary import Param
from tests.integration.own import OwnProxy
from tests.support.demo import Demo

COLUMNS = {
    "tiny": "TINYINT NULL",
    "utiny": "TINYINT UNSIGNED NULL",
    "zerofilled": "INT(8) ZEROFILL NULL",
    "short": "SMALLINT NULL",
    "medium": "MEDIUMINT NULL",
    "umedium": "MEDIUMINT UNSIGNED NULL",
    "whole": "INT NULL",
    "uwhole": "INT UNSIGNED NULL",
    "big": "BIGINT NULL",
    "ubig": "BIGINT UNSIGNED NULL",
    "flag": "BOOL NULL",
    "bits": "BIT(20) NULL",
    "price": "DECIMAL(30,10) NULL",
    "whole_price": "DECIMAL(65,0) NULL",
    "single": "FLOAT NULL",
    "ratio": "DOUBLE NULL",
    "rounded": "DOUBLE(12,3) NULL",
    "day": "DATE NULL",
    "clock": "TIME NULL",
    "clock6": "TIME(6) NULL",
    "moment": "DATETIME NULL",
    "moment3": "DATETIME(3) NULL",
    "moment6": "DATETIME(6) NULL",
    "stamp": "TIMESTAMP NULL DEFAULT NULL",
    "stamp6": "TIMESTAMP(6) NULL DEFAULT NULL",
    "year_": "YEAR NULL",
    "fixed": "CHAR(20) NULL",
    "name": "VARCHAR(300) NULL",
    "latin": "VARCHAR(100) CHARACTER SET latin1 NULL",
    "fixed_bytes": "BINARY(12) NULL",
    "bytes_": "VARBINARY(300) NULL",
    "body": "TEXT NULL",
    "blob_": "BLOB NULL",
    "choice": "ENUM('new','ä','it''s','5') NULL",
    "choices": "SET('a','b','ü') NULL",
    "doc": "JSON NULL",
    "place": "POINT NULL",
}

_WELL_KNOWN_POINT = struct.pack("<IBIdd", 0, 1, 1, 1.5, -2.25)

#: For each column values that it takes as they are.
OWN: dict[str, list[Param]] = {
    "tiny": [b.integer(-128, b.TINY), b.integer(127, b.TINY)],
    "utiny": [b.integer(255, b.TINY, unsigned=True), b.integer(0, b.TINY)],
    "zerofilled": [b.integer(42, b.LONG), b.integer(4294967295)],
    "short": [b.integer(-32768, b.SHORT), b.integer(32767, b.SHORT)],
    "medium": [b.integer(-8388608, b.LONG), b.integer(8388607, b.LONG)],
    "umedium": [b.integer(16777215, b.LONG), b.integer(1, b.LONG)],
    "whole": [b.integer(-(1 << 31), b.LONG), b.integer((1 << 31) - 1, b.LONG)],
    "uwhole": [b.integer((1 << 32) - 1, b.LONG, unsigned=True), b.integer(7, b.LONG)],
    "big": [b.integer(-(1 << 63)), b.integer((1 << 63) - 1)],
    "ubig": [b.integer((1 << 64) - 1, unsigned=True), b.text("18446744073709551614")],
    "flag": [b.integer(1, b.TINY), b.integer(0, b.TINY)],
    "bits": [b.text(b"\x0f\x00\xff", b.BLOB), b.integer(5)],
    "price": [b.text("-12345678901234567890.0123456789", b.NEWDECIMAL), b.text("0.5", b.NEWDECIMAL)],
    "whole_price": [b.text("9" * 65, b.NEWDECIMAL), b.text("-1", b.NEWDECIMAL)],
    "single": [b.single(0.1), b.single(-3.4028234e38), b.single(16777217.0)],
    "ratio": [b.double(0.1), b.double(-1.7976931348623157e308), b.double(2.2250738585072014e-308)],
    "rounded": [b.double(123456.7891), b.double(-0.001)],
    "day": [b.moment(b.DATE, 2024, 2, 29), b.moment(b.DATE, 9999, 12, 31), b.moment(b.DATE)],
    "clock": [b.duration(True, 34, 22, 59, 59), b.duration(False, 0, 0, 0, 1), Param(b.TIME, b"\0")],
    "clock6": [b.duration(False, 1, 2, 3, 4, 5), b.duration(True, 0, 0, 0, 0, 999999)],
    "moment": [b.moment(b.DATETIME, 2024, 2, 29, 23, 59, 58), b.moment(b.DATETIME, 1000, 1, 1)],
    "moment3": [b.moment(b.DATETIME, 2024, 2, 29, 23, 59, 58, 120000), b.moment(b.DATETIME, 2000, 1, 1)],
    "moment6": [b.moment(b.DATETIME, 2024, 2, 29, 23, 59, 58, 1), b.moment(b.DATETIME)],
    "stamp": [b.moment(b.TIMESTAMP, 2024, 2, 29, 23, 59, 58), b.moment(b.TIMESTAMP, 1971, 1, 1, 0, 0, 1)],
    "stamp6": [b.moment(b.TIMESTAMP, 2024, 2, 29, 23, 59, 58, 999999), b.moment(b.DATE, 2001, 5, 6)],
    "year_": [b.integer(2155, b.SHORT), b.integer(1901, b.SHORT)],
    "fixed": [b.text("trailing  "), b.text('it\'s \\ "q" 😀')],
    "name": [b.text(""), b.text("a\0b\n\r\x1a%_'\\\\''😀ß"), b.text("x" * 300)],
    "latin": [b.text("Ünïcödé"), b.text("plain", b.STRING)],
    "fixed_bytes": [b.text(b"\0\1\2\xff", b.BLOB), b.text(b"'\\'", b.VAR_STRING)],
    "bytes_": [b.text(bytes(range(256)), b.BLOB), b.text(b"", b.LONG_BLOB)],
    "body": [b.text("long 😀 " * 100), b.text("")],
    "blob_": [b.text(bytes(range(256)) * 20, b.MEDIUM_BLOB), b.text(b"\xff" * 251, b.TINY_BLOB)],
    "choice": [b.text("ä"), b.integer(3), b.text("it's")],
    "choices": [b.text("a,ü"), b.integer(7), b.text("")],
    "doc": [b.text('{"a": [1, 2.5, "it\'s \\"q\\" \\\\ 😀", null]}'), b.text("[]")],
    "place": [b.text(_WELL_KNOWN_POINT, b.BLOB), b.NOTHING],
}

#: Values that any column is given, whatever it makes of them.
ODD = [
    b.NOTHING,
    b.integer(0),
    b.integer(-1, b.TINY),
    b.integer(200, b.TINY, unsigned=True),
    b.integer(40000, b.SHORT, unsigned=True),
    b.integer(20240229, b.LONG),
    b.integer((1 << 64) - 1, unsigned=True),
    b.single(1.1),
    b.double(-1.5),
    b.double(1e300),
    b.text("12.50", b.NEWDECIMAL),
    b.text("7", b.NEWDECIMAL),
    b.moment(b.DATE, 2024, 2, 29),
    b.moment(b.DATETIME, 2024, 2, 29, 1, 2, 3, 4),
    b.duration(True, 1, 2, 3, 4),
    b.text("2024-02-29 10:11:12.5"),
    b.text("5"),
    b.text("it's \\ 'x'"),
    b.text("5", b.BLOB),
]

SHARDS = 4


def column_list(types: dict[str, str] = COLUMNS) -> str:
    return ", ".join(f"`{name}` {type_}" for name, type_ in types.items())


def schema_file(demo: Demo, directory: Path) -> Path:
    """The demo's schema, and a database `vals` with an object table of every type of column."""
    schema = yaml.safe_load(demo.schema.read_text())
    schema["databases"]["vals"] = {
        "tables": {
            "everything": {"kind": "object", "keyspace": "vals", "type": 9, "columns": dict(COLUMNS)},
        }
    }
    path = directory / "schema.yaml"
    path.write_text(yaml.safe_dump(schema, sort_keys=False))
    return path


def topology(demo: Demo) -> dict[str, Any]:
    """The demo's topology, and the shards of `vals` over both hosts."""
    document: dict[str, Any] = json.loads((demo.directory / "topology.json").read_text())
    half = SHARDS // 2
    document["keyspaces"]["vals"] = {
        "layout": "pinterest",
        "database": "val{shard:05d}",
        "ranges": [
            {"range": [0, half - 1], "master": demo.masters[0].address, "open": True},
            {"range": [half, SHARDS - 1], "master": demo.masters[1].address, "open": True},
        ],
    }
    return document


@contextmanager
def databases(demo: Demo) -> Iterator[None]:
    """The shards of `vals` on both hosts, and its table as a plain one in two databases on the first."""
    names: list[tuple[int, str]] = [(0, "plain_vals"), (0, "passed_vals")]
    names += [(0 if shard < SHARDS // 2 else 1, f"val{shard:05d}") for shard in range(SHARDS)]
    for host, name in names:
        key = "id" if name.endswith("_vals") else "local_id"
        with demo.direct(host) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
            cursor.execute(
                f"CREATE TABLE {name}.everything "
                f"({key} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, {column_list()})"
            )
            cursor.execute("SELECT user, host FROM mysql.user WHERE user = 'shardgate'")
            for user, where in list(cursor.fetchall()):
                cursor.execute(f"GRANT ALL ON {name}.* TO '{user}'@'{where}'")
    try:
        yield
    finally:
        for host, name in names:
            with demo.direct(host) as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")


__all__ = ["COLUMNS", "ODD", "OWN", "SHARDS", "OwnProxy", "databases", "schema_file", "topology"]
