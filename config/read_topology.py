"""The topology document to a `Topology`, validated whole.

    version: 7
    default: {master: "MySQL001A:3306", slave: "MySQL001B:3306"}
    layouts: {...}                                  # further ID layouts, see layout.py
    keyspaces:
      main:
        layout: pinterest
        database: "db{shard:05d}"
        ranges:
          - {range: [0, 511], master: "MySQL001A:3306", slave: "MySQL001B:3306", open: true}
      lookup: {hash: md5, shards: 4096, database: "msdb{shard:05d}", ranges: [...]}
      global: {master: "MySQL001A:3306", slave: "MySQL001B:3306"}
    dropped_shards: {main: [[512, 767]]}            # shards that were given up, see checks.lacking_problems
    dropped_keyspaces: [old_shop]                   # unsharded keyspaces that were given up
    dropped_default: true                           # the default host was given up

Three passes, none of which stops at a problem: the fields by themselves (the models below),
each keyspace and its ranges, and the fleet: what hosts and database names mean
across keyspaces (`_Fleet`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Strict, Tag

from config.address import spelt
from config.document import Document, Path, Spot, from_value
from config.fields import LayoutSettings, Members, Text, check_name, like
from config.hosts import same_name
from config.layout import BUILTIN, Layout
from config.ranges import Runs, joined, outside, shown
from config.read_ranges import Bulk, Reduced, reduced
from config.reserved import reserved
from config.topology import HashName, Host, Keyspace, Range, State, Topology
from config.validation import Part, validated

MAX_SHARDS: Final = 65536

_PATTERN: Final = re.compile(r"([0-9A-Za-z_$-]*)\{shard(?::(?:d|0[0-9]{1,2}d))?\}([0-9A-Za-z_$-]*)\Z")


# --- the fields by themselves --------------------------------------------------------------------


def _pattern(text: str) -> str:
    """A name with one `{shard}` in it, so that each shard's is its own."""
    if not _PATTERN.match(text):
        allowed = "letters, digits, _, $ or - around one {shard} or {shard:05d}"
        raise ValueError(f"bad pattern {text!r}: must be {allowed}")
    if len(text.format(shard=MAX_SHARDS)) > 64:
        raise ValueError(f"bad pattern {text!r}: gives names of more than 64 characters")
    return text


def _two(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2:
        return tuple(value)
    raise ValueError("must be a list of two shard numbers, [first, last]")


_Host = Annotated[Text, AfterValidator(spelt)]
_Shard = Annotated[int, Field(ge=0)]
_Bounds = Annotated[tuple[_Shard, _Shard], BeforeValidator(_two)]
_DatabaseName = Annotated[
    Text, like(r"[0-9A-Za-z_$-]{1,64}", "a database's name has 1 to 64 letters, digits, _, $ or -")
]


class Pair(Part):
    """The hosts of a range, of an unsharded keyspace or of what the schema does not name."""

    master: _Host | None
    slave: _Host | None = None


class RangeFields(Pair):
    """The shards `range[0]` to `range[1]`, and where they are."""

    range: _Bounds | None
    open: bool = True
    state: Annotated[State, Strict(False)] = State.SERVING


class Sharded(Part):
    """A keyspace of shards. One of `layout` and `hash` is needed."""

    layout: Text | None = None
    hash: HashName | None = None
    shards: Annotated[int, Field(ge=1)] | None = None
    database: Annotated[Text, AfterValidator(_pattern)] | None
    ranges: Annotated[Members[RangeFields] | None, Field(description="ranges")]


class Unsharded(Pair):
    """A keyspace of one database."""

    database: _DatabaseName | None = None


def _kind(value: Any) -> Literal["Sharded", "Unsharded"]:
    whole = isinstance(value, dict) and value.keys().isdisjoint(("layout", "hash", "ranges", "shards"))
    return "Unsharded" if whole else "Sharded"


_Keyspace = Annotated[
    Annotated[Sharded, Tag("Sharded")] | Annotated[Unsharded, Tag("Unsharded")], Discriminator(_kind)
]


class TopologyFields(Part):
    """The whole document."""

    version: Annotated[int, Field(ge=1)] | None
    default: Pair | None = None
    layouts: Annotated[dict[str, LayoutSettings] | None, Field(description="layouts by name")] = None
    keyspaces: Annotated[dict[str, _Keyspace] | None, Field(description="keyspaces by name")] = None
    dropped_shards: Annotated[
        dict[str, list[_Bounds]] | None, Field(description="lists of [first, last] by keyspace")
    ] = None
    dropped_keyspaces: list[Text] | None = None
    dropped_default: bool = False


# --- what they mean together ---------------------------------------------------------------------


def read_topology(
    document: Document, layouts: Mapping[str, Layout] = BUILTIN, *, whole: bool = True
) -> Topology | None:
    """The topology in `document`; None after noting problems there.

    `layouts` are those that exist beside the document's own, which may repeat one. Not `whole`: what could be
    read of one that has problems, to check others against it.
    """
    found = reduced(document)
    made = None if found is None else read_reduced(found, layouts)
    return made or _read(document, layouts, {}, whole=whole)


def read_reduced(found: Reduced, layouts: Mapping[str, Layout]) -> Topology | None:
    """What `read_topology` gives of the whole document, if nothing is wrong there; None: ask that."""
    made = _read(from_value(found.value), layouts, found.bulks)
    return None if made is None else replace(made, digest=found.digest)


def _read(
    document: Document, layouts: Mapping[str, Layout], bulks: Mapping[str, Bulk], *, whole: bool = True
) -> Topology | None:
    """`bulks`: the ranges that have been read, of which the document has one only. None after noting
    problems.
    """
    fields = validated(TopologyFields, document)
    if fields is None:
        return None
    fleet = _Fleet(document)
    own = {name: entry.made(name) for name, entry in (fields.layouts or {}).items()}
    for name, layout in own.items():
        if layouts.get(name, layout) != layout:
            document.refuse(("layouts", name), "another layout already has this name")
    default = fields.default
    if default is not None:
        fleet.pair(("default",), default)
    keyspaces: dict[str, Keyspace] = {}
    for name, spot in Spot(document, ("keyspaces",)).entries():
        check_name(spot, "keyspace")
        path, entry = spot.path, (fields.keyspaces or {}).get(name)
        if entry is None:
            continue
        if isinstance(entry, Unsharded):
            fleet.pair(path, entry)
            database = entry.database or name
            made = Keyspace(name, master=entry.master, slave=entry.slave, database=database)
        else:
            made = _read_sharded(name, entry, document, {**layouts, **own}, fleet, bulks.get(name))
        fleet.databases(path, made)
        keyspaces[name] = made
    if document.at(("keyspaces",)) is None and document.at(("default",)) is None:
        document.refuse((), "field 'keyspaces' is missing (or 'default', when nothing is sharded)")
    dropped = _read_dropped(fields, keyspaces, document)
    _read_given_up(fields, keyspaces, document)
    if whole and document.problems:
        return None
    master, slave = (default.master, default.slave) if default else (None, None)
    made_of = MappingProxyType(keyspaces)
    given_up = tuple(fields.dropped_keyspaces or ())
    return Topology(
        fields.version or 0,
        made_of,
        master,
        slave,
        document.digest,
        dropped,
        given_up,
        fields.dropped_default,
    )


def _read_given_up(fields: TopologyFields, keyspaces: Mapping[str, Keyspace], document: Document) -> None:
    """Refuse what is listed as given up and is there."""
    for number, name in enumerate(fields.dropped_keyspaces or ()):
        if name in keyspaces:
            document.refuse(("dropped_keyspaces", number), f"{name} is also a keyspace: remove the entry")
    if fields.dropped_default and fields.default is not None:
        document.refuse(("dropped_default",), "there is a default host: remove the entry")


def _read_dropped(
    fields: TopologyFields, keyspaces: Mapping[str, Keyspace], document: Document
) -> dict[str, Runs]:
    """The shards that were given up, by keyspace. Such a shard is in no range: one that came back is listed
    no longer, so that nothing lets it vanish a second time.
    """
    found: dict[str, Runs] = {}
    for name, listed in (fields.dropped_shards or {}).items():
        for number, (first, last) in enumerate(listed):
            path: Path = ("dropped_shards", name, number)
            if first > last:
                document.refuse(path, f"[{first}, {last}] is reversed: must be [first, last]")
                continue
            keyspace = keyspaces.get(name)
            held = keyspace.columns.runs if keyspace is not None and keyspace.sharded else ()
            both = outside(((first, last),), outside(((first, last),), held))
            if both:
                document.refuse(path, f"{shown(both)} also in the keyspace's ranges: remove the entry")
            found[name] = joined((*found.get(name, ()), (first, last)))
    return found


def _read_sharded(
    name: str,
    fields: Sharded,
    document: Document,
    layouts: Mapping[str, Layout],
    fleet: _Fleet,
    bulk: Bulk | None,
) -> Keyspace:
    """One keyspace, as far as the document gives it: what is missing or wrong has been noted."""
    path: Path = ("keyspaces", name)
    raw = document.at(path)
    hashed = raw.get("hash") is not None
    if "layout" in raw and "hash" in raw:
        document.refuse(path, "has both 'layout' and 'hash': a keyspace is routed by one of them")
    elif not hashed and raw.get("layout") is None:
        document.refuse(path, "field 'layout' or 'hash' is missing")
    layout = None if hashed else layouts.get(fields.layout or "")
    if layout is None and fields.layout and not hashed:
        message = f"must be one of {', '.join(layouts)}, not the text {fields.layout[:40]!r}"
        document.refuse((*path, "layout"), message)
    if hashed and raw.get("shards") is None:
        document.refuse(path, "field 'shards' is missing")
    limit = min(layout.max_shard + 1, MAX_SHARDS) if layout else MAX_SHARDS
    shards = fields.shards
    if shards is not None and shards > limit:
        document.refuse((*path, "shards"), f"is {shards}: must be 1 to {limit}")
        shards = None
    made: Sequence[Range]
    if bulk is not None:
        for master, slave in bulk.pairs:
            fleet.pair((*path, "ranges"), Pair.model_construct(master=master, slave=slave))
        if not bulk.fits(limit, shards) or (hashed and bulk.closed):
            document.refuse((*path, "ranges"), "are not right")
        made = bulk.ranges
    else:
        made = _read_ranges(path, raw, fields, document, fleet, limit, shards, hashed=hashed)
    return Keyspace(name, layout, None if layout else fields.hash, shards, fields.database or "", made)


def _read_ranges(
    path: Path,
    raw: Mapping[str, Any],
    fields: Sharded,
    document: Document,
    fleet: _Fleet,
    limit: int,
    shards: int | None,
    *,
    hashed: bool,
) -> tuple[Range, ...]:
    """The ranges of a keyspace, `raw` in the document, as far as they are right."""
    listed = fields.ranges or []
    entries = listed.items() if isinstance(listed, dict) else enumerate(listed)
    ranges = [((*path, "ranges", key), one) for key, one in entries]
    for place, one in ranges:
        fleet.pair(place, one)
        if hashed and not one.open:
            message = "a hashed keyspace uses all its shards: none can be closed"
            document.refuse((*place, "open"), message)
    if raw.get("ranges") in ([], {}):
        document.refuse((*path, "ranges"), "needs at least one range")
    elif ranges:
        spans = [(place, one.range) for place, one in ranges]
        whole = hashed or raw.get("shards") is not None
        _check_ranges(document, (*path, "ranges"), spans, limit - 1, shards, whole=whole)
    return tuple(
        Range(*one.range, one.master, one.slave, one.open, one.state)
        for _, one in ranges
        if one.range and one.master and one.range[0] <= one.range[1] < limit
    )


@dataclass
class _Fleet:
    """What must hold across keyspaces: a host has one role and one spelling, a database one meaning.

    A physical database's name is an address of its own (`USE db03429`), so it must be distinct in
    the whole topology, not only on its host.
    """

    document: Document
    roles: dict[str, tuple[str, Path]] = field(default_factory=dict)
    spellings: dict[str, Host] = field(default_factory=dict)
    keyspaces: list[Keyspace] = field(default_factory=list)

    def pair(self, path: Path, hosts: Pair) -> None:
        """Note what is wrong with the hosts at `path`."""
        master, slave = hosts.master, hosts.slave
        if slave and master and same_name(slave) == same_name(master):
            self.document.refuse((*path, "slave"), f"{slave} is its own master")
            slave = None
        self._host(path, "master", master)
        self._host(path, "slave", slave)

    def _host(self, path: Path, role: str, host: Host | None) -> None:
        if host is None:
            return
        name = same_name(host)
        spelt = self.spellings.setdefault(name, host)
        if spelt != host and not host.startswith("unix:"):
            message = f"{host} is written {spelt} before: spell a host in one way"
            self.document.refuse((*path, role), message)
        other, first = self.roles.setdefault(name, (role, path))
        if other != role:
            place = self.document.place((*first, other))
            message = f"{host} is a {role} here and the {other} of {place}: a host has one role"
            self.document.refuse((*path, role), message)

    def databases(self, path: Path, keyspace: Keyspace) -> None:
        """Note when `keyspace` shares a physical database name with an earlier one, or with what is not for
        tables of users: a shard's, which has a number in it, is none of these.
        """
        whose = reserved(keyspace.database)
        if whose is not None:
            given = "database" in self.document.at(path)
            place = (*path, "database") if given else path
            remedy = "give the keyspace another"
            if not given:
                remedy = "without `database` a keyspace's is named like itself, so name another"
            self.document.refuse(place, f"{keyspace.database} is {whose}: {remedy}")
        owners: dict[bytes, Keyspace] = {}
        for other in self.keyspaces:
            if not _apart(other, keyspace):
                owners |= dict.fromkeys(_databases(other), other)
        name = next((one for one in _databases(keyspace) if one in owners), None) if owners else None
        if name is not None:
            place = (*path, "database") if "database" in self.document.at(path) else path
            message = f"its database {name.decode()} is also one of keyspace {owners[name].name}"
            self.document.refuse(place, message)
        self.keyspaces.append(keyspace)


def _databases(keyspace: Keyspace) -> Iterable[bytes]:
    if keyspace.database:
        return [keyspace.database_of(None)]
    return map(keyspace.named, keyspace.all_shards) if keyspace.pattern else []


def _apart(one: Keyspace, other: Keyspace) -> bool:
    """Whether their patterns alone say that no database is of both: what is before the numbers, or behind."""
    if one.database or other.database or not one.pattern or not other.pattern:
        return False
    before, behind = zip(*(re.split(r"\{.*\}", keyspace.pattern) for keyspace in (one, other)), strict=True)
    return not (before[0].startswith(before[1]) or before[1].startswith(before[0])) or not (
        behind[0].endswith(behind[1]) or behind[1].endswith(behind[0])
    )


# --- how the ranges of a keyspace must lie -------------------------------------------------------
#
# They may be given in any order, but together must be each shard exactly once: a shard in two ranges would
# have two masters, and one in none would turn rows into errors one by one, long after the mistake.


class _Span(NamedTuple):
    first: int
    last: int
    path: Path


def _check_ranges(
    document: Document,
    path: Path,
    ranges: Sequence[tuple[Path, tuple[int, int] | None]],
    highest: int,
    shards: int | None,
    *,
    whole: bool,
) -> None:
    """Note what is wrong between the ranges at `path`: their places and bounds (None: wrong themselves).

    `highest` is the highest shard number there can be; `shards` the fixed number of shards, or None;
    `whole`: the keyspace has such a number (even if it could not be read).
    """
    spans = [_span(document, (*place, "range"), *two, highest, shards) for place, two in ranges if two]
    spans.sort(key=lambda span: span[:2])
    _check_overlaps(document, spans)
    for first, last in [] if whole and shards is None else _gaps(spans, shards):
        document.refuse(path, f"{shown(((first, last),))} in no range")


def _span(document: Document, path: Path, first: int, last: int, highest: int, shards: int | None) -> _Span:
    """The shards that a range means; notes wrong bounds."""
    text = f"[{first}, {last}]"
    if first > last:
        document.refuse(path, f"{text} is reversed: must be [first, last]")
        first, last = last, first
    if shards is not None and last >= shards:
        document.refuse(path, f"{text} goes beyond the keyspace's {shards} shards (0 to {shards - 1})")
    elif last > highest:
        document.refuse(path, f"{text} goes beyond the highest shard number there can be, {highest}")
    return _Span(first, last, path)


def _check_overlaps(document: Document, spans: Iterable[_Span]) -> None:
    """`spans` are sorted; each is compared with the one before it that reaches farthest."""
    reach: _Span | None = None
    for span in spans:
        if reach is not None and span.first <= reach.last:
            common = shown(((span.first, min(span.last, reach.last)),))
            document.refuse(span.path, f"{common} also in {document.place(reach.path)}")
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
