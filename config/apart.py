"""A topology's document read in another process: ``python -m config.apart``, which the sources start.

Reading a large document takes a second or more, and a process that serves must not be held up by it: a
thread would be in the way, too, as only one runs at a time. The program gets a `Task` on its standard input
(the length of its first part, that part pickled, and the document) and writes what it found, pickled, to its
standard output. Only its parent speaks to it.

Usually it gives the document without its ranges, and those in columns (`read_ranges.Reduced`): that takes no
pydantic, which would have to be imported first. What may be wrong is then read once more, as a whole.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from config import pickling
from config.document import ConfigError, Problem, parse
from config.read_ranges import Reduced, reduced

if TYPE_CHECKING:
    from config.layout import Layout
    from config.topology import Topology


_LENGTH: Final = Struct("<Q")


@dataclass(frozen=True, slots=True)
class Task:
    """A document, called `name` in problems. `layouts`: read it as a whole, with these; None: reduce it."""

    text: bytes
    name: str
    layouts: Mapping[str, Layout] | None = None

    def parts(self) -> tuple[bytes, bytes]:
        """What to write, without a copy of the document."""
        first = pickling.dumps((self.name, self.layouts))
        return _LENGTH.pack(len(first)) + first, self.text

    @classmethod
    def read(cls, data: bytes) -> Task:
        """What was written."""
        behind = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        return cls(data[behind:], *pickling.loads(data[_LENGTH.size : behind]))


@dataclass(frozen=True, slots=True)
class Found:
    """What is in a document, or its problems; none of all that: it is to be read as a whole."""

    reduced: Reduced | None = None
    topology: Topology | None = None
    problems: tuple[Problem, ...] = ()


def found(task: Task) -> Found:
    """Do it."""
    try:
        if task.layouts is None:
            return Found(reduced(parse(task.text, task.name)))
        from config.load import load_topology  # with pydantic

        return Found(topology=load_topology(task.text, name=task.name, layouts=task.layouts))
    except ConfigError as error:
        return Found(problems=error.problems)


def main() -> None:
    """The program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the proxy ends this one
    sys.stdout.buffer.write(pickling.dumps(found(Task.read(sys.stdin.buffer.read()))))
    sys.stdout.flush()


if __name__ == "__main__":
    from config import apart  # what is pickled is of this module, not of __main__

    apart.main()
