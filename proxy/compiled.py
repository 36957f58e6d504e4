"""Whether all that has a twin in C runs there: see docs/decisions/compiled-loops.md."""

from __future__ import annotations

from typing import Final

from proxy import load
from proxy.frontend import plain
from proxy.wire import row_packets
from rewriter.route import by_id, id_lists

COMPILED: Final = all(module.COMPILED for module in (row_packets, load, id_lists, by_id, plain))
