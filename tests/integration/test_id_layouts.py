"""SHARD_OF and its kin cut the ID of a column as the layout of its table says."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw, make_id
from tests.integration.raw import Raw

PIN = make_id(17, 1, 880_001)
USER = make_id(17, 3, 880_001)


@pytest.fixture
def photo(raw: MakeRaw) -> tuple[Raw, int, int]:
    """A client, the ID of a photo of `USER`, and the shard that the ID is of."""
    client = raw()
    client.ask(f"DELETE FROM photos WHERE user_id = {USER}")
    reply = client.ask(f"INSERT INTO photos (user_id, caption) VALUES ({USER}, 'x')")
    assert reply.kind == "ok"
    id = int(client.ask(f"SELECT id FROM photos WHERE user_id = {USER}").value or 0)
    return client, id, id >> 10 & 8191


def test_of_a_table_with_another_layout(photo: tuple[Raw, int, int]) -> None:
    client, id, shard = photo
    try:
        for sql in (
            f"SELECT SHARD_OF(id) FROM photos WHERE id = {id}",
            f"SELECT SHARD_OF(p.id) FROM photos p WHERE p.id IN ({id}, {id + 1024})",
            f"SELECT MAX(SHARD_OF(id)) FROM photos WHERE user_id = {USER}",
            f"SELECT SHARD_OF(photos.id) FROM photos JOIN countries ON code = 'DE' WHERE id = {id}",
            f"SELECT s FROM (SELECT SHARD_OF(id) AS s FROM photos WHERE id = {id}) d",
            f"SELECT COUNT(*) + SHARD_OF(MAX(p.id)) - 1 FROM photos p WHERE p.id = {id}",
            "SELECT SHARD_OF(p.id) FROM photos p LEFT JOIN pins q ON q.id = p.user_id"
            f" WHERE p.user_id = {USER}",
        ):
            assert client.ask(sql).rows == [(b"%d" % shard,)], sql
        assert client.ask(f"SELECT SHARD_OF(user_id) FROM photos WHERE id = {id}").value == b"17"
        assert client.ask(f"SELECT TYPE_OF(id) FROM photos WHERE id = {id}").code == 1235
    finally:
        client.ask(f"DELETE FROM photos WHERE user_id = {USER}")


def test_of_two_layouts_in_one_statement(photo: tuple[Raw, int, int]) -> None:
    client, id, shard = photo
    try:
        client.ask(f"INSERT INTO users (id, data) VALUES ({USER}, '{{}}')")
        sql = (
            "SELECT SHARD_OF(p.id), SHARD_OF(u.id), TYPE_OF(u.id), LOCAL_OF(u.id), SHARD_OF(p.user_id)"
            f" FROM photos p JOIN users u ON u.id = p.user_id WHERE p.id = {id} AND u.id = {USER}"
        )
        assert client.ask(sql).rows == [(b"%d" % shard, b"17", b"3", b"880001", b"17")]
        swapped = "SELECT SHARD_OF(u.id), SHARD_OF(p.id) FROM users u, photos p"
        swapped += f" WHERE p.id = {id} AND u.id = {USER}"
        assert client.ask(swapped).rows == [(b"17", b"%d" % shard)]
    finally:
        client.ask(f"DELETE FROM users WHERE id = {USER}")
        client.ask(f"DELETE FROM photos WHERE user_id = {USER}")
