"""What has been read, by GTIDs; values of rows; and what of a binary log stops its reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from config.load import load_schema, load_topology
from fleet.binlog.gtids import GtidSet, GtidState, stepped
from fleet.binlog.logical import BIT, JSON, SET, Logical, value_of
from fleet.binlog.transactions import Transactions
from fleet.core.errors import Failed

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "00000000-0000-0000-0000-00000000000b"


def test_sets_grow_together() -> None:
    found = GtidSet(f"{A.upper()}:1-3:7,\n{B}:5")
    for number in (5, 4, 6, 4):
        found.add(f"{A}:{number}")
    assert str(found) == f"{B}:5,{A}:1-7"
    assert found.has(f"{A}:7")
    assert not found.has(f"{A}:8")
    assert found.covers(f"{A}:2-6:7,{B}:5")
    assert not found.covers(f"{A}:2-8")
    assert str(GtidSet(str(found))) == str(found)
    assert str(GtidSet()) == ""
    with pytest.raises(ValueError, match="tags"):
        GtidSet(f"{A}:blue:1-3")


def test_numbers_of_servers_in_domains() -> None:
    found = GtidState("0-1-100,1-1-5,0-2-90")
    assert found.has("0-1-100")
    assert found.has("0-2-3")
    assert not found.has("0-3-1")
    found.add("0-3-101")
    assert found.covers("0-3-101,1-1-5")
    assert not found.covers("0-1-101")
    assert (found.last(0, 2), found.last(7, 2)) == ("0-2-90", None)
    assert stepped("0-1-100,1-1-5", "0-3-101") == "1-1-5,0-3-101"
    assert stepped("", "0-1-1") == "0-1-1"


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        (246, Decimal("13300000000000000000000000000000000001"), "13300000000000000000000000000000000001"),
        (246, Decimal("-0.0000001"), "-0.0000001"),
        (18, dt.datetime(2026, 4, 1, 12, 0, 0, 120000), "2026-04-01 12:00:00.120000"),
        (10, dt.date(2026, 4, 1), "2026-04-01"),
        (19, dt.timedelta(hours=-30, minutes=-1, milliseconds=-5), "-30:01:00.005000"),
        (252, b"\x00\xff", {"base64": "AP8="}),
        (8, 2**64 - 1, 2**64 - 1),
        (BIT, "1000000001", 513),
        (SET, {"y", "x"}, "x,y"),
        (JSON, {b"a": [1, None, b"\xc3\xb6", Decimal("1.5")]}, '{"a": [1, null, "ö", 1.5]}'),
        (JSON, b"text", '"text"'),
        (JSON, None, None),
    ],
)
def test_values_are_shown(type_: int, value: Any, shown: Any) -> None:
    assert value_of(type_, ("x", "y"), value) == shown


TOPOLOGY = b"""{"version": 1, "keyspaces": {"main": {"layout": "pinterest", "database": "db{shard:05d}",
 "ranges": [{"range": [0, 3], "master": "a:1"}]}}}"""
SCHEMA = b"""{"databases": {"d": {"tables": {"pins": {"kind": "object", "keyspace": "main", "type": 1}}}}}"""


def event(kind: int, **facts: Any) -> Any:
    return SimpleNamespace(event_type=kind, timestamp=1775044800, schema=b"db00001", **facts)


def reading(*events: Any) -> list[Any]:
    names = Logical(load_topology(TOPOLOGY, name="t"), load_schema(SCHEMA, name="s"))
    transactions = Transactions("a:1", names, GtidState())
    return [item for one in events for item in transactions.take(one)]


GTID = event(162, gtid="0-1-7", flags=0)
ALONE = event(162, gtid="0-1-7", flags=1)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([GTID, event(40)], "binlog_transaction_compression"),
        ([GTID, event(39)], "PARTIAL_JSON"),
        ([GTID, event(166)], "log_bin_compress"),
        ([event(34)], "without GTIDs"),
        ([event(2, query="BEGIN")], "without GTIDs"),
        ([event(42)], "tag"),
        ([GTID, event(26)], "could not log all"),
        ([GTID, event(99)], "unknown kind 99"),
        ([GTID, event(2, query="UPDATE pins SET data = 1")], "binlog_format"),
        ([GTID, event(2, query="-- who\n delete low_priority from `db00002`.`pins`")], "binlog_format"),
        ([GTID, event(2, query="UPDATE (pins) SET a = 1")], "binlog_format"),
        ([GTID, event(23, table="pins", columns=[SimpleNamespace(name=None)])], "binlog_row_metadata"),
    ],
)
def test_what_would_be_missed_stops_it(events: list[Any], why: str) -> None:
    for one in events:
        if one.event_type == 23:
            one.schema = "db00001"
    with pytest.raises(Failed, match=why) as caught:
        reading(*events)
    assert "--skip " + ("0-1-7" if events[0] is GTID else "a:1") in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "REPLACE INTO percona.checksums (a) VALUES (1)",
        "ALTER TABLE pins ADD x INT",
        "DROP DATABASE db00001",
        "TRUNCATE TABLE elsewhere.pins",
        "INSERT INTO shardgate_sequences VALUES (1)",
    ],
)
def test_what_is_no_change_of_rows_is_passed(query: str) -> None:
    (read,) = reading(ALONE, event(2, query=query))
    assert read.gtid == "0-1-7"


def test_a_table_that_is_emptied() -> None:
    (rows,) = reading(ALONE, event(2, query="/* x */ truncate `pins`"))
    (change,) = rows.changes
    assert (change["op"], change["database"], change["table"], change["shard"]) == (
        "truncate",
        "d",
        "pins",
        1,
    )
    assert rows.gtid == "0-1-7"
