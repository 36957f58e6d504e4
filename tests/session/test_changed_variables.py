"""Variables that the proxy sets otherwise than the session, for its ways of running statements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from proxy.backends.settings import LOGIN, RESULTS
from proxy.engine.loading import every_row, reading_settings, resting_settings, spread_settings
from rewriter.plans import Bound, Merge
from rewriter.route.values import CHANGED_ON_SHARDS


def test_statements_on_shards_know_all_variables_that_differ() -> None:
    """Their text gets the session's values of these."""
    own: Any = LOGIN.with_values({"sql_select_limit": b"5", "max_error_count": b"5", "autocommit": b"0"})
    flavour = SimpleNamespace(sets_max_error_count=True)
    session: Any = SimpleNamespace(settings=own, shown_settings=None, env=SimpleNamespace(flavour=flavour))
    client: Any = SimpleNamespace(session=session)
    found = [resting_settings(client), reading_settings(client)]
    scattered = spread_settings(client, Bound((), Merge(aggregates=(None,)), scatter=True))  # type: ignore[arg-type]
    found += [scattered] if scattered is not None else []
    with every_row(client, warnings=True):
        assert session.shown_settings is own
        found.append(session.settings)
    assert (session.settings, session.shown_settings) == (own, None)
    assert len(found) == 4
    assert scattered is not None
    assert int(scattered.get("net_write_timeout") or 0) > 3600, "a host may wait for the rows of others"
    changed = {name for one in found for name in {*own.values, *one.values} if one.get(name) != own.get(name)}
    assert changed - {RESULTS} <= CHANGED_ON_SHARDS.keys()
