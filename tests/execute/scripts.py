"""``python -m tests.execute.scripts SEEDS [NAME]``: takes the steps of scripts in a proxy without sockets,
and prints after each a digest of all that the proxy has said, done and keeps; of the script NAME all of it.
With SHARDGATE_INTERPRETED=1 the same is done by Python alone.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b

import structlog

from proxy.compiled import CLASSES
from tests.execute.shown import all_of
from tests.execute.steps import (
    COMMENT,
    HOW,
    ITEM,
    LIST,
    LISTED,
    PIN,
    STATEMENTS,
    USERS,
    Side,
    Step,
    be,
    behind_much,
    deliver,
    execute,
    feed,
    garble,
    host,
    kill,
    leave,
    lose,
    pause,
    pin,
    repeat,
    reply,
    say,
    send,
    serve,
    tick,
    twice,
    while_written,
    wrote,
)  # fmt: skip
from tests.support.waiting import turns

FED = ["halves", "beginning", "two", "more", "number", "other", "text", "empty", "attributes"]
COUNTS = [0, 1, 2, 250, 251, 252, 65_535, 65_536, 1 << 24, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
NUMBERS = [0, 1, 7, 250, 251, 65_536, (1 << 24) - 1, 1 << 24, (1 << 36) - 1, 1 << 63, (1 << 64) - 1]
INFOS = [b"", b"Rows matched: 12  Changed: 3  Warnings: 0", b"Rows matched: x", b"Records: 2  Duplicates: 0"]
TEXTS = [
    b"SELECT data FROM pins WHERE id = ?",
    b"select ts FROM pins WHERE id = ? LIMIT 3",
    b"SELECT data FROM pins WHERE id = %d AND data = ?" % pin(1),
    b"SELECT data FROM pins WHERE id IN (?)",
    b"INSERT INTO comments (data) VALUES (?)",
    b"INSERT INTO comments (data) VALUES ('{\"pin_id\": ?}')",
    b"INSERT INTO board_has_pins (pin_id, sequence, board_id) VALUES (5, 1, ?)",
    b"UPDATE pins SET data = ? WHERE id = %d" % pin(3),
    b"SELECT a FROM legacy.items WHERE id=?",
    b"SELECT ?",
]
LITERALS = [
    b"%d" % pin(0), b"%d" % pin(3), b"7", b"0", b"-1", b"1.5", b"1e3", b"", b"a1", b"9" * 30,
    b"%d, %d" % (pin(1), pin(2)), b"1,2", b"'x'", b"''", b"'", b"'a''b'", b"'a\\'b'", b"x'41'", b"'a\0b'",
    b"'{\"pin_id\": %d}'" % pin(1), b"/* 7 */ 8", b"@'a'", b"'\xc3\xa4'", b"'" + b"y" * 2100 + b"'",
]  # fmt: skip
ENDS = [b"", b"", b"", b" ", b";", b" -- 7", b"'", b"\0"]
WITHIN = ["pause", "leave", "lose", "kill", "soon", "behind"]
KINDS = ["slow", "other", "soon", "told", "tracked", "once", "single", "gbk", "lost", "attributes", *USERS]

WARM = [step for one in (0, 3, 0, 3, 1, 2) for step in (send(0, one), deliver())]
"""Both hosts have a connection, all shards a load, and the columns are known."""
KNOWN = WARM + [step for one in (4, 6, LIST) for step in (send(0, one), deliver(), deliver())] * 2


def alone() -> Iterator[tuple[str, list[Step]]]:
    """Scripts of one subject."""
    for number, sql in enumerate(STATEMENTS):
        yield f"statement {sql[:60]!r}", [send(0, number), deliver(), deliver(), send(0, 0), deliver()]
    for how in FED:
        for one in (0, 4, COMMENT):
            yield f"fed {how} {one}", [feed(0, one, how), deliver(), deliver(), send(0, 0), deliver()]
    for what in WITHIN:
        for one in (0, COMMENT, LIST):
            yield f"{what} within {one}", [send(0, one), while_written(0, what), *[deliver()] * 4]
    for kind in KINDS:
        for one in (0, COMMENT, LIST, ITEM):
            yield f"{kind} {one}", [be(0, kind), send(0, one), *[deliver()] * 4, send(0, 0), deliver()]
    for affected in COUNTS:
        for id in NUMBERS:
            yield f"wrote {affected} {id}", [wrote(affected, id), send(0, COMMENT), deliver(), send(0, 0)]
    for info in INFOS:
        yield f"told {info!r}", [wrote(1, 9, info), send(0, COMMENT), deliver(), send(0, ITEM), deliver()]
    for size in (1, 4, 40, 50, 99, 100, 104, 110, 128):
        yield f"in pieces of {size}", [send(0, LIST), *[deliver(0, size)] * 300, send(0, 0), deliver(0, size)]
    for place in (3, 4, 5, 7, -1, -2, -5, -9):
        for byte in (-1, 0, 1, 2, 10, 0x31, 0xFB, 0xFE):
            for one in (0, ITEM):
                steps = [send(0, one), garble(0, place, byte, b"\0" * (byte == 1)), deliver(), deliver()]
                yield f"byte {byte} at {place} of {one}", [*steps, send(0, 0), deliver()]
    for rows, warnings, error in ((0, 0, False), (3, 1, False), (1, 0, True), (300, 2, False)):
        for one in (0, LIST, ITEM):
            told = [reply(rows, warnings, error), send(0, one), deliver(), reply(), *[deliver()] * 4]
            yield f"{rows} rows, {warnings} warnings, {error} {one}", told
    begin, commit, off = send(0, 11), send(0, 12), send(0, 14)
    for one in (0, 8, COMMENT, LIST, ITEM):
        within = [begin, send(0, one), *[deliver()] * 3, send(0, one), *[deliver()] * 3, commit, deliver()]
        yield f"transaction {one}", within
        yield f"autocommit off {one}", [off, send(0, one), *[deliver()] * 3, commit, deliver()]
        yield f"lost in a transaction {one}", [*within[:6], lose(0), send(0, 0), send(0, 13), send(0, 0)]
    crowded = [send(0, 0), send(1, 1), send(2, 0), deliver(2), deliver(), deliver()]
    yield "crowded", crowded
    yield "slow", [pause(0, True), send(0, 0), deliver(), pause(0, False), deliver()]
    yield "settings", [send(0, 16), send(0, 0), *[deliver()] * 3]
    yield "frozen", [serve(False), send(0, 0), deliver(), serve(True), send(0, 0), deliver()]
    yield "behind much", [behind_much(), send(0, 0), deliver()]
    for which in range(4):
        for how in HOW:
            again = [step for shard in (0, 3, 1) for step in (repeat(0, which, pin(shard)), deliver())]
            yield f"prepared {which} {how}", [*again * 2, repeat(0, which, pin(2), how=how), deliver()]


def any_step(chance: random.Random) -> Step:
    """One of all, plain ones more often."""
    client, server = chance.randrange(3), chance.randrange(4)
    pick = chance.choice
    made: list[Callable[[], Step]] = [
        lambda: send(client, chance.randrange(7)),
        lambda: send(client, pick([LISTED, COMMENT, PIN, ITEM, ITEM + 1, LIST, 11, 12])),
        lambda: send(client, chance.randrange(len(STATEMENTS))),
        lambda: deliver(server),
        lambda: deliver(server),
        lambda: deliver(server),
        lambda: deliver(server, chance.randrange(1, 400), chance.random() < 0.5),
        lambda: (say if chance.random() < 0.5 else twice)(
            client, pick(TEXTS).replace(b"?", pick(LITERALS)) + pick(ENDS)
        ),
        lambda: reply(chance.randrange(4), chance.randrange(2), chance.random() < 0.3),
        lambda: wrote(pick(COUNTS), pick(NUMBERS), pick(INFOS)),
        lambda: pause(client, chance.random() < 0.5),
        lambda: leave(client) if chance.random() < 0.3 else kill(client),
        lambda: lose(server),
        lambda: garble(
            server, chance.randrange(-12, 400), chance.randrange(-1, 256), pick([b"", b"", b"\0"])
        ),
        lambda: while_written(client, pick(WITHIN)),
        lambda: host(chance.randrange(2), pick(["renew", "retire", "changed"])),
        lambda: be(client, pick(KINDS)) if chance.random() < 0.3 else tick(),
        lambda: feed(client, chance.randrange(7), pick(FED)),
        lambda: serve(chance.random() < 0.7),
        lambda: execute(client, chance.randrange(7)),
        lambda: repeat(client, chance.randrange(4), pin(chance.randrange(4)), 7, how=pick(HOW)),
    ]
    return pick(made)()


def mixed(seeds: range) -> Iterator[tuple[str, list[Step]]]:
    """Scripts of anything."""
    for seed in seeds:
        chance = random.Random(seed)
        yield f"seed {seed}", [any_step(chance) for _ in range(chance.randrange(5, 40))]


async def play(steps: list[Step]) -> list[str]:
    """What there is after each step, and the error with which one has ended."""
    side = Side(3)
    found: list[str] = []
    for number, step in enumerate(steps):
        random.seed(number)  # shards of new objects
        step(side)
        await side.world.turn()
        await turns(3)
        found.append(repr(all_of(side)))
    for task in side.world.tasks:
        task.cancel()
    await asyncio.gather(*side.world.tasks, return_exceptions=True)
    return found


def main(seeds: str, name: str = "") -> None:
    """Print the name of each script, a line for each step."""
    print("compiled" if CLASSES else "interpreted")
    for title, steps in (*alone(), *mixed(range(int(seeds)))):
        if name in ("", title):
            for number, told in enumerate(asyncio.run(play(KNOWN + steps))[len(KNOWN) :]):
                shown = told if name else blake2b(told.encode(), digest_size=8).hexdigest()
                print(title, number, shown, sep="\t")


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main(*sys.argv[1:])
