"""``python -m bench.merging``: the CPU time of merging sorted results, in one process and without servers.

Eight servers' replies are made beforehand and cut as a socket would give them. Each goes through what a row
meets in the proxy between the two sockets: the scanner that finds the reply's end, the reader that takes the
rows out of it, the merge, and the bytes as they are handed to the client's transport. What the kernel takes
for reading and writing comes on top; `bench.streams` measures that, with servers.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from proxy.execute.fan.merge import Merger, make_merger
from proxy.wire import row_packets
from proxy.wire.constants import BINARY_COLLATION, UTF8MB4_GENERAL_CI, ColumnType
from proxy.wire.packets import eof_packet, frame
from proxy.wire.replies import ReplyScanner
from proxy.wire.resultset import Column, decode_column, encode_row, header_packets
from proxy.wire.rows import ResultReader
from rewriter.plans import Merge, SortKey

AIM: Final = 300_000
"""Rows a second of one core."""
COLLATION: Final = b"utf8mb4_general_ci"
PADS: Final = {COLLATION: b"\0 "}
_WORDS: Final = ("apple", "Birch", "cedar", "Dogwood", "elm", "Fir", "ginkgo", "Hazel", "ivy", "Juniper")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)

Value = int | bytes | None
Row = tuple[Value, ...]


def _column(name: str, kind: ColumnType, collation: int = BINARY_COLLATION) -> Column:
    return Column(name.encode(), kind, collation)


NUMBER: Final = _column("number", ColumnType.LONGLONG)
MOMENT: Final = _column("moment", ColumnType.TIMESTAMP)
SEQUENCE: Final = _column("sequence", ColumnType.NEWDECIMAL)
NAME: Final = _column("name", ColumnType.VAR_STRING, UTF8MB4_GENERAL_CI)
DATA: Final = _column("data", ColumnType.BLOB, UTF8MB4_GENERAL_CI)
HIDDEN: Final = [_column("weight", ColumnType.VAR_STRING), _column("collation", ColumnType.VAR_STRING)]


@dataclass(frozen=True)
class Case:
    """One ORDER BY: the columns, a row of a run, how servers sort them, and what the merge is asked for."""

    name: str
    columns: Sequence[Column]
    row: Callable[[random.Random, int], Row]
    order: Callable[[Row], object]
    merge: Merge


def _data(chance: random.Random) -> bytes:
    name = f"Jane Doe {chance.randrange(10**5)}"
    return f'{{"name": "{name}", "email": "jane.{chance.randrange(10**6)}@example.com"}}'.encode()


def _moment(chance: random.Random) -> bytes:
    return f"2026-11-{chance.randrange(1, 31):02d} {chance.randrange(24):02d}:00:00".encode()


def _number(chance: random.Random, run: int) -> Row:
    return chance.randrange(1 << 62), _data(chance), _moment(chance)


def _by_shard(chance: random.Random, run: int) -> Row:
    """IDs have their shard above the rest, so one server's may all be below another's."""
    return (run << 56) + chance.randrange(1 << 50), _data(chance), _moment(chance)


def _name(chance: random.Random, run: int) -> Row:
    name = f"{chance.choice(_WORDS)} {chance.choice(_WORDS)} {chance.randrange(1000)}"
    weight = name.upper().encode("utf-16-be")
    return name.encode(), _data(chance), _moment(chance), weight, COLLATION


def _sequence(chance: random.Random, run: int) -> Row:
    sequence = None if not chance.randrange(20) else chance.randrange(10**37, 10**38)
    return sequence, _data(chance), _moment(chance)


def _negative(value: Value) -> int:
    assert not isinstance(value, bytes)
    return 1 if value is None else -value


CASES: Final = (
    Case(
        "integer",
        [NUMBER, DATA, MOMENT],
        _number,
        lambda row: row[0],
        Merge((SortKey(0, False, None),)),
    ),
    Case(
        "id, a shard behind the other",
        [NUMBER, DATA, MOMENT],
        _by_shard,
        lambda row: row[0],
        Merge((SortKey(0, False, None),)),
    ),
    Case(
        "moment, integer DESC",
        [NUMBER, DATA, MOMENT],
        _number,
        lambda row: (row[2], _negative(row[0])),
        Merge((SortKey(2, False, None), SortKey(0, True, None))),
    ),
    Case(
        "text",
        [NAME, DATA, MOMENT, *HIDDEN],
        _name,
        lambda row: row[3],
        Merge((SortKey(0, False, -2, -1),), hidden=2),
    ),
    Case(
        "decimal DESC with NULLs, LIMIT and OFFSET",
        [SEQUENCE, DATA, MOMENT],
        _sequence,
        lambda row: _negative(row[0]),
        Merge((SortKey(0, True, None),), limit=1 << 40, offset=1000),
    ),
)


def reply(case: Case, run: int, rows: int) -> bytes:
    """What one server answers."""
    chance = random.Random(run)
    found = sorted((case.row(chance, run) for _ in range(rows)), key=case.order)  # type: ignore[arg-type]
    head, seq = header_packets([column.encode() for column in case.columns], 2, extended=False)
    packets = [frame(encode_row(row), (seq + number) & 0xFF) for number, row in enumerate(found)]
    return b"".join([head, *packets, eof_packet((seq + rows) & 0xFF, 2)])


def pieces(whole: bytes, size: int) -> list[bytes]:
    """The bytes as they come, cut at ends of packets: the connection holds what is not whole."""
    found, start, pos = [], 0, 0
    while pos < len(whole):
        pos += 4 + int.from_bytes(whole[pos : pos + 3], "little")
        if pos - start >= size:
            found.append(whole[start:pos])
            start = pos
    return [*found, whole[start:]]


def _rest(merger: Merger) -> int:
    """The bytes that come in further turns of the loop."""
    size = 0
    while merger.pending:
        size += len(merger.more())
    return size


def merge(case: Case, streams: Sequence[Sequence[bytes]]) -> tuple[float, int, int]:
    """Merge the replies once: seconds of CPU, rows, bytes for the client."""
    columns = list(case.columns)
    readers = [(ReplyScanner(1), ResultReader()) for _ in streams]
    waiting = [iter(stream) for stream in streams]
    left = set(range(len(streams)))
    merger, size = None, 0
    begun = time.process_time()
    while left:
        for run in sorted(left):
            if merger is not None and merger.full(run):
                continue
            data = next(waiting[run])
            scanner, reader = readers[run]
            end = scanner.feed(data)
            block = reader.feed(data, scanner.ending)
            if merger is None:
                columns = [decode_column(payload) for payload in reader.columns]
                merger = make_merger(case.merge, columns, len(streams), 1, PADS)
            size += len(merger.rows(run, block)) if block else 0
            size += _rest(merger)
            if end >= 0:
                left.discard(run)
                size += len(merger.ended(run)) + _rest(merger)
    used = time.process_time() - begun
    assert merger is not None
    return used, merger.found, size


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows in all.")] = 200_000,
    runs: Annotated[int, typer.Option(min=1, help="Sorted results that are merged.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="How often; the best one counts.")] = 5,
    block: Annotated[int, typer.Option(min=1, help="Bytes that come from a server at once.")] = 1 << 16,
    only: Annotated[str, typer.Option(help="Cases whose name has this in it.")] = "",
    python: Annotated[bool, typer.Option("--python", help="Without the compiled loops.")] = False,
) -> None:
    """Merge sorted results, and see what a row costs."""
    if python:
        for loop in row_packets.PYTHON:
            setattr(row_packets, loop.__name__, loop)
    gc.freeze()  # as the proxy does when it has started
    gc.set_threshold(20_000, 20, 20)
    shown = Table(title=f"{rows:,} rows from {runs} servers (aim: {AIM:,} a second)", title_justify="left")
    for name in ("ORDER BY", "µs a row", "rows a second", "bytes a row"):
        shown.add_column(name, justify="left" if name == "ORDER BY" else "right")
    for case in (case for case in CASES if only in case.name):
        streams = [pieces(reply(case, run, rows // runs), block) for run in range(runs)]
        found = [merge(case, streams) for _ in range(rounds)]
        (used, count, size) = min(found)
        assert count == rows // runs * runs, f"{count} rows"
        shown.add_row(case.name, f"{used * 1e6 / count:.2f}", f"{count / used:,.0f}", f"{size / count:.0f}")
    console.print(shown)
    console.print(
        f"the loops over rows are {'compiled' if row_packets.COMPILED and not python else 'in Python'}"
    )


if __name__ == "__main__":
    app()
