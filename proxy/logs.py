"""Logs: structlog on standard error, one JSON object a line or text for a terminal.

The standard library's loggers (the topology sources, kazoo, aiohttp, asyncio) go the same way and look the
same. No record shows data of clients: values under telling names are masked, and the messages of exceptions,
which often quote what they were given, lose their quoted parts and numbers. Tracebacks show code, never
variables.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TextIO

import structlog

from config.document import ConfigError
from config.settings import Logging

from .log_writer import LogWriter, WriterHandler

#: Loggers that are of interest only when something is wrong, or at level debug.
_QUIET: Final = ("shardgate.topology.kazoo", "kazoo", "aiohttp", "asyncio", "concurrent")

#: Fields whose values are never shown: secrets, and SQL with its literals.
_MASKED: Final = re.compile(
    r"(?:.*_)?(?:password|passwd|secret|token|nonce|credentials?|sql|query|statement_text|literals?)\Z", re.I
)
_MASK: Final = "***"

#: A quoted part, or a number that is not part of a word.
_DATA: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`])*`|(?<![\w.])[-+]?\d[\w.]*""", re.S
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_writer: LogWriter | None = None

#: So many lines of one kind go out within a second.
_MOST: Final = 20
#: Those of which each one counts: whoever wants no slow statements logged sets `logging.slow_query_ms`.
_EACH: Final = frozenset({"slow statement"})

Event = MutableMapping[str, Any]


def configure(settings: Logging, stream: TextIO | None = None) -> None:
    """Send all logs of this process to `stream` (standard error) as the settings say. May be called again."""
    global _repeats
    _repeats = Repeats()
    target = stream if stream is not None else sys.stderr
    text = settings.format == "text" or (settings.format == "auto" and target.isatty())
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        mask,
        describe_exception,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            _repeats.judge,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _handler(target, stream is None)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *(_for_people(target) if text else _for_machines()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else level)
    logging.captureWarnings(True)


def _handler(target: TextIO, own: bool) -> logging.Handler:
    """What writes: by a thread when it is the process's `own` standard error."""
    global _writer
    if own:
        with suppress(OSError, ValueError):
            _writer = LogWriter(target.fileno())
            return WriterHandler(_writer)
    return logging.StreamHandler(target)


def rest() -> None:
    """Before a process ends or forks: all is written, if anybody reads it."""
    if _writer is not None:
        _repeats.tell(force=True)
        _writer.rest()


def lost() -> int:
    """Lines that this process could not write since it began, because nobody read."""
    return 0 if _writer is None else _writer.lost


class Repeats:
    """Lets so many lines of one kind (logger, event) through in a second, and counts the others: what
    somebody can cause again and again, without even logging in, must not bury the rest.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], list[float]] = {}  # since when, lines, lines left out

    def judge(self, logger: Any, method: str, event: Event) -> Event:
        """A processor. Raises DropEvent for a line too many."""
        text, now = str(event.get("event", "")), self._clock()
        if text in _EACH:
            return event
        key = str(getattr(logger, "name", "")), text
        found = self._kinds.setdefault(key, [now, 0, 0])
        if now - found[0] >= 1:
            found[0], found[1] = now, 0
        found[1] += 1
        if found[1] > _MOST:
            found[2] += 1
            raise structlog.DropEvent
        return event

    def tell(self, force: bool = False) -> None:
        """Now and then: say what was left out, and forget what is quiet; with `force` at once."""
        now = self._clock()
        for key, (since, _, left) in list(self._kinds.items()):
            if force or now - since >= 1:
                del self._kinds[key]
                if left:
                    name, text = key
                    structlog.get_logger(name).warning("lines left out", like=text, lines=int(left))


_repeats = Repeats()


def tell_lost() -> None:
    """Say how many lines were lost, when they can be written again, and how many were left out."""
    _repeats.tell()
    if _writer is not None and (lines := _writer.take_untold()):
        structlog.get_logger("proxy").warning("log lines were lost: nobody read the log", lines=lines)


def mask(logger: Any, method: str, event: Event) -> Event:
    """Hide values under names that tell of secrets or SQL."""
    for key in event:
        if _MASKED.match(key):
            event[key] = _MASK
    return event


def describe_exception(logger: Any, method: str, event: Event) -> Event:
    """Turn `exc_info` into the text `exception`: frames without variables, messages without data."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    if isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    if isinstance(given, tuple) and given[1] is not None:
        event["exception"] = traceback_of(given[1])
    return event


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception and of those that led to it, innermost last, without data of clients."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        parts.append(_one(current, current.__traceback__))
        cause = current.__cause__
        if cause is None and not current.__suppress_context__:
            cause = current.__context__
        current = cause
    return "\nled to:\n".join(reversed(parts))


def _one(error: BaseException, trace: TracebackType | None) -> str:
    frames = "".join(traceback.StackSummary.extract(traceback.walk_tb(trace), limit=-40).format())
    text = f"{frames}{type(error).__qualname__}: {message_of(error)}"
    if isinstance(error, BaseExceptionGroup):
        inner = "\n".join(traceback_of(one) for one in error.exceptions)
        text += "\n" + textwrap.indent(inner, "  | ")
    return text


def message_of(error: BaseException) -> str:
    """An exception's message; unless it is known to be free of data, what it quotes is masked."""
    if isinstance(error, OSError | ConfigError):
        return str(error)
    return _DATA.sub("?", str(error))


def _for_machines() -> list[structlog.typing.Processor]:
    return [_add_pid, _arrange, structlog.processors.JSONRenderer(serializer=_to_json)]


def _for_people(target: TextIO) -> list[structlog.typing.Processor]:
    colors = target.isatty() and "NO_COLOR" not in os.environ
    return [
        _one_line,
        structlog.dev.ConsoleRenderer(colors=colors, timestamp_key="time", pad_event_to=36, sort_keys=False),
    ]


def _add_pid(logger: Any, method: str, event: Event) -> Event:
    event["pid"] = os.getpid()  # asked each time: workers are forked after logs are configured
    return event


def _arrange(logger: Any, method: str, event: Event) -> Event:
    """The fields that every record has come first."""
    first = {key: event.pop(key) for key in ("time", "level", "logger", "event", "pid") if key in event}
    return {**first, **event}


def _to_json(event: Event, **options: Any) -> str:
    text = json.dumps(event, ensure_ascii=False, default=_plain)
    return text if text.isprintable() else _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _one_line(logger: Any, method: str, event: Event) -> Event:
    """A client cannot forge lines or send escape sequences to a terminal through what it is called."""
    for key, value in event.items():
        if key == "exception" or not isinstance(value, str | bytes):
            continue
        event[key] = _CONTROL.sub(lambda found: repr(found[0])[1:-1], _plain(value))
    return event
