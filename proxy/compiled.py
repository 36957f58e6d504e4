"""Whether all that is compiled where there is a compiler is: see docs/decisions/compiled-loops.md."""

from __future__ import annotations

from typing import Final

from proxy.engine import relay
from proxy.wire import row_packets
from rewriter.route import by_id, id_lists

LOOPS: Final = all(module.COMPILED for module in (row_packets, id_lists, by_id))
"""The loops are, which have a twin in C."""
CLASSES: Final = not str(relay.__file__).endswith(".py")
"""The classes of the data path are, whose types stand in `.pxd` files: all of them or none."""
COMPILED: Final = LOOPS and CLASSES
