"""The same bytes to a proxy over many shards and to one server with all rows: where both answer, they agree.

A word that one reader takes for a comment, a text or another clause sends the statement to too few shards.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

from tests.fuzz.readings.grammar import Manner, Writer
from tests.fuzz.readings.judge import BATCH, Tally
from tests.integration.raw import QUERY, Closed, Raw, command
from tests.integration.replies import is_eof
from tests.support.demo import Demo
from tests.support.servers import LocalServer

#: P and Q are IDs of pins on two shards, B of a board.
TEXTS = (
    "SELECT COUNT(*) FROM pins WHERE id = P OR 1 = 1",
    "SELECT COUNT(*) FROM pins WHERE id = P AND 1 = 1 OR id = Q",
    "SELECT id FROM pins WHERE id IN ( P , Q ) ORDER BY id",
    "SELECT id FROM pins WHERE id = P UNION SELECT id FROM pins WHERE id = Q",
    "SELECT COUNT(*) FROM pins WHERE NOT id < 1 OR id = P",
    "SELECT COUNT(*) FROM pins WHERE NOT id = P || id = Q",
    "SELECT COUNT(*) FROM pins WHERE id = P AND data LIKE '%\\\\' OR id = Q OR '\\\\' = ' '",
    "SELECT COUNT(*) FROM pins WHERE id = P AND 'x' = \"x\" OR id = Q",
    "SELECT COUNT(*) FROM pins WHERE id = \"P\" OR id = 'Q'",
    "SELECT COUNT(*) FROM pins WHERE id = P -- 1\n OR id = Q",
    "SELECT COUNT(*) FROM pins WHERE id = P # 1\n OR id = Q",
    "SELECT COUNT(*) FROM pins WHERE id = P --1\n OR id = Q",
    "SELECT pin_id FROM board_has_pins WHERE board_id = B AND sequence > 5 OR pin_id = P ORDER BY pin_id",
    "SELECT COUNT(*) FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = B OR p.id = P",
    "SELECT COUNT(*) FROM pins p LEFT JOIN board_has_pins m ON m.pin_id = p.id AND m.board_id = B",
    "SELECT user_id FROM usernames UNION ALL SELECT pin_id FROM board_has_pins WHERE board_id = B",
)


class Routes:
    """Compares batches of texts. `demo` is full, `plain` has the rows of all of its shards."""

    def __init__(self, demo: Demo, plain: LocalServer, seed: int) -> None:
        self.demo, self.plain, self.seed = demo, plain, seed
        self.tally = Tally()
        with plain.connect().cursor() as cursor:
            cursor.execute("SELECT MIN(id), MAX(id) FROM demo.pins")
            first, last = cursor.fetchone()  # type: ignore[misc]
            cursor.execute("SELECT MAX(board_id) FROM demo.board_has_pins")
            (board,) = cursor.fetchone()  # type: ignore[misc]
        self._values = {"P": str(first), "Q": str(last), "B": str(board)}

    def batch(self, number: int) -> None:
        """BATCH texts in one pair of sessions."""
        chooser = Random(f"{self.seed}/{number}")
        manner = Manner.any(chooser)
        writer = Writer(chooser, self._values, TEXTS, TEXTS)
        texts = [writer.statement() for _ in range(BATCH)]
        demo, plain = self.demo, self.plain
        with (
            Raw(plain.host, plain.port, timeout=20) as one,
            Raw(demo.host, demo.port, timeout=20) as proxied,
        ):
            assert one.login(plain.user, plain.password, "demo").kind == "ok"
            assert proxied.login("demo", "demo", "demo").kind == "ok"
            for setting in manner.settings:
                if _answer(one, setting)[0] != "ok" or _answer(proxied, setting)[0] != "ok":
                    self.tally.outcomes["setting refused"] += 1
                    return
            for text in texts:
                try:
                    with suppress(Closed):
                        self._compare(manner, text, _answer(one, text), _answer(proxied, text))
                except TimeoutError:
                    self.tally.differences.append(f"no answer: {manner.settings} {text!r}")
                    return

    def _compare(
        self, manner: Manner, text: bytes, wanted: tuple[str, list[bytes]], given: tuple[str, list[bytes]]
    ) -> None:
        self.tally.outcomes[f"{wanted[0]} / {given[0]}"] += 1
        if not given[0].startswith("err") and wanted != given:
            self.tally.differences.append(
                f"{manner.settings} {text!r}: one server {_shown(wanted)}, the proxy {_shown(given)}"
            )


def _shown(answer: tuple[str, list[bytes]]) -> str:
    return f"{answer[0]}, {len(answer[1])} rows {answer[1][:3]}"


def _answer(client: Raw, text: bytes) -> tuple[str, list[bytes]]:
    """How the text ends ("ok", "rows" or "err" with its code), and its rows, sorted. Raises Closed."""
    client.write(command(QUERY, text))
    first = client.packet()
    if first[:1] == b"\xff":
        return f"err {int.from_bytes(first[1:3], 'little')}", []
    if first[:1] == b"\0":
        return "ok", []
    while not is_eof(client.packet()):
        pass
    rows = []
    while not is_eof(row := client.packet()):
        if row[:1] == b"\xff":
            return f"err {int.from_bytes(row[1:3], 'little')}", []
        rows.append(row)
    return "rows", sorted(rows)
