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

Three passes, none of which stops at a problem: read the fields (here), check each keyspace's ranges
(`ranges.py`), check the fleet: what hosts and database names mean across keyspaces (`_Fleet`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from config.address import parse_address
from config.document import Document
from config.hosts import same_name
from config.layout import BUILTIN, Field, Layout, layout_problems
from config.node import Node
from config.ranges import RawRange, check_ranges
from config.schema import IDENTIFIER
from config.topology import HashName, Host, Keyspace, Range, State, Topology

MAX_SHARDS: Final = 65536

_PATTERN: Final = re.compile(r"([0-9A-Za-z_$-]*)\{shard(?::(?:d|0[0-9]{1,2}d))?\}([0-9A-Za-z_$-]*)\Z")

_SHARDED_FIELDS: Final = ("layout", "hash", "shards", "database", "ranges")
_SINGLE_FIELDS: Final = ("master", "slave", "database")
_RANGE_FIELDS: Final = ("range", "master", "slave", "open", "state")


def read_topology(
    document: Document, layouts: Mapping[str, Layout] = BUILTIN, *, whole: bool = True
) -> Topology | None:
    """The topology in `document`; None after noting problems there.

    `layouts` are those that exist beside the document's own. Not `whole`: what could be read of one that has
    problems, to check others against it.
    """
    root = Node.root(document)
    if not root.mapping(("version", "default", "layouts", "keyspaces")):
        return None
    fleet = _Fleet()
    version = root.need("version")
    number = version.integer(1) if version else None
    known = dict(layouts)
    own = root.get("layouts")
    if own:
        known |= read_layouts(own, known)
    default = root.get("default")
    master, slave = None, None
    if default and default.mapping(("master", "slave")):
        master, slave = fleet.pair(default)
    keyspaces: dict[str, Keyspace] = {}
    listed = root.get("keyspaces")
    if listed:
        for name, node in listed.items("keyspaces by name"):
            keyspace = _read_keyspace(name, node, known, fleet)
            if keyspace:
                keyspaces[name] = keyspace
    elif default is None:
        root.refuse("field 'keyspaces' is missing (or 'default', when nothing is sharded)")
    if whole and (document.problems or number is None):
        return None
    return Topology(number or 0, MappingProxyType(keyspaces), master, slave, document.digest)


def read_layouts(node: Node, taken: Mapping[str, Layout]) -> dict[str, Layout]:
    """The layouts of a `layouts` field: name to `{fields: {shard: 16, …}, epoch_ms: …}`.

    A name in `taken` may be repeated only with the same content.
    """
    made: dict[str, Layout] = {}
    for name, entry in node.items("layouts by name"):
        if not entry.mapping(("fields", "epoch_ms")):
            continue
        before = len(node.document.problems)
        epoch_node = entry.get("epoch_ms")
        epoch = epoch_node.integer(0) if epoch_node else None
        fields = []
        listed = entry.need("fields")
        for field_name, width in listed.ordered("field widths in bits") if listed else ():
            bits = width.integer(1, 63)
            if bits is not None:
                fields.append(Field(field_name, bits))
        if len(node.document.problems) > before:
            continue
        problems = layout_problems(fields, epoch)
        for problem in problems:
            entry.refuse(problem)
        if not problems:
            made[name] = Layout(name, tuple(fields), epoch)
            if taken.get(name, made[name]) != made[name]:
                entry.refuse("another layout already has this name")
    return made


def _read_keyspace(name: str, node: Node, layouts: Mapping[str, Layout], fleet: _Fleet) -> Keyspace | None:
    """One keyspace, as far as the document gives it: what is missing or wrong has been noted."""
    if not IDENTIFIER.fullmatch(name):
        node.refuse("a keyspace's name has 1 to 64 letters, digits, _ or $")
    if not isinstance(node.value, Mapping):
        node.mapping(_SHARDED_FIELDS)
        return None
    if "layout" in node.value and "hash" in node.value:
        node.refuse("has both 'layout' and 'hash': a keyspace is routed by one of them")
    if any(name in node.value for name in ("layout", "hash", "ranges", "shards")):
        keyspace = _read_sharded(name, node, layouts, fleet)
    else:
        keyspace = _read_unsharded(name, node, fleet)
    fleet.databases(node, keyspace)
    return keyspace


def _read_unsharded(name: str, node: Node, fleet: _Fleet) -> Keyspace:
    node.mapping(_SINGLE_FIELDS)
    master, slave = fleet.pair(node)
    database = node.get("database")
    text = database.text() if database else name
    if database and text and not IDENTIFIER.fullmatch(text.replace("-", "_")):
        database.refuse("a database's name has 1 to 64 letters, digits, _, $ or -")
    return Keyspace(name, master=master, slave=slave, database=text or name)


def _read_sharded(name: str, node: Node, layouts: Mapping[str, Layout], fleet: _Fleet) -> Keyspace:
    hashed = "hash" in cast("Mapping[str, object]", node.value)
    node.mapping(_SHARDED_FIELDS)
    hash_node = node.get("hash")
    hash_name = hash_node.choice(("md5", "modulo")) if hash_node else None
    layout = None if hashed else _read_layout(node, layouts)
    if hashed and hash_node is None:
        node.need("hash")
    shards_node = node.need("shards") if hashed else node.get("shards")
    limit = min(layout.max_shard + 1, MAX_SHARDS) if layout else MAX_SHARDS
    shards = shards_node.integer(1, limit) if shards_node else None
    pattern = _read_pattern(node)
    listed = node.need("ranges")
    ranges: tuple[Range, ...] = ()
    if listed:
        raw = [_read_range(entry, hashed, fleet) for entry in _entries(listed)]
        check_ranges(listed, raw, limit - 1, shards, whole=hashed or shards_node is not None)
        ranges = tuple(made for one in raw if (made := one.made(limit - 1)))
    return Keyspace(name, layout, cast("HashName | None", hash_name), shards, pattern or "", ranges)


def _read_layout(node: Node, layouts: Mapping[str, Layout]) -> Layout | None:
    found = node.get("layout")
    if found is None:
        node.refuse("field 'layout' or 'hash' is missing")
        return None
    name = found.choice(layouts)
    return layouts[name] if name else None


def _read_pattern(node: Node) -> str | None:
    """The field `database`: a name with one `{shard}` in it, so that each shard's is its own."""
    found = node.need("database")
    text = found.text() if found else None
    if found is None or text is None:
        return None
    if not _PATTERN.match(text):
        found.refuse(
            f"bad pattern {text!r}: must be letters, digits, _, $ or - around one {{shard}} or {{shard:05d}}"
        )
        return None
    if len(text.format(shard=MAX_SHARDS)) > 64:
        found.refuse(f"bad pattern {text!r}: gives names of more than 64 characters")
        return None
    return text


def _entries(listed: Node) -> list[Node]:
    """The ranges: a list, or a mapping whose keys are labels for people."""
    if isinstance(listed.value, Mapping):
        return [entry for _, entry in listed.items("ranges")]
    return list(listed.elements("ranges"))


def _read_range(node: Node, hashed: bool, fleet: _Fleet) -> RawRange:
    raw = RawRange(node)
    if not node.mapping(_RANGE_FIELDS):
        return raw
    bounds = node.need("range")
    if bounds:
        if isinstance(bounds.value, list) and len(bounds.value) == 2:
            raw.first, raw.last = (one.integer(0) for one in bounds.elements("two shard numbers"))
        else:
            bounds.refuse("must be a list of two shard numbers, [first, last]")
    raw.master, raw.slave = fleet.pair(node)
    opened = node.get("open")
    if opened:
        raw.open = opened.boolean() is not False
        if hashed and not raw.open:
            opened.refuse("a hashed keyspace uses all its shards: none can be closed")
    state = node.get("state")
    if state:
        raw.state = State(state.choice([str(one) for one in State]) or State.SERVING)
    return raw


@dataclass
class _Fleet:
    """What must hold across keyspaces: a host has one role and one spelling, a database one meaning.

    A physical database's name is an address of its own (`USE db03429`), so it must be distinct in
    the whole topology, not only on its host.
    """

    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    names: dict[bytes, Keyspace] = field(default_factory=dict)

    def pair(self, node: Node) -> tuple[Host | None, Host | None]:
        """The hosts of the fields `master` and `slave` of `node`; None where absent or wrong (noted)."""
        master_node, slave_node = node.need("master"), node.get("slave")
        master = self._host(master_node) if master_node else None
        slave = self._host(slave_node) if slave_node else None
        if slave_node and slave and master and same_name(slave) == same_name(master):
            slave_node.refuse(f"{slave} is its own master")
        else:
            self._role("master", master_node, master)
            self._role("slave", slave_node, slave)
        return master, slave

    def _host(self, node: Node) -> Host | None:
        text = node.text()
        if text is None:
            return None
        try:
            host = str(parse_address(text))
        except ValueError as error:
            node.refuse(str(error))
            return None
        spelt = self.spellings.setdefault(same_name(host), host)
        if spelt != host and not host.startswith("unix:"):
            node.refuse(f"{host} is written {spelt} before: spell a host in one way")
        return host

    def _role(self, role: str, node: Node | None, host: Host | None) -> None:
        if node is None or host is None:
            return
        place = node.document.place(node.path)
        other, first = self.roles.setdefault(same_name(host), (role, place))
        if other != role:
            node.refuse(f"{host} is a {role} here and the {other} of {first}: a host has one role")

    def databases(self, node: Node, keyspace: Keyspace) -> None:
        """Note when `keyspace` shares a physical database name with an earlier one."""
        shards = keyspace.all_shards if keyspace.pattern else ()
        for shard in (None,) if keyspace.database else shards:
            name = keyspace.database_of(shard)
            other = self.names.setdefault(name, keyspace)
            if other is not keyspace:
                place = node.get("database") or node
                place.refuse(f"its database {name.decode()} is also one of keyspace {other.name}")
                return
