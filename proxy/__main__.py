"""The `shardgate` command, and `python -m proxy`."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

INTERRUPTED = 130
"""Exit status, as shells have it for Ctrl-C."""


def main() -> None:
    """Entry point of the command. Its imports take a while, in which Ctrl-C is no error of ours."""
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds:  # an exception might be raised where a library swallows it, and the command would go on
        signal.signal(signal.SIGINT, lambda *_: os._exit(_interrupted()))
    try:
        run = _command(sys.argv[1:])
        if heeds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        sys.exit(_interrupted())
    finally:  # what was done is done, and its exit status is to say so: the interpreter's end takes a while
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _command(arguments: Sequence[str]) -> Callable[[], object]:
    """What to do. A proxy, when its arguments are the usual ones, goes without what makes all other commands,
    and the help and errors of this one.
    """
    match arguments:
        case ["serve"]:
            files: tuple[Path, ...] = ()
        case ["serve", "--config" | "-c", file] if not file.startswith("-"):
            files = (Path(file),)
        case _:
            from .cli import main

            return main
    _import_structlog()
    from .serving import serve

    return lambda: sys.exit(serve(*files))


def _import_structlog() -> None:
    """Without Rich and Pygments, 4 MB, which it takes along where it finds them: it would show tracebacks by
    them. `logs` writes those itself.
    """
    sys.modules["rich"] = None  # type: ignore[assignment]  # to be found nowhere, as Python has it
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def _interrupted() -> int:
    print("shardgate: interrupted", file=sys.stderr, flush=True)
    return INTERRUPTED


if __name__ == "__main__":
    main()
