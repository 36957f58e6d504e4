"""What a write over shards counts: rows, the texts of its OK packet, FOUND_ROWS() and ROW_COUNT()."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import FOUND_ROWS, Raw
from tests.support.servers import LocalServer

KEYS = [f"counted {letter}" for letter in "abcdefgh"]
ALL = ", ".join(f"'{key}'" for key in KEYS)
USERS = [shard << 46 | 3 << 36 | 987 for shard in (1, 2, 33, 34)]
LISTED = ", ".join(map(str, USERS))
Pair = tuple[Raw, Raw]


def values(numbers: str, keys: list[str] = KEYS) -> str:
    """A row for each key, with these numbers."""
    return ", ".join(f"('{key}', {number})" for key, number in zip(keys, numbers, strict=False))


def photos(caption: str) -> str:
    return ", ".join(f"({user}, '{caption}')" for user in USERS)


@pytest.fixture(params=[0, FOUND_ROWS], ids=["changed", "found"])
def sides(request: pytest.FixtureRequest, raw: MakeRaw, plain: LocalServer) -> Iterator[Pair]:
    """The proxy and a server, for clients that are told changed rows, or found ones."""
    with Raw("127.0.0.1", plain.port) as server:
        proxy = raw(login=False)
        assert proxy.login("demo", "demo", "demo", flags=request.param).kind == "ok"
        assert server.login(plain.user, plain.password, "demo", flags=request.param).kind == "ok"
        for side in (proxy, server):
            assert side.ask(f"DELETE FROM email_to_user WHERE email IN ({ALL})").kind == "ok"
            assert side.ask(f"DELETE FROM user_has_boards WHERE user_id IN ({LISTED})").kind == "ok"
        yield proxy, server
        for side in (proxy, server):
            side.ask(f"DELETE FROM email_to_user WHERE email IN ({ALL})")
            side.ask(f"DELETE FROM user_has_boards WHERE user_id IN ({LISTED})")


INTO = "INSERT INTO email_to_user (email, user_id) VALUES "
UPSERT = " ON DUPLICATE KEY UPDATE user_id = VALUES(user_id)"
STATEMENTS = [
    f"{INTO}{values('1234')}",
    f"{INTO}{values('12345678')}{UPSERT}",
    f"{INTO}{values('12349999')}{UPSERT}",
    f"{INTO}{values('1234')}{UPSERT}",
    f"{INTO}{values('11')} ON DUPLICATE KEY UPDATE user_id = user_id",
    f"{INTO}{values('11')} ON DUPLICATE KEY UPDATE user_id = email_to_user.user_id + 1",
    f"{INTO}{values('1')}{UPSERT}",
    f"{INTO}{values('1')}{UPSERT}",
    f"{INTO}{values('1111', ['counted a', 'counted a', 'counted b', 'counted a'])}{UPSERT}",
    f"INSERT IGNORE INTO email_to_user VALUES {values('55555555')}",
    f"INSERT IGNORE INTO email_to_user VALUES {values('5555')}{UPSERT}",
    f"INSERT IGNORE INTO email_to_user VALUES {values('5555')}{UPSERT}",
    f"REPLACE INTO email_to_user VALUES {values('5566')}",
    f"UPDATE email_to_user SET user_id = 5 WHERE email IN ({ALL})",
    f"UPDATE email_to_user SET user_id = 5 WHERE email IN ({ALL})",
    "UPDATE email_to_user SET user_id = 6 WHERE email = 'counted a'",
    "UPDATE email_to_user SET user_id = 6 WHERE email = 'counted a'",
    "UPDATE email_to_user SET user_id = 6 WHERE email = 'not there'",
    "UPDATE email_to_user SET user_id = 6 WHERE email IN ('not there', 'nor there')",
    "UPDATE email_to_user SET user_id = 6 WHERE 1 = 0",
    f"DELETE FROM email_to_user WHERE email IN ({ALL}) AND user_id = 77",
    "DELETE FROM email_to_user WHERE email = 'counted a'",
    f"DELETE FROM email_to_user WHERE email IN ({ALL}) AND user_id = 5",
    f"INSERT INTO user_has_boards VALUES {', '.join(f'({user}, 1, 1), ({user}, 2, 2)' for user in USERS)}",
    f"UPDATE user_has_boards SET sequence = 2 WHERE user_id IN ({LISTED})",
    f"UPDATE user_has_boards SET sequence = sequence + 1 WHERE user_id IN ({LISTED}) AND board_id = 2",
    f"UPDATE user_has_boards SET sequence = 9 WHERE user_id = {USERS[0]} ORDER BY board_id LIMIT 1",
    f"UPDATE user_has_boards SET sequence = 9 WHERE user_id IN ({LISTED}) ORDER BY board_id, user_id LIMIT 5",
    f"DELETE FROM user_has_boards WHERE user_id IN ({LISTED}) ORDER BY board_id, user_id LIMIT 5",
    f"DELETE FROM user_has_boards WHERE user_id IN ({LISTED})",
    "UPDATE user_has_boards SET sequence = 9 WHERE user_id = 5",
    "UPDATE user_has_boards SET sequence = 9 WHERE user_id IN (5, 6)",
    "DELETE FROM user_has_boards WHERE user_id = 5",
    f"INSERT INTO user_has_boards VALUES {', '.join(f'({user}, 1, 1), ({user}, 2, 2)' for user in USERS)}",
    f"INSERT INTO user_has_boards SELECT * FROM user_has_boards WHERE user_id IN ({LISTED}) AND board_id = 9",
    "INSERT INTO user_has_boards SELECT user_id, board_id + 5, 3 FROM user_has_boards"
    f" WHERE user_id IN ({LISTED}) AND board_id = 1",
    "REPLACE INTO user_has_boards SELECT user_id, board_id + 5, 4 FROM user_has_boards"
    f" WHERE user_id = {USERS[0]} AND board_id = 1",
    f"UPDATE user_has_boards SET sequence = (SELECT 5) WHERE user_id IN ({LISTED})",
]  # fmt: skip


def shown(sql: str, info: str, request: pytest.FixtureRequest) -> str:
    """The text of an OK packet, but for the duplicates told to a client of found rows: of a row that is
    alone on its shard no server says whether it was new.
    """
    unsure = "found" in request.node.callspec.id and UPSERT[:13] in sql and "IGNORE" not in sql
    return re.sub("Duplicates: [0-9]+", "", info) if unsure else info


def test_what_a_write_counts_is_what_one_server_counts(sides: Pair, request: pytest.FixtureRequest) -> None:
    wrong = []
    for sql in STATEMENTS:
        for side in sides:
            assert len(side.ask("SELECT 1 UNION SELECT 2 UNION SELECT 3").rows) == 3
        replies = [side.ask(sql) for side in sides]
        found = [(one.kind, one.code, one.affected, shown(sql, one.info, request)) for one in replies]
        counts = [side.ask("SELECT FOUND_ROWS(), ROW_COUNT()").rows for side in sides]
        if found[0] != found[1] or counts[0] != counts[1]:
            wrong.append((sql[:100], *zip(found, counts, strict=True)))
    assert not wrong, "\n".join(map(str, wrong))
