"""What servers do by how many rows a statement has, or by what they keep in between: as one server would."""

from __future__ import annotations

from tests.integration.fixtures import MakeRaw


def test_null_in_a_row_that_is_alone_on_its_shard(raw: MakeRaw) -> None:
    """An error for one row, a warning for one of several."""
    client = raw()
    client.ask("SET sql_mode = ''")
    first, second = (1 << 46 | 2 << 36 | 9_000_001), (2 << 46 | 2 << 36 | 9_000_001)
    insert = "INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES "
    try:
        assert client.ask(f"{insert}({first}, 1, NULL)").code == 1048
        reply = client.ask(
            f"{insert}({first}, 1, NULL), ({second}, 1, NULL) ON DUPLICATE KEY UPDATE pin_id = 1"
        )
        assert (reply.kind, reply.affected) == ("ok", 2)
        found = client.ask(f"SELECT sequence FROM board_has_pins WHERE board_id IN ({first}, {second})")
        assert found.rows == [(b"0",), (b"0",)]
        client.ask("SET sql_mode = 'STRICT_TRANS_TABLES'")
        assert client.ask(f"{insert}({first}, 1, NULL), ({second}, 1, NULL)").code == 1048
    finally:
        client.ask(f"DELETE FROM board_has_pins WHERE board_id IN ({first}, {second})")
