"""Runs of `shardgate fleet` that a signal ends at a chosen point: before and after all that they change.

A process that has imported all forks one child a run: `Killer.run`. It is one for all tests of this process:
its start is a second of imports.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: What changes something: on the hosts, in the store.
POINTS: dict[str, dict[str, tuple[str, ...]]] = {
    "fleet.core.hosts": {"Hosts": ("run",)},
    "fleet.importing.writing": {"": ("_once",)},  # a function of the module
    "fleet.importing.importing": {"Importing": ("_copy", "_pass", "_close", "_release")},
    "fleet.altering": {"Altering": ("_made", "_run")},
    "fleet.core.store": {"FileStore": ("lock", "unlock", "append", "put", "create", "publish")},
    "fleet.core.zookeeper": {"ZooKeeperStore": ("lock", "unlock", "append", "put", "create", "publish")},
}


@functools.cache
def _process() -> subprocess.Popen[bytes]:
    """Ends with its input, when the tests do."""
    argv = [sys.executable, "-m", __name__]
    root = Path(__file__).parents[2]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)


class Killer:
    """Runs one command after another."""

    def run(
        self,
        arguments: Sequence[str],
        log: Path,
        kill_at: int = 0,
        by: signal.Signals = signal.SIGKILL,
        constants: Mapping[str, float] | None = None,
    ) -> int:
        """Exit status of `shardgate ARGUMENTS`, or -9 when killed: at its `kill_at`th point, from 1. `by`:
        another signal that it gets there. `constants`: others for those of modules, as `fleet.create.X`.
        """
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        asked: dict[str, Any] = {"arguments": list(arguments), "log": str(log), "at": kill_at, "by": int(by)}
        asked["constants"] = dict(constants or {})
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        return int(process.stdout.readline())


class _Counter:
    def __init__(self, at: int, by: int) -> None:
        self.left, self.by = at, by

    def reached(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.by)


def _counted(counter: _Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waited(*arguments: Any) -> Any:
            counter.reached()
            found = await function(*arguments)
            counter.reached()
            return found

        return waited

    @functools.wraps(function)
    def counted(*arguments: Any) -> Any:
        counter.reached()
        found = function(*arguments)
        counter.reached()
        return found

    return counted


def _child(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells let their background jobs ignore
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup lets them ignore
    with open(asked["log"], "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    counter = _Counter(asked["at"], asked["by"])
    for module, classes in POINTS.items():
        for name, methods in classes.items():
            owner = getattr(sys.modules[module], name) if name else sys.modules[module]
            for method in methods:
                setattr(owner, method, _counted(counter, getattr(owner, method)))
    for name, value in asked["constants"].items():
        module, _, constant = name.rpartition(".")
        setattr(sys.modules[module], constant, value)
    sys.argv = ["shardgate", *asked["arguments"]]
    try:
        sys.modules["proxy.cli"].main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    sys.stdout.flush()
    os._exit(status)


def main() -> None:
    for name in (
        "fleet.command",
        "fleet.creating",
        "fleet.altering",
        "fleet.failover",
        "fleet.importing.command",
        "proxy.cli",
    ):
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            _child(asked)


if __name__ == "__main__":
    main()
