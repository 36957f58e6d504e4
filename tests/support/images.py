"""Demos that begin with a copy of what another demo of this run has made: servers with accounts, databases,
tables and rows. To make them takes two thirds of a demo's CPU time, which the tests start a hundred times.

Only what a demo does with statements is spared: its servers, documents, proxy and end are its own. What is
made is as `Cluster` makes it, by a cluster that is stopped properly before it is copied. Demos with slaves or
spares, durable ones and those that are started as users do make all themselves.
"""

from __future__ import annotations

import pickle
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from demo.background import complete
from demo.cluster import Cluster
from demo.options import DemoOptions
from demo.process import kill_all, stop_all
from demo.programs import Program, ServerError
from demo.sample import Sample
from demo.servers import hosts_of, start_all
from demo.steps import Step
from demo.workspace import Workspace
from tests.support.template import locked, run_folder, with_holes

STOP_SECONDS = 120.0


@dataclass(frozen=True)
class Image:
    """Data directories in `path`, by the names of the hosts; what belongs to them."""

    path: Path
    passwords: list[str]
    backends: dict[str, Any]
    created: str
    sample: Sample
    rows: int


def image_for(options: DemoOptions, program: Program) -> Image | None:
    """None for demos that make all themselves, and for the first of its kind: many kinds have only one."""
    folder = run_folder()
    if folder is None or not options.fast or options.slaves or options.spares or options.zookeeper:
        return None
    kind = "empty" if options.empty else "rows"
    name = f"{program.flavour}-{program.version}-{options.hosts}-{options.shards}-{kind}".replace(" ", "")
    path = folder / name
    with locked(path.with_suffix(".lock")):
        if path.exists():
            return cast(Image, pickle.loads((path / "image").read_bytes()))
        seen = path.with_suffix(".seen")
        if options.shards != DemoOptions.shards and not seen.exists():
            seen.touch()
            return None
        return _made(options, path)


class _Kept(Workspace):
    """A folder that is somebody else's to remove."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def remove_later(self, folder: Path) -> None: ...

    def kill_later(self, pid: int) -> None: ...


class _Untold(Step):
    def __init__(self) -> None: ...

    def progress(self, done: int, total: int) -> None: ...


def _made(options: DemoOptions, path: Path) -> Image:
    draft = path.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)  # of one that was killed at it
    draft.mkdir()
    made = Cluster(replace(options, port=0, ready_file=None), _Kept(draft))
    try:
        made._start_servers()
        made._write_documents()
        complete(made._make_accounts())
        created = complete(made._create(_Untold()))
        rows = 0 if options.empty else complete(made._load())
        complete(_settled(made))
        processes = [server.process for server in made.masters if server.process is not None]
        stop_all(processes, STOP_SECONDS)
        if any(process.returncode for process in processes):
            raise ServerError(f"a server of {path.name} has not ended properly")
    finally:
        kill_all([server.process for server in made.masters if server.process is not None])
        made.proxy.release()
        for server in made.masters:
            server.forget_socket()
    for server in made.masters:
        server.data.rename(server.data.with_name("made"))
        with_holes(server.data.with_name("made"), server.data)
    image = Image(path, [one.password for one in made.masters], made._backends, created, made.sample, rows)
    (draft / "image").write_bytes(pickle.dumps(image))
    draft.rename(path)
    return image


async def _settled(made: Cluster) -> None:
    """They end with all pages written, so that whoever has a copy recovers nothing."""
    async with hosts_of(made.masters) as hosts:
        for server in made.masters:
            await hosts.run(server.address, ["SET GLOBAL innodb_fast_shutdown = 1"])


class ImagedCluster(Cluster):
    """A `Cluster` that takes an image where there is one."""

    _image: Image | None = None

    def _start_servers(self) -> None:
        self._image = image = image_for(self.options, self.program)
        if image is None:
            super()._start_servers()
            return
        self._backends = image.backends
        names = [f"host{n + 1}" for n in range(self.options.hosts)]
        self.masters = [self._server(name, n + 1, image.path / name / "data") for n, name in enumerate(names)]
        for server, password in zip(self.masters, image.passwords, strict=True):
            server.password, server._secured = password, True
        start_all(self.masters)

    async def _make_accounts(self) -> None:
        if self._image is None:
            await super()._make_accounts()

    async def _create(self, step: Step) -> str:
        return await super()._create(step) if self._image is None else self._image.created

    async def _load(self) -> int:
        if self._image is None:
            return await super()._load()
        self.sample = self._image.sample
        return self._image.rows
