"""Where proxies with a topology file say which version they serve."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.sources import FileSource
from config.sources.registry import Registration, registered
from tests.config.sources import Listener, document, write
from tests.support.waiting import async_wait_until, wait_until

REGISTERS = """
import sys, time
from pathlib import Path
from config.sources.registry import Registration
one = Registration(Path(sys.argv[1]), "killed")
one.say({"version": 7})
print("here", flush=True)
time.sleep(600)
"""


def versions(folder: Path) -> list[int]:
    return [one["version"] for one in registered(folder)]


def test_a_process_that_is_killed_is_gone_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "proxies"
    argv = [sys.executable, "-c", REGISTERS, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        assert registered(folder) == [{"name": "killed", "version": 7}]
        process.kill()
    assert (folder / "killed").exists()
    assert registered(folder) == []
    assert os.listdir(folder) == []


def test_what_is_said_changes_and_ends(tmp_path: Path) -> None:
    assert registered(tmp_path / "none") == []
    one, other = Registration(tmp_path, "one"), Registration(tmp_path, "other")
    one.say({"version": 1, "listen": ["127.0.0.1:3307"] * 200})
    one.say({"version": 2})
    other.say({"version": 3})
    assert versions(tmp_path) == [2, 3]
    one.path.unlink()
    one.say({"version": 2})
    assert versions(tmp_path) == [2, 3]
    one.end()
    other.end()
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_read_is_somebody(tmp_path: Path) -> None:
    one = Registration(tmp_path, "one")
    one.say({})
    os.truncate(one.path, 1)
    assert registered(tmp_path) == [{"name": "one"}]
    one.end()


def test_what_else_lies_in_the_folder(tmp_path: Path) -> None:
    """topology.proxies_path may be the folder of the settings, or one of its own file system."""
    (tmp_path / "shardgate.yaml").write_text("workers: 1\n")
    write(tmp_path / "topology.json", document(7))
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "link").symlink_to("shardgate.yaml")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    one = Registration(tmp_path, "one")
    one.say({"version": 3})
    assert registered(tmp_path) == [{"name": "one", "version": 3}]
    one.end()
    assert registered(tmp_path) == []
    assert sorted(os.listdir(tmp_path)) == before


def test_others_cannot_hold_what_is_left_over(tmp_path: Path) -> None:
    """To lock a file one must be able to open it. Who gives a folder to a group lets it read."""
    mask = os.umask(0o022)
    try:
        for name, made, wanted in (("own", None, 0o600), ("group", 0o2750, 0o640), ("old", 0o755, 0o640)):
            folder = tmp_path / name
            if made is not None:
                folder.mkdir()
                folder.chmod(made)
            one = Registration(folder, "one")
            one.say({"version": 1})
            assert (name, stat.S_IMODE(one.path.stat().st_mode)) == (name, wanted)
            assert versions(folder) == [1]
            one.end()
        assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
    finally:
        os.umask(mask)


async def test_a_source_registers_what_is_served(tmp_path: Path) -> None:
    """Not what it has read: only who serves a version shall be believed to."""
    file, folder = tmp_path / "topology.json", tmp_path / "proxies"
    write(file, document(1))
    listener = Listener()
    source = FileSource(file, interval=0.02, registry=folder, details={"listen": ["a:1"]})
    await source.start(listener.on_change, listener.on_refused)
    ((said),) = registered(folder)
    assert (said["version"], said["listen"], said["pid"]) == (1, ["a:1"], os.getpid())
    write(file, document(2))
    found = await listener.changed()
    assert versions(folder) == [1]
    source.serving(found)
    await async_wait_until(lambda: versions(folder) == [2], "the version")
    folder.rename(tmp_path / "away")
    await async_wait_until(lambda: versions(folder) == [2], "the folder again")
    await source.stop()
    assert registered(folder) == []


async def test_a_change_while_it_registers_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that publishes before the process is registered does not wait for it: so it looks once more."""
    file = tmp_path / "topology.json"
    write(file, document(1))
    say = Registration.say

    def publishing(self: Registration, content: dict[str, object]) -> None:
        if content["version"] == 1:
            write(file, document(2))
        say(self, content)

    monkeypatch.setattr(Registration, "say", publishing)
    listener = Listener()
    source = FileSource(file, registry=tmp_path / "proxies")
    first = await source.start(listener.on_change, listener.on_refused)
    assert first.version == 2
    await source.stop()


async def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once, and the proxy serves nevertheless."""
    file, nowhere = tmp_path / "topology.json", tmp_path / "file"
    write(file, document(1))
    nowhere.write_text(json.dumps({}))
    listener = Listener()
    source = FileSource(file, interval=0.01, registry=nowhere)
    await source.start(listener.on_change, listener.on_refused)
    write(file, document(2))
    await listener.changed()
    assert wait_until(lambda: "(this proxy is not registered: " in source.status, "the status")
    assert caplog.text.count("the fleet's tools do not wait for it") == 1
    nowhere.unlink()
    await async_wait_until(lambda: versions(nowhere), "it is registered after all")
    await async_wait_until(lambda: "not registered" not in source.status, "the status")
    await source.stop()
