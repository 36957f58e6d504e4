"""A host without TLS, where the settings ask for it, gets no log-in: not the name, not the password."""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.fleet.world import World
from tests.support.servers import LocalServer

_CLIENT_SSL = 1 << 11


class Stripped:
    """Greets as `server` does, but offers no TLS, as who listens in between would; `received` has what
    clients send to that.
    """

    def __init__(self, server: LocalServer) -> None:
        with socket.create_connection((server.host, server.port)) as real:
            greeting = real.recv(4096)
        version_end = greeting.index(b"\0", 5)
        at = version_end + 1 + 4 + 8 + 1  # the thread's number, the first of the scramble, a filler
        (capabilities,) = struct.unpack_from("<H", greeting, at)
        self._greeting = bytearray(greeting)
        struct.pack_into("<H", self._greeting, at, capabilities & ~_CLIENT_SSL)
        self.received: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Stripped:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, suppress(ConnectionError):
                client.sendall(self._greeting)
                self.received.append(client.recv(4096))


def test_a_server_without_tls_is_refused(tmp_path: Path, servers: list[LocalServer]) -> None:
    with Stripped(servers[0]) as stripped:
        here: Any = SimpleNamespace(address=stripped.address, password="secret")
        world = World(tmp_path, [here, here])
        for keyspace in world.document["keyspaces"].values():
            keyspace["ranges"] = [{"range": [0, 3], "master": stripped.address}]
        world.topology.write_text(json.dumps(world.document))
        settings = json.loads(world.settings.read_text())
        settings["backends"]["tls"] = {"verify": "none"}
        world.settings.write_text(json.dumps(settings))
        for command in ("verify", "create"):
            status, output = world.run(command, *(("--yes",) if command == "create" else ()))
            assert status == 1
            assert "the server offers no TLS, which backends.tls asks for: nothing was sent to it" in output
        assert stripped.received
        assert set(stripped.received) == {b""}
        del settings["backends"]["tls"]
        world.settings.write_text(json.dumps(settings))
        world.run("verify")
        assert any(b"root" in one for one in stripped.received)  # so it would be seen
