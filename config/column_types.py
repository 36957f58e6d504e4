"""The column types of MySQL and MariaDB, and what may stand in the parentheses behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class ColumnType(NamedTuple):
    """`least` and `most`: how many numbers may stand in its parentheses; `highest`: the first one's bound."""

    family: str
    least: int = 0
    most: int = 0
    highest: int = 1 << 32


_INTEGER: Final = ColumnType("integer", 0, 1, 255)
_REAL: Final = ColumnType("real", 0, 2, 255)
_EXACT: Final = ColumnType("exact", 0, 2, 65)
_TEXT: Final = ColumnType("text", 0, 0)
_BLOB: Final = ColumnType("blob", 0, 0)
_MOMENT: Final = ColumnType("moment", 0, 1, 6)
_SHAPE: Final = ColumnType("shape")
_OTHER: Final = ColumnType("other")

TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT"), _INTEGER),
    **dict.fromkeys(("INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT"), _INTEGER),
    **dict.fromkeys(("BOOL", "BOOLEAN"), ColumnType("integer")),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), _EXACT),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL", "FLOAT4", "FLOAT8"), _REAL),
    "BIT": ColumnType("bits", 0, 1, 64),
    "SERIAL": ColumnType("serial"),
    "CHAR": ColumnType("string", 0, 1, 255),
    "CHARACTER": ColumnType("string", 0, 1, 255),
    "NCHAR": ColumnType("string", 0, 1, 255),
    "VARCHAR": ColumnType("string", 1, 1, 65535),
    "VARCHAR2": ColumnType("string", 1, 1, 65535),
    "NVARCHAR": ColumnType("string", 1, 1, 65535),
    "BINARY": ColumnType("bytes", 0, 1, 255),
    "VARBINARY": ColumnType("bytes", 1, 1, 65535),
    "RAW": ColumnType("bytes", 1, 1, 65535),
    **dict.fromkeys(("TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "LONG", "CLOB"), _TEXT),
    "TEXT": ColumnType("text", 0, 1),
    **dict.fromkeys(("TINYBLOB", "MEDIUMBLOB", "LONGBLOB"), _BLOB),
    "BLOB": ColumnType("blob", 0, 1),
    "JSON": ColumnType("json"),
    "ENUM": ColumnType("list"),
    "SET": ColumnType("list"),
    "DATE": ColumnType("day"),
    "YEAR": ColumnType("day", 0, 1, 4),
    "TIME": ColumnType("time", 0, 1, 6),
    "DATETIME": _MOMENT,
    "TIMESTAMP": _MOMENT,
    **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT"), _SHAPE),
    **dict.fromkeys(("MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION"), _SHAPE),
    **dict.fromkeys(("UUID", "INET4", "INET6"), _OTHER),
    "VECTOR": ColumnType("other", 0, 1),
}
