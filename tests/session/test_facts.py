"""What the servers say about themselves, and what follows for SET NAMES and for the handshake."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from proxy.catalog.facts import Collations, ServerFacts, ask, ask_rest
from proxy.errors import ProxyError
from proxy.wire.resultset import encode_row
from tests.execute.world import ServerConn, World
from tests.wire.streams import Err, Result, Rows, definitions

COLLATIONS = Collations(
    {
        8: ("latin1", "latin1_swedish_ci"),
        33: ("utf8mb3", "utf8mb3_general_ci"),
        45: ("utf8mb4", "utf8mb4_general_ci"),
        255: ("utf8mb4", "utf8mb4_0900_ai_ci"),
    },
    {"latin1": "latin1_swedish_ci", "utf8mb3": "utf8mb3_general_ci", "utf8mb4": "utf8mb4_0900_ai_ci"},
    {},
    ("latin1", "latin1_swedish_ci"),
)


@pytest.mark.parametrize(
    ("charset", "collation", "expected"),
    [
        ("utf8mb4", None, b"utf8mb4_0900_ai_ci"),
        ("utf8mb4", "utf8mb4_general_ci", b"utf8mb4_general_ci"),
        ("utf8", None, b"utf8mb3_general_ci"),
        ("latin1", "utf8mb4_general_ci", None),
        ("utf8mb4", "nonsense", None),
        ("nonsense", None, None),
        ("utf16", None, None),
    ],
)
def test_names(charset: str, collation: str | None, expected: bytes | None) -> None:
    found = COLLATIONS.names(charset, collation)
    assert (found and found["collation_connection"]) == expected
    if found:
        name = b"utf8mb3" if charset == "utf8" else charset.encode()
        assert {found[f"character_set_{one}"] for one in ("client", "results", "connection")} == {name}


@pytest.mark.parametrize(("number", "collation"), [(45, b"utf8mb4_general_ci"), (999, b"latin1_swedish_ci")])
def test_the_handshake_s_number(number: int, collation: bytes) -> None:
    assert COLLATIONS.settings_for(number)["collation_connection"] == collation


def test_the_greeting_s_number() -> None:
    """mysqlnd logs in with what it reads there; only the lowest byte has room."""
    assert COLLATIONS.greeting == 8
    assert Collations(COLLATIONS.by_id, server=("utf8mb4", "utf8mb4_0900_ai_ci")).greeting == 255
    high = Collations(
        {2304: ("utf8mb4", "utf8mb4_uca1400_ai_ci")}, server=("utf8mb4", "utf8mb4_uca1400_ai_ci")
    )
    assert high.greeting == 0
    assert Collations().greeting == 45


class Oracle:
    """Answers what `ask` asks. `full`: as MariaDB from 10.10 on, which has full names elsewhere."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        self.weights = {"utf8mb4_general_ci": "0020", "utf8mb4_0900_ai_ci": "", "latin1_swedish_ci": "20"}
        self.weights |= {"utf8mb4_uca1400_nopad_as_cs": "", "utf8mb4_uca1400_german2_ai_ci": "0209"}

    def answer(self, conn: ServerConn, sql: bytes) -> list[Result]:
        if b"@@global.sql_mode" in sql:
            return [Rows([encode_row(["ANSI", "1", "600", "700"])], 4, definitions=definitions(4))]
        if b"@@global.collation_server" in sql:
            return [Rows([encode_row(["utf8mb4", "utf8mb4_general_ci"])], 2, definitions=definitions(2))]
        if b"full_collation_name" in sql and not self.full:
            return [Err(1054, "Unknown column 'full_collation_name'")]
        if b"information_schema" in sql:
            found = [
                (45, "utf8mb4", "utf8mb4_general_ci", "Yes"),
                (255, "utf8mb4", "utf8mb4_0900_ai_ci", ""),
                (8, "latin1", "latin1_swedish_ci", "Yes"),
                (63, "binary", "binary", "Yes"),
                (3072, "utf8mb4", "utf8mb4_uca1400_nopad_as_cs", ""),
                (2310, "utf8mb4", "utf8mb4_uca1400_german2_ai_ci", ""),
            ]
            return [Rows([encode_row(row) for row in found], 4, definitions=definitions(4))]
        asked = re.findall(r"SELECT '(\w+)', IF", sql.decode())
        return [
            Rows([encode_row([name, self.weights[name]]) for name in asked], 2, definitions=definitions(2))
        ]


async def facts(script: Any, *, rest: bool = False) -> ServerFacts:
    """What a server tells; with `rest` all of it."""
    world = World()
    world.server("h1").script = script
    from proxy.backends.settings import LOGIN

    connecting = asyncio.ensure_future(world.backends.pool("h1").connection(LOGIN, None, 0))
    await world.turn()
    conn = await connecting

    async def everything() -> ServerFacts:
        found = await ask(conn)
        if rest:
            await ask_rest(conn, found.collations)
        return found

    asking = asyncio.ensure_future(everything())
    while not asking.done():
        await world.turn()
        for one in world.everywhere():
            one.deliver()
    return asking.result()


@pytest.mark.parametrize("full", [True, False])
async def test_ask(full: bool) -> None:
    found = await facts(Oracle(full=full).answer)
    assert found.defaults == {
        "sql_mode": b"'ANSI'",
        "autocommit": b"1",
        "wait_timeout": b"600",
        "interactive_timeout": b"700",
    }
    assert found.collations.by_id[255] == ("utf8mb4", "utf8mb4_0900_ai_ci")
    assert found.collations.defaults["utf8mb4"] == "utf8mb4_general_ci"
    assert found.collations.server == ("utf8mb4", "utf8mb4_general_ci")
    assert found.collations.pads == {
        b"binary": b"",
        b"utf8mb4_general_ci": b"\0 ",
        b"utf8mb4_0900_ai_ci": b"",
        b"latin1_swedish_ci": b" ",
        b"utf8mb4_uca1400_nopad_as_cs": b"",
    }


async def test_what_is_seldom_needed_is_asked_for_later() -> None:
    found = await facts(Oracle(full=True).answer, rest=True)
    assert found.collations.pads[b"utf8mb4_uca1400_german2_ai_ci"] == b"\2\t"
    assert len(found.collations.pads) == len(found.collations.by_id)


async def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(ProxyError, match="no"):
        await facts(lambda conn, sql: [Err(1045, "no")])
