"""What is asked of a server before its binary log is read: whether all changes are in it, and where it begins
and ends.
"""

from __future__ import annotations

from typing import Final

from config.flavour import Flavour
from config.topology import Host
from fleet import replication
from fleet.binlog.gtids import Gtids, GtidSet, GtidState, each, parts
from fleet.binlog.positions import Positions
from fleet.core.errors import Failed, Refused
from fleet.core.hosts import Hosts

_WANTED: Final = {
    "log_bin": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
}
_SETS: Final = {"gtid_mode": "ON", "binlog_transaction_compression": "0", "binlog_row_value_options": ""}
_DOMAINS: Final = {"log_bin_compress": "0"}


async def flavour_of_all(hosts: Hosts, masters: tuple[Host, ...]) -> Flavour:
    """The one kind that all are of. Refused for several, HostError."""
    found = {host: await replication.flavour(hosts, host) for host in masters}
    first = next(iter(found.values()))
    other = next((host for host, one in found.items() if one is not first), None)
    if other is not None:
        raise Refused(f"{other} is another kind of server than {masters[0]}: read each kind by itself")
    return first


async def check(hosts: Hosts, flavour: Flavour, host: Host) -> None:
    """Refused unless all changes of rows are in its binary log, whole and with the names of their columns."""
    wanted = _WANTED | (_DOMAINS if flavour.gtid_positions else _SETS)
    asked = ", ".join(f"@@GLOBAL.{name}" for name in wanted)
    (values,) = await hosts.query(host, f"SELECT {asked}")
    wrong = [
        (name, value)
        for (name, value), found in zip(wanted.items(), values, strict=True)
        if str(found).upper() != value
    ]
    if not wrong:
        return
    names = [name for name, _ in wrong]
    if "log_bin" in names or "gtid_mode" in names:
        raise Refused(f"{host} has no binary log with GTIDs: set {' and '.join(names)} in its option file")
    how = "; ".join(f"SET GLOBAL {name} = {value or repr('')}" for name, value in wrong)
    raise Refused(
        f"{host}: {', '.join(names)} must be otherwise, or changes could not be read: {how}, and the same in "
        "its option file and its slave's. Sessions that are open may keep what they had"
    )


async def end_of(hosts: Hosts, flavour: Flavour, host: Host) -> str:
    """What its log has at its end, for `covers`."""
    variable = "gtid_binlog_pos" if flavour.gtid_positions else "gtid_executed"
    end = await _variable(hosts, host, variable)
    if not flavour.gtid_positions:
        _merge(GtidSet(), host, end)
    return end


async def begin_now(hosts: Hosts, flavour: Flavour, host: Host, positions: Positions) -> None:
    """Count all that is in its log as read."""
    positions.hosts[host] = ""
    if flavour.gtid_positions:
        positions.gtids.merge(await _variable(hosts, host, "gtid_binlog_state"))
        positions.hosts[host] = await end_of(hosts, flavour, host)
    else:
        _merge(positions.gtids, host, await end_of(hosts, flavour, host))


async def begin_oldest(hosts: Hosts, flavour: Flavour, host: Host, positions: Positions) -> None:
    """Count as read what its log has no more."""
    positions.hosts[host] = ""
    if not flavour.gtid_positions:
        _merge(positions.gtids, host, await _variable(hosts, host, "gtid_purged"))
        return
    ((name, *_), *_) = await hosts.query(host, "SHOW BINARY LOGS")
    ((found,),) = await hosts.query(host, f"SELECT BINLOG_GTID_POS('{name}', 4)")
    positions.hosts[host] = replication.gtids(host, found or "")
    positions.gtids.merge(positions.hosts[host])


async def begin_master(hosts: Hosts, flavour: Flavour, host: Host, positions: Positions) -> None:
    """A master that others have been read before: where what they had ends. Its log may have their changes,
    too, under the same GTIDs. One that has never been a slave is read from the beginning.
    """
    positions.hosts[host] = ""
    state = positions.domains
    if state is None:
        return  # the server leaves out what has been read
    start = []
    for applied in each(await _variable(hosts, host, "gtid_slave_pos")):
        domain, server, _ = parts(applied)
        known = applied if state.has(applied) else state.last(domain, server)
        if known is not None:
            start.append(known)
    if start:
        positions.hosts[host] = ",".join(start)
    else:
        await begin_oldest(hosts, flavour, host, positions)


async def check_numbers(hosts: Hosts, masters: tuple[Host, ...], state: GtidState | None) -> None:
    """Servers are told apart by their numbers where GTIDs have them. Refused for one number twice, Failed for
    a log that begins anew.
    """
    if state is None:
        return
    seen: dict[int, Host] = {}
    for host in masters:
        ((number,),) = await hosts.query(host, "SELECT @@GLOBAL.server_id")
        other = seen.setdefault(int(number), host)
        if other != host:
            raise Refused(f"{other} and {host} have the same server_id, {number}: their GTIDs are the same")
        for one in each(await _variable(hosts, host, "gtid_binlog_state")):
            domain, server, last = parts(one)
            known = state.last(domain, server)
            if server == int(number) and known is not None and parts(known)[2] > last:
                raise Failed(
                    f"{host}: its binary log ends at {one}, but {known} has been read: it was begun anew, or "
                    "what it had is lost. Begin anew, too, with other positions"
                )


async def _variable(hosts: Hosts, host: Host, name: str) -> str:
    return replication.gtids(host, (await hosts.query(host, f"SELECT @@GLOBAL.{name}"))[0][0])


def _merge(gtids: Gtids, host: Host, text: str) -> None:
    try:
        gtids.merge(text)
    except ValueError as error:
        raise Refused(f"{host}: {error}") from None
