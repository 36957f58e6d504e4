"""Checks on the ranges of one keyspace: reversed, out of bounds, overlapping, gaps.

A gap is an error. The shards of a keyspace must follow each other without one missing from the
lowest to the highest, and a keyspace whose number of shards is fixed (`shards`: hashed keyspaces, and
those that place rows by a shard key modulo) must have all of 0 to shards - 1: a shard that no host
holds would turn rows into errors one by one, long after the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from config.node import Node
from config.topology import Host, Range, State


@dataclass
class RawRange:
    """A range as read so far: None where the document is wrong or silent."""

    node: Node
    first: int | None = None
    last: int | None = None
    master: Host | None = None
    slave: Host | None = None
    open: bool = True
    state: State = State.SERVING

    def made(self, highest: int) -> Range | None:
        """The range, or None when something needed is lacking or its bounds are wrong."""
        if self.first is None or self.last is None or self.master is None:
            return None
        if not self.first <= self.last <= highest:
            return None
        return Range(self.first, self.last, self.master, self.slave, self.open, self.state)


@dataclass(frozen=True)
class _Span:
    first: int
    last: int
    node: Node


def check_ranges(
    listed: Node, ranges: Sequence[RawRange], highest: int, shards: int | None, *, whole: bool
) -> None:
    """Note what is wrong between the ranges of `listed`.

    `highest` is the highest shard number there can be; `shards` the fixed number of shards, or None;
    `whole`: the keyspace has such a number (even if it could not be read).
    """
    if not ranges:
        if isinstance(listed.value, list | dict):
            listed.refuse("needs at least one range")
        return
    spans = [span for one in ranges if (span := _span(one, highest, shards))]
    spans.sort(key=lambda span: (span.first, span.last))
    _check_overlaps(spans)
    for first, last in [] if whole and shards is None else _gaps(spans, shards):
        listed.refuse(f"{_shards(first, last)} in no range")


def _span(one: RawRange, highest: int, shards: int | None) -> _Span | None:
    """The shards that a range means, or None when they could not be read; notes wrong bounds."""
    if one.first is None or one.last is None:
        return None
    bounds = one.node.get("range") or one.node
    text = f"[{one.first}, {one.last}]"
    first, last = sorted((one.first, one.last))
    if one.first > one.last:
        bounds.refuse(f"{text} is reversed: must be [first, last]")
    if shards is not None and last >= shards:
        bounds.refuse(f"{text} goes beyond the keyspace's {shards} shards (0 to {shards - 1})")
    elif last > highest:
        bounds.refuse(f"{text} goes beyond the highest shard number there can be, {highest}")
    return _Span(first, last, bounds)


def _check_overlaps(spans: Sequence[_Span]) -> None:
    """`spans` are sorted; each is compared with the one before it that reaches farthest."""
    reach: _Span | None = None
    for span in spans:
        if reach is not None and span.first <= reach.last:
            other = reach.node.document.place(reach.node.path)
            common = _shards(span.first, min(span.last, reach.last))
            span.node.refuse(f"{common} also in {other}")
        if reach is None or span.last > reach.last:
            reach = span


def _gaps(spans: Sequence[_Span], shards: int | None) -> list[tuple[int, int]]:
    """The runs of shards that no span holds; `spans` are sorted."""
    gaps = []
    expected = 0 if shards is not None or not spans else spans[0].first
    for span in spans:
        if span.first > expected:
            gaps.append((expected, span.first - 1))
        expected = max(expected, span.last + 1)
    if shards is not None and expected < shards:
        gaps.append((expected, shards - 1))
    return gaps


def _shards(first: int, last: int) -> str:
    return f"shard {first} is" if first == last else f"shards {first} to {last} are"
