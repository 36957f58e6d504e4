"""Variables that the proxy itself knows: its own, and what SET TRANSACTION sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from rewriter.plans.characteristics import Characteristics, Isolation

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_ON = frozenset({"1", "ON", "TRUE"})
_OFF = frozenset({"0", "OFF", "FALSE"})
_LEVELS = {level.value: level for level in Isolation}


def word(text: bytes | None) -> str:
    """A value without its quotes."""
    return (text or b"").decode("utf-8", "replace").strip().strip("'\"`")


def switch(name: str, text: bytes) -> bool:
    """A value that is ON or OFF. Raises ProxyError."""
    found = word(text).upper()
    if found in _ON:
        return True
    if found in _OFF:
        return False
    raise ProxyError("wrong_variable_value", variable=name, value=word(text))


def characteristic(client: Exchange, name: str, value: str) -> Characteristics:
    """SET TRANSACTION without SESSION: for the next transaction only, so not inside one."""
    if client.session.transaction.open:
        raise ProxyError("transaction_in_progress")
    asked = value.upper().replace("-", " ")
    if name in ("transaction_isolation", "tx_isolation") and asked in _LEVELS:
        return Characteristics(_LEVELS[asked])
    if name in ("transaction_read_only", "tx_read_only") and asked in _ON | _OFF:
        return Characteristics(read_only=asked in _ON)
    raise ProxyError("wrong_variable_value", variable=name, value=value)


#: Variables of a session that are kept for one statement of one connection, or read there with what other
#: sessions left: why they cannot be set, and what to do.
_OF_CONNECTION = {
    "insert_id": ("it is for one statement of one connection", "Give the id in the INSERT."),
    "gtid_seq_no": ("it is for one statement of one connection", "Set it on the server itself."),
    "gtid_next": ("it is for one transaction of one connection", "Set it on the server itself."),
    "pseudo_thread_id": ("it is the number of a server's connection", "Set it on the server itself."),
}


def check_setting(name: str, text: bytes | None) -> None:
    """Refuse what can only be set on a connection that is the session's alone. `text`: None for DEFAULT.
    Raises ProxyError.
    """
    if name == "sql_auto_is_null" and word(text).upper() in _ON:
        raise ProxyError("auto_is_null")
    if name in _OF_CONNECTION and not (name == "gtid_next" and word(text).upper() in ("", "AUTOMATIC")):
        reason, alternative = _OF_CONNECTION[name]
        raise ProxyError("not_supported_yet", what=f"SET {name}", reason=reason, alternative=alternative)


OWN = ("transaction_mode", "scatter_writes", "with_deleted")
"""The proxy's own variables, of which no server knows."""


_MODES = ("single", "multi", "xa")


def check_own(client: Exchange, name: str, value: str) -> None:
    """Refuse what is no value of the proxy's own variable, or not now. Raises ProxyError."""
    allowed = _MODES if name == "transaction_mode" else tuple(one.lower() for one in _ON | _OFF)
    if value and value.lower() not in allowed:
        raise ProxyError("wrong_variable_value", variable=name, value=value)
    if name != "transaction_mode":
        return
    session = client.session
    before, after = session.transaction_mode, value.lower() or session.user.transaction_mode
    if after == "xa" and not client.services.settings.xa.enabled:
        raise ProxyError("xa_off")
    if before != after and "xa" in (before, after) and session.transaction.open:
        raise ProxyError("transaction_in_progress")  # it is committed as it was begun


def set_own(client: Exchange, name: str, value: str) -> None:
    """Take over the value of the proxy's own variable."""
    session = client.session
    if name == "transaction_mode":
        session.transaction_mode = value.lower() or session.user.transaction_mode
    elif name == "scatter_writes":
        session.scatter_writes = value.upper() in _ON
    elif name == "with_deleted":
        session.with_deleted = value.upper() in _ON
    else:
        session.apply(Outcome(insert_id=int(value)))
