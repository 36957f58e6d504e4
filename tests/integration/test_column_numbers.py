"""Numbers in ORDER BY and GROUP BY: a column's, of which servers take 32 bits, or a constant."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.support.servers import LocalServer

ORDERED = ("4294967297 DESC", "0000000000001 DESC", "18446744073709551616, 1 DESC")
NUMBERS = (
    *ORDERED,
    "18446744073709551616",
    "18446744073709551616 DESC",
    "99999999999999999999999999999",
    "1" + "0" * 5000,
    "2",
    "0",
)
TEXTS = (
    "SELECT user_id FROM user_has_boards WHERE user_id IN ({}) ORDER BY {}",
    "SELECT user_id, COUNT(*) FROM user_has_boards WHERE user_id IN ({}) GROUP BY user_id ORDER BY {}",
    "SELECT user_id FROM user_has_boards WHERE user_id IN ({}) GROUP BY {}",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:30])
def test_a_number_orders_and_groups_as_on_one_server(
    raw: MakeRaw, plain: LocalServer, number: str, text: str
) -> None:
    users = ", ".join(str(shard << 46 | 3 << 36 | 1) for shard in range(5))
    if "GROUP BY {}" in text:
        number = number.replace(" DESC", "").partition(",")[0]
    sql = text.format(users, number)
    with Raw("127.0.0.1", plain.port) as server:
        assert server.login(plain.user, plain.password, "demo").kind == "ok"
        mine, other = raw().ask(sql), server.ask(sql)
    assert (mine.kind, mine.code) == (other.kind, other.code)
    assert sorted(mine.rows) == sorted(other.rows)
    if number in ORDERED:
        assert mine.rows == other.rows
