"""A topology in a file: changes, refusals, replacement, reload."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.load import ConfigError, load_schema
from config.sources import FileSource
from tests.config.sources import BAD, Listener, age, document, no_more_threads, threads, write, write_in_place
from tests.support.waiting import async_wait_until, turns


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "topology.json"
    made.write_bytes(document(5))
    return made


@pytest.fixture
async def listener() -> Listener:
    return Listener()


class Counting(FileSource):
    """A source that counts how often it has looked at its file."""

    looks = 0

    def _again(self, forced: bool) -> None:
        super()._again(forced)
        self.looks += 1

    async def looked(self, looks: int) -> None:
        """Wait until it has looked so often since the start, and said what it saw."""
        await async_wait_until(lambda: self.looks >= looks, "the source has looked again")
        await turns(2)

    async def looked_again(self) -> None:
        await self.looked(self.looks + 3)


@pytest.fixture
async def source(path: Path, listener: Listener) -> AsyncIterator[Counting]:
    made = Counting(path, interval=0.02)
    topology = await made.start(listener.on_change, listener.on_refused)
    assert topology.version == 5
    assert made.current is topology
    yield made
    await made.stop()


async def test_a_changed_file_gives_a_new_topology(source: Counting, path: Path, listener: Listener) -> None:
    write(path, document(6, "b:3306"))
    changed = await listener.changed()
    assert (changed.version, changed.hosts) == (6, ("b:3306",))
    assert source.current is changed
    await source.looked_again()
    assert listener.quiet


async def test_a_change_that_keeps_size_and_time_is_seen(
    source: Counting, path: Path, listener: Listener
) -> None:
    """File times are coarse: two writes within one tick may look alike."""
    before = age(path)
    write_in_place(path, document(6))
    os.utime(path, ns=(before[1], before[1]))
    assert age(path) == before
    assert (await listener.changed()).version == 6


async def test_the_same_content_again_is_nothing_new(
    source: Counting, path: Path, listener: Listener
) -> None:
    write(path, b" " + document(5) + b"\n")
    os.utime(path)
    await source.looked_again()
    assert listener.quiet


async def test_a_bad_document_is_refused_once_and_the_old_one_stays(
    source: Counting, path: Path, listener: Listener
) -> None:
    old = source.current
    write(path, BAD)
    reason = await listener.told()
    assert "x (line 1): unknown field" in reason
    assert "field 'database' is missing" in reason
    assert str(path) in reason
    os.utime(path)
    await source.looked_again()
    assert listener.quiet
    assert source.current is old
    write(path, document(6))
    assert (await listener.changed()).version == 6
    write(path, BAD)
    assert await listener.told() == reason


async def test_a_lower_version_is_stale(source: Counting, path: Path, listener: Listener) -> None:
    write(path, document(4, "b:3306"))
    assert "version: is 4: stale, version 5 is in use" in await listener.told()
    assert source.current is not None
    assert source.current.version == 5


async def test_a_document_that_lacks_shards_of_the_topology_in_use_is_refused(
    source: Counting, path: Path, listener: Listener
) -> None:
    old = source.current
    write(path, document(6, last=1))
    reason = await listener.told()
    assert "keyspaces.main.ranges: shards 2 to 3 are in no range, but in version 5" in reason
    assert source.current is old
    write(path, document(7, last=1, dropped=[[2, 3]]))
    assert (await listener.changed()).version == 7


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    made = tmp_path / "proxies"
    made.mkdir()
    return made


async def test_a_start_with_a_document_that_lacks_shards_serves_the_last_good_one(
    path: Path, registry: Path, listener: Listener
) -> None:
    before = FileSource(path, registry=registry)
    await before.start(listener.on_change, listener.on_refused)
    write(path, document(6, "b:3306"))
    assert (await listener.changed()).version == 6
    await before.stop()
    write(path, document(7, last=1))
    source = FileSource(path, registry=registry, interval=0.02)
    found = await source.start(listener.on_change, listener.on_refused)
    assert (found.version, len(found.keyspaces["main"].all_shards)) == (6, 4)
    reason = await listener.told()
    assert "shards 2 to 3 are in no range" in reason
    assert f"serving the last good topology, {registry / '.last-good'}" in reason
    assert source.current is found
    write(path, document(8))
    assert (await listener.changed()).version == 8
    await source.stop()


async def test_a_start_may_lack_shards_that_were_dropped_and_the_last_good_one_may_be_removed(
    path: Path, registry: Path, listener: Listener
) -> None:
    for content, remove in (
        (document(5), False),
        (document(6, last=2, dropped=[[3, 3]]), False),
        (document(7, last=1), True),
    ):
        write(path, content)
        if remove:
            (registry / ".last-good").unlink()
        source = FileSource(path, registry=registry)
        found = await source.start(listener.on_change, listener.on_refused)
        assert found.version == source.current.version  # type: ignore[union-attr]
        assert (registry / ".last-good").read_bytes() == content
        await source.stop()
    assert listener.quiet


@pytest.mark.parametrize("kept", [BAD, b"garbage: [", b""])
async def test_a_last_good_topology_that_cannot_be_used_does_not_matter(
    path: Path, registry: Path, listener: Listener, kept: bytes
) -> None:
    (registry / ".last-good").write_bytes(kept)
    source = FileSource(path, registry=registry)
    assert (await source.start(listener.on_change, listener.on_refused)).version == 5
    assert (registry / ".last-good").read_bytes() == document(5)
    await source.stop()


async def test_the_last_good_topology_must_serve_the_schema_to_be_used(
    path: Path, registry: Path, listener: Listener
) -> None:
    (registry / ".last-good").write_bytes(document(5).replace(b'"main"', b'"other"'))
    schema = load_schema(
        {"databases": {"d": {"tables": {"t": {"kind": "object", "keyspace": "main", "type": 1}}}}}
    )
    source = FileSource(path, registry=registry, schema=schema)
    with pytest.raises(ConfigError) as caught:
        await source.start(listener.on_change, listener.on_refused)
    assert "keyspaces.other.ranges: shards 0 to 3 are in no range" in str(caught.value)
    assert "the topology has no keyspace 'main'" in str(caught.value)


async def test_the_same_version_with_other_content_is_accepted(
    source: Counting, path: Path, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    """The file is the truth: a proxy started now would serve it too."""
    write(path, document(5, "b:3306"))
    assert (await listener.changed()).hosts == ("b:3306",)
    assert "raise the version" in caplog.text


async def test_what_places_rows_cannot_change_at_run_time(
    source: Counting, path: Path, listener: Listener
) -> None:
    write(path, document(6, pattern="other{shard}"))
    assert "keyspaces.main.database: cannot change" in await listener.told()


async def test_a_missing_file_is_told_once(source: Counting, path: Path, listener: Listener) -> None:
    os.rename(path, f"{path}.away")
    assert "cannot be read: No such file" in await listener.told()
    await source.looked_again()
    assert listener.quiet
    write(path, document(7))
    assert (await listener.changed()).version == 7


async def test_a_file_replaced_by_renaming_or_by_a_link(
    source: Counting, path: Path, listener: Listener
) -> None:
    other = path.with_suffix(".new")
    write(other, document(6))
    other.replace(path)
    assert (await listener.changed()).version == 6
    write(other, document(7))
    link = path.with_suffix(".link")
    link.symlink_to(other)
    link.replace(path)
    assert (await listener.changed()).version == 7


async def test_reload_looks_at_once(path: Path, listener: Listener) -> None:
    source = Counting(path, interval=3600)
    await source.start(listener.on_change, listener.on_refused)
    write(path, document(6))
    source.reload()
    assert (await listener.changed()).version == 6
    source.reload()
    await source.looked(2)
    assert listener.quiet
    write(path, BAD)
    for _ in range(2):
        source.reload()
        assert "unknown field" in await listener.told()
    await source.stop()


async def test_the_loop_is_not_held_up_while_the_file_is_read(tmp_path: Path, listener: Listener) -> None:
    """A named pipe without a writer blocks whoever opens it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    source = FileSource(pipe)
    starting = asyncio.create_task(source.start(listener.on_change, listener.on_refused))
    await async_wait_until(lambda: source._thread, "the source's thread has begun")
    await turns(5)
    assert not starting.done()
    writer = await asyncio.to_thread(os.open, pipe, os.O_WRONLY)
    os.write(writer, document(2))
    os.close(writer)
    assert (await starting).version == 2
    source.path = tmp_path / "gone"  # or its next look would wait for a writer again
    await source.stop()


@pytest.mark.parametrize("content", [None, BAD, b"\xff", b""])
async def test_a_bad_start_raises_and_leaves_no_thread(
    path: Path, listener: Listener, content: bytes | None
) -> None:
    before = threads()
    if content is None:
        os.unlink(path)
    else:
        write(path, content)
    source = FileSource(path)
    with pytest.raises(ConfigError) as caught:
        await source.start(listener.on_change, listener.on_refused)
    assert str(path) in str(caught.value)
    assert no_more_threads(before)


async def test_stop_leaves_no_thread_and_no_callback(path: Path, listener: Listener) -> None:
    before = threads()
    source = FileSource(path, interval=0.01)
    await source.start(listener.on_change, listener.on_refused)
    write(path, document(6))
    await source.stop()
    await source.stop()
    assert no_more_threads(before)
    await turns(5)
    assert listener.quiet or (await listener.changed()).version == 6


async def test_a_source_is_started_once(source: FileSource, listener: Listener) -> None:
    with pytest.raises(RuntimeError, match="once"):
        await source.start(listener.on_change, listener.on_refused)


async def test_a_topology_must_be_able_to_serve_the_schema(path: Path, listener: Listener) -> None:
    table = {"kind": "object", "keyspace": "main", "type": 1}
    schema = load_schema({"databases": {"d": {"tables": {"t": table}}}})
    source = FileSource(path, schema=schema, interval=0.02)
    await source.start(listener.on_change, listener.on_refused)
    write(path, document(6).replace(b'"main"', b'"other"'))
    assert "the topology has no keyspace 'main'; it has: other" in await listener.told()
    await source.stop()


async def test_an_error_in_looking_is_told_and_survived(
    source: Counting, path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bytes:
        raise RuntimeError("odd")

    monkeypatch.setattr(source, "_read", fail)
    write(path, document(6))
    assert "RuntimeError: odd" in await listener.told()
    monkeypatch.undo()
    assert (await listener.changed()).version == 6
