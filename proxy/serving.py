"""``shardgate serve`` without the other commands: what those are made with (Typer, the fleet tools) would
take time at start, and then memory for as long as the proxy runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from config.document import ConfigError
from config.load import check, load_settings
from config.settings import FILE
from config.sources.schema import schema_before

from .logs import configure
from .server import serve as run


def serve(config: Path = FILE) -> int:
    """Run the proxy; the exit status."""
    try:
        settings, schema, _ = check(config)
    except ConfigError as error:
        print(f"shardgate: the configuration cannot be used:\n{error}", file=sys.stderr)
        return 2
    configure(settings.logging)
    return run(settings, schema or schema_before(settings), lambda: load_settings(config))
