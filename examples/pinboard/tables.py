"""Objects, which are found by their ID, and mappings: lists of IDs, each on the shard of the ID it is of."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import TIMESTAMP, FetchedValue
from sqlalchemy.orm import Mapped, mapped_column

from examples.common.database import Base, Id, Mapping, Object


class Board(Object, Base):
    """data: name, description, user_id. On the shard of its user."""

    __tablename__ = "boards"
    ts: Mapped[datetime] = mapped_column(TIMESTAMP, FetchedValue())


class Pin(Object, Base):
    """data: details, link, user_id, board_id. On the shard of its board, and so of the user."""

    __tablename__ = "pins"


class UserBoard(Mapping, Base):
    """The boards of a user."""

    __tablename__ = "user_has_boards"
    user_id: Mapped[Id] = mapped_column(primary_key=True)
    board_id: Mapped[Id] = mapped_column(primary_key=True)


class BoardPin(Mapping, Base):
    """The pins of a board. Clients reorder them with `CALL reorder_board_pin`."""

    __tablename__ = "board_has_pins"
    board_id: Mapped[Id] = mapped_column(primary_key=True)
    pin_id: Mapped[Id] = mapped_column(primary_key=True)


class PinBoard(Mapping, Base):
    """The boards of a pin: it may be on several."""

    __tablename__ = "pin_owned_by_board"
    pin_id: Mapped[Id] = mapped_column(primary_key=True)
    board_id: Mapped[Id] = mapped_column(primary_key=True)


class UserLike(Mapping, Base):
    """The pins that a user likes."""

    __tablename__ = "user_likes_pins"
    user_id: Mapped[Id] = mapped_column(primary_key=True)
    pin_id: Mapped[Id] = mapped_column(primary_key=True)


class PinLike(Mapping, Base):
    """The same, from the other end: the users who like a pin."""

    __tablename__ = "pin_liked_by_user"
    pin_id: Mapped[Id] = mapped_column(primary_key=True)
    user_id: Mapped[Id] = mapped_column(primary_key=True)


class UserFollow(Mapping, Base):
    """The boards that a user follows; the one table of this example's own (schema.yaml)."""

    __tablename__ = "user_follows_boards"
    user_id: Mapped[Id] = mapped_column(primary_key=True)
    board_id: Mapped[Id] = mapped_column(primary_key=True)
