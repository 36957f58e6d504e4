"""Bit literals (b'101', 0b101) as constants that name a row's shard, as 0x… does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw

USER, OTHER = (1 << 46 | 3 << 36 | 1), (2 << 46 | 3 << 36 | 1)
FORMS = ("b'{:b}'", "B'{:b}'", "0b{:b}", "b'000{:b}'")


@pytest.fixture
def client(raw: MakeRaw) -> Iterator[Raw]:
    client = raw()
    yield client
    client.ask(f"DELETE FROM user_has_boards WHERE user_id IN ({USER}, {OTHER}) AND board_id = 78")
    client.ask("DELETE FROM email_to_user WHERE email IN ('a@', '')")


def shards(client: Raw, sql: str) -> list[bytes | None]:
    """What EXPLAIN ROUTE says of the routing."""
    return [row[1] for row in client.ask(f"EXPLAIN ROUTE {sql}").rows if row[0] == b"routing"]


@pytest.mark.parametrize("form", FORMS)
def test_a_bit_literal_names_a_shard_in_reads_and_writes(client: Raw, form: str) -> None:
    user, other = form.format(USER), form.format(OTHER)
    made = client.ask(f"INSERT INTO user_has_boards VALUES ({user}, 78, 1), ({other}, 78, 2)")
    assert (made.kind, made.affected) == ("ok", 2), made
    one = f"SELECT user_id FROM user_has_boards WHERE user_id = {user} AND board_id = 78"
    assert client.ask(one).rows == [(b"%d" % USER,)]
    assert shards(client, one) == shards(client, one.replace(user, hex(USER))) == [b"ID equals constant"]
    both = f"SELECT user_id FROM user_has_boards WHERE user_id IN ({user}, {other}) AND board_id = 78"
    assert sorted(client.ask(both).rows, key=lambda row: int(row[0] or 0)) == [
        (b"%d" % USER,),
        (b"%d" % OTHER,),
    ]
    changed = client.ask(f"UPDATE user_has_boards SET sequence = 5 WHERE user_id = {user} AND board_id = 78")
    assert (changed.kind, changed.affected) == ("ok", 1), changed
    gone = client.ask(f"DELETE FROM user_has_boards WHERE {other} = user_id AND board_id = 78")
    assert (gone.kind, gone.affected) == ("ok", 1), gone


@pytest.mark.parametrize("form", FORMS)
def test_a_bit_literal_names_the_shard_of_an_object_and_of_a_timed_row(client: Raw, form: str) -> None:
    pin, other = (shard << 46 | 1 << 36 | (1 << 36) - 21 for shard in (1, 34))
    listed = f"{form.format(pin)}, {form.format(other)}"
    one, two = (f"({form.format(number)}, '{{}}')" for number in (pin, other))
    assert client.ask(f"INSERT INTO pins (id, data) VALUES {one}, {two}").affected == 2
    assert client.ask(f"SELECT id FROM pins WHERE id = {form.format(pin)}").rows == [(b"%d" % pin,)]
    assert client.ask(f"UPDATE pins SET data = '[1]' WHERE id IN ({listed})").affected == 2
    assert client.ask(f"DELETE FROM pins WHERE id IN ({listed})").affected == 2
    user = form.format(USER)
    assert client.ask(f"INSERT INTO photos (user_id, caption) VALUES ({user}, 'bits')").affected == 1
    made = client.ask(f"SELECT id FROM photos WHERE user_id = {user} AND caption = 'bits'")
    assert len(made.rows) == 1
    id = form.replace("000", "").format(
        int(made.value or 0)
    )  # of more than 64 bits none is equal to a number
    explained = shards(client, f"SELECT caption FROM photos WHERE id = {id}")
    assert explained == shards(client, f"SELECT caption FROM photos WHERE id = {int(made.value or 0)}")
    assert client.ask(f"DELETE FROM photos WHERE id = {id}").affected == 1


def test_a_bit_literal_is_the_text_of_a_hashed_key(client: Raw) -> None:
    assert client.ask("INSERT INTO email_to_user VALUES (b'0110000101000000', 3)").affected == 1
    assert client.ask("SELECT user_id FROM email_to_user WHERE email = 'a@'").rows == [(b"3",)]
    narrowed = "SELECT user_id FROM email_to_user WHERE email = b'110000101000000'"
    assert client.ask(narrowed).rows == [(b"3",)]
    assert shards(client, narrowed) == shards(client, narrowed.replace("b'110000101000000'", "0x6140"))
    assert client.ask("DELETE FROM email_to_user WHERE email = b'0110000101000000'").affected == 1


def test_other_digits_are_a_syntax_error_also_where_the_form_is_known(client: Raw) -> None:
    known = "SELECT user_id FROM user_has_boards WHERE user_id = b'1'"
    assert client.ask(known).kind == "rows"
    assert client.ask(known.replace("b'1'", "b'12'")).code == 1064
