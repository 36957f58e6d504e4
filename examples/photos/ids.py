"""What an ID says: 41 bits of milliseconds, 13 of shard, 10 of a sequence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

EPOCH_MS = 1_314_220_021_721
"""The milliseconds count from here, a day in August 2011: so 41 bits last until 2081."""


def parts(id: int) -> dict[str, Any]:
    """Of a photo's ID, for the page. The proxy made it: the shard is the user's (`user_id` modulo the number
    of shards), the sequence counts the shard's photos modulo 1024.
    """
    milliseconds = (id >> 23) + EPOCH_MS
    return {
        "time": datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds"),
        "shard": id >> 10 & 0x1FFF,
        "sequence": id & 0x3FF,
    }
