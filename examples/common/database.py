"""SQLAlchemy on the proxy: to an application it is one MySQL server."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeVar

import aiomysql
from sqlalchemy import JSON, URL, FetchedValue, Numeric, select
from sqlalchemy.dialects.mysql import BIGINT
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Result = TypeVar("Result")
Work = Callable[[AsyncSession], Awaitable[Result]]

Id = Annotated[int, mapped_column(BIGINT(unsigned=True))]

DEADLOCK, LOCK_WAIT, LOST_TRANSACTION = 1213, 1205, 1053
LOST_SERVER, LOST_PROXY, NO_PROXY, NO_TABLE = 1158, 2013, 2003, 1146
UNDONE = {DEADLOCK, LOCK_WAIT, LOST_TRANSACTION}  # the transaction is rolled back on all hosts
UNKNOWN = {LOST_SERVER, LOST_PROXY}  # it may have been done, which does no harm to a read
ATTEMPTS = 5

# What a statement warns of is for who asks with SHOW WARNINGS; the driver would print it
warnings.filterwarnings("ignore", category=aiomysql.Warning)


class Base(DeclarativeBase):
    """All tables."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {dict[str, Any]: JSON}


class Object:
    """A row that is found by its ID, which the proxy makes at INSERT: it says on which shard the row is."""

    id: Mapped[Id] = mapped_column(primary_key=True)
    data: Mapped[dict[str, Any]]


class Mapping:
    """A list of IDs of each ID, newest first: the proxy gives a row that is inserted the sequence of now."""

    sequence: Mapped[Decimal] = mapped_column(Numeric(38, 0), FetchedValue())


SomeObject = TypeVar("SomeObject", bound=Object)


async def by_id(session: AsyncSession, table: type[SomeObject], ids: Iterable[int]) -> dict[int, SomeObject]:
    """Objects by their IDs: however many shards they are on, one statement, which each host gets once."""
    rows = await session.scalars(select(table).where(table.id.in_(set(ids))))
    return {row.id: row for row in rows}


def code_of(error: DBAPIError) -> int | None:
    """The number of MySQL's error."""
    return error.orig.args[0] if error.orig is not None and error.orig.args else None


class Database:
    """Runs work with a session of its own: `read` without a transaction, `write` in one."""

    def __init__(self, url: URL) -> None:
        # READ COMMITTED: what is read behind a lock must be what is there now, not what was when the
        # transaction began. Pre-ping: a connection that was closed while nobody used it is made anew.
        # xa: a transaction over several hosts commits on all of them or on none.
        self._engine = create_async_engine(
            url,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            connect_args={"init_command": "SET transaction_mode = 'xa'"},  # with xa.enabled in the settings
        )
        each_by_itself = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._reads = async_sessionmaker(each_by_itself, expire_on_commit=False)
        self._writes = async_sessionmaker(self._engine, expire_on_commit=False)

    async def read(self, work: Work[Result]) -> Result:
        """Each statement by itself. All is read again when a server or the proxy is lost meanwhile."""

        async def once() -> Result:
            async with self._reads() as session:
                return await work(session)

        return await _repeated(once, UNDONE | UNKNOWN)

    async def write(self, work: Work[Result]) -> Result:
        """In one transaction. It is run again, all of it, when the proxy says that it was rolled back: so
        `work` does nothing but use its session.
        """

        async def once() -> Result:
            async with self._writes.begin() as session:
                return await work(session)

        return await _repeated(once, UNDONE)

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


async def _repeated(once: Callable[[], Awaitable[Result]], codes: set[int]) -> Result:
    """What `once` gives, tried again after one of these MySQL errors."""
    for attempt in range(1, ATTEMPTS):
        try:
            return await once()
        except DBAPIError as error:
            if code_of(error) not in codes:
                raise
            await asyncio.sleep(random.uniform(0, 0.05 * 2**attempt))
    return await once()
