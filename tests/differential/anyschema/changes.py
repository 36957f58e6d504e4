"""Random writes and transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.differential.anyschema.places import AnyWorld

if TYPE_CHECKING:
    from tests.differential.anyschema.loop import Step


class Changes:
    def __init__(self, rng: random.Random, world: AnyWorld, number: int, *, mysql: bool) -> None:
        self.rng = rng

    def steps(self) -> Iterator[Step]:
        return iter(())
