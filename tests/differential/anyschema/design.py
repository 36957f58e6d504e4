"""A random schema with its topology and rows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from config.load import load_schema, load_topology
from config.schema import Kind, quote
from config.topology import Host
from tests.differential.anyschema import columns
from tests.differential.anyschema.columns import Type
from tests.differential.anyschema.places import AnyWorld, Bits, Column, Model, cut
from tests.differential.catalog import Row, Value, literal

TABLE_NAMES = ("users", "pins", "Order", "select", "group", "t$1", "Key", "boards", "user_pins", "row", "date", "T",
               "left", "values", "x1", "Tag_s", "index", "things", "_p", "match")  # fmt: skip
COLUMN_NAMES = ("n", "value", "order", "Desc", "key", "name", "state", "count", "sum", "ts", "from", "to", "rank",
                "year", "Status", "a", "b", "c", "title", "local", "type", "limit", "user", "v$", "body", "price",
                "interval", "shard", "rows", "mode")  # fmt: skip
ID = Type("BIGINT UNSIGNED", "n", ())
OBJECT_TS = "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"


def design(
    seed: int, hosts: Sequence[Host], *, mysql: bool, scale: float = 1.0, rounded: float = 0.0
) -> AnyWorld:
    """The world of a seed on these hosts, or on some of them. `rounded`: the share of columns whose text has
    fewer digits than their values.
    """
    return _Designer(random.Random(f"schema {seed}"), hosts, mysql, scale, rounded).make()


class _Designer:
    def __init__(
        self, rng: random.Random, hosts: Sequence[Host], mysql: bool, scale: float, rounded: float
    ) -> None:
        self.rng = rng
        self.rounded = rounded
        self.hosts = list(hosts[: rng.choice((1, *(len(hosts),) * 3))])
        self.mysql = mysql
        self.scale = scale
        self.models: dict[str, Model] = {}
        self.documents: dict[str, Any] = {}
        self.keyspaces: dict[str, Any] = {}
        self.layouts: dict[str, Bits] = {}
        self.shards: dict[str, list[int]] = {}
        self.own: dict[str, Any] = {}
        self.names = rng.sample(TABLE_NAMES, len(TABLE_NAMES))
        self.rows: dict[str, list[Row]] = {}
        self.refers: dict[str, list[int]] = {}

    def make(self) -> AnyWorld:
        rng = self.rng
        self._keyspaces()
        for number in rng.sample(range(1, 16), rng.choice((1, 2, 2, 3))):
            self._object(number)
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mapping()
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._hashed()
        for _ in range(rng.choice((0, 1, 1))):
            self._timed()
        for kind in [Kind.SINGLE] * rng.choice((0, 1)) + [Kind.REFERENCE] * rng.choice((0, 1, 1)):
            self._unsharded(kind)
        database = rng.choice(("shop", "Order", "db", "main", "t", "a$b", "1st"))
        document = {"databases": {database: {"tables": self.documents}}}
        schema = load_schema(document)
        topology_document = {
            "version": 1, "default": {"master": self.hosts[-1]}, "keyspaces": self.keyspaces,
            **({"layouts": self.own} if self.own else {}),
        }  # fmt: skip
        topology = load_topology(topology_document, schema=schema)
        documents = {"schema.yaml": document, "topology.json": topology_document}
        return AnyWorld(
            database, schema, topology, self.rows, documents, layouts=self.layouts, models=self.models,
            shards=self.shards,
        )  # fmt: skip

    # --- keyspaces -------------------------------------------------------------------------------

    def _ranges(self, first: int, count: int) -> list[dict[str, Any]]:
        """Contiguous ranges; a host may have several."""
        pieces = self.rng.choice((len(self.hosts), len(self.hosts), 2 * len(self.hosts), 3))
        cuts = sorted({0, count, *(count * one // pieces for one in range(1, pieces))})
        hosts = self.hosts if self.rng.random() < 0.7 else self.hosts[::-1]
        return [
            {"range": [first + low, first + high - 1], "master": hosts[index % len(hosts)]}
            for index, (low, high) in enumerate(itertools.pairwise(cuts))
        ]

    def _keyspace(self, name: str, count: int, first: int = 0, **more: Any) -> None:
        pattern = self.rng.choice(("{shard:05d}", "{shard}", "_{shard:02d}_x"))
        self.keyspaces[name] = {
            "database": f"q{name}{pattern}", "ranges": self._ranges(first, count), **more,
        }  # fmt: skip
        self.shards[name] = list(range(first, first + count))

    def _keyspaces(self) -> None:
        rng = self.rng
        for name in rng.choice((("main",), ("main",), ("main", "second"))):
            layout = rng.choice(("pinterest", "pinterest", "own"))
            fields = {"reserved": 2, "shard": 16, "type": 10, "local": 36}
            if layout == "own":
                layout, fields = name + "_layout", self._local_fields()
                self.own[layout] = {"fields": [{one: width} for one, width in fields.items()]}
            self.layouts[name] = cut(fields)
            count = rng.choice((1, 2, 3, 8, 16, 24))
            most = (1 << fields["shard"]) - 1
            first = rng.choice((0, 0, 0, 5, most - count + 1))
            count = min(count, most + 1 - first)
            self._keyspace(name, count, first, layout=layout)
        self._keyspace("lookup", (count := rng.choice((1, 3, 8, 13))), hash="md5", shards=count)
        self._keyspace("numbers", (count := rng.choice((1, 2, 7, 16))), hash="modulo", shards=count)
        layout, fields = "instagram", {"time": 41, "shard": 13, "sequence": 10}
        if rng.random() < 0.4:
            layout, fields = "snow", rng.choice((
                {"reserved": 1, "time": 41, "shard": 10, "sequence": 12},
                {"time": 42, "sequence": 10, "shard": 12},
            ))  # fmt: skip
            self.own[layout] = {
                "fields": [{one: width} for one, width in fields.items()],
                "epoch_ms": 1300000000000,
            }
        self.layouts["media"] = cut(fields)
        self._keyspace("media", (count := rng.choice((1, 4, 9))), layout=layout, shards=count)
        self.keyspaces["global"] = {"master": rng.choice(self.hosts), "database": "qglobal"}

    def _local_fields(self) -> dict[str, int]:
        rng = self.rng
        head = {"shard": rng.choice((5, 10, 12, 16)), "type": rng.choice((4, 8, 10))}
        if rng.random() < 0.5:
            head = dict(reversed(head.items()))
        reserved = rng.choice((0, 1, 2, 8))
        fields = {"reserved": reserved, **head} if reserved else head
        return {**fields, "local": 64 - sum(fields.values())}

    # --- columns ---------------------------------------------------------------------------------

    def _some(self, count: int, taken: Sequence[str]) -> list[Column]:
        """Columns beyond those that the kind needs."""
        rng = self.rng
        used = {one.lower() for one in taken}
        found: list[Column] = []
        for name in rng.sample(COLUMN_NAMES, len(COLUMN_NAMES)):
            if len(found) >= count:
                break
            if name.lower() in used:
                continue
            if self.refers and rng.random() < 0.15:
                found.append(Column(name, ID, refers=rng.choice(list(self.refers))))
                continue
            kind = columns.some_type(rng, mysql=self.mysql)
            if self.rounded and rng.random() < self.rounded:
                kind = columns.rounded(rng)
            nullable = rng.random() < 0.7
            default = ""
            if (
                rng.random() < 0.4
                and "TEXT" not in kind.sql
                and "BLOB" not in kind.sql
                and kind.family not in "jbx"
            ):
                default = f" DEFAULT {literal(rng.choice(kind.values))}"
            hidden = nullable and rng.random() < 0.04
            found.append(Column(name, kind, nullable, default=default, hidden=hidden))
        if found and rng.random() < 0.35:
            found += self._generated(rng.choice(found), used | {one.name.lower() for one in found})
        return found

    def _generated(self, source: Column, used: set[str]) -> list[Column]:
        name = next(one for one in ("gen", "made", "calc") if one not in used)
        stored = self.rng.choice(("VIRTUAL", "STORED"))
        of = quote(source.name)
        if source.family == "n" and not source.refers:
            return [
                Column(name, Type("DECIMAL(30,4)", "n", (0, 1, 2, -1)), generated=f"AS ({of} % 7) {stored}")
            ]
        if source.family == "t" and not source.type.sql.startswith("CHAR"):
            return [
                Column(
                    name,
                    Type("VARCHAR(300)", "t", ("A", "APPLE")),
                    generated=f"AS (CONCAT({of}, 'x')) {stored}",
                )
            ]
        return []

    @staticmethod
    def _sql(column: Column) -> str:
        if column.generated:
            return f"{column.type.sql} {column.generated}"
        hidden = " INVISIBLE" if column.hidden else ""
        return (
            column.type.sql
            + (" NULL" if column.nullable else " NOT NULL")
            + (column.default if not column.refers else "")
            + hidden
        )

    def _pick(self, column: Column) -> Value:
        if column.generated:
            return None
        if column.nullable and self.rng.random() < 0.15:
            return None
        if column.refers:
            return self.rng.choice(self.refers[column.refers])
        return self.rng.choice(column.type.values)

    def _add(
        self, model: Model, fields: Mapping[str, Any], declared: Mapping[str, str] | None, rows: list[Row]
    ) -> None:
        self.documents[model.name] = {"kind": str(model.kind), "keyspace": model.keyspace, **fields}
        if declared is not None:
            self.documents[model.name]["columns"] = [{name: sql} for name, sql in declared.items()]
        self.rows[model.name] = rows
        index = [one.name for one in model.columns].index(model.routing or model.columns[0].name)
        keys = tuple(dict.fromkeys(row[index] for row in rows))
        self.models[model.name] = replace(model, keys=keys)

    def _count(self, number: int) -> int:
        return max(2, int(self.rng.choice((0.1, 0.5, 1, 1, 1.5)) * number * self.scale))

    # --- tables ----------------------------------------------------------------------------------

    def _new_id(self, keyspace: str, number: int, used: set[int]) -> int:
        rng, bits = self.rng, self.layouts[keyspace]
        shards = self.shards[keyspace]
        while True:
            shard = rng.choice(shards[: max(1, len(shards) // 3)] if rng.random() < 0.4 else shards)
            most = bits["local"][1]
            local = rng.choice(
                (
                    rng.randrange(1, 40),
                    rng.randrange(1, 400),
                    rng.randrange(1, most // 2),
                    most // 2 + rng.randrange(3),
                )
            )
            made = shard << bits["shard"][0] | number << bits["type"][0] | local
            if made not in used:
                used.add(made)
                return made

    def _object(self, number: int) -> None:
        rng, name = self.rng, self.names.pop()
        keyspace = rng.choice([one for one in ("main", "second") if one in self.keyspaces])
        data = Column("data", Type("JSON", "j", ()), nullable=False)
        text = Column("data", Type("TEXT", "t", columns.WORDS), nullable=False)
        ts = Column(
            "ts", Type(OBJECT_TS, "d", ("2012-02-23 10:00:00", "2012-02-24 00:00:00")), nullable=False
        )
        id = Column("id", ID, nullable=False, refers=name)
        fields: dict[str, Any] = {"type": number}
        form = rng.random()
        declared = None
        made: list[Column] = [id, data, ts]
        if form > 0.25:
            made = [id, *rng.choice(([data, ts], [text, ts], [], [data]))]
            more = self._some(rng.randrange(1, 9), ["id", "data", "ts", "local_id"])
            made += more
            if rng.random() < 0.3:
                made[1:] = rng.sample(made[1:], len(made) - 1)
                if rng.random() < 0.5:
                    made = [id, *sorted(made[1:], key=lambda one: bool(one.generated))]
            declared = {one.name: one.type.sql if one is ts else self._sql(one) for one in made[1:]}
            fields["indexes"] = self._indexes(made[1:])
        if rng.random() < 0.4:
            holders = [one for one in made[1:] if one.refers and one.refers != name]
            if holders:
                fields["colocate"] = holders[0].name
        used: set[int] = set()
        rows: list[Row] = []
        for _ in range(self._count(40)):
            values = [columns.json_object(rng) if one is data else self._pick(one) for one in made[1:]]
            rows.append((self._new_id(keyspace, number, used), *values))
        self.refers[name] = [*sorted(used), max(used) + 1]
        model = Model(name, Kind.OBJECT, keyspace, tuple(made), "id", ("id",), number)
        self._add(replace(model, colocate=fields.get("colocate", "")), fields, declared, rows)

    def _indexes(self, made: Sequence[Column]) -> list[str]:
        able = [one for one in made if one.family in "ndfe" and "VIRTUAL" not in one.generated]
        if not able or self.rng.random() < 0.5:
            return []
        chosen = self.rng.sample(able, min(len(able), self.rng.choice((1, 1, 2))))
        return ["KEY (" + ", ".join(quote(one.name) for one in chosen) + ")"]

    def _mapping(self) -> None:
        rng, name = self.rng, self.names.pop()
        first, second = rng.choice(list(self.refers)), rng.choice(list(self.refers))
        keyspace = self.models[first].keyspace
        ends = ("from_id", "to_id") if rng.random() < 0.3 else (f"{first[:9]}_id", f"{second[:9]}_id")
        if ends[0] == ends[1]:
            ends = (ends[0], "other_id")
        sequence = rng.choice(("sequence", "sequence", "seq", "order"))
        big = rng.random() < 0.5
        kind = Type(
            "DECIMAL(38,0)", "n", (*tuple(Decimal(one) * 10**25 for one in (1, 2, 3, 5, 8)), Decimal(7))
        )
        if not big:
            kind = Type("BIGINT", "n", (-5, 0, 1, 2, 3, 9, 1 << 62))
        made = [
            Column(ends[0], ID, False, first),
            Column(ends[1], ID, False, second),
            Column(sequence, kind, False),
        ]
        fields: dict[str, Any] = {"from": ends[0], "to": ends[1], "sequence": sequence}
        declared: dict[str, str] | None = None
        key = rng.choice(("", "PRIMARY", "UNIQUE"))
        total: tuple[str, ...] = (ends[0], sequence, ends[1])
        if not big or rng.random() < 0.6:
            made += self._some(rng.randrange(0, 5), [*ends, sequence])
            if rng.random() < 0.25:
                rng.shuffle(made)
                made.sort(key=lambda one: bool(one.generated))
            declared = {one.name: self._sql(one) for one in made}
            if key:
                total = (ends[0], ends[1])
                head = "PRIMARY KEY" if key == "PRIMARY" else "UNIQUE KEY"
                fields["indexes"] = [f"{head} (" + ", ".join(map(quote, total)) + ")"]
        if rng.random() < 0.3 and big:
            fields["orderable"] = True
        rows: dict[tuple[Value, ...], Row] = {}
        favourites = rng.sample(self.refers[first], min(3, len(self.refers[first])))
        for _ in range(self._count(60)):
            row = {one.name: self._pick(one) for one in made}
            if rng.random() < 0.4:
                row[ends[0]] = rng.choice(favourites)
            if ends[0] != first and row[ends[0]] == self.refers[first][-1]:
                row[ends[0]] = self.refers[first][0]
            rows[tuple(row[one] for one in total)] = tuple(row.values())
        self._add(
            Model(name, Kind.MAPPING, keyspace, tuple(made), ends[0], total),
            fields,
            declared,
            list(rows.values()),
        )

    def _hashed(self) -> None:
        rng, name = self.rng, self.names.pop()
        keyspace = rng.choice(("lookup", "lookup", "numbers"))
        key_name = rng.choice(("email", "key", "k", "Token", "n"))
        keys: list[Value]
        if keyspace == "numbers" or rng.random() < 0.2:
            kind = Type(rng.choice(("BIGINT", "INT", "INT UNSIGNED", "BIGINT UNSIGNED", "SMALLINT")), "n", ())
            keys = [0, 1, 2, 17, 30000, *range(3, 12)] + ([] if "UNSIGNED" in kind.sql else [-1, -17, -30000])
        elif rng.random() < 0.3:
            kind, keys = (
                Type("VARBINARY(20)", "x", ()),
                [b"", b"\0", b"a", b"A", b"a ", b"\xff\xfe", b"it's", b"1", b"1.0"],
            )
        else:
            kind, keys = (
                Type("VARCHAR(60)", "t", ()),
                [
                    "",
                    "a@x",
                    "A@x",
                    "a@x ",
                    "ä@x",
                    "it's",
                    "1",
                    "01",
                    "1.0",
                    "a\\b",
                    "\u00e9",
                    "e\u0301",
                    "x😀",
                ],
            )
            keys += [f"u{one}@x" for one in range(12)]
        kind = replace(kind, values=keys)
        key = Column(key_name, kind, False)
        made = [key, *self._some(rng.randrange(1, 6), [key_name])]
        declared = {one.name: self._sql(one) for one in made}
        declared[key_name] = kind.sql + rng.choice((" PRIMARY KEY", " NOT NULL PRIMARY KEY"))
        chosen = rng.sample(keys, min(len(keys), self._count(20)))
        rows = [(one, *(self._pick(other) for other in made[1:])) for one in chosen]
        self._add(
            Model(name, Kind.HASHED, keyspace, tuple(made), key_name, (key_name,)),
            {"key": key_name},
            declared,
            rows,
        )

    def _timed(self) -> None:
        rng, name = self.rng, self.names.pop()
        bits, shards = self.layouts["media"], self.shards["media"]
        owner = rng.choice(list(self.refers))
        shard_key = rng.choice(("", "owner_id", "owner_id", "num"))
        made = [Column("id", ID, False, name)]
        if shard_key == "owner_id":
            made.append(Column(shard_key, ID, False, owner))
        elif shard_key:
            made.append(Column(shard_key, Type("INT", "n", (0, 1, 5, 17, 1000)), False))
        made += self._some(rng.randrange(1, 5), [one.name for one in made])
        declared = {one.name: self._sql(one) for one in made}
        declared["id"] = "BIGINT UNSIGNED NOT NULL PRIMARY KEY"
        rows = []
        for number in range(self._count(30)):
            values = [self._pick(one) for one in made[1:]]
            shard = rng.choice(shards)
            if shard_key:
                assert isinstance(values[0], int)
                shard = values[0] % len(shards)
            id = (15_000_000_000 + rng.randrange(5000)) << bits["time"][0] | shard << bits["shard"][0]
            id |= number % 1000 << bits["sequence"][0]
            rows.append((id, *values))
        self.refers[name] = [int(str(row[0])) for row in rows]
        fields = {"shard_key": shard_key} if shard_key else {}
        self._add(
            Model(name, Kind.TIMED, "media", tuple(made), "id", ("id",), shard_key=shard_key),
            fields,
            declared,
            rows,
        )

    def _unsharded(self, kind: Kind) -> None:
        rng, name = self.rng, self.names.pop()
        first = rng.choice(("id", "code", "n"))
        text = rng.random() < 0.3
        keys: list[Value] = (
            list(rng.sample(["at", "de", "ch", "fr", "it", "jp"], 5)) if text else list(range(1, 12))
        )
        key = Column(first, Type("CHAR(2)" if text else "INT", "t" if text else "n", keys), False)
        made = [key, *self._some(rng.randrange(1, 5), [first])]
        declared = {one.name: self._sql(one) for one in made}
        declared[first] += " PRIMARY KEY"
        rows = [(one, *(self._pick(other) for other in made[1:])) for one in keys[: self._count(8)]]
        self._add(Model(name, kind, "global", tuple(made), "", (first,)), {}, declared, rows)
