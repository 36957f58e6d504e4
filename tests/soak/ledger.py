"""`Ledger`: entries that clients have written, and whether they are on the servers, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

Entry = tuple[int, int]
"""Account and number."""

START = 1000
"""What each purse has at first."""
PURSES = 8

#: The logical database of the soak, beside the demo's.
SCHEMA = {
    "ledger": {"kind": "mapping", "keyspace": "main", "from": "account", "to": "entry"},
    "purses": {"kind": "mapping", "keyspace": "main", "from": "account", "to": "purse"},
    "plain_ledger": {
        "kind": "single",
        "keyspace": "global",
        "columns": {"account": "BIGINT UNSIGNED NOT NULL", "entry": "BIGINT UNSIGNED NOT NULL"},
        "indexes": ["KEY (account, entry)"],
    },
}


@dataclass
class Ledger:
    """`done`: acknowledged. `refused`: with an error that says that it was not done. `unknown`: nobody knows.
    `together`: accounts that must have the same entries, and the sum of whose purses stays.
    """

    done: set[Entry] = field(default_factory=set)
    refused: set[Entry] = field(default_factory=set)
    unknown: set[Entry] = field(default_factory=set)
    together: list[tuple[int, ...]] = field(default_factory=list)

    def check(self, found: Counter[Entry], purses: dict[int, int]) -> Iterator[str]:
        """What is wrong with the entries found on the servers, and with the sums of purses by account."""
        yield from _some("acknowledged and not there", self.done - set(found))
        yield from _some("there more than once", {one for one, count in found.items() if count > 1})
        yield from _some("there, though the error said that it was not done", self.refused & set(found))
        strange = set(found) - self.done - self.refused - self.unknown
        yield from _some("there, and never written or not committed", strange)
        for accounts in self.together:
            entries = [{number for account, number in found if account == one} for one in accounts]
            for other in entries[1:]:
                yield from _some(f"in one of {accounts} only", {(accounts[0], n) for n in entries[0] ^ other})
            total, right = sum(purses.get(one, 0) for one in accounts), START * PURSES * len(accounts)
            if total != right:
                yield f"the purses of {accounts} hold {total}, not {right}"


def _some(what: str, entries: set[Entry]) -> Iterator[str]:
    if entries:
        yield f"{what}: {len(entries)} entries, as {sorted(entries)[:10]}"
