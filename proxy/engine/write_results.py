"""What a write over several shards has done, told as of one: the insert id and the info text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from proxy.errors import ProxyError
from proxy.load import Load
from proxy.session.outcome import Diagnostic
from proxy.wire.packets import Err, Ok, ProtocolError, lenenc_bytes, read_lenenc_bytes
from rewriter.plans import HostStatement, Inserted


@dataclass(slots=True)
class Part:
    """A statement of it, and what became of that: `ok`, or `rows` (of RETURNING), or the error that says
    why not.
    """

    statement: HostStatement
    inserted: Inserted | None
    ok: Ok | None = None
    error: Err | ProxyError | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    answered: bool = False
    columns: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    warnings: int = 0
    loads: Sequence[Load] = ()  # of its shards


def first_id(parts: Sequence[Part]) -> tuple[int, bool]:
    """The insert id to report, composed, and whether LAST_INSERT_ID() is that from now on: a server has
    generated it, or the statement has assigned it.

    As with one MySQL: that of the first row whose id was generated, or else what LAST_INSERT_ID(id) had for
    the last row that was there, or else that of the last row, if any row was written. (A shard whose last row
    was there already, and stays as it is, does not tell.)
    Of an UPDATE it is what LAST_INSERT_ID(value) had for the last row: servers go by ascending IDs, so that
    is a row of the highest shard.
    """
    assigned = [
        (part.statement.shards, part.ok.insert_id)
        for part in parts
        if part.inserted is None and part.ok is not None and part.ok.insert_id
    ]
    if assigned:
        return max(assigned)[1], True
    made: list[tuple[Inserted, int]] = []
    generated: list[tuple[Inserted, int]] = []
    there: list[tuple[Inserted, int]] = []
    for part in parts:
        inserted, ok = part.inserted, part.ok
        if inserted is None or ok is None or not ok.insert_id:
            continue
        made.append((inserted, ok.insert_id))
        if inserted.asks and ok.affected != inserted.rows:
            there.append(made[-1])
        elif inserted.generated:
            generated.append(made[-1])
    if not made:
        return 0, False
    if generated:
        inserted, id = min(generated, key=lambda pair: pair[0].first)
    elif there:
        inserted, id = max(there, key=lambda pair: pair[0].last)
    else:
        told = dict(made)
        done = [one.inserted for one in parts if one.inserted is not None and one.ok is not None]
        inserted = max(done, key=lambda one: one.last)
        id = told.get(inserted) or inserted.given
        if not id:
            inserted, id = max(made, key=lambda pair: pair[0].last)
    return id + (inserted.id_offset or 0), bool(generated or there)


def summed_info(parts: Sequence[Part], warnings: int) -> bytes:
    """`Rows matched: 3  Changed: 2  Warnings: 0`, summed over the shards; encoded as in an OK packet."""
    totals = {"Records": 0, "Duplicates": 0} if _many_rows(parts) else {}
    for part in parts:
        if part.ok is None:
            continue
        try:
            text = read_lenenc_bytes(part.ok.info, 0)[0] if part.ok.info else None
        except ProtocolError:
            text = None  # the counts of a server that talks nonsense are not told on
        if text is None and part.inserted is not None and totals:
            # a server says nothing of a single row, and counts one in the place of another as 2
            duplicates = max(part.ok.affected - 1, 0)
            if part.inserted.ignore and not part.ok.affected:
                duplicates = 1
            text = b"Records: %d  Duplicates: %d" % (part.inserted.rows, duplicates)
        for count in (text or b"").decode("latin-1").split("  "):
            name, colon, number = count.rpartition(": ")
            if colon and number.isdigit() and name != "Warnings":
                totals[name] = totals.get(name, 0) + int(number)
    if not totals:
        return b""
    return lenenc_bytes(
        "  ".join(f"{name}: {number}" for name, number in (*totals.items(), ("Warnings", warnings))).encode()
    )


def _many_rows(parts: Sequence[Part]) -> bool:
    """Whether the client's INSERT had more than one row: then it gets their number."""
    return sum(part.inserted.rows for part in parts if part.inserted is not None) > 1
