"""Random scripts through the proxy, beside the same on a server itself."""

from __future__ import annotations

import pytest

from tests.integration.raw import MORE_RESULTS, Raw
from tests.sessions.random_scripts import random_script
from tests.sessions.session_grammar import random_session, replies
from tests.sessions.test_scripts import Side, sides, told

__all__ = ["sides"]

LENGTH = 60


def _all(side: Side, session: int, line: bytes) -> list[tuple[object, ...]]:
    """What a client can tell of the replies, CALL has two of."""
    found = [side.ask(session, line)]
    while found[-1].kind != "err" and found[-1].status & MORE_RESULTS:
        raw: Raw = side.sessions[session]
        found.append(raw.reply())
    return [told(one) for one in found]


@pytest.mark.parametrize("seed", range(6))
def test_random_script(sides: tuple[Side, Side], flavour: str, seed: int) -> None:
    through, direct = sides
    old = flavour == "mariadb"
    isolation = "tx_isolation" if old else "transaction_isolation"
    lines = random_script(seed, LENGTH)
    for number, line in enumerate(lines):
        session = 2 if line.startswith("2: ") else 1
        text = line.removeprefix("2: ").replace("{isolation}", isolation).encode()
        expected, got = _all(direct, session, text), _all(through, session, text)
        before = "\n".join(lines[: number + 1])
        assert expected == got, f"{before}\n    direct  {expected}\n    through {got}"


@pytest.mark.parametrize("seed", range(4))
def test_random_session(sides: tuple[Side, Side], flavour: str, seed: int) -> None:
    through, direct = sides
    lines = random_session(seed, LENGTH, flavour)
    for number, line in enumerate(lines):
        expected, got = replies(direct, line), replies(through, line)
        before = "\n".join(lines[: number + 1])
        assert expected == got, f"{before}\n    direct  {expected}\n    through {got}"
