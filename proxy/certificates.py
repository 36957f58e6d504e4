"""TLS contexts that follow their files.

A context is made when the process starts, and anew on SIGHUP and when one of its files has changed. What
cannot be used is refused: the old one stays, and a log line says why. Connections that stand keep theirs.
"""

from __future__ import annotations

import datetime as dt
import os
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from config.settings import Settings
from config.tls import BackendTls

log = structlog.get_logger("proxy")

#: Seconds between two looks at the files.
_LOOK = 1.0

Stamp = tuple[tuple[int, ...], ...]


class Source(Protocol):
    """Where a context comes from: `config.tls`'s settings."""

    @property
    def files(self) -> Sequence[Path]: ...

    def context(self) -> ssl.SSLContext:
        """Raises ValueError when the files cannot be used."""

    def validity_problem(self, now: dt.datetime) -> str | None:
        """Why the peer may refuse our certificate; None when it is in its time, or there is none."""


class Certificates:
    """`context` is the one to use for the next connection. ValueError when there is none to begin with."""

    def __init__(self, name: str, source: Source, now: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._source = source
        self._now = now
        self._stamp = self._seen = self._look()
        self._look_at = now() + _LOOK
        self.context = source.context()
        problem = source.validity_problem(dt.datetime.now(dt.UTC))
        if problem is not None:
            log.warning("the certificate may be refused", of=name, reason=problem)

    def tick(self) -> None:
        """Once a second, see whether the files have changed. They must have come to rest: a certificate and
        its key are two files.
        """
        now = self._now()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK
        stamp = self._look()
        if stamp != self._stamp and stamp == self._seen:
            self.reload()
        self._seen = stamp

    def catch_up(self) -> None:
        """Read the files again if they have changed, without waiting for them to come to rest."""
        if self._look() != self._stamp:
            self.reload()

    def reload(self) -> None:
        """Read the files again, changed or not."""
        self._stamp = self._look()
        try:
            context = self._source.context()
            problem = self._source.validity_problem(dt.datetime.now(dt.UTC))
            if problem is not None:
                raise ValueError(problem)
        except ValueError as error:
            log.error("certificate refused, the old one stays", of=self._name, reason=str(error))
            return
        self.context = context
        log.info("certificate loaded", of=self._name)

    def _look(self) -> Stamp:
        """What tells two states of the files apart."""
        stamps: list[tuple[int, ...]] = []
        for path in self._source.files:
            try:
                found = os.stat(path)
                stamps.append((found.st_mtime_ns, found.st_ino, found.st_size))
            except OSError:
                stamps.append(())  # for the moment, perhaps
        return tuple(stamps)


class CertificateStore:
    """All TLS contexts of a process, and of the workers it forks: one forked later, when the files may have
    gone bad, begins with those of the start if need be, or else catches up. ValueError for a bad file.
    """

    def __init__(self, settings: Settings) -> None:
        self.clients = None if settings.tls is None else Certificates("clients", settings.tls)
        self._backends = settings.backends
        self._hosts: dict[BackendTls, Certificates] = {}
        for host in ("", *settings.backends.hosts):
            tls = settings.backends.tls_for(host)
            if tls is not None and tls not in self._hosts:
                self._hosts[tls] = Certificates(f"host {host}" if host else "hosts", tls)

    def of_host(self, host: str) -> Certificates | None:
        """What connections to `host` use; None when they are not encrypted."""
        tls = self._backends.tls_for(host)
        return None if tls is None else self._hosts[tls]

    def catch_up(self) -> None:
        """See `Certificates.catch_up`."""
        for one in self._all():
            one.catch_up()

    def tick(self) -> None:
        """See `Certificates.tick`."""
        for one in self._all():
            one.tick()

    def reload(self) -> None:
        """See `Certificates.reload`."""
        for one in self._all():
            one.reload()

    def _all(self) -> list[Certificates]:
        return [*self._hosts.values(), *([self.clients] if self.clients is not None else [])]
