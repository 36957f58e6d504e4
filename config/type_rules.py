"""The column types of MySQL and MariaDB, and what may stand in the parentheses behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class TypeRule(NamedTuple):
    """`least` and `most`: how many numbers may stand in its parentheses; `highest`: the first one's bound."""

    family: str
    least: int = 0
    most: int = 0
    highest: int = 1 << 32


_INTEGER: Final = TypeRule("integer", 0, 1, 255)
_REAL: Final = TypeRule("real", 0, 2, 255)
_EXACT: Final = TypeRule("exact", 0, 2, 65)
_TEXT: Final = TypeRule("text", 0, 0)
_BLOB: Final = TypeRule("blob", 0, 0)
_MOMENT: Final = TypeRule("moment", 0, 1, 6)
_SHAPE: Final = TypeRule("shape")
_OTHER: Final = TypeRule("other")

TYPES: Final[Mapping[str, TypeRule]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT"), _INTEGER),
    **dict.fromkeys(("INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT"), _INTEGER),
    **dict.fromkeys(("BOOL", "BOOLEAN"), TypeRule("integer")),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), _EXACT),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL", "FLOAT4", "FLOAT8"), _REAL),
    "BIT": TypeRule("bits", 0, 1, 64),
    "SERIAL": TypeRule("serial"),
    "CHAR": TypeRule("string", 0, 1, 255),
    "CHARACTER": TypeRule("string", 0, 1, 255),
    "NCHAR": TypeRule("string", 0, 1, 255),
    "VARCHAR": TypeRule("string", 1, 1, 65535),
    "VARCHAR2": TypeRule("string", 1, 1, 65535),
    "NVARCHAR": TypeRule("string", 1, 1, 65535),
    "BINARY": TypeRule("bytes", 0, 1, 255),
    "VARBINARY": TypeRule("bytes", 1, 1, 65535),
    "RAW": TypeRule("bytes", 1, 1, 65535),
    **dict.fromkeys(("TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "LONG", "CLOB"), _TEXT),
    "TEXT": TypeRule("text", 0, 1),
    **dict.fromkeys(("TINYBLOB", "MEDIUMBLOB", "LONGBLOB"), _BLOB),
    "BLOB": TypeRule("blob", 0, 1),
    "JSON": TypeRule("json"),
    "ENUM": TypeRule("list"),
    "SET": TypeRule("list"),
    "DATE": TypeRule("day"),
    "YEAR": TypeRule("day", 0, 1, 4),
    "TIME": TypeRule("time", 0, 1, 6),
    "DATETIME": _MOMENT,
    "TIMESTAMP": _MOMENT,
    **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT"), _SHAPE),
    **dict.fromkeys(("MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION"), _SHAPE),
    **dict.fromkeys(("UUID", "INET4", "INET6"), _OTHER),
    "VECTOR": TypeRule("other", 0, 1),
}
