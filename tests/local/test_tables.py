"""What the log says when the servers' columns are others than those that are known."""

from __future__ import annotations

from config.load import load_schema
from config.schema import Column, Schema
from proxy.catalog.tables import differences

DOCUMENT = load_schema(
    {
        "databases": {
            "demo": {
                "tables": {
                    "pins": {"kind": "object", "keyspace": "main", "type": 1},
                    "notes": {
                        "kind": "single",
                        "keyspace": "global",
                        "columns": {"id": "INT", "text": "TEXT"},
                    },
                }
            }
        }
    }
)


def having(schema: Schema, table: str, **columns: str) -> Schema:
    found = schema.table("demo", table)
    assert found is not None
    return schema.with_columns({found: tuple(Column(name, of) for name, of in columns.items())})


def test_the_servers_columns_are_no_news_at_first() -> None:
    """The document need not name all, and says INT where servers say int(11)."""
    served = having(DOCUMENT, "notes", id="int(11)", text="text", more="int(11)")
    assert served is not DOCUMENT
    assert differences(DOCUMENT, served, first=True) == []
    lacking = having(DOCUMENT, "notes", id="int(11)")
    assert differences(DOCUMENT, lacking, first=True) == ["demo.notes: not on the servers text"]


def test_later_all_that_has_changed_is_named() -> None:
    before = having(DOCUMENT, "notes", id="int(11)", text="text")
    after = having(before, "notes", id="bigint(20)", color="text")
    after = having(after, "pins", local_id="bigint(20)")
    pins = before.table("demo", "pins")
    assert pins is not None
    changed = differences(before, after, first=False)
    assert "demo.notes: new color; gone text; changed id" in changed
    assert any(one.startswith("demo.pins: ") for one in changed)
    assert differences(after, after, first=False) == []
