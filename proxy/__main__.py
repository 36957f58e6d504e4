"""`python -m proxy`: the same as the `shardgate` command."""

from .cli import main

if __name__ == "__main__":
    main()
