"""Functions of the servers whose names are ordinary names when a blank or a comment stands in front of the
parenthesis, unless sql_mode has IGNORE_SPACE: `COUNT (1)` calls a stored function.

Written by tests/rewriter/ask_functions.py.
"""

# fmt: off
from __future__ import annotations

from typing import Final

_NAMES_APART_BOTH: Final = """
ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT
JSON_ARRAYAGG JSON_OBJECTAGG MAX MID MIN NOW POSITION SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE
SUBSTR SUBSTRING SUM SYSTEM_USER TRIM VARIANCE VAR_POP VAR_SAMP
"""
_NAMES_APART_MARIADB: Final = """
CUME_DIST DENSE_RANK FIRST_VALUE LAG LEAD MEDIAN NTH_VALUE NTILE PERCENTILE_CONT PERCENTILE_DISC
PERCENT_RANK RANK TRIM_ORACLE
"""
_NAMES_APART_MYSQL: Final = """
JSON_DUALITY_OBJECT ST_COLLECT SYSDATE
"""
NAMES_APART: Final = {
    "mariadb": frozenset((_NAMES_APART_BOTH + _NAMES_APART_MARIADB).split()),
    "mysql": frozenset((_NAMES_APART_BOTH + _NAMES_APART_MYSQL).split()),
}
"""By the flavour."""
