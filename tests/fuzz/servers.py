"""Servers that answer with spoilt packets: a link between the proxy and a real server changes a reply.

The client may get whatever the reply has become, a clean error, or the end of its connection; but an answer.
The next statement gets its own rows: nothing of a spoilt reply stays behind in a pooled connection.
"""

from __future__ import annotations

from contextlib import closing
from random import Random

from tests.faults.link import Link
from tests.fuzz.clients import MANNERS, Client, ClientFuzz, Finding, last_word, source
from tests.fuzz.mutate import spoil
from tests.integration.raw import Closed
from tests.support.waiting import wait_until


class ServerFuzz(ClientFuzz):
    """Cases for a proxy whose first host is behind `link`; the first of the `users` is on it."""

    def __init__(self, host: str, port: int, users: tuple[int, int], seed: int, link: Link) -> None:
        super().__init__(host, port, users, seed)
        self.link = link
        self.conversations = tuple(one for one in self.conversations if not one.waits)

    def run(self, number: int) -> None:
        """Case `number`. Raises Finding."""
        chooser = Random(f"{self.seed}/{number}")
        try:
            self._reply(chooser, number)
            self._afterwards(number)
        except Finding as finding:
            raise Finding(f"case {number} of seed {self.seed}: {finding}") from None

    def _reply(self, chooser: Random, number: int) -> None:
        one = chooser.choice(self.conversations)
        which, close = chooser.choice((0, 0, 0, 1, 2)), chooser.random() < 0.8

        def change(piece: int, data: bytes) -> tuple[bytes, bool]:
            return (spoil(chooser, data), close) if piece == which else (data, False)

        with closing(Client(self.address, source(number))) as client:
            client.enter(MANNERS[1])
            stmt = self._set_up(client, one)
            self.link.spoil(change)
            try:
                command, marker = last_word(number)
                client.write(one.stream(one.packets, stmt) + command)
                data, closed = client.until(marker)
            except TimeoutError:
                raise Finding(f"no answer ({one.name}), so far {bytes(client.buffer)!r}") from None
            finally:
                self.link.pass_on()
            self.ends["closed" if closed else "answered"] += 1
            self._judge(client, data)

    def _afterwards(self, number: int) -> None:
        """Statements of others get their own answers, as soon as there is a connection to the server."""
        with closing(Client(self.address, source(number))) as client:
            client.enter(MANNERS[1])

            def own_rows() -> bool:
                try:
                    reply = client.ask(f"SELECT {number}, id FROM legacy.customers WHERE id = 1")
                except Closed:
                    raise Finding("the connection of the next client was closed") from None
                if reply.kind == "rows" and reply.rows != [(b"%d" % number, b"1")]:
                    raise Finding(f"another's answer: {reply}")
                return reply.kind == "rows"

            wait_until(own_rows, "the server is reached again", 10)
