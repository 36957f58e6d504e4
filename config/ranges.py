"""The ranges of a keyspace: which pair of hosts holds which shards, in columns.

There may be as many ranges as shards, 65,536, and another version of them comes while statements are served.
So they are kept as columns of small integers, which are compared, copied and sent to another process as
bytes; a `Range` is made of them where somebody asks for one.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, compress, repeat
from operator import eq
from typing import Any, Final, NamedTuple, Self, overload

Host = str
"""The address of one server: `name:port`, `[v6]:port` or `unix:/path`."""


Runs = tuple[tuple[int, int], ...]
"""Shards as pairs of first and last, ascending, without an overlap."""


class State(StrEnum):
    """What the shards of a range may be used for now."""

    SERVING = "serving"
    FROZEN = "frozen"
    READ_ONLY = "read_only"
    OFFLINE = "offline"


@dataclass(frozen=True)
class Range:
    """The shards `first` to `last`, both included, and the pair that holds them.

    `open`: new objects may be made there.
    """

    first: int
    last: int
    master: Host
    slave: Host | None = None
    open: bool = True
    state: State = State.SERVING


class Held(NamedTuple):
    """What one master has of a keyspace: so many shards by their state; its slaves."""

    shards: dict[State, int]
    slaves: dict[Host, None]


Fact = tuple[Host, Host | None, int]
"""Of a shard: master, slave, and the mark (see `mark`)."""

Change = tuple[int, Fact | None, Fact | None]
"""A shard, what was told of it, and what is; None: it is in no range."""

STATES: Final = tuple(State)
_MARKS: Final = {
    (state, open): number * 2 + open for number, state in enumerate(STATES) for open in (False, True)
}
_NOWHERE: Final = -1


class Ranges(Sequence[Range]):
    """Ascending by their first shard. Compares with any sequence of ranges.

    masters, slaves   the hosts that are named, in the order in which the document names them
    firsts, lasts     the shards of each range
    master_of         for each range the index of its master
    slave_of          and of its slave; -1 for none
    marks             and its state and whether it is open
    at                for each shard from 0 on the number of its range; -1 for none
    runs              the shards that exist, as pairs of first and last
    """

    __slots__ = (
        "_held", "at", "firsts", "lasts", "marks", "master_of", "masters", "runs", "slave_of", "slaves",
    )  # fmt: skip

    masters: tuple[Host, ...]
    slaves: tuple[Host, ...]
    firsts: array[int]
    lasts: array[int]
    master_of: array[int]
    slave_of: array[int]
    marks: bytes
    at: array[int]
    runs: Runs

    def __init__(
        self,
        firsts: Sequence[int],
        lasts: Sequence[int],
        masters: Sequence[Host],
        slaves: Sequence[Host | None],
        marks: Sequence[int],
    ) -> None:
        """Columns of the same length; `marks` as `mark` gives them. Where ranges overlap, which is noted by
        the reader, the one that begins last has the shard.
        """
        palette = dict.fromkeys(masters)
        self.masters = tuple(palette)
        self.slaves = tuple(dict.fromkeys(filter(None, slaves)))
        number = {host: index for index, host in enumerate(self.masters)}
        other: dict[Host | None, int] = {host: index for index, host in enumerate(self.slaves)}
        other[None] = _NOWHERE
        master_of = list(map(number.__getitem__, masters))
        slave_of = list(map(other.__getitem__, slaves))
        if any(map(int.__gt__, firsts, firsts[1:])):
            order = sorted(range(len(firsts)), key=firsts.__getitem__)
            firsts, lasts, master_of, slave_of, marks = (
                [column[index] for index in order] for column in (firsts, lasts, master_of, slave_of, marks)
            )
        self.firsts, self.lasts = array("i", firsts), array("i", lasts)
        self.master_of, self.slave_of = array("i", master_of), array("i", slave_of)
        self.marks = bytes(marks)
        self.at, self.runs = self._places()
        self._held: dict[Host, Held] | None = None

    @classmethod
    def of(cls, ranges: Iterable[Range]) -> Self:
        """These."""
        listed = list(ranges)
        return cls(
            [one.first for one in listed],
            [one.last for one in listed],
            [one.master for one in listed],
            [one.slave for one in listed],
            [mark(one.state, open=one.open) for one in listed],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        columns = {name: getattr(self, name) for name in self.__slots__ if name != "_held"}
        return _restored, (columns,)

    def _places(self) -> tuple[array[int], Runs]:
        """`at` and `runs`."""
        firsts, lasts = self.firsts.tolist(), self.lasts.tolist()
        expected = [0, *(last + 1 for last in lasts[:-1])]
        if firsts == expected[: len(firsts)]:  # the usual case
            lengths = [last - first + 1 for first, last in zip(firsts, lasts, strict=True)]
            at = array("i", chain.from_iterable(map(repeat, range(len(lengths)), lengths)))
            return at, ((0, lasts[-1]),) if lasts else ()
        at = array("i", (_NOWHERE,)) * (max(lasts) + 1)
        for number, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
            at[first : last + 1] = array("i", (number,)) * (last - first + 1)
        return at, joined(zip(firsts, lasts, strict=True))

    # --- ranges ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.firsts)

    @overload
    def __getitem__(self, index: int) -> Range: ...

    @overload
    def __getitem__(self, index: slice) -> list[Range]: ...

    def __getitem__(self, index: int | slice) -> Range | list[Range]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        slave, mark = self.slave_of[index], self.marks[index]
        return Range(
            self.firsts[index],
            self.lasts[index],
            self.masters[self.master_of[index]],
            None if slave == _NOWHERE else self.slaves[slave],
            bool(mark & 1),
            STATES[mark >> 1],
        )

    def __iter__(self) -> Iterator[Range]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash((self.masters, self.marks, self.runs))

    def __repr__(self) -> str:
        return f"Ranges({', '.join(map(repr, self[:10]))}{', …' if len(self) > 10 else ''})"

    def in_state(self, state: State) -> list[Range]:
        """Those in that state."""
        wanted = STATES.index(state)
        if not any(map(self.marks.__contains__, (wanted * 2, wanted * 2 + 1))):
            return []
        of_mark = [one >> 1 == wanted for one in range(2 * len(STATES))]
        return list(map(self.__getitem__, compress(range(len(self)), map(of_mark.__getitem__, self.marks))))

    def any_open(self) -> bool:
        """Whether new objects may be made in some range."""
        return any(one & 1 for one in set(self.marks))

    @property
    def all_serving(self) -> bool:
        """Whether all are in that state."""
        return max(self.marks, default=0) < 2

    def held(self) -> dict[Host, Held]:
        """What each master has."""
        if self._held is None:
            facts = list(zip(self.master_of, self.slave_of, self.marks, strict=True))
            made = {host: Held({}, {}) for host in self.masters}
            for (master, slave, mark), shards in Counter(map(facts.__getitem__, _existing(self.at))).items():
                one, state = made[self.masters[master]], STATES[mark >> 1]
                one.shards[state] = one.shards.get(state, 0) + shards
                if slave != _NOWHERE:
                    one.slaves[self.slaves[slave]] = None
            self._held = made
        return self._held

    def pieces(self, most: int) -> list[Range]:
        """The ranges, or at most so many pieces of several ranges each, for a picture. Such a piece is closed
        when all its ranges are, has the state that is farthest from serving, and the master and slave of all,
        or as master how many hosts they are on.
        """
        if len(self) <= most:
            return list(self)
        found = []
        size = -(-len(self) // most)
        for begin in range(0, len(self), size):
            end = min(begin + size, len(self))
            masters, slaves = set(self.master_of[begin:end]), set(self.slave_of[begin:end])
            marks = self.marks[begin:end]
            one = self[begin]
            master = one.master if len(masters) == 1 else f"{len(masters)} hosts"
            slave = one.slave if len(slaves) == 1 else None
            open = any(mark & 1 for mark in set(marks))
            found.append(Range(one.first, self.lasts[end - 1], master, slave, open, STATES[max(marks) >> 1]))
        return found

    # --- shards ------------------------------------------------------------------------------------

    def number_of(self, shard: int) -> int | None:
        """The number of the range that holds `shard`; None when none does."""
        if not 0 <= shard < len(self.at):
            return None
        number = self.at[shard]
        return None if number == _NOWHERE else number

    def shards(self) -> tuple[int, ...]:
        """Every shard that exists, ascending."""
        return tuple(chain.from_iterable(range(first, last + 1) for first, last in self.runs))

    def shards_in(self, state: State, *, closed: bool) -> tuple[int, ...]:
        """Every shard in that state, ascending; not `closed`: of open ranges only."""
        wanted = {mark(state, open=True)} | ({mark(state, open=False)} if closed else set())
        if wanted.issuperset(self.marks):
            return self.shards()
        if wanted.isdisjoint(self.marks):
            return ()
        of_range = [one in wanted for one in self.marks]
        return tuple(compress(range(len(self.at)), map([*of_range, False].__getitem__, self.at)))

    def masters_of(self) -> list[Host]:
        """The master of every shard that exists, ascending."""
        of_range = list(map(self.masters.__getitem__, self.master_of))
        found = self.at if len(self.runs) == 1 and not self.runs[0][0] else _existing(self.at)
        return list(map(of_range.__getitem__, found))

    def changed(self, old: Ranges, most: int | None = None) -> list[Change] | None:
        """The shards that only one of the two has, or of which something is different, ascending. None: they
        are in a span of more than `most` shards.
        """
        low, high = self._span(old)
        if most is not None and high - low > most:
            return None
        if low >= high:
            return []
        before, after = old._facts(low, high), self._facts(low, high)
        triples = zip(range(low, high), before, after, strict=True)
        return [(shard, one, two) for shard, one, two in triples if one != two]

    def _span(self, old: Ranges) -> tuple[int, int]:
        """The shards outside of it (second one excluded) are the same in both."""
        end = max(len(self.at), len(old.at))
        named = zip((self.masters, self.slaves), (old.masters, old.slaves), strict=True)
        if not all(all(map(str.__eq__, one, two)) for one, two in named):
            return 0, end  # the hosts have other numbers
        mine = (self.firsts, self.lasts, self.master_of, self.slave_of, self.marks)
        others = (old.firsts, old.lasts, old.master_of, old.slave_of, old.marks)
        alike = min(_alike(one, two) for one, two in zip(mine, others, strict=True))
        if alike == len(self) == len(old):
            return 0, 0
        low = self.lasts[alike - 1] + 1 if alike else 0
        backwards = [
            _alike(one[:alike - 1 if alike else None:-1], two[:alike - 1 if alike else None:-1])
            for one, two in zip(mine, others, strict=True)
        ]  # fmt: skip
        behind = min(backwards)
        if behind:
            end = self.firsts[len(self) - behind]
        return low, max(low, end)

    def _facts(self, low: int, high: int) -> list[Fact | None]:
        """What is told of each of those shards."""
        part = self.at[low:high]
        part += array("i", (_NOWHERE,)) * (high - low - len(part))
        known = [number for number in (part[0], part[-1]) if number != _NOWHERE]
        if len(known) < 2 or len(self.runs) > 1:
            known = [0, len(self) - 1]
        span = slice(known[0], known[1] + 1)  # of the ranges
        masters = map(self.masters.__getitem__, self.master_of[span])
        slaves = map((*self.slaves, None).__getitem__, self.slave_of[span])
        facts = dict(enumerate(zip(masters, slaves, self.marks[span], strict=True), span.start))
        return list(map(facts.get, part))


def outside(runs: Runs, others: Runs) -> Runs:
    """The shards of `runs` that `others` do not have."""
    found: list[tuple[int, int]] = []
    if runs == others:
        return ()
    cuts = iter(others)
    cut = next(cuts, None)
    for first, last in runs:
        while cut is not None and cut[1] < first:
            cut = next(cuts, None)
        while cut is not None and cut[0] <= last and first <= last:
            if cut[0] > first:
                found.append((first, cut[0] - 1))
            first = cut[1] + 1
            if cut[1] >= last:
                break
            cut = next(cuts, None)
        if first <= last:
            found.append((first, last))
    return tuple(found)


def joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """The same shards as runs, where they may overlap or touch, in any order."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def shown(runs: Runs) -> str:
    """These shards as a subject: `shard 7 is`, `shards 32 to 63 and 70 are`."""
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in runs]
    before = ", ".join(texts[:-1])
    listed = f"{before} and {texts[-1]}" if before else texts[-1]
    several = len(runs) > 1 or any(first != last for first, last in runs)
    return f"shards {listed} are" if several else f"shard {listed} is"


def mark(state: State, *, open: bool) -> int:
    """How `Ranges.marks` has it."""
    return _MARKS[state, open]


def unmarked(mark: int) -> tuple[State, bool]:
    """The state, and whether it is open."""
    return STATES[mark >> 1], bool(mark & 1)


def _restored(columns: dict[str, Any]) -> Ranges:
    made = Ranges.__new__(Ranges)
    for name, column in columns.items():
        setattr(made, name, column)
    made._held = None
    return made


def _existing(at: array[int]) -> Iterator[int]:
    return filter(_NOWHERE.__ne__, at)


def _alike(one: Sequence[int], two: Sequence[int]) -> int:
    """So many elements at the beginning are the same. Bytes are compared by halves, not one by one."""
    low, high = 0, min(len(one), len(two))
    if one[:high] == two[:high]:
        return high
    while high - low > 64:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    for index in range(low, high):
        if one[index] != two[index]:
            return index
    return high
