"""One host's binary log, read in a thread by mysql-replication, which is imported when one is read."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any, Final

from aiomysql import MySQLError

from config.tls import BackendTls
from config.topology import Host
from fleet.binlog.library import mend
from fleet.binlog.transactions import Item, Transactions
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import address_of, problem

HEARTBEAT_SECONDS: Final = 1
"""A log without news says so: the thread sees whether it is to end."""
_SILENT_SECONDS: Final = 30
_NONE: Final = "00000000-0000-0000-0000-000000000001:1"
"""In place of an empty set of GTIDs, which the library takes for none given."""


class _Gone(Exception):
    """The library would connect anew, and begin where it has begun before."""


class Stream:
    """Reads from `start`, a position, until `stop`. `put` gets every item, then what has ended it if that was
    not `stop`; it may block, and is called in the thread. (The library can read to a log's end, too, but not
    reliably: it sends a few bytes too many, for which one kind of server then cuts the connection.)
    """

    def __init__(
        self,
        host: Host,
        login: tuple[str, str],
        tls: BackendTls | None,
        transactions: Transactions,
        *,
        start: str,
        domains: bool,
        connect_timeout: float,
        put: Callable[[Stream, Item | Exception], None],
    ) -> None:
        self.host, self.transactions = host, transactions
        self._start, self._domains, self._put = start, domains, put
        user, password = login
        self._settings: dict[str, Any] = {
            **address_of(host),
            "user": user,
            "password": password,
            "charset": "utf8mb4",
            "connect_timeout": connect_timeout,
            "read_timeout": _SILENT_SECONDS,
        }
        self._settings |= {"ssl_disabled": True} if tls is None else {"ssl": tls.context()}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"binlog {host}", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether it is to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Nothing is put any more; the thread ends within a heartbeat, or with the process."""
        self._stopping.set()

    def _run(self) -> None:
        end: Exception = Failed(f"{self.host}: its binary log has ended")
        try:
            self._read()
        except (_Gone, MySQLError, OSError) as error:
            if isinstance(error, _Gone):
                end = HostError(self.host, "the connection was lost", lost=True)
            else:
                end = problem(self.host, error)
        except Exception as error:
            end = error if isinstance(error, Failed) else self.transactions.unread(error)
        if not self._stopping.is_set():
            self._put(self, end)

    def _read(self) -> None:
        from pymysqlreplication import BinLogStreamReader

        mend()
        # it prints how to set up servers, and what it is given, passwords included
        logging.getLogger("pymysqlreplication").setLevel(logging.CRITICAL)
        reader = BinLogStreamReader(
            self._settings,
            # unlike that of any server: who has the same is thrown out
            secrets.randbelow(1 << 31) + (1 << 31) - 1,
            auto_position=self._start if self._domains else self._start or _NONE,
            is_mariadb=self._domains,
            blocking=True,
            slave_heartbeat=HEARTBEAT_SECONDS,
            filter_non_implemented_events=False,  # what cannot be read must not be left out
            enable_logging=False,
            pymysql_wrapper=_Once(),
        )
        try:
            for event in reader:
                for item in self.transactions.take(event):
                    self._put(self, item)
                if self._stopping.is_set():
                    return
        finally:
            reader.close()


class _Once:
    """Connects for the library: once for the log, and once to ask."""

    def __init__(self) -> None:
        self._connected = False

    def __call__(self, **settings: Any) -> Any:
        import pymysql

        if "db" not in settings:
            if self._connected:
                raise _Gone
            self._connected = True
        if "db" in settings:  # which PyMySQL calls otherwise by now
            settings["database"] = settings.pop("db")
        return pymysql.connect(**settings)
