"""The demo's rows: a small Pinterest, the same at every start.

`generate` makes logical rows, as a client would see them (objects with their 64-bit `id`), so that they can
be loaded into shards and, for comparison, into one plain server alike. The layout of each ID says where a row
goes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from config.layout import Layout
from config.schema import Kind, Schema, Table
from config.topology import Keyspace, Topology
from demo import words

SEED = 2012
START_MS = 1_330_000_000_000  # 2012-02-23, about when the scheme went live
YEAR_MS = 365 * 86_400_000

USERS = 300
BOARDS = 450
PINS = 1800
COMMENTS = 700
LIKES = 1500
FOLLOWS = 1200
PHOTOS = 400
ADDRESSES = 300

Row = tuple[Any, ...]


@dataclass
class Rows:
    """Rows of one logical table, in the order of `columns`."""

    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)


Sample = dict[str, Rows]
"""Rows by table of the logical database ``demo``."""


def sequence(milliseconds: int) -> int:
    """A mapping's sequence: 13 digits of milliseconds and 25 zeros."""
    return milliseconds * 10**25


def timestamp(milliseconds: int) -> str:
    """As MySQL writes it, in UTC."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def generate(schema: Schema, topology: Topology, seed: int = SEED) -> Sample:
    """All rows. They depend on the seed and on the keyspaces' shards only, not on hosts."""
    return _Generator(schema, topology, seed).make()


@dataclass(frozen=True)
class _Made:
    """An object already made: its ID and when (milliseconds since 1970)."""

    id: int
    ms: int


class _Generator:
    """Makes the tables one after another; later ones refer to earlier ones."""

    def __init__(self, schema: Schema, topology: Topology, seed: int) -> None:
        self._tables = schema.databases["demo"].tables
        self._topology = topology
        self._random = random.Random(seed)
        self._locals: Counter[tuple[str, int]] = Counter()
        self._sample: Sample = {
            name: Rows(table.logical_columns)
            for name, table in self._tables.items()
            if table.kind is not Kind.SINGLE or table.columns
        }
        self._users: list[_Made] = []
        self._boards: list[tuple[_Made, _Made]] = []  # board, its user
        self._pins: list[_Made] = []

    def make(self) -> Sample:
        self._make_users()
        self._make_boards()
        self._make_pins()
        self._share_pins()
        self._make_comments()
        self._make_likes()
        self._make_follows()
        self._make_photos()
        self._make_addresses()
        self._sample["countries"].rows += words.COUNTRIES
        return self._sample

    # --- helpers ---------------------------------------------------------------------------------

    def _keyspace(self, table: Table) -> tuple[Keyspace, Layout]:
        keyspace = self._topology.keyspaces[table.keyspace]
        assert keyspace.layout is not None
        return keyspace, keyspace.layout

    def _object(self, name: str, data: dict[str, Any], ms: int, near: int | None = None) -> _Made:
        """Add an object: on the shard of the ID `near`, or on any open one."""
        table = self._tables[name]
        keyspace, layout = self._keyspace(table)
        shard = layout.shard_of(near) if near is not None else self._random.choice(keyspace.open_shards)
        assert shard is not None
        self._locals[name, shard] += 1
        made = _Made(layout.base(shard, table.type or 0) + self._locals[name, shard], ms)
        text = json.dumps(data, ensure_ascii=False)
        self._sample[name].rows.append((made.id, text, timestamp(ms)))
        return made

    def _map(self, name: str, source: int, target: int, ms: int) -> None:
        self._sample[name].rows.append((source, target, sequence(ms)))

    def _moment(self, after: int = START_MS) -> int:
        return after + self._random.randrange(1, YEAR_MS)

    # --- tables ----------------------------------------------------------------------------------

    def _make_users(self) -> None:
        for number in range(USERS):
            ms = self._moment()
            first = self._random.choice(words.FIRST_NAMES)
            last = self._random.choice(words.LAST_NAMES)
            username = f"{words.plain(first)}{words.plain(last)}{number}"
            email = f"{username}@example.{self._random.choice(('com', 'org', 'net'))}"
            data = {
                "name": f"{first} {last}",
                "username": username,
                "email": email,
                "about": f"{self._random.choice(words.ABOUTS)} {self._random.choice(words.EMOJI)}",
                "country": self._random.choice(words.COUNTRIES)[0],
                "active": self._random.random() > 0.03,
            }
            user = self._object("users", data, ms)
            self._users.append(user)
            self._sample["usernames"].rows.append((username, user.id))
            self._sample["email_to_user"].rows.append((email, user.id))

    def _make_boards(self) -> None:
        for _ in range(BOARDS):
            user = self._random.choice(self._users)
            ms = self._moment(user.ms)
            topic, things = self._random.choice(words.TOPICS)
            data = {
                "name": f"{self._random.choice(words.ADJECTIVES).capitalize()} {topic.lower()}",
                "description": f"{self._random.choice(things).capitalize()} and more",
                "category": topic,
                "user_id": user.id,
            }
            board = self._object("boards", data, ms, near=user.id)
            self._boards.append((board, user))
            self._map("user_has_boards", user.id, board.id, ms)

    def _make_pins(self) -> None:
        categories = dict(words.TOPICS)
        boards = self._sample["boards"].rows
        for _ in range(PINS):
            # The first boards are the popular ones: some have fifty pins, many have one or none
            index = int(len(self._boards) * self._random.random() ** 2)
            board, user = self._boards[index]
            ms = self._moment(board.ms)
            thing = self._random.choice(categories[json.loads(boards[index][1])["category"]])
            data = {
                "details": f"{self._random.choice(words.ADJECTIVES).capitalize()} {thing}",
                "link": f"https://{self._random.choice(words.SITES)}/{thing.replace(' ', '-')}",
                "user_id": user.id,
                "board_id": board.id,
            }
            pin = self._object("pins", data, ms, near=board.id)
            self._pins.append(pin)
            self._pin(board, pin, ms)

    def _pin(self, board: _Made, pin: _Made, ms: int) -> None:
        self._map("board_has_pins", board.id, pin.id, ms)
        self._map("pin_owned_by_board", pin.id, board.id, ms)

    def _share_pins(self) -> None:
        """Boards also show pins of others: their mapping's pins lie on many shards."""
        taken = {(row[0], row[1]) for row in self._sample["board_has_pins"].rows}
        for board, _ in self._boards:
            for pin in self._random.sample(self._pins, self._random.choice((0, 0, 2, 5))):
                if (board.id, pin.id) not in taken:
                    self._pin(board, pin, self._moment(max(board.ms, pin.ms)))
        showcase = self._boards[0][0]
        for pin in self._random.sample(self._pins, 40):
            if (showcase.id, pin.id) not in taken:
                taken.add((showcase.id, pin.id))
                self._pin(showcase, pin, self._moment(max(showcase.ms, pin.ms)))

    def _make_comments(self) -> None:
        for _ in range(COMMENTS):
            pin, user = self._random.choice(self._pins), self._random.choice(self._users)
            data = {"text": self._random.choice(words.COMMENTS), "pin_id": pin.id, "user_id": user.id}
            self._object("comments", data, self._moment(pin.ms), near=pin.id)

    def _pairs(self, count: int, targets: list[_Made]) -> list[tuple[_Made, _Made]]:
        """`count` distinct pairs of a user and one of `targets`, none with itself, in a fixed order."""
        chosen: dict[tuple[int, int], tuple[_Made, _Made]] = {}
        while len(chosen) < count:
            user, target = self._random.choice(self._users), self._random.choice(targets)
            if user is not target:
                chosen[user.id, target.id] = (user, target)
        return list(chosen.values())

    def _make_likes(self) -> None:
        for user, pin in self._pairs(LIKES, self._pins):
            ms = self._moment(max(user.ms, pin.ms))
            self._map("user_likes_pins", user.id, pin.id, ms)
            self._map("pin_liked_by_user", pin.id, user.id, ms)

    def _make_follows(self) -> None:
        for user, other in self._pairs(FOLLOWS, self._users):
            self._map("user_follows_user", user.id, other.id, self._moment(max(user.ms, other.ms)))

    def _make_photos(self) -> None:
        keyspace, layout = self._keyspace(self._tables["photos"])
        shards = keyspace.shards or len(keyspace.all_shards)
        sequences: Counter[int] = Counter()
        for _ in range(PHOTOS):
            user = self._random.choice(self._users)
            shard = user.id % shards
            sequences[shard] += 1
            ms = self._moment(user.ms)
            id = layout.compose(
                time=ms - (layout.epoch_ms or 0), shard=shard, sequence=sequences[shard] % 1024
            )
            caption = f"{self._random.choice(words.CAPTIONS)} {self._random.choice(words.EMOJI)}"
            self._sample["photos"].rows.append((id, user.id, caption, timestamp(ms)))

    def _make_addresses(self) -> None:
        addresses = {"1.2.3.4"}
        while len(addresses) < ADDRESSES:
            addresses.add(".".join(str(self._random.randrange(1, 255)) for _ in range(4)))
        for ip in sorted(addresses):
            country = self._random.choice(words.COUNTRIES)[0]
            data = {"country": country, "visits": self._random.randrange(1, 1000)}
            self._sample["ip_data"].rows.append((ip, json.dumps(data)))
