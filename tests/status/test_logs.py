"""Logs: one way out for structlog and the standard library, and nothing of clients' data in them."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from config.document import ConfigError, Problem
from config.settings import Logging
from proxy import logs

SECRET = "geheim-4711"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Configure = Callable[..., io.StringIO]


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Configures logs into a buffer; afterwards the standard library and structlog are as before."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, {name: logging.getLogger(name).level for name in logs._QUIET}
    config = structlog.get_config()

    def run(stream: io.StringIO | None = None, **settings: Any) -> io.StringIO:
        target = io.StringIO() if stream is None else stream
        logs.configure(Logging(**settings), target)
        return target

    yield run
    logging.captureWarnings(False)
    root.handlers[:], level, levels = before
    root.setLevel(level)
    for name, one in levels.items():
        logging.getLogger(name).setLevel(one)
    structlog.configure(**config)


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logger(name: str = "proxy") -> Any:
    """Not one that an earlier configuration is cached in."""
    return structlog.get_logger(name).bind()


def test_one_json_object_a_line(configure: Configure) -> None:
    stream = configure(format="json")
    logger().info("serving", version="8.4.0", listen=["127.0.0.1:3307"], error=OSError(2, "No such file"))
    logger().warning("two\nlines", text=b"\xff\x00")
    first, second = records(stream)
    assert list(first)[:5] == ["time", "level", "logger", "event", "pid"]
    assert (first["level"], first["logger"], first["event"]) == ("info", "proxy", "serving")
    assert (first["version"], first["listen"]) == ("8.4.0", ["127.0.0.1:3307"])
    assert first["error"] == "[Errno 2] No such file"
    assert first["time"].endswith("Z")
    assert (second["event"], second["text"]) == ("two\nlines", "\\xff\x00")


def test_the_standard_library_goes_the_same_way(configure: Configure) -> None:
    stream = configure(format="json")
    logging.getLogger("shardgate.topology").warning("version %d is stale", 6)
    (record,) = records(stream)
    assert (record["logger"], record["level"], record["event"]) == (
        "shardgate.topology", "warning", "version 6 is stale",
    )  # fmt: skip


def test_pythons_warnings_too(configure: Configure) -> None:
    stream = configure(format="json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert records(stream)[0]["logger"] == "py.warnings"


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_levels(configure: Configure, level: str, count: int) -> None:
    stream = configure(format="json", level=level)
    for name in ("debug", "info", "warning", "error"):
        getattr(logger(), name)("event")
    assert len(records(stream)) == count
    for name in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger("shardgate.topology"), name)("event")
    assert len(records(stream)) == 2 * count


def test_libraries_are_quiet_unless_asked(configure: Configure) -> None:
    quiet, loud = configure(format="json"), None
    logging.getLogger("shardgate.topology.kazoo").info("Connecting")
    logging.getLogger("shardgate.topology.kazoo").warning("Connection dropped")
    assert [one["event"] for one in records(quiet)] == ["Connection dropped"]
    loud = configure(format="json", level="debug")
    logging.getLogger("kazoo.client").debug("Sending request")
    assert len(records(loud)) == 1
    assert len(records(quiet)) == 1


@pytest.mark.parametrize(
    ("wanted", "stream", "text"),
    [
        ("auto", Terminal, True),
        ("auto", io.StringIO, False),
        ("text", io.StringIO, True),
        ("json", Terminal, False),
    ],
)
def test_formats(configure: Configure, wanted: str, stream: type[io.StringIO], text: bool) -> None:
    target = configure(stream(), format=wanted)
    logger().info("serving", port=3307)
    written = target.getvalue()
    assert written.startswith("{") is not text
    assert "serving" in written
    assert "3307" in written


def test_colours_only_on_a_terminal_that_likes_them(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    written = []
    for stream in (Terminal(), io.StringIO()):
        configure(stream, format="text")
        logger().info("serving")
        written.append("\x1b[" in stream.getvalue())
    monkeypatch.setenv("NO_COLOR", "1")
    stream = configure(Terminal(), format="text")
    logger().info("serving")
    assert [*written, "\x1b[" in stream.getvalue()] == [True, False, False]


def test_nobody_forges_a_line_of_text(configure: Configure) -> None:
    stream = configure(format="text")
    logger().warning("log-in refused", user="x\n2026-01-01 [info] all is well\x1b[2J\u2028", reason=b"a\r\nb")
    logging.getLogger("aiohttp").error("bad\nrequest")
    assert len(stream.getvalue().splitlines()) == 2
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_obeys_nothing_of_json_either(configure: Configure) -> None:
    """CSI is one character, too, and JSON may have it as it is."""
    stream = configure(format="json")
    user = "a\x9b31m\x7f\u2028\x1b[2J é"
    logger().warning("refused", user=user)
    assert stream.getvalue().rstrip("\n").isprintable()
    assert records(stream)[0]["user"] == user


@pytest.mark.parametrize("key", ["password", "sql", "query", "literals", "user_password", "token", "SQL"])
@pytest.mark.parametrize("wanted", ["json", "text"])
def test_values_under_telling_names_are_masked(configure: Configure, key: str, wanted: str) -> None:
    stream = configure(format=wanted)
    logger().info("event", **{key: SECRET})
    assert SECRET not in stream.getvalue()
    assert "***" in stream.getvalue()


@pytest.mark.parametrize("key", ["sqlstate", "slow_queries", "queries", "statement_kind", "passwords_tried"])
def test_other_names_are_not(configure: Configure, key: str) -> None:
    stream = configure(format="json")
    logger().info("event", **{key: "shown"})
    assert records(stream)[0][key] == "shown"


def fail(data: str) -> None:
    number = 4711
    try:
        raise KeyError(data)
    except KeyError as error:
        raise ValueError(f"bad value '{data}' in \"{data}\" near {number} and 0x{number:x}") from error


@pytest.mark.parametrize("wanted", ["json", "text"])
@pytest.mark.parametrize("how", ["exc_info", "true", "stdlib"])
def test_exceptions_show_where_but_no_data(configure: Configure, wanted: str, how: str) -> None:
    stream = configure(format=wanted)
    try:
        fail(SECRET)
    except ValueError as error:
        if how == "exc_info":
            logger().error("internal error", exc_info=error)
        elif how == "true":
            logger().exception("internal error")
        else:
            logging.getLogger("asyncio").exception("internal error")
    written = stream.getvalue()
    assert "ValueError: bad value ? in ? near ? and ?" in written
    assert "KeyError: ?" in written
    assert "led to:" in written
    assert "in fail" in written
    assert SECRET not in written
    assert "4711" not in written.replace("number = 4711", "")


def test_messages_known_to_be_free_of_data_stay() -> None:
    assert logs.message_of(ConnectionRefusedError(111, "Connect call failed ('db1', 3306)")) == (
        "[Errno 111] Connect call failed ('db1', 3306)"
    )
    problem = ConfigError([Problem("users[0]", "'rol' is unknown", "shardgate.yaml")])
    assert "'rol' is unknown" in logs.message_of(problem)


def test_a_group_shows_its_exceptions() -> None:
    group = ExceptionGroup("two", [ValueError("'a'"), ExceptionGroup("one", [OSError("gone")])])
    text = logs.traceback_of(group)
    assert "ExceptionGroup: two" in text
    assert "  | ValueError: ?" in text
    assert "  |   | OSError: gone" in text


def test_exceptions_that_caused_each_other_end() -> None:
    first, second = ValueError("1"), TypeError("2")
    first.__cause__, second.__cause__ = second, first
    assert logs.traceback_of(first).count("Error: ?") == 2


def test_configuring_again_replaces(configure: Configure) -> None:
    old = configure(format="json")
    new = configure(format="json")
    logging.getLogger("x").warning("once")
    assert (old.getvalue(), len(records(new))) == ("", 1)


class Session:
    name = "session"


def test_lines_of_one_kind_have_a_limit() -> None:
    now = [100.0]
    repeats = logs.Repeats(lambda: now[0])

    def said(event: str) -> bool:
        try:
            return bool(repeats.judge(Session(), "info", {"event": event})["event"] == event)
        except structlog.DropEvent:
            return False

    assert sum(said("TLS handshake failed") for _ in range(300)) == 20
    assert said("something else")
    assert all(said("slow statement") for _ in range(300))
    now[0] += 1
    assert said("TLS handshake failed")


def test_what_was_left_out_is_told(configure: Configure) -> None:
    stream = configure(format="json")
    for number in range(25):
        logger("session").warning("log-in refused", number=number)
    logs._repeats.tell(force=True)
    *shown, last = records(stream)
    assert [one["number"] for one in shown] == list(range(20))
    assert (last["event"], last["like"], last["lines"]) == ("lines left out", "log-in refused", 5)
