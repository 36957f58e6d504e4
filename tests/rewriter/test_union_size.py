"""How many shards' SELECTs go to a server in one text: it takes only so many bytes at once."""

from __future__ import annotations

import pytest

from rewriter.route.binding import UNION_BYTES

from .support import bind, new_id

LONG = "x" * (UNION_BYTES * 2 // 3)


@pytest.mark.parametrize(
    ("select", "merged"),
    [
        ("SELECT COUNT(*) FROM pins WHERE data <> '{}'", True),
        ("SELECT id FROM pins WHERE data <> '{}' ORDER BY id LIMIT 3, 5", True),
        ("SELECT '{}' AS t, ts FROM pins WHERE data <> '100%'", True),
    ],
)
def test_a_long_text_is_sent_for_each_shard(select: str, merged: bool) -> None:
    short, long = bind(select.format("x")), bind(select.format(LONG))
    assert [one.shards for one in short.statements] == [(0, 1), (2, 3)]
    assert sorted(one.shards for one in long.statements) == [(0,), (1,), (2,), (3,)]
    assert all(len(one.sql) < UNION_BYTES for one in long.statements)
    assert not any(b"UNION" in one.sql for one in long.statements)
    assert (long.merge is not None) is merged
    assert long.merge == short.merge
    texts = {one.sql.replace(LONG.encode(), b"x") for one in long.statements}
    joined = b"\n".join(one.sql for one in short.statements)
    assert all(text in joined for text in texts)


def test_texts_are_as_large_as_may_be() -> None:
    some = bind(f"SELECT id FROM pins WHERE data <> '{LONG[: len(LONG) // 2]}'")
    assert [one.shards for one in some.statements] == [(0, 1), (2, 3)]


def test_lists_that_each_shard_has_its_own_of() -> None:
    """What counts is what a shard gets of the list."""
    ids = [new_id("pins", number % 4, number) for number in range(10000)]
    bound = bind(f"SELECT ts FROM pins WHERE id IN ({', '.join(map(str, ids))})")
    assert [one.shards for one in bound.statements] == [(0, 1), (2, 3)]
