"""The `shardgate` command, and `python -m proxy`."""

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


if __name__ == "__main__":
    main()
