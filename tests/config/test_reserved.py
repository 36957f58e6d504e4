"""Databases that are nobody's: what other rooms keep for themselves is known to who reads topologies."""

from __future__ import annotations

import pytest

from config import xa
from config.reserved import OWN, reserved
from fleet import altering, grants
from rewriter.plans import gather
from rewriter.route.scope import SYSTEM_DATABASES


def test_all_own_databases_are_known() -> None:
    named = {xa.DATABASE, gather.SCRATCH.decode().strip("`"), grants.SCRATCH, altering.COPIES}
    assert named == OWN
    assert all(reserved(name) for name in SYSTEM_DATABASES)


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("mysql", "one of the servers' own databases"),
        ("SYS", "one of the servers' own databases"),
        ("Shardgate_XA", "a database that shardgate keeps for itself"),
        ("mysql2", None),
        ("", None),
    ],
)
def test_whose_a_name_is(name: str, whose: str | None) -> None:
    assert reserved(name) == whose
