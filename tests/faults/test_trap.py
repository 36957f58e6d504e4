"""The trap itself, before a server that answers when it is told to."""

from __future__ import annotations

import socket

from tests.faults.trap import Trap
from tests.support.waiting import wait_until


def test_the_last_words_of_one_that_is_gone_are_not_what_it_waits_for() -> None:
    """A client is killed with the statement on its way: the trap stays for the next one."""
    done: list[str] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Trap("127.0.0.1", server.getsockname()[1]) as trap,
    ):
        trap.arm(b"XA COMMIT", then=lambda: done.append("killed"), before=False)
        for answered in (False, True):
            client = socket.create_connection(("127.0.0.1", trap.port))
            behind, _ = server.accept()
            client.sendall(b"XA COMMIT 'a'")
            assert behind.recv(100) == b"XA COMMIT 'a'"
            if answered:
                behind.sendall(b"OK")
                assert client.recv(100) == b""  # the reply stays away
            client.close()
            wait_until(lambda behind=behind: behind.recv(100) == b"", "the trap has noticed")  # type: ignore[misc]
            behind.close()
            assert trap.sprung.is_set() is answered
    assert done == ["killed"]


def test_several_patterns_come_on_one_connection() -> None:
    """The last one springs it only where the others came before."""
    done: list[str] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Trap("127.0.0.1", server.getsockname()[1]) as trap,
    ):
        trap.arm(b"INSERT", b"COMMIT", then=lambda: done.append("killed"), before=True)
        with socket.create_connection(("127.0.0.1", trap.port)) as writing:
            behind_writing, _ = server.accept()
            writing.sendall(b"INSERT")
            assert behind_writing.recv(100) == b"INSERT"
            with socket.create_connection(("127.0.0.1", trap.port)) as other:
                behind, _ = server.accept()
                other.sendall(b"COMMIT")
                assert behind.recv(100) == b"COMMIT"
                behind.close()
            assert not done
            writing.sendall(b"COMMIT")
            assert behind_writing.recv(100) == b""
            behind_writing.close()
    assert done == ["killed"]
