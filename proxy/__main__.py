"""The `shardgate` command, and `python -m proxy`."""

import signal
import sys

INTERRUPTED = 130
"""Exit status, as shells have it for Ctrl-C."""


def main() -> None:
    """Entry point of the command. Its imports take a while, in which Ctrl-C is no error of ours."""
    try:
        from .cli import main as run

        run()
    except KeyboardInterrupt:
        print("shardgate: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:  # what was done is done, and its exit status is to say so: the interpreter's end takes a while
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
