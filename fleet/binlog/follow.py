"""All hosts of the topology at once, and what follows when it changes.

When a host is new in the topology, the others are read to where they end then, and it is read after that:
what was written to a shard before it moved is told of before what was written afterwards. A host that is in
the topology no more is read to its end, if it still answers. What both logs have is told of once, by
its GTID.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from config.document import ConfigError
from config.load import load_schema, load_topology
from config.topology import Host, Topology
from fleet.binlog import positions as places
from fleet.binlog import servers
from fleet.binlog.gtids import GtidSet, GtidState, stepped
from fleet.binlog.logical import Logical
from fleet.binlog.positions import Positions
from fleet.binlog.stream import Stream
from fleet.binlog.transactions import Change, Decided, Item, Prepared, Read, Rows, Transactions
from fleet.command import Fleet, say, schema_text
from fleet.core.errors import Failed, HostError, Refused
from fleet.core.store import Stored

LOOK_SECONDS: Final = 1.0
"""Between two looks at the topology, and between two attempts to reach a host."""
_WAITING: Final = 256
"""Items that wait to be written out."""
_PURGED: Final = 1236


@dataclass(frozen=True)
class Wanted:
    """What the command was asked for."""

    file: Path
    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    oldest: bool = False
    once: bool = False
    skip: tuple[str, ...] = ()
    """Hosts, or GTIDs."""
    in_stream: bool = False


class Following:
    """One run of the command. `write` gets each line."""

    def __init__(self, fleet: Fleet, wanted: Wanted, write: Callable[[str], None]) -> None:
        self._fleet, self._wanted, self._write = fleet, wanted, write
        self._streams: dict[Host, Stream] = {}
        self._items: asyncio.Queue[tuple[Stream, Item | Exception]] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        self._loop = asyncio.get_running_loop()
        self._topology = fleet.topology
        self._names = Logical(fleet.topology, fleet.schema, wanted.databases, wanted.tables)
        self._seen: tuple[bytes, bytes] | None = None
        self._turn = _Turn()
        self._again: dict[Host, float] = {}
        self._away: dict[Host, str] = {}
        """What was said last of those that do not answer."""
        self._ends: dict[Host, str] = {}
        """What is to be read of each, with `once`."""
        self._inside: set[Host] = set()
        """Within a transaction of theirs, part of which is told of."""
        self._unsaved = False
        self._looked = 0.0
        self._looking: asyncio.Future[tuple[Stored | None, bytes]] | None = None
        self._unseen = ""
        """Why the documents could not be read, at the last look."""

    async def run(self) -> None:
        """Until it is cancelled, or with `once` to the end of each log. Refused, Failed, HostError."""
        fleet, wanted = self._fleet, self._wanted
        self._flavour = await servers.flavour_of_all(fleet.hosts, self._topology.hosts)
        for host in self._topology.hosts:
            await servers.check(fleet.hosts, self._flavour, host)
        await self._open()
        try:
            for host in list(self._positions.hosts):
                await self._begin(host)
            await self._changed(self._topology)
            while self._streams or self._turn.begun or not wanted.once:
                await self._step()
        finally:
            for stream in self._streams.values():
                stream.stop()
            if self._looking is not None:
                self._looking.cancel()
            self._save()

    async def _open(self) -> None:
        """The positions, of the file or of now."""
        hosts, wanted = self._fleet.hosts, self._wanted
        found = places.load(wanted.file)
        domains = self._flavour.gtid_positions
        if found is not None and (found.domains is not None) is not domains:
            raise Refused(f"{wanted.file} is of the other kind of servers: give another file")
        self._positions = found or Positions(GtidState() if domains else GtidSet())
        if found is None:
            begin = servers.begin_oldest if wanted.oldest else servers.begin_now
            for host in self._topology.hosts:
                await begin(hosts, self._flavour, host, self._positions)
        await servers.check_numbers(hosts, self._topology.hosts, self._positions.domains)
        for one in wanted.skip:
            if one in self._topology.hosts:
                await servers.begin_oldest(hosts, self._flavour, one, self._positions)
            else:
                self._pass(one)
        self._unsaved = True
        self._save()

    def _pass(self, gtid: str) -> None:
        """Count one transaction as read."""
        try:
            self._positions.gtids.add(gtid)
        except ValueError:
            raise Refused(f"--skip {gtid}: is neither a master of the topology nor a GTID") from None

    async def _begin(self, host: Host) -> None:
        """Begin to read its log; `once`: to where it ends now."""
        self._read(host)
        if self._wanted.once:
            self._ends[host] = await servers.end_of(self._fleet.hosts, self._flavour, host)

    def _read(self, host: Host) -> None:
        """Begin to read its log, from where it has been read to."""
        settings = self._fleet.settings.backends
        domains = self._positions.domains
        stream = Stream(
            host,
            self._fleet.login(host),
            settings.tls_for(host),
            Transactions(host, self._names, self._positions.gtids),
            start=self._positions.hosts[host] if domains is not None else str(self._positions.gtids),
            domains=domains is not None,
            connect_timeout=settings.connect_timeout,
            put=self._put,
        )
        self._streams[host] = stream
        stream.begin()

    def _put(self, stream: Stream, item: Item | Exception) -> None:
        """Called in the streams' threads, which wait while there is no room."""
        while not self._room.acquire(timeout=LOOK_SECONDS):
            if stream.stopping:
                return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._items.put_nowait, (stream, item))

    async def _step(self) -> None:
        """What the streams have, and once in a while what else is to be done."""
        try:
            async with asyncio.timeout(LOOK_SECONDS / 4):
                self._take(await self._items.get())
        except TimeoutError:
            pass
        while not self._items.empty():
            self._take(self._items.get_nowait())
        for host in [one for one, end in self._ends.items() if self._positions.gtids.covers(end)]:
            if host not in self._inside:
                del self._ends[host]
                self._stop(host)
        ended = self._wanted.once and not self._streams
        over = self._turn.over(self._positions) and not self._inside & self._turn.gone
        if self._turn.begun and (ended or over):
            await self._turned()
        now = time.monotonic()
        for host in [host for host, at in self._again.items() if at <= now]:
            del self._again[host]
            self._read(host)
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._save()
            if not self._wanted.once:
                await self._look()

    # --- what was read ------------------------------------------------------------------------

    def _take(self, found: tuple[Stream, Item | Exception]) -> None:
        self._room.release()
        stream, item = found
        host = stream.host
        if self._streams.get(host) is not stream:
            return
        if isinstance(item, Rows):
            self._tell(item.changes)
            self._inside.add(host)
        elif isinstance(item, Prepared):
            if item.changes:
                self._positions.prepared[f"{host} {item.xid}"] = item.changes
        elif isinstance(item, Decided):
            changes = self._positions.decided(host, item.xid, set(self._streams) | set(self._again))
            if item.committed and changes:
                now = {"host": host, "gtid": item.gtid, "last": False, "time": item.time}
                changes = [{**one, **now} for one in changes]
                changes[-1]["last"] = True
                self._tell(changes)
        elif not isinstance(item, Read):
            self._ended(host, item)
            return
        if self._away.pop(host, None) is not None:
            say(f"{host} is read again")
        gtid = item.gtid if isinstance(item, Rows | Read) else ""
        if gtid:
            self._inside.discard(host)
            self._positions.gtids.add(gtid)
            if self._positions.domains is not None:
                self._positions.hosts[host] = stepped(self._positions.hosts[host], gtid)
            self._unsaved = True

    def _tell(self, changes: Iterable[Change]) -> None:
        for one in changes:
            self._write(json.dumps(one, ensure_ascii=False))

    def _ended(self, host: Host, error: Exception) -> None:
        """A stream has come to its end, or to what it cannot pass."""
        del self._streams[host]
        self._inside.discard(host)
        if isinstance(error, HostError) and error.code == _PURGED:
            raise Failed(
                f"{host}: {error.text.rstrip('.')}. What its binary log has no more cannot be told of: to "
                f"go on without it, --skip {host}"
            )
        if not (isinstance(error, HostError) and error.lost):
            raise error
        if host not in self._topology.hosts:
            say(f"{host} is in the topology no more, and is not read to its end: {error}")
            self._turn.due.pop(host, None)
            self._turn.gone.discard(host)
            self._positions.hosts.pop(host, None)
            return
        if self._wanted.once:
            raise error
        if self._away.get(host) != str(error):  # said once, not at every try
            self._away[host] = str(error)
            say(f"{host}: {error}: it is tried again")
        self._again[host] = time.monotonic() + LOOK_SECONDS

    def _save(self) -> None:
        """After what was written out has left this process."""
        if not self._unsaved:
            return
        if self._wanted.in_stream:
            self._write(json.dumps({"positions": self._positions.document()}, ensure_ascii=False))
        sys.stdout.flush()
        self._positions.save(self._wanted.file)
        self._unsaved = False

    # --- another topology ---------------------------------------------------------------------

    async def _look(self) -> None:
        """Is there another topology, or schema? One that cannot be used is left to others to complain of."""
        fleet = self._fleet
        if self._looking is None:
            self._looking = self._loop.run_in_executor(None, self._documents)
        if not (await asyncio.wait({self._looking}, timeout=LOOK_SECONDS / 4))[0]:
            return  # what the hosts have is told of meanwhile
        looking, self._looking = self._looking, None
        try:
            stored, text = looking.result()
        except (Failed, Refused) as error:
            if self._unseen != str(error):  # said once, not at every look
                self._unseen = str(error)
                say(f"goes on with version {self._topology.version} of the topology: {error}")
            return
        self._unseen = ""
        if stored is None or (stored.content, text) == self._seen:
            return
        self._seen = stored.content, text
        layouts = fleet.settings.all_layouts
        try:
            schema = load_schema(text, name=fleet.settings.schema_place)
            topology = load_topology(stored.content, name=fleet.store.where, layouts=layouts, schema=schema)
        except ConfigError as error:
            say(f"goes on with version {self._topology.version} of the topology: {error}")
            return
        self._names = Logical(topology, schema, self._wanted.databases, self._wanted.tables)
        for stream in self._streams.values():
            stream.transactions.names = self._names
        await self._changed(topology)

    def _documents(self) -> tuple[Stored | None, bytes]:
        """Topology and schema, in a thread: where they are may not answer for long. Failed, Refused."""
        fleet = self._fleet
        return fleet.store.topology(), schema_text(fleet.settings, fleet.store)

    async def _changed(self, topology: Topology) -> None:
        """Begin a turn, if hosts come or go."""
        self._topology = topology
        known = self._positions.hosts
        new = [host for host in topology.hosts if host not in known]
        gone = {host for host in known if host not in topology.hosts}
        self._turn = _Turn(new, gone)
        if not self._turn.begun:
            return
        for host in list(known):
            try:
                self._turn.due[host] = await servers.end_of(self._fleet.hosts, self._flavour, host)
            except HostError as error:
                say(f"{host} is not read to its end before others: {error}")
                if host in gone:
                    self._leave(host)
        if not self._turn.due:
            await self._turned()

    async def _turned(self) -> None:
        """All that was written before the turn has been read."""
        turn, self._turn = self._turn, _Turn()
        for host in turn.gone:
            self._leave(host)
        hosts = self._fleet.hosts
        for host in turn.new:
            await servers.check(hosts, self._flavour, host)
            await servers.begin_master(hosts, self._flavour, host, self._positions)
        if turn.new:
            await servers.check_numbers(hosts, self._topology.hosts, self._positions.domains)
        for host in turn.new:
            await self._begin(host)
        self._unsaved = True

    def _stop(self, host: Host) -> None:
        stream = self._streams.pop(host, None)
        if stream is not None:
            stream.stop()

    def _leave(self, host: Host) -> None:
        self._stop(host)
        self._ends.pop(host, None)
        self._again.pop(host, None)
        self._positions.hosts.pop(host, None)


@dataclass
class _Turn:
    """Hosts that come and go. `due`: what is to be read before, of each host."""

    new: list[Host] = field(default_factory=list)
    gone: set[Host] = field(default_factory=set)
    due: dict[Host, str] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether there are any."""
        return bool(self.new or self.gone)

    def over(self, positions: Positions) -> bool:
        """Whether all of it has been read."""
        self.due = {host: end for host, end in self.due.items() if not positions.gtids.covers(end)}
        return not self.due
