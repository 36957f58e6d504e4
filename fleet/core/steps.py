"""`Step`: one thing that a tool does, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from config.topology import Host


@dataclass(frozen=True)
class Step:
    """SQL on a host, or an action of the tool's own. `key` is the same in every run of the tool.

    Steps of one `stage` run side by side, stages one after another. Taking a step twice must do no harm. One
    with `final` cannot be taken back, nor what was before it. Of one with `holds` clients may wait until a
    `final` one is taken: what begins it and ends without that is taken back at once. `shown` stands for
    `statements` that have secrets.
    """

    key: str
    text: str
    host: Host = ""
    statements: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    action: str = ""
    stage: int = 0
    final: bool = False
    holds: bool = False

    def document(self) -> dict[str, Any]:
        """For the journal: without the statements, which are made anew."""
        made: dict[str, Any] = {"key": self.key, "text": self.text}
        return made | ({"host": self.host} if self.host else {}) | ({"final": True} if self.final else {})

    @property
    def lines(self) -> tuple[str, ...]:
        """What --dry-run prints: the statements, or what is done."""
        return self.shown or self.statements or (self.text,)


@dataclass(frozen=True)
class Planned:
    """A step as the journal has it."""

    key: str
    text: str
    host: Host = ""
    final: bool = False

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Planned:
        """What `Step.document` wrote."""
        host, final = str(document.get("host", "")), bool(document.get("final"))
        return cls(str(document["key"]), str(document["text"]), host, final)
