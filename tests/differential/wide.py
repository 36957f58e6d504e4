"""A schema with all kinds of tables and many types of columns, and rows that make answers go wrong.

Equal sort keys, NULLs, texts that differ in case, accents, trailing spaces; values at the ends of their
types; shards without rows and a shard with many; local ids above 2^32. Floating point numbers are multiples
of 1/4, so that sums do not depend on the order of adding.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from config.topology import Host
from tests.differential.catalog import Row, Rows, Value

DATABASE = "wide"
MOST_SIDE_SHARDS = 16  # of the keyspaces beside `main`, to save time at start

OBJECT_TS = "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
THINGS = {
    "owner_id": "BIGINT UNSIGNED NULL",
    "n": "INT NULL",
    "small": "TINYINT NOT NULL DEFAULT 7",
    "u": "INT UNSIGNED NULL",
    "big": "BIGINT NULL",
    "price": "DECIMAL(12,2) NULL",
    "ratio": "DOUBLE NULL",
    "weight": "FLOAT NULL",
    "name": "VARCHAR(40) NULL",
    "code": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL",
    "tag": "CHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NULL",
    "latin": "VARCHAR(20) CHARACTER SET latin1 NULL",
    "body": "TEXT NULL",
    "raw": "VARBINARY(16) NULL",
    "piece": "BLOB NULL",
    "day": "DATE NULL",
    "at": "DATETIME(3) NULL",
    "tod": "TIME NULL",
    "stamp": "TIMESTAMP(6) NULL DEFAULT NULL",
    "yr": "YEAR NULL",
    "state": "ENUM('new','paid','sent','Äther') NULL",
    "flags": "SET('a','b','c') NULL",
    "bits": "BIT(5) NULL",
    "doc": "JSON NULL",
    "ts": OBJECT_TS,
}

TABLES: dict[str, dict[str, Any]] = {
    "users": {"kind": "object", "keyspace": "main", "type": 3},
    "pins": {"kind": "object", "keyspace": "main", "type": 1, "colocate": "data:$.user_id"},
    "things": {
        "kind": "object",
        "keyspace": "main",
        "type": 900,
        "colocate": "owner_id",
        "columns": THINGS,
        "indexes": ["KEY (n)", "KEY (name, price)"],
    },
    "notes": {
        "kind": "object",
        "keyspace": "main",
        "type": 1023,
        "colocate": {"column": "near_id", "stored": False},
        "columns": {"data": "LONGTEXT NOT NULL", "ts": "TIMESTAMP(3) NULL DEFAULT NULL"},
    },
    "user_pins": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "user_id",
        "to": "pin_id",
        "orderable": True,
    },
    "pin_users": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "pin_id",
        "to": "user_id",
        "columns": {
            "pin_id": "BIGINT UNSIGNED NOT NULL",
            "user_id": "BIGINT UNSIGNED NOT NULL",
            "sequence": "BIGINT NOT NULL",
            "note": "VARCHAR(30) NULL",
            "score": "INT NOT NULL DEFAULT 0",
        },
        "indexes": ["PRIMARY KEY (pin_id, user_id)"],
    },
    "mails": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "email",
        "columns": {
            "email": "VARCHAR(60) PRIMARY KEY",
            "user_id": "BIGINT UNSIGNED NULL",
            "hits": "INT NULL",
        },
    },
    "tokens": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "token",
        "columns": {"token": "VARBINARY(16) NOT NULL PRIMARY KEY", "label": "VARCHAR(20)", "v": "DOUBLE"},
    },
    "counters": {
        "kind": "hashed",
        "keyspace": "numbers",
        "key": "n",
        "columns": {"n": "BIGINT PRIMARY KEY", "hits": "INT NOT NULL", "label": "VARCHAR(20) NULL"},
    },
    "photos": {
        "kind": "timed",
        "keyspace": "media",
        "shard_key": "user_id",
        "columns": {
            "id": "BIGINT UNSIGNED NOT NULL PRIMARY KEY",
            "user_id": "BIGINT UNSIGNED NOT NULL",
            "caption": "VARCHAR(60) NULL",
            "taken_at": "DATETIME NULL",
        },
    },
    "names": {
        "kind": "single",
        "keyspace": "global",
        "columns": {
            "name": "VARCHAR(40) NOT NULL PRIMARY KEY",
            "user_id": "BIGINT UNSIGNED NOT NULL",
            "score": "DECIMAL(8,2) NULL",
        },
    },
    "countries": {
        "kind": "reference",
        "keyspace": "global",
        "columns": {
            "code": "CHAR(2) NOT NULL PRIMARY KEY",
            "name": "VARCHAR(40) NULL",
            "people": "BIGINT NULL",
        },
    },
}

REFERS = {
    ("things", "owner_id"): "users",
    ("user_pins", "user_id"): "users",
    ("user_pins", "pin_id"): "pins",
    ("pin_users", "pin_id"): "pins",
    ("pin_users", "user_id"): "users",
    ("mails", "user_id"): "users",
    ("photos", "user_id"): "users",
    ("names", "user_id"): "users",
    ("pins", "data:$.user_id"): "users",
    ("notes", "near_id"): "pins",
}

SCHEMA: dict[str, Any] = {"databases": {DATABASE: {"tables": TABLES}}}

_WORDS = ("apple", "Apple", "ÄPFEL", "apfel", "apple ", "", " ", "zebra", "Zoë", "zoe", "straße", "STRASSE",
          "a", "A", "b", "a\t", "naïve", "%", "_x", "it's", 'say "hi"', "back\\slash", "x😀", "日本",
          "10", "9")  # fmt: skip
_POOLS: dict[str, Sequence[Value]] = {
    "n": (-3, -1, 0, 1, 1, 2, 3, 5, 8, 100, 2147483647, -2147483648),
    "small": (-128, -1, 0, 1, 7, 127),
    "u": (0, 1, 2, 3, 4294967295),
    "big": (-9223372036854775808, -1, 0, 1, 4611686018427387904, 9223372036854775807),
    "price": tuple(map(Decimal, ("0.00", "-1.25", "9.99", "9.90", "10.00", "1234567890.12"))),
    "ratio": (0.25, -0.25, 0.0, 1.5, 1e6, 1234567.75, -1e10, 1e15, 3.0),
    "weight": (0.25, 0.5, -2.0, 1024.0, 3.75),
    "name": _WORDS,
    "code": _WORDS,
    "tag": tuple(word.rstrip(" ") for word in _WORDS if len(word) <= 8),
    "latin": tuple(word for word in _WORDS if word.isascii() or word in ("ÄPFEL", "straße", "naïve", "Zoë")),
    "body": (*_WORDS, "lorem ipsum " * 30, "Lorem Ipsum " * 30),
    "raw": (b"", b"\0", b"a", b"A", b"\xff\xfe", b"a ", b"abc\0", bytes(range(16))),
    "piece": (b"", b"\0\0", b"b", b"\xff" * 20, b"a"),
    "day": ("2012-02-23", "2012-02-29", "1999-12-31", "2012-02-23", "9999-12-31", "1000-01-01"),
    "at": ("2012-02-23 10:00:00.000", "2012-02-23 10:00:00.125", "2012-02-24 00:00:00.000",
           "1970-01-01 00:00:01.500"),
    "tod": ("00:00:00", "12:30:00", "-01:00:00", "838:59:59", "-838:59:59", "09:00:00", "100:00:00"),
    "stamp": ("2012-02-23 10:00:00.000001", "2012-02-23 10:00:00.000000", "2038-01-01 00:00:00.999999"),
    "yr": (1999, 2012, 2012, 2155, 1901),
    "state": ("new", "paid", "sent", "Äther", "new"),
    "flags": ("", "a", "a,b", "c", "a,c", "b"),
    "bits": (0, 1, 9, 10, 31),
    "note": _WORDS,
    "score": (0, 0, 1, 5, -7),
    "hits": (0, 1, 1, 2, 50),
    "label": _WORDS,
    "v": (0.5, -0.5, 2.0, 1e20),
    "caption": _WORDS,
    "taken_at": ("2012-02-23 10:00:00", "2013-01-01 00:00:00", "2012-02-23 10:00:01"),
    "people": (0, 1000, 83000000, 1400000000),
}  # fmt: skip
_NULLABLE = frozenset(_POOLS) - {"small", "score"}


def topology_document(shards: int, hosts: Sequence[Host]) -> dict[str, Any]:
    """`shards` in keyspace `main`, spread evenly; fewer in the others."""

    def keyspace(prefix: str, count: int, **fields: Any) -> dict[str, Any]:
        ranges = []
        for index, host in enumerate(hosts):
            first, end = count * index // len(hosts), count * (index + 1) // len(hosts)
            if end > first:
                ranges.append({"range": [first, end - 1], "master": host, "open": True})
        return {"database": prefix + "{shard:05d}", "ranges": ranges, **fields}

    side = min(shards, MOST_SIDE_SHARDS)
    return {
        "version": 1,
        "default": {"master": hosts[0]},
        "keyspaces": {
            "main": keyspace("wm", shards, layout="pinterest"),
            "lookup": keyspace("wl", side, hash="md5", shards=side),
            "numbers": keyspace("wn", side, hash="modulo", shards=side),
            "media": keyspace("wp", side, layout="instagram", shards=side),
            "global": {"master": hosts[-1], "database": "wglobal"},
        },
    }


def make_rows(shards: int, seed: int = 2012, scale: float = 1.0) -> Rows:
    """The rows; they depend on the arguments only."""
    return _Maker(shards, seed, scale).make()


class _Maker:
    def __init__(self, shards: int, seed: int, scale: float) -> None:
        self._rng = random.Random(seed)
        self._shards = shards
        self._scale = scale
        self._used: set[tuple[int, int]] = set()
        self._rows: Rows = {name: [] for name in TABLES}

    def make(self) -> Rows:
        rng, rows = self._rng, self._rows
        users = self._objects("users", 150, lambda id: self._user())
        pins = self._objects("pins", 400, lambda id: self._pin(rng.choice(users)), near=users)
        self._objects("things", 500, lambda id: self._thing(rng.choice(users)), near=users)
        self._objects("notes", 120, lambda id: (self._note(), self._moment(3)), near=pins)
        popular = users[:3]
        for _ in range(self._count(700)):
            user = rng.choice(popular if rng.random() < 0.2 else users)
            sequence = Decimal(rng.randrange(1_330_000_000_000, 1_330_000_000_100)) * 10**25
            rows["user_pins"].append((user, rng.choice(pins), sequence + rng.choice((0, 0, 1))))
        pairs = {(rng.choice(pins), rng.choice(users)) for _ in range(self._count(500))}
        for pin, user in sorted(pairs):
            rows["pin_users"].append((pin, user, rng.randrange(20), self._pick("note"), self._pick("score")))
        self._hashed(users)
        self._photos(users)
        for number, user in enumerate(users[:80]):
            score = None if number % 7 == 0 else Decimal(number * 37 % 500) / 4
            rows["names"].append((f"name{number}", user, score))
        for code in ("AT", "BR", "CH", "DE", "JP", "ZA"):
            rows["countries"].append((code, self._pick("name"), self._pick("people")))
        return rows

    def _count(self, number: int) -> int:
        return max(3, int(number * self._scale))

    def _pick(self, column: str) -> Value:
        if column in _NULLABLE and self._rng.random() < 0.15:
            return None
        return self._rng.choice(_POOLS[column])

    def _objects(
        self, table: str, count: int, columns: Callable[[int], Row], near: Sequence[int] = ()
    ) -> list[int]:
        """`count` objects; one in eight is on the first shard, none on every fifth."""
        made = []
        rng, number = self._rng, TABLES[table]["type"]
        for _ in range(self._count(count)):
            if near and rng.random() < 0.8:
                shard = rng.choice(near) >> 46
            elif rng.random() < 0.12:
                shard = 0
            else:
                shard = rng.choice([one for one in range(self._shards) if one % 5 != 4] or [0])
            local = rng.choice(
                (rng.randrange(1, 400), rng.randrange(1, 400), rng.randrange(1 << 32, 1 << 33))
            )
            id = shard << 46 | number << 36 | local
            if (id, number) not in self._used:
                self._used.add((id, number))
                made.append(id)
                self._rows[table].append((id, *columns(id)))
        return made

    def _moment(self, digits: int = 0) -> str:
        seconds = self._rng.choice((0, 1, 1, 30, 3599, 86399))
        time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        text = f"2012-02-{self._rng.choice((23, 24, 29))} {time}"
        return text + (f".{self._rng.choice((0, 1, 500)):03d}" if digits else "")

    def _user(self) -> Row:
        data: dict[str, Any] = {"name": self._rng.choice(_WORDS), "age": self._rng.randrange(18, 25)}
        if self._rng.random() < 0.8:
            data["city"] = self._rng.choice(("Wien", "Graz", "wien", None))
        return json.dumps(data, ensure_ascii=False), self._moment()

    def _pin(self, user: int) -> Row:
        rng = self._rng
        data: dict[str, Any] = {
            "user_id": user,
            "title": rng.choice(_WORDS),
            "rank": rng.randrange(-5, 6),
            "price": rng.choice((0.25, 1.5, 10, 100.75)),
            "size": {"w": rng.choice((100, 200, 1000)), "unit": rng.choice(("px", "cm"))},
        }
        if rng.random() < 0.3:
            del data["rank"]
        return json.dumps(data, ensure_ascii=False), self._moment()

    def _thing(self, owner: int) -> Row:
        values: list[Value] = [None if self._rng.random() < 0.1 else owner]
        values += [self._pick(name) for name in THINGS if name not in ("owner_id", "doc", "ts")]
        doc = {"k": self._rng.choice((1, 2, 3, 10)), "s": self._rng.choice(_WORDS)}
        values.append(None if self._rng.random() < 0.2 else json.dumps(doc, ensure_ascii=False))
        return (*values, self._moment())

    def _note(self) -> str:
        return str(self._rng.choice(_WORDS)) * self._rng.choice((1, 1, 2, 40))

    def _hashed(self, users: Sequence[int]) -> None:
        rng, rows = self._rng, self._rows
        mails = ["", "a@x.org", "A@x.org", "a@x.org ", "ä@x.org", "😀@x.org", "it's@x.org"]
        mails += [f"user{number}@example.com" for number in range(self._count(120))]
        for mail in mails:
            rows["mails"].append((mail, rng.choice((None, *users[:20])), self._pick("hits")))
        tokens = {b"", b"\0", b"a", b"A", b"\xff\xfe", b"it's"} | {
            rng.randbytes(8) for _ in range(self._count(60))
        }
        for token in sorted(tokens):
            rows["tokens"].append((token, self._pick("label"), self._pick("v")))
        numbers = {0, 1, -1, 17, -17, 1 << 40, (1 << 63) - 1, -(1 << 63)} | {
            rng.randrange(1000) for _ in range(self._count(100))
        }
        for number in sorted(numbers):
            rows["counters"].append((number, rng.randrange(50), self._pick("label")))

    def _photos(self, users: Sequence[int]) -> None:
        rng = self._rng
        shards = min(self._shards, MOST_SIDE_SHARDS)
        for number in range(self._count(200)):
            user = rng.choice(users)
            id = (15_000_000_000 + rng.randrange(5000)) << 23 | user % shards << 10 | number % 1024
            self._rows["photos"].append((id, user, self._pick("caption"), self._pick("taken_at")))
