"""Strict mode for a SELECT that stands in the place of a part of a write.

A server evaluates the whole write in strict mode: a value that does not fit is an error. The same expression
in a SELECT gives a warning, so the warnings of that SELECT become the write's error before a row is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic
from proxy.wire.packets import Err

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.flavour import Flavour

_SQLSTATES: Final = {
    1048: "23000", 1261: "01000", 1262: "01000", 1263: "22004", 1264: "22003", 1265: "01000", 1292: "22007",
    1365: "22012", 1406: "22001", 1441: "22008", 1583: "42000", 3020: "2201E", 3156: "22018", 6527: "22008",
}  # fmt: skip
"""The SQLSTATEs of such errors where they are not HY000."""
_OF_PROXY: Final = 1105
"""The code of the proxy's own warnings, as that an ID matches no row. Servers give it in notes alone."""
_SHORTENED: Final = ("Truncated incorrect CHAR(", "Truncated incorrect BINARY(")


def strict_error(found: Sequence[Diagnostic], flavour: Flavour) -> Err | None:
    """The error that a server gives in strict mode in the place of these warnings; None when all of them are
    warnings there, too. Raises ProxyError when the server has not kept all of them.
    """
    for one in found:
        if one.level != "Warning" or one.code == _OF_PROXY:
            continue
        if flavour.strict_warnings is None:
            fails = not one.message.startswith(_SHORTENED)
        else:
            fails = one.code in flavour.strict_warnings
        if fails:
            return Err(one.code, _SQLSTATES.get(one.code, "HY000"), one.message.encode())
    if getattr(found, "total", 0) > len(found):
        raise ProxyError(
            "not_supported_yet",
            what="this write",
            reason="the SELECT that reads its values gives more than 1024 warnings",
            alternative="Write fewer rows, or say IGNORE.",
        )
    return None
