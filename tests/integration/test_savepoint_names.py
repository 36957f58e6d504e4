"""Which savepoint a name finds: servers compare names in utf8mb3_general_ci, and so does the proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proxy.session.savepoints import savepoint_of
from tests.integration.accounts import number_of, setting
from tests.integration.both_sides import both_sides
from tests.integration.fixtures import MakeRaw, Things, shard_of
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

#: Pairs of names, as statements have them: in pairs of which some are the same name and some are not.
NAMES = (
    ("a", "A"), ("`a`", "A"), ("before_all", "Before_ALL"), ("`x``y`", "`X``Y`"), ("a", "b"), ("a", "ab"),
    ("`a `", "a"), ("a", "`a `"), ("`a `", "`A  `"), ("`a\t`", "a"), ("`a\u00a0`", "a"),
    ("\u00e9", "\u00c9"), ("\u00e9", "e"), ("e", "\u00c9"), ("e\u0301", "\u00e9"), ("e\u0301", "e"),
    ("\u0301", "\u0300"), ("\u00df", "s"), ("\u00df", "S"), ("\u00df", "ss"), ("\ufb01", "fi"),
    ("\u0130", "i"), ("\u0131", "I"), ("\u017f", "s"), ("\u212a", "k"), ("\u212b", "\u00e5"),
    ("\u00f8", "o"), ("\u00e6", "ae"), ("\u00ff", "\u0178"), ("\u019a", "\u023d"), ("\u019e", "\u0220"),
    ("\u03a3", "\u03c2"), ("\u03c3", "\u03f2"), ("\u03ac", "\u0391"), ("\u1f71", "\u03ac"),
    ("\u1f71", "\u1fbb"), ("\u03f5", "\u03b5"), ("\u044f", "\u042f"), ("\u0451", "\u0415"),
    ("\u0439", "\u0419"), ("\u0439", "\u0438"), ("\u0501", "\u0500"), ("\u0561", "\u0531"),
    ("\u304c", "\u304b"), ("\uff21", "\uff41"), ("\uff21", "A"), ("\u10d0", "\u1c90"), ("\u2c65", "\u023a"),
    ("\u1e9e", "s"), ("\u1ea5", "A"), ("\u2170", "\u2160"), ("\u24d0", "\u24b6"), ("\ua7c3", "\ua7c2"),
)  # fmt: skip


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, unharmed: None) -> Iterator[tuple[Raw, Raw]]:
    with both_sides(demo, plain, "named") as sides:
        yield sides


def told(client: Raw, statements: tuple[str, ...], encoding: str = "utf-8") -> list[object]:
    """What each is answered, and what the row is then; all is rolled back."""
    found: list[object] = []
    for sql in ("BEGIN", "UPDATE named SET n = 1", *statements):
        reply = client.ask(sql.encode(encoding))
        found.append(reply.code if reply.kind == "err" else reply.kind)
    found.append(client.ask("SELECT n FROM named").rows)
    client.ask("ROLLBACK")
    return found


def scripts(first: str, second: str) -> tuple[tuple[str, ...], ...]:
    """All that looks for a savepoint by its name."""
    change, more = "UPDATE named SET n = 2", "UPDATE named SET n = 3"
    return (
        (f"SAVEPOINT {first}", change, f"ROLLBACK TO {second}"),
        (f"SAVEPOINT {first}", change, f"RELEASE SAVEPOINT {second}", f"ROLLBACK TO {first}"),
        # the second replaces the first, if it has the same name: the one between them is then the older
        (
            *(f"SAVEPOINT {first}", "SAVEPOINT middle", change, f"SAVEPOINT {second}", more),
            *(f"ROLLBACK TO {first}", "ROLLBACK TO middle"),
        ),
    )


@pytest.mark.parametrize("number", range(3), ids=["rollback", "release", "again"])
def test_names(sides: tuple[Raw, Raw], number: int) -> None:
    through, direct = sides
    differences, found = [], set()
    for pair in NAMES:
        script = scripts(*pair)[number]
        expected, got = told(direct, script), told(through, script)
        found.add(str(expected))
        if expected != got:
            differences.append((pair, expected, got))
    assert not differences
    assert len(found) > 1  # some of the pairs are one name, some are not


#: A character set, the encoding of its statements, and names of one savepoint.
ENCODED = [
    ("latin1", "latin-1", "caf\u00e9", "CAF\u00c9"),
    ("latin1", "latin-1", "\u00e9", "e"),
    ("cp1251", "cp1251", "\u0442\u043e\u0447\u043a\u0430", "\u0422\u041e\u0427\u041a\u0410"),
    ("greek", "iso8859_7", "\u03c3", "\u03a3"),
    ("ujis", "euc_jp", "\uff41", "\uff21"),
]


@pytest.mark.parametrize(("charset", "encoding", "first", "second"), ENCODED)
def test_names_in_another_character_set(
    sides: tuple[Raw, Raw], charset: str, encoding: str, first: str, second: str
) -> None:
    for client in sides:
        assert client.ask(f"SET NAMES {charset}").kind == "ok"
    for script in scripts(first, second):
        through, direct = (told(client, script, encoding) for client in sides)
        assert through == direct
    assert told(sides[0], scripts(first, second)[0], encoding) == ["ok"] * 5 + [[(b"1",)]]


def test_a_name_found_after_a_change_of_the_character_set(sides: tuple[Raw, Raw]) -> None:
    for client in sides:
        for sql in ("BEGIN", "UPDATE named SET n = 1", "SAVEPOINT caf\u00e9", "UPDATE named SET n = 2"):
            assert client.ask(sql).kind == "ok"
        assert client.ask("SET NAMES latin1").kind == "ok"
        assert client.ask("ROLLBACK TO CAF\u00c9".encode("latin-1")).kind == "ok"
        assert client.ask("SELECT n FROM named").value == b"1"
        assert client.ask("ROLLBACK").kind == "ok"


def test_a_name_on_a_host_that_comes_after_a_change_of_the_character_set(
    raw: MakeRaw, things: Things
) -> None:
    found: dict[bool, int] = {}
    while len(found) < 2:
        id = things.insert("users", {"n": 1})
        found.setdefault(shard_of(id) < 32, id)
    client = raw()
    for sql in ("BEGIN", setting(found[True], 10), "SAVEPOINT caf\u00e9", "SET NAMES latin1"):
        assert client.ask(sql).kind == "ok"
    assert client.ask(setting(found[False], 20)).kind == "ok"
    assert client.ask("ROLLBACK TO CAF\u00c9".encode("latin-1")).kind == "ok"
    assert client.ask("COMMIT").kind == "ok"
    assert [number_of(client, id) for id in (found[True], found[False])] == [10, 1]


def test_every_character_weighs_what_it_does_on_a_server(plain: LocalServer) -> None:
    codes = [code for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
    differences = []
    with plain.connect() as connection, connection.cursor() as cursor:
        for start in range(0, len(codes), 2000):
            part = codes[start : start + 2000]
            asked = (
                f"HEX(WEIGHT_STRING(CONVERT(_utf8mb4 x'{chr(code).encode().hex()}' USING utf8mb3)"
                " COLLATE utf8mb3_general_ci))"
                for code in part
            )
            cursor.execute("SELECT " + ", ".join(asked))
            (row,) = cursor.fetchall()
            for code, weight in zip(part, row, strict=True):
                key = savepoint_of(chr(code).encode(), "utf8mb4").key
                if f"{ord(key):04X}" != weight:
                    differences.append((f"{code:04X}", weight, key))
    assert not differences
