"""Which listening sockets a process takes from another, and which it must not."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from config.address import Address
from config.settings import Settings
from proxy.listening import Listening


def settings_of(workers: int, *addresses: Address) -> Settings:
    listen = tuple(SimpleNamespace(address=one) for one in addresses)
    return cast("Settings", SimpleNamespace(workers=workers, listen=listen))


def settings_at(path: Path) -> Settings:
    return settings_of(1, Address(path=str(path)))


def successor_of(old: Listening, settings: Settings) -> Listening:
    """Another `Listening`, while `old` answers whoever asks."""
    made: list[Listening] = []
    thread = threading.Thread(target=lambda: made.append(Listening(settings)))
    thread.start()
    while thread.is_alive():
        assert old.handover is not None
        if select.select([old.handover], [], [], 0.05)[0]:
            old.hand_over()
    return made[0]


def reaches(path: Path, listening: Listening) -> bool:
    """Whether who connects to that file comes in there."""
    door = listening.of(0)[0][1]
    door.listen(8)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        return bool(select.select([door], [], [], 0.2)[0])


def test_a_successor_shares_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with closing(Listening(settings_at(path))) as old:
        identity = path.stat().st_ino
        with closing(successor_of(old, settings_at(path))) as new:
            assert path.stat().st_ino == identity
            assert reaches(path, new)


def test_a_file_that_is_gone_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with closing(Listening(settings_at(path))) as old:
        path.unlink()
        with closing(successor_of(old, settings_at(path))) as new:
            assert reaches(path, new)


def test_the_same_path_in_another_folder_is_not_the_same(tmp_path: Path) -> None:
    """As containers have it that share a network: neither is the other's successor."""
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "s.sock"
    with closing(Listening(settings_at(path))) as old:
        folder.rename(tmp_path / "others")
        folder.mkdir()
        with closing(successor_of(old, settings_at(path))) as new:
            assert reaches(path, new)
            assert new.handover is not None
            assert new.handover.getsockname() != old.handover.getsockname()  # type: ignore[union-attr]


def test_more_sockets_than_fit_into_a_message(tmp_path: Path) -> None:
    """All are shared: one that is not would refuse who waits there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", free.getsockname()[1])
    settings = settings_of(260, address, Address(path=str(tmp_path / "s.sock")))
    with closing(Listening(settings)) as old, closing(successor_of(old, settings)) as new:
        assert (new.handover and new.handover.getsockname()) == (old.handover and old.handover.getsockname())
        assert inodes(new) == inodes(old)
        assert len(inodes(new)) == 261


def test_what_a_successor_does_not_get_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sock"
    monkeypatch.setattr("proxy.listening._TOGETHER", 1)
    send = socket.send_fds

    def first_only(sock: socket.socket, data: list[bytes], handed: list[int]) -> int:
        if b"s.sock" in data[0]:
            raise OSError(errno.ETOOMANYREFS, "Too many references")
        return send(sock, data, handed)

    monkeypatch.setattr("socket.send_fds", first_only)
    with closing(Listening(settings_at(path))) as old, capture_logs() as logs:
        successor_of(old, settings_at(path)).close()
    said = next(one for one in logs if "does not share all listening sockets" in one["event"])
    assert (said["sockets"], said["left"], said["reason"]) == (0, 1, "Too many references")


def test_what_another_listens_at_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another proxy, as its first address is another; the kernel would share the port."""
    monkeypatch.setattr("proxy.taken._ORPHANS", 0.2)
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        own = Address(path=str(tmp_path / "s.sock"))
        for host in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(OSError, match=rf"cannot listen at {host}:{port} \(listen\[1\]\): .* in use"):
                Listening(settings_of(2, own, Address(host, port)))
        with closing(Listening(settings_of(2, own, Address("127.0.0.2", port)))):
            pass


def test_a_unix_socket_at_which_another_listens_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.taken._ORPHANS", 0.2)
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(OSError, match=r"\(listen\): Address already in use.*ss -lxp"):
            Listening(settings_at(path))
        assert path.is_socket()
    with closing(Listening(settings_at(path))):  # who has left its file there is gone
        pass


def test_the_workers_of_a_killed_proxy_get_a_moment_to_leave(tmp_path: Path) -> None:
    other = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    address = Address("127.0.0.1", other.getsockname()[1])
    timer = threading.Timer(0.5, other.close)
    timer.start()
    with closing(Listening(settings_of(1, address))):
        assert other.fileno() == -1


def test_beside_a_predecessor_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs: the port is shared all the same."""
    monkeypatch.setattr("proxy.listening._PATIENCE", 0.2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", free.getsockname()[1])
    settings = settings_of(1, address)
    with closing(Listening(settings)) as old:
        old.of(0)[0][1].listen()
        with closing(Listening(settings)) as new:
            assert new.place == replace(old.place, predecessor=True)
            assert not inodes(new) & inodes(old)


def inodes(listening: Listening) -> set[int]:
    """Which sockets a process has."""
    return {os.fstat(door.fileno()).st_ino for doors in listening._doors for _, door in doors}


def test_it_is_said_when_no_successor_can_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else has the name: then a restart is not without a gap."""
    path = tmp_path / "s.sock"
    with closing(Listening(settings_at(path))) as old:
        monkeypatch.setattr("proxy.listening._same_user", lambda sock: False)
        with capture_logs() as logs, closing(successor_of(old, settings_at(path))) as new:
            assert new.handover is None
    assert any("no successor will share" in one["event"] for one in logs)
