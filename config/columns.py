"""What each kind of table needs of its columns, and the columns it gets when none are declared.

Two rules are worth their reasons:

IDs are 64 bits, so columns that hold them are BIGINT. (Old descriptions of this scheme print INT.)

A hashed table is only sound when "equal for the server" means "equal bytes": else a row is looked for
on another shard than the one it was put on. So a text key must be binary and without padding, under
which 'a' and 'A', and 'a' and 'a ', are different keys. No single collation name says so on both
servers: MySQL has utf8mb4_0900_bin, MariaDB has utf8mb4_nopad_bin, and utf8mb4_bin, which both have,
pads. A plain `VARCHAR(n)` key therefore gets both, each in the executable comment that only its
server opens:

    VARCHAR(255) CHARACTER SET utf8mb4
      /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */

VARBINARY(n) is as sound; clients then get bytes. CHAR and BINARY are refused: they lose or gain
trailing bytes. Both servers cut *trailing spaces* that exceed a VARCHAR's length without an error, in
strict mode too: keys longer than `Table.key_length` must not be hashed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Final

from config.column_type import read_definition
from config.document import Spot
from config.routing_columns import SOUND_COLLATIONS, has_no_default, is_computed, is_sound
from config.schema import SEQUENCE_TYPE, Colocation, Column, KeyType, Table

LOCAL_ID: Final = "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
DATA: Final = "JSON NOT NULL"
TS: Final = "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
ID: Final = "BIGINT UNSIGNED NOT NULL"
SEQUENCE: Final = "DECIMAL(38,0) NOT NULL"
TEXT_KEY: Final = (
    "CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */"
)

_TEXT: Final = re.compile(r"VARCHAR\s*\(\s*[0-9]+\s*\)", re.I)
_CHARSET: Final = re.compile(r"\b(?:CHARACTER\s+SET|CHARSET)\s*=?\s*['\"`]?(\w+)", re.I)


@dataclass(frozen=True)
class Draft:
    """The declared part of a table: its place, columns (None: not declared) and indexes (likewise).

    `places` maps a column's name to its definition and where that stands; `listed` has each index and where
    it stands.
    """

    spot: Spot
    places: dict[str, tuple[str, Spot]] | None
    listed: tuple[tuple[str, Spot], ...] | None

    @property
    def indexes(self) -> tuple[str, ...] | None:
        """The indexes as they are written; None when not declared."""
        return None if self.listed is None else tuple(text for text, _ in self.listed)

    @property
    def columns(self) -> dict[str, str] | None:
        """Name to definition, in order; None when not declared."""
        if self.places is None:
            return None
        return {name: definition for name, (definition, _) in self.places.items()}

    def find(self, name: str) -> tuple[str, Spot] | None:
        """The definition of a declared column (case-insensitive) and its place, or None."""
        for column, found in (self.places or {}).items():
            if column.lower() == name.lower():
                return found
        return None

    def needs(self, name: str, why: str) -> tuple[str, Spot] | None:
        """Like `find`; a problem when the column is not declared."""
        found = self.find(name)
        if found is None:
            self.spot.field("columns").refuse(f"column {name!r} is missing: {why}")
        return found

    def declared(self) -> bool:
        """Whether there are columns; a problem when not."""
        if self.places is None:
            self.spot.refuse("field 'columns' is missing")
        return self.places is not None


def object_table(table: Table, draft: Draft, *, type_: int | None, colocate: Colocation | None) -> Table:
    """local_id, data, ts; `local_id` comes first, and `id` is virtual."""
    stored = {"local_id": LOCAL_ID, "data": DATA, "ts": TS} if draft.columns is None else dict(draft.columns)
    found = draft.find("local_id")
    if found is None:
        stored = {"local_id": LOCAL_ID, **stored}
    else:
        definition, place = found
        if next(iter(stored)).lower() != "local_id":
            place.refuse("must be the first column")
        facts = read_definition(definition)
        if facts.type.kind != "bigint" or not facts.auto_increment:
            place.refuse(f"must be {LOCAL_ID}: a local id is 36 bits, and the server counts it")
    virtual = draft.find("id")
    if virtual:
        virtual[1].refuse("an object table has no column 'id': clients see the ID made of local_id there")
    if colocate:
        _check_colocation(colocate, stored, draft)
    return replace(
        table,
        type=type_,
        columns=_columns(stored),
        indexes=draft.indexes or (),
        routing="id",
        key_type=KeyType.INTEGER,
        colocate=colocate,
    )


def _check_colocation(colocate: Colocation, stored: dict[str, str], draft: Draft) -> None:
    """The column is there, unless it only routes; a strict one takes nothing that would not be checked."""
    place = draft.spot.field("colocate")
    name = colocate.column
    definition = next((one for column, one in stored.items() if column.lower() == name.lower()), None)
    if colocate.path is not None:
        if definition is None:
            place.refuse(f"the path {colocate.path} needs a column {name!r} to be found in")
        return
    if definition is None and colocate.stored:
        near = difflib.get_close_matches(name, stored, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        place.refuse(
            f"there is no column {name!r}: {hint}if INSERTs give it only to choose the shard, write"
            f" {{column: {name}, stored: false}}"
        )
    elif definition is not None and not colocate.stored:
        place.refuse(f"the table has a column {name!r}: leave out 'stored: false'")
    elif definition is not None and colocate.strict:
        facts = read_definition(definition)
        if facts.type.kind != "bigint":
            place.refuse(f"column {name!r} holds 64-bit IDs: must be BIGINT")
        if not has_no_default(facts):
            place.refuse(f"column {name!r} of a strict colocation has no DEFAULT but NULL")
        if is_computed(facts):
            place.refuse(f"column {name!r} of a strict colocation is given, not computed")


def mapping_table(
    table: Table,
    draft: Draft,
    *,
    from_: str | None,
    to: str | None,
    sequence: str | None,
    orderable: bool,
    procedure: str | None,
) -> Table:
    """From-ID, to-ID, sequence, and an index on the three. `procedure`: None for the usual name."""
    if from_ is None or to is None or sequence is None:
        return table
    if len({from_.lower(), to.lower(), sequence.lower()}) < 3:
        draft.spot.refuse("'from', 'to' and 'sequence' must be three columns")
        return table
    stored = {from_: ID, to: ID, sequence: SEQUENCE} if draft.columns is None else draft.columns
    if draft.columns is not None:
        for name in (from_, to):
            found = draft.needs(name, "it is one of the mapping's IDs")
            if found and read_definition(found[0]).type.kind != "bigint":
                found[1].refuse("holds 64-bit IDs: must be BIGINT")
            elif found and name == from_:
                _check_given(*found)
        found = draft.needs(sequence, "it orders the mapping")
        if found:
            _check_sequence(*found, orderable=orderable)
    return replace(
        table,
        columns=_columns(stored),
        indexes=(_key(from_, sequence, to),) if draft.indexes is None else draft.indexes,
        routing=from_,
        key_type=KeyType.INTEGER,
        from_column=from_,
        to_column=to,
        sequence_column=sequence,
        orderable=orderable,
        procedure=(procedure or procedure_name(from_, to)) if orderable else "",
    )


def procedure_name(from_: str, to: str) -> str:
    """What an orderable mapping is reordered by, if the schema does not say it.

    >>> procedure_name("board_id", "pin_id")
    'reorder_board_pin'
    """
    return "_".join(("reorder", from_.lower().removesuffix("_id"), to.lower().removesuffix("_id")))[:64]


def _check_sequence(definition: str, place: Spot, *, orderable: bool) -> None:
    kind = read_definition(definition).type
    if (kind.kind, kind.length, kind.decimals or 0) == SEQUENCE_TYPE:
        return
    if orderable:
        place.refuse("must be DECIMAL(38,0): an orderable mapping needs the room between two sequences")
    elif kind.kind != "bigint":
        place.refuse("must be DECIMAL(38,0) or BIGINT")


def timed_table(table: Table, draft: Draft, shard_key: str | None) -> Table:
    """The whole ID is stored, in `id`."""
    if not draft.declared():
        return table
    stored = dict(draft.columns or {})
    found = draft.find("id")
    if found is None:
        stored = {"id": f"{ID} PRIMARY KEY", **stored}
    elif (facts := read_definition(found[0])).type.kind != "bigint" or is_computed(facts):
        found[1].refuse("must be BIGINT without AUTO_INCREMENT: it holds the whole ID, which is made here")
    if shard_key:
        key = draft.needs(shard_key, "it is the shard key")
        if key and not read_definition(key[0]).type.integer:
            key[1].refuse("is the shard key: must be an integer")
        elif key:
            _check_given(*key)
    return replace(
        table,
        columns=_columns(stored),
        indexes=draft.indexes or (),
        routing="id",
        key_type=KeyType.INTEGER,
        shard_key=shard_key,
    )


def hashed_table(table: Table, draft: Draft, key: str | None) -> Table:
    """Routed by the hash of `key`, whose definition is made sound or refused."""
    if not draft.declared() or key is None:
        return table
    stored = dict(draft.columns or {})
    found = draft.needs(key, "it is the table's key")
    key_type, length = None, None
    if found:
        definition, place = found
        key_type, length = _key_type(definition, place)
        if key_type is not None:
            _check_given(definition, place)
        if key_type is KeyType.TEXT:
            stored[str(place.path[-1])] = sound_text(definition)
    return replace(
        table,
        columns=_columns(stored),
        indexes=draft.indexes or (),
        routing=key,
        key_type=key_type,
        key_length=length,
    )


def _check_given(definition: str, place: Spot) -> None:
    """A row is placed by the value that the client gives."""
    if is_computed(read_definition(definition)):
        place.refuse("says on which shard a row is: its values are given, not computed")


def _key_type(definition: str, place: Spot) -> tuple[KeyType | None, int | None]:
    """The type of a hashed key and its length; None after noting why it is not sound."""
    found = read_definition(definition).type
    if found.integer:
        return KeyType.INTEGER, None
    if found.kind == "varbinary" and found.length is not None:
        return KeyType.BINARY, found.length
    if found.length is None or not _TEXT.match(definition):
        place.refuse("a hashed key must be VARCHAR(n), VARBINARY(n) or an integer")
        return None, None
    if (found.charset or "utf8mb4").lower() != "utf8mb4":
        place.refuse(
            f"the hash is of UTF-8 bytes: the key's character set must be utf8mb4, not {found.charset}"
        )
    if found.bytewise:
        place.refuse("BINARY, ASCII, UNICODE and BYTE choose a collation that pads: leave them out")
    for collation in found.collations:
        if not is_sound((collation,)):
            place.refuse(
                f"collation {collation} calls different bytes equal: leave it out,"
                f" or use {' (MySQL) or '.join(SOUND_COLLATIONS)} (MariaDB)"
            )
    return KeyType.TEXT, found.length


def sound_text(definition: str) -> str:
    """`definition` (VARCHAR(n) …) with a binary NO PAD collation on both servers, unless it names one."""
    if read_definition(definition).type.collations:
        return definition
    text = _TEXT.match(definition)
    if text is None:
        return definition
    rest = _CHARSET.sub("", definition[text.end() :], count=1).strip()
    return f"{definition[: text.end()]} {TEXT_KEY} {rest}".strip()


def single_table(table: Table, draft: Draft) -> Table:
    """Columns may be left undeclared: statements go to the host as they are."""
    return replace(table, columns=_columns(draft.columns or {}), indexes=draft.indexes or ())


def reference_table(table: Table, draft: Draft) -> Table:
    """Columns are needed: the table is created on every host."""
    draft.declared()
    return single_table(table, draft)


def _columns(stored: dict[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, definition) for name, definition in stored.items())


def _key(*names: str) -> str:
    return "KEY (" + ", ".join(f"`{name}`" for name in names) + ")"
