"""A SET that a server refuses within a transaction has set nothing, and the transaction goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.both_sides import both_sides
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

#: By server, what it does not let a session set within a transaction, and its error.
FIXED = {
    "mariadb": {
        "binlog_format = 'ROW'": 1679, "binlog_direct_non_transactional_updates = 1": 1685,
        "sql_log_bin = 0": 1694, "skip_replication = 1": 1929, "gtid_domain_id = 1": 1953,
        "wsrep_on = 0": 1179,
    },
    "mysql9": {
        "binlog_format = 'ROW'": 1679, "binlog_direct_non_transactional_updates = 1": 1685,
        "sql_log_bin = 0": 1694, "explicit_defaults_for_timestamp = 0": 1766,
        "binlog_row_value_options = 'PARTIAL_JSON'": 1766, "binlog_transaction_compression = 1": 1766,
        "binlog_transaction_compression_level_zstd = 1": 1766, "group_replication_consistency = 1": 1766,
        "gtid_next = 'AUTOMATIC'": 1766, "session_track_gtids = 1": 1766, "xa_detach_on_prepare = 0": 1766,
    },
}  # fmt: skip
#: Refused wherever it stands.
ALWAYS = {
    "max_allowed_packet = 1048576": 1621, "max_allowed_packet = DEFAULT": 1621,
    "last_insert_id = DEFAULT": 1230,
    "default_storage_engine = 'nosuch'": 1286, "lc_messages = 'nosuch'": 1649, "sql_mode = 'nosuch'": 1231,
}  # fmt: skip


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, unharmed: None) -> Iterator[tuple[Raw, Raw]]:
    with both_sides(demo, plain, "refused") as sides:
        yield sides


def told(client: Raw, *statements: str) -> list[object]:
    """What each is answered."""
    found: list[object] = []
    for sql in statements:
        reply = client.ask(sql)
        found.append(reply.code if reply.kind == "err" else reply.rows or reply.kind)
    return found


def script(name: str, setting: str, *, begun: bool = False) -> tuple[str, ...]:
    """A transaction in which `setting` is refused, and what there is then. `begun`: nothing is written."""
    return (
        *("UPDATE refused SET n = 0", "SET lock_wait_timeout = 50", f"SET @was = @@{name}", "BEGIN"),
        *((f"SET {setting}",) if begun else ("UPDATE refused SET n = 1", f"SET {setting}")),
        *("SELECT n FROM refused", f"SELECT @@{name} <=> @was, @@lock_wait_timeout"),
        *("UPDATE refused SET n = 2", "COMMIT", "SELECT n FROM refused"),
    )


@pytest.mark.parametrize("begun", [False, True], ids=["written", "begun"])
@pytest.mark.parametrize("more", ["", "lock_wait_timeout = 77, "], ids=["alone", "with another"])
def test_a_transaction_goes_on_after_a_refused_set(
    sides: tuple[Raw, Raw], flavour: str, more: str, begun: bool
) -> None:
    through, direct = sides
    differences = []
    for assignment, code in (FIXED[flavour] | ALWAYS).items():
        if more and assignment.endswith("DEFAULT"):
            continue  # the next test
        statements = script(assignment.partition(" ")[0], more + assignment, begun=begun)
        expected, got = told(direct, *statements), told(through, *statements)
        n = b"0" if begun else b"1"
        assert expected[-6:] == [code, [(n,)], [(b"1", b"50")], "ok", "ok", [(b"2",)]], assignment
        if expected != got:
            differences.append((assignment, expected, got))
    assert not differences


def test_what_a_server_sets_before_it_refuses_a_default_is_set_back(
    sides: tuple[Raw, Raw], flavour: str
) -> None:
    """It looks at a DEFAULT only after it has made the assignments before; for a session of the proxy a SET
    is all or nothing.
    """
    through, direct = sides
    for assignment, code in FIXED[flavour].items():
        name = assignment.partition(" ")[0]
        statements = script(name, f"lock_wait_timeout = 77, {name} = DEFAULT")
        made = [[(b"1",)], [(b"1", b"77")], "ok", "ok", [(b"2",)]]
        if name not in ("wsrep_on", "gtid_next"):
            assert told(direct, *statements)[-6:] == [code, *made], assignment
        got = told(through, *statements)[-6:]
        assert got[1:] == [[(b"1",)], [(b"1", b"50")], "ok", "ok", [(b"2",)]], (assignment, got)
