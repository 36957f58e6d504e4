"""The journal: every operation that was begun, its steps, and how far it came.

An operation is a list of entries that only grows:

    begin   the tool, its arguments, who, when
    steps   steps that will be taken, before the first of them is
    done    keys of steps that were taken, with what the tool wants to remember of them
    failed  what went wrong
    end     done, undone, or given up

One without an end is unfinished: the same command goes on with it. `blocks`: until then no other may begin.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fleet.core.steps import Planned, Step
from fleet.core.store import Store

_TOGETHER: Final = 1000
"""Steps, or problems, in an entry: ZooKeeper's nodes are small."""
LATEST: Final = 50
"""Operations that are looked through for unfinished ones."""


@dataclass
class Operation:
    """One operation, as far as the journal knows it."""

    number: int
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    began: str = ""
    blocks: bool = False
    planned: dict[str, Planned] = field(default_factory=dict)
    done: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """Of the last run."""
    outcome: str = ""
    ended: str = ""

    @property
    def name(self) -> str:
        """Its document in the store."""
        return f"journal/{self.number:06d}"

    @property
    def final(self) -> bool:
        """Whether there is no way back any more."""
        return any(one.final and key in self.done for key, one in self.planned.items())

    @property
    def command(self) -> str:
        """As it was typed. What has its name in capitals is no option."""
        words = [f"shardgate {self.tool}" if " " in self.tool else f"shardgate fleet {self.tool}"]
        for name, value in self.arguments.items():
            if name.isupper():
                words.append(_quoted(str(value)))
                continue
            words.append(f"--{name}" if value is True else f"--{name} {_quoted(str(value))}")
        return " ".join(words)

    @property
    def progress(self) -> str:
        """How far it came."""
        return f"{len(self.done.keys() & self.planned.keys())} of {len(self.planned)} steps"

    def take(self, entry: Mapping[str, Any]) -> None:
        """One entry of the journal."""
        match entry.get("entry"):
            case "begin":
                self.tool, self.arguments = str(entry["tool"]), dict(entry["arguments"])
                self.by, self.began = str(entry["by"]), str(entry["at"])
                self.blocks = bool(entry.get("blocks"))
            case "steps":
                self.problems = []
                for one in map(Planned.read, entry["steps"]):
                    self.planned.setdefault(one.key, one)
            case "done":
                self.done |= {str(key): dict(facts) for key, facts in entry["steps"].items()}
            case "failed":
                self.problems += map(str, entry["problems"])
            case "end":
                self.outcome, self.ended = str(entry["outcome"]), str(entry["at"])


def _quoted(text: str) -> str:
    plain = text and all(one.isalnum() or one in "-_.:,/[]" for one in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"


class Journal:
    """The operations of a store. Whoever writes has the lock."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def latest(self, most: int = LATEST) -> list[Operation]:
        """The last operations, the oldest of them first."""
        return [self.read(int(name)) for name in self._store.names("journal")[-most:] if name.isdigit()]

    def read(self, number: int) -> Operation:
        """One operation; an entry that cannot be read is left out."""
        found = Operation(number)
        for line in self._store.entries(found.name):
            try:
                found.take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return found

    def unfinished(self) -> list[Operation]:
        """Those without an end."""
        return [one for one in self.latest() if one.tool and not one.outcome]

    def begin(self, tool: str, arguments: Mapping[str, Any], *, blocks: bool) -> Operation:
        """A new operation."""
        names = [name for name in self._store.names("journal") if name.isdigit()]
        made = Operation(int(names[-1]) + 1 if names else 1)
        by = f"{getpass.getuser()}@{socket.gethostname()}"
        self._write(
            made, "begin", tool=tool, arguments=dict(arguments), by=by, pid=os.getpid(), blocks=blocks
        )
        return made

    def plan(self, operation: Operation, steps: Sequence[Step]) -> None:
        """What will be done; steps that the operation had planned before stay."""
        for at in range(0, max(1, len(steps)), _TOGETHER):
            documents = [one.document() for one in steps[at : at + _TOGETHER]]
            self._write(operation, "steps", steps=documents)

    def done(self, operation: Operation, steps: Mapping[str, Mapping[str, Any]]) -> None:
        """These steps were taken; by their keys, what is to be remembered of them."""
        self._write(operation, "done", steps=dict(steps))

    def failed(self, operation: Operation, problems: Sequence[str]) -> None:
        """What went wrong in this run."""
        for at in range(0, len(problems), _TOGETHER):
            self._write(operation, "failed", problems=problems[at : at + _TOGETHER])

    def end(self, operation: Operation, outcome: str) -> None:
        """It is finished."""
        self._write(operation, "end", outcome=outcome)

    def _write(self, operation: Operation, kind: str, **content: Any) -> None:
        entry = {"entry": kind, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **content}
        self._store.append(operation.name, json.dumps(entry).encode())
        operation.take(json.loads(json.dumps(entry)))
