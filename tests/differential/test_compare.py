"""The comparison itself: what it must tell apart, and what it must not."""

from __future__ import annotations

import pytest

from tests.differential.answers import Answer, ColumnInfo, Failure, RawRow
from tests.differential.catalog import Family
from tests.differential.compare import Difference, compare
from tests.differential.parts import Item, Key, Select, Statement, leaf
from tests.differential.refusals import allowed, refusal

NAME = ColumnInfo(b"name", 253, 0, 45, 0)


def answer(*texts: bytes | None, columns: tuple[ColumnInfo, ...] = (NAME,), warnings: int = 0) -> Answer:
    return Answer(columns=columns, rows=tuple((text,) for text in texts), warnings=warnings)


def select(*keys: str, limit: int | None = None, offset: int | None = None) -> Statement:
    order = tuple(Key(leaf(key, Family.TEXT)) for key in keys)
    made = Select("t", (Item(leaf("name", Family.TEXT)),), order=order, limit=limit, offset=offset)
    return Statement(made.sql, "", select=made)


def differences(
    expected: Answer, got: Answer, statement: Statement | None = None, pool: list[RawRow] | None = None
) -> list[str]:
    found: list[Difference] = compare(statement or select(), expected, got, lambda: pool)
    return [one.aspect for one in found]


def test_equal_answers() -> None:
    assert differences(answer(b"a", b"b"), answer(b"a", b"b")) == []


def test_without_order_rows_are_a_multiset() -> None:
    assert differences(answer(b"a", b"b", b"a"), answer(b"a", b"a", b"b")) == []
    assert differences(answer(b"a", b"b", b"a"), answer(b"a", b"b", b"b")) == ["rows"]
    assert differences(answer(b"a", b"b"), answer(b"a")) == ["number of rows"]
    assert differences(answer(None), answer(b"NULL")) == ["rows"]


POOL: list[RawRow] = [(b"a", b"1"), (b"A", b"1"), (b"b", b"2"), (b"c", b"3")]


@pytest.mark.parametrize(
    ("got", "found"),
    [
        ((b"A", b"a", b"b", b"c"), []),
        ((b"a", b"a", b"b", b"c"), ["rows"]),
        ((b"a", b"b", b"A", b"c"), ["order of rows"]),
        ((b"a", b"A", b"x", b"c"), ["rows"]),
    ],
)
def test_ties_may_stand_in_any_order(got: tuple[bytes, ...], found: list[str]) -> None:
    assert differences(answer(b"a", b"A", b"b", b"c"), answer(*got), select("name"), POOL) == found


def test_limit_takes_any_of_the_ties() -> None:
    one = select("name", limit=1)
    assert differences(answer(b"a"), answer(b"A"), one, POOL) == []
    assert differences(answer(b"a"), answer(b"b"), one, POOL) == ["order of rows"]
    assert differences(answer(b"a"), answer(b"A", b"a"), one, POOL) == ["number of rows"]


def test_offset_moves_into_the_next_class() -> None:
    behind = select("name", limit=2, offset=1)
    assert differences(answer(b"A", b"b"), answer(b"a", b"b"), behind, POOL) == []
    assert differences(answer(b"A", b"b"), answer(b"a", b"A"), behind, POOL) == ["order of rows"]


def test_limit_without_order_takes_any_rows() -> None:
    flat: list[RawRow] = [(row[0], b"1") for row in POOL]
    assert differences(answer(b"a", b"A"), answer(b"c", b"b"), select(limit=2), flat) == []
    assert differences(answer(b"a", b"A"), answer(b"c", b"c"), select(limit=2), flat) == ["rows"]


def test_an_order_that_cannot_be_checked_is_a_difference() -> None:
    assert differences(answer(b"a", b"b"), answer(b"b", b"a"), select("name")) == ["order of rows"]


@pytest.mark.parametrize(
    ("other", "aspect"),
    [
        (ColumnInfo(b"Name", 253, 0, 45, 0), "column names"),
        (ColumnInfo(b"name", 252, 0, 45, 0), "column type"),
        (ColumnInfo(b"name", 253, 32, 45, 0), "column flags"),
        (ColumnInfo(b"name", 253, 0, 63, 0), "column character set"),
        (ColumnInfo(b"name", 253, 0, 45, 2), "column decimals"),
    ],
)
def test_column_definitions(other: ColumnInfo, aspect: str) -> None:
    assert differences(answer(b"a"), answer(b"a", columns=(other,))) == [aspect]


def test_flags_that_a_shard_cannot_have_are_not_compared() -> None:
    key = ColumnInfo(b"name", 253, 0x4003, 45, 0)
    assert differences(answer(b"a", columns=(key,)), answer(b"a")) == []


def test_warnings() -> None:
    few = Statement("", "", exact_warnings=True)
    assert differences(answer(warnings=1), answer(warnings=64)) == []
    assert differences(answer(warnings=1), answer(warnings=64), few) == ["warnings"]
    assert differences(answer(), answer(warnings=1)) == ["warnings"]
    assert differences(answer(), answer(warnings=1), Statement("", "", extra_warnings=True)) == []


def test_errors_have_the_same_code() -> None:
    missing = Answer(error=Failure(1054, "Unknown column 'x' in 'field list'"))
    assert differences(missing, Answer(error=Failure(1054, "in other words"))) == []
    assert differences(missing, answer()) == ["error"]
    assert differences(answer(), missing) == ["error"]
    computed = Answer(error=Failure(1690, "BIGINT UNSIGNED value is out of range in '-1 MOD 10'"))
    assert differences(computed, answer(None, warnings=1)) == []
    assert differences(computed, answer(None)) == ["error"]


def test_outcomes() -> None:
    done = Answer(affected=2, insert_id=7, info=b"Records: 2  Duplicates: 0  Warnings: 0")
    assert (
        differences(done, Answer(affected=2, insert_id=7, info=b"Records: 2  Duplicates: 0  Warnings: 1"))
        == []
    )
    assert differences(done, Answer(affected=1)) == ["affected rows", "insert id", "info"]
    assert differences(done, answer()) == ["kind of answer"]


def test_documented_refusals() -> None:
    text = (
        "shardgate does not support DISTINCT over shards: the rows are not compared. Name the shard by an ID."
    )
    assert refusal(Failure(1235, text)) == "not_supported_yet"
    assert refusal(Failure(1235, "This version of MySQL doesn't yet support 'x'")) is None
    assert refusal(Failure(1054, "Unknown column 'x'")) is None
    assert allowed(frozenset()) == frozenset()
    assert "not_supported_yet" in allowed(frozenset({"lock"}))
