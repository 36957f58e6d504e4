"""Where spans of statements are sent, and of which statements there are some."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, model_validator

from config.fields import FilePath, Flag, Positive, like
from config.model import Model
from config.tls import OutgoingTlsField
from config.units import Duration

TRACES: Final = "/v1/traces"
"""Where a collector takes spans, by OTLP/HTTP."""

_HEADER: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RESERVED: Final = frozenset({"content-type", "content-length", "host", "transfer-encoding", "connection"})
_FORMS: Final = "must be a text, {env: NAME} or {file: PATH}"
_VALUE: Final = re.compile(r"[\t -~]*")


def _endpoint(value: str) -> str:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"must be a URL like http://127.0.0.1:4318: {error}") from None
    plain = value.isascii() and value.isprintable() and " " not in value
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not plain:
        raise ValueError("must be a URL like http://127.0.0.1:4318 (http or https)")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must have no password in it: write it into headers")
    if parts.fragment:
        raise ValueError("must have nothing behind #")
    return parts._replace(path=TRACES if parts.path in ("", "/") else parts.path).geturl()


def _header_name(value: str) -> str:
    if not re.fullmatch(_HEADER, value):
        raise ValueError(f"{value[:40]!r} is no name of an HTTP header")
    if value.lower() in _RESERVED:
        raise ValueError(f"{value}: the proxy writes this header itself")
    return value


def _written(value: object) -> object:
    if isinstance(value, str):
        return {"value": value}
    if not isinstance(value, Mapping | Header):
        raise ValueError(_FORMS)
    return value


class Header(Model):
    """What a header says: in the file, or named by an environment variable or a secret file."""

    value: SecretStr | None = None
    env: str | None = None
    file: FilePath | None = None
    _text: str = PrivateAttr("")

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        given = [name for name in ("value", "env", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(_FORMS)
        text = self._read()
        if not _VALUE.fullmatch(text):
            raise ValueError("a header's value has printable ASCII characters only")
        self._text = text
        return self

    def _read(self) -> str:
        if self.env is not None:
            if self.env not in os.environ:
                raise ValueError(f"env: the environment variable {self.env} is not set")
            return os.environ[self.env]
        if self.file is not None:
            try:
                return self.file.read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "is not UTF-8"
                raise ValueError(f"file: {self.file}: {reason}") from error
        assert self.value is not None
        return self.value.get_secret_value()

    @property
    def text(self) -> str:
        """The value in clear text, from wherever it comes."""
        return self._text


class Tracing(Model):
    """Spans of statements, for a collector of OpenTelemetry. `share`: of the statements that come without a
    `traceparent`.
    """

    endpoint: Annotated[str, AfterValidator(_endpoint)]
    headers: dict[
        Annotated[str, AfterValidator(_header_name)], Annotated[Header, BeforeValidator(_written)]
    ] = Field(default_factory=dict)
    tls: OutgoingTlsField = None
    service_name: Annotated[str, like(r"[ -~]{1,80}", "must have 1 to 80 printable characters")] = "shardgate"
    share: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.0
    hand_on: Flag = True
    queue: Annotated[Positive, Field(le=1_000_000)] = 10_000
    interval: Annotated[Duration, Field(gt=0, le=60)] = 1.0
    timeout: Annotated[Duration, Field(gt=0, le=60)] = 10.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.tls is not None and not self.endpoint.startswith("https:"):
            raise ValueError("tls is for an endpoint with https")
        if self.tls is not None and self.tls.mode == "off":
            raise ValueError("tls: mode off contradicts an endpoint with https")
        return self

    @property
    def texts(self) -> Mapping[str, str]:
        """The headers as they are sent."""
        return {name: header.text for name, header in self.headers.items()}
