"""Settings that can be used, but hardly as they are meant: a limit that another makes meaningless."""

from __future__ import annotations

from collections.abc import Iterator

from config.settings import Settings
from config.units import duration_text, size_text


def doubts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Names of settings and what to know of them. A default that is never reached is none's mistake."""
    limits, backends = settings.limits, settings.backends
    for larger, smaller in (("user_variables", "session_memory"), ("session_memory", "client_memory")):
        value, most = getattr(limits, larger), getattr(limits, smaller)
        if larger in limits.model_fields_set and value > most:
            text = f"{size_text(value)} is never reached: limits.{smaller} ends it at {size_text(most)}"
            yield f"limits.{larger}", text
    hang, connect = backends.hang_timeout, backends.connect_timeout
    if 0 < hang < connect:
        yield (
            "backends.connect_timeout",
            f"a host that hangs is waited for as long as {duration_text(connect)} when it is connected to,"
            f" though after {duration_text(hang)} (backends.hang_timeout) it is taken to hang",
        )
