"""The settings of the connections that rows are gathered with: read, put in, and used by the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from proxy.backends.settings import LOGIN, RESULTS, Settings
from proxy.wire.wide import Form, form_of
from rewriter.plans import Bound, Merge

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

LOADING: Final = LOGIN.with_values(
    {
        "sql_mode": b"'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
        "time_zone": b"'+00:00'",
    }
)
"""How rows are put in: whatever is stored on a shard must be taken as it is."""


FITTING: Final = LOADING.with_values(
    {"sql_mode": b"'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'"}
)
"""How groups are put in, whose columns have the types that a server gave to expressions: what does not fit
shall fail."""

PATIENCE: Final = b"28800"
"""`net_write_timeout`, in seconds, where a host may have to wait until the rows of others are taken: with its
usual 60 seconds it gives up when the client reads slowly."""


_FIXED_BY_TEMPORARY_TABLES: Final = frozenset({"binlog_format"})
_WARNINGS: Final = "max_error_count"
_MANY: Final = b"1024"
_RESULTS: Final = "character_set_results"
_LIMIT: Final = "sql_select_limit"
_ALL_ROWS: Final = b"18446744073709551615"
"""No limit: DEFAULT may be one, where a server has it for all its sessions."""


def results_form(session: Session) -> Form:
    """The form of names and numbers in the rows that servers send with the session's settings."""
    results = session.settings.get(_RESULTS)
    return form_of(results, all_numbers=session.env.flavour.widens_numbers)


def resting_settings(client: Exchange) -> Settings:
    """The session's settings as the rest is run with: outside of its transaction, and without those that a
    server does not change while the connection has temporary tables (3745).
    """
    settings = client.session.settings.base.without(_FIXED_BY_TEMPORARY_TABLES)
    return settings.with_values({"autocommit": b"1"})


def reading_settings(client: Exchange) -> Settings:
    """The session's settings as pieces are read with: texts whole, and all rows."""
    changed = {_RESULTS: b"utf8mb4", "net_write_timeout": PATIENCE, _LIMIT: _ALL_ROWS}
    return client.session.settings.base.with_values(changed)


@contextmanager
def every_row(client: Exchange, *, warnings: bool = False) -> Iterator[None]:
    """Run statements that read all their rows, with texts in utf8mb4, whatever sql_select_limit and
    character_set_results the session has: they are for what a client's own SELECT gives, not for what a write
    reads. `warnings`: the servers keep many warnings of these statements, whatever the session's
    max_error_count is.
    """
    session = client.session
    before, shown = session.settings.values, session.shown_settings
    session.shown_settings = shown or session.settings
    changed = {_LIMIT: _ALL_ROWS, _RESULTS: b"utf8mb4", RESULTS: b""}
    if warnings and (_WARNINGS in before or session.env.flavour.sets_max_error_count):
        changed[_WARNINGS] = _MANY
    session.settings = session.settings.with_values(changed)
    try:
        yield
    finally:  # the statements may have set user variables
        session.shown_settings = shown
        kept = {name: before[name] for name in changed if name in before}
        session.settings = session.settings.without(changed).with_values(kept)


def limits_rows(client: Exchange) -> bool:
    """Whether the session's statements give only some of their rows, by sql_select_limit."""
    return client.session.settings.get(_LIMIT) not in (None, _ALL_ROWS)


def most_rows(session: Session) -> int | None:
    """The session's `sql_select_limit`, None for no limit."""
    most = session.settings.get(_LIMIT)
    return int(most) if most is not None and most.isdigit() else None


def spread_settings(client: Exchange, bound: Bound) -> Settings | None:
    """The session's settings as a fan-out is read with; None when they are just these. How many rows there
    may be (sql_select_limit) is not for one of several statements to say.
    """
    settings = client.session.settings
    changed = {"net_write_timeout": PATIENCE} if bound.scatter else {}
    if settings.get(_LIMIT) is not None and _several(bound):
        changed[_LIMIT] = _ALL_ROWS
    return settings.with_values(changed) if changed else None


def spread_merge(client: Exchange, bound: Bound) -> Merge:
    """How a fan-out's answers are merged: as the plan says, and at most sql_select_limit rows."""
    merge = bound.merge or Merge()
    most = most_rows(client.session)
    if not limits_rows(client) or merge.limit is not None or most is None or not _several(bound):
        return merge
    return merge._replace(limit=most)


def _several(bound: Bound) -> bool:
    return len(bound.statements) > 1 or (bound.merge is not None and bool(bound.merge.aggregates))
