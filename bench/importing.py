"""`python -m bench.importing [ROWS]`: how long `shardgate fleet import` takes, and what CPU time.

A forum of so many rows (10^6) on one server, over 64 shards on two others, all on this machine.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fleet.test_import import Place
from tests.support.demo import running_demo
from tests.support.forum import Forum
from tests.support.programs import need_program
from tests.support.servers import LocalServer
from tests.support.template import template_of


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    program = need_program(os.environ.get("FLAVOUR", "mariadb"))
    with tempfile.TemporaryDirectory(prefix="shardgate-import-") as name:
        folder = Path(name)
        server = LocalServer(program, folder / "source", name="source", template=template_of(program))
        with server, running_demo(program, folder / "target", "--empty", "--no-page") as demo:
            forum = Forum(server.connect(), size=size * 81 // 100)
            timed("make the rows", forum.make)
            place = Place(demo, server, folder, forum.database, forum.happen)
            timed("propose and create", place.propose)
            for arguments in ((), ("--cut-over", "stopped")):
                words = [sys.executable, "-m", "proxy", *place.words(*arguments)]
                timed(
                    "import " + " ".join(arguments),
                    lambda words=words: subprocess.run(words, check=True),
                )


def timed(what: str, work: object) -> None:
    """Do it, and say how long it took, and its processes' CPU time."""
    assert callable(work)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = time.monotonic() - began
    print(f"{what}: {seconds:.1f} s, {cpu:.1f} s of CPU, {after.ru_maxrss >> 10} MB at most", flush=True)


if __name__ == "__main__":
    main()
