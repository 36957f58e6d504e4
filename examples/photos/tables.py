"""Photos, each on its user's shard, and the lists of who likes what and who follows whom."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.dialects.mysql import DATETIME
from sqlalchemy.orm import Mapped, mapped_column

from examples.common.database import Base, Id, Mapping


class Photo(Base):
    """The proxy makes the ID at INSERT. Whoever knows it or the user's knows the shard."""

    __tablename__ = "photos"
    id: Mapped[Id] = mapped_column(primary_key=True)
    user_id: Mapped[Id]
    caption: Mapped[str]
    taken_at: Mapped[datetime] = mapped_column(DATETIME)


class PhotoLike(Mapping, Base):
    """The users who like a photo, on its shard (schema.yaml)."""

    __tablename__ = "photo_liked_by_users"
    photo_id: Mapped[Id] = mapped_column(primary_key=True)
    user_id: Mapped[Id] = mapped_column(primary_key=True)


class Following(Mapping, Base):
    """Whom a user follows."""

    __tablename__ = "user_follows_user"
    user_id: Mapped[Id] = mapped_column(primary_key=True)
    followed_id: Mapped[Id] = mapped_column(primary_key=True)


class Follower(Mapping, Base):
    """The same, from the other end (schema.yaml)."""

    __tablename__ = "user_followed_by_user"
    user_id: Mapped[Id] = mapped_column(primary_key=True)
    follower_id: Mapped[Id] = mapped_column(primary_key=True)
