"""A row of a hashed table is found by the key that is stored, or it was not taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import NOTHING, Answer, Binary
from tests.integration.binary import text as text_parameter
from tests.integration.both_sides import logged_in
from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

MARK = 987654321

#: Keys as they are written; all of them in every one of `MODES`.
WRITTEN: list[bytes] = [
    b"REPEAT('k', 255)", b"REPEAT('k', 256)", b"'" + b"k" * 255 + b"'", b"'" + b"k" * 256 + b"'",
    b"'" + b"k" * 255 + b" '", b"'" + "é".encode() * 255 + b"'", b"'" + "é".encode() * 256 + b"'", b"'k  '",
    b"'k\xff\xfez'", b"'k\xed\xa0\x80z'", b"'k\xf4\x90\x80\x80'", b"'k\xc3'", b"_binary'k\xff'", b"x'6bff'",
    b"_latin1'\xe9k'", b"_latin1 x'e96b'", b"_utf16 x'006b0034'", b"@bytes", b"@long", b"@number", b"123.50",
    b"1e3", b"1e300", b"0x6b31", b"b'01101011'", b"-0", b"+5", b"1.50", b".5", b"TRUE", b"DATE'2020-01-01'",
    b"'K' COLLATE utf8mb4_bin", b"N'k'", b"'k' '7'", b"CONCAT('k', x'ff')", b"'k\\%1'", b"'k\\\\01'",
    b"123456789012345678901234567890",
]  # fmt: skip
MODES = ["STRICT_TRANS_TABLES", "", "NO_BACKSLASH_ESCAPES"]


@pytest.fixture
def client(raw: MakeRaw) -> Iterator[Raw]:
    client = raw()
    yield client
    assert client.ask("SET SESSION sql_mode = DEFAULT").kind == "ok"
    assert client.ask(f"DELETE /*+ scatter */ FROM email_to_user WHERE user_id = {MARK}").kind == "ok"


def lost(client: Raw) -> list[bytes]:
    """The stored keys (in hexadecimals) by which their own rows are not found; all rows are deleted."""
    stored = client.ask(f"SELECT HEX(email) FROM email_to_user WHERE user_id = {MARK}").rows
    found = []
    for (key,) in stored:
        assert key is not None
        own = b"email = _utf8mb4 x'" + key + b"' AND user_id = %d" % MARK
        if client.ask(b"SELECT COUNT(*) FROM email_to_user WHERE " + own).value != b"1":
            found.append(key)
        client.ask(b"DELETE FROM email_to_user WHERE " + own)
    client.ask(f"DELETE /*+ scatter */ FROM email_to_user WHERE user_id = {MARK}")
    return found


@pytest.mark.parametrize("verb", [b"INSERT", b"INSERT IGNORE", b"REPLACE"])
@pytest.mark.parametrize("mode", MODES)
def test_keys_are_stored_as_they_are_sent(client: Raw, mode: str, verb: bytes) -> None:
    assert client.ask("SET @long = REPEAT('k', 300), @number = 1.50").kind == "ok"
    assert client.ask("SET sql_mode = '', @bytes = CONCAT('k', x'ff')").kind == "ok"
    assert client.ask(f"SET sql_mode = '{mode}'").kind == "ok"
    taken, wrong = 0, []
    for key in WRITTEN:
        taken += client.ask(verb + b" INTO email_to_user VALUES (" + key + b", %d)" % MARK).kind == "ok"
        wrong += [(key, one) for one in lost(client)]
    assert wrong == []
    assert taken > len(WRITTEN) // 2


NULLED = (
    ("email_to_user (email, user_id) VALUES ({}, 77)", "email_to_user WHERE email = ''"),
    ("email_to_user (email, user_id) VALUES ('zz', 77), ({}, 77)", "email_to_user WHERE email IN ('', 'zz')"),
    ("board_has_pins (board_id, pin_id, sequence) VALUES ({}, 77, 1)", "board_has_pins WHERE board_id = 0"),
    (
        "email_to_user (email, user_id) VALUES ({}, 77) ON DUPLICATE KEY UPDATE user_id = 78",
        "email_to_user WHERE email = ''",
    ),
)


@pytest.mark.parametrize("verb", ["INSERT", "REPLACE", "INSERT IGNORE"])
def test_a_parameter_that_is_null_is_as_null_that_is_written(
    demo: Demo, plain: LocalServer, verb: str
) -> None:
    """No key may be NULL. With IGNORE it is what the server makes of it, and the row is found by that."""
    with logged_in(demo, plain) as sides:
        for into, found in NULLED:
            if verb == "REPLACE" and "ON DUPLICATE" in into:
                continue
            written = [side.ask(f"{verb} INTO {into.format('NULL')}") for side in sides]
            for side in sides:
                side.ask(f"DELETE FROM {found}")
            given = [Binary(side).run(f"{verb} INTO {into.format('?')}", NOTHING) for side in sides]
            shown = [side.ask(f"SELECT COUNT(*) FROM {found}").value for side in sides]
            for side in sides:
                side.ask(f"DELETE FROM {found}")
            assert [one.code for one in written] == [one.code for one in given], into
            assert {one.code for one in given} == {0 if "IGNORE" in verb else 1048}, into
            if given[1].kind == "err":
                assert given[0].message == given[1].message, into
            else:
                assert given[0].ok.affected == given[1].ok.affected, into
            assert shown[0] == shown[1], into


def test_keys_that_are_refused(client: Raw) -> None:
    assert client.ask("SET sql_mode = ''").kind == "ok"
    insert = b"INSERT IGNORE INTO email_to_user VALUES (%b, 1)"
    reply = client.ask(insert % (b"'" + b"k" * 256 + b"'"))
    assert (reply.code, reply.sqlstate) == (1406, "22001")
    reply = client.ask(insert % b"'k\xff'")
    assert (reply.code, reply.sqlstate) == (1366, "HY000")
    side = Binary(client)
    statement = side.statement("INSERT IGNORE INTO email_to_user VALUES (?, 1)")
    for value, code in (("k" * 256, 1406), (b"k\xff", 1366)):
        answer = side.execute(statement.id, [text_parameter(value)])
        assert isinstance(answer, Answer)
        assert answer.code == code


@pytest.mark.parametrize("number", ["1e300", "-1e300", "1e19", "3.7e19", "1e999"])
@pytest.mark.parametrize("verb", ["INSERT", "INSERT IGNORE"])
def test_a_number_that_no_column_holds_is_asked_for_once(client: Raw, number: str, verb: str) -> None:
    sql = f"{verb} INTO board_has_pins (board_id, pin_id, sequence) VALUES ({number}, 1, 1)"
    assert client.ask(sql).code in (1264, 1367)
    assert client.ask("SELECT 1").value == b"1"
