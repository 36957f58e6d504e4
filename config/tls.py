"""Settings of TLS, towards clients and towards hosts, and the contexts made of them.

The files are read and checked against each other when the settings are loaded, and again whenever they
change.
"""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from config.fields import FilePath, Flag
from config.model import Model

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def certificates_in(path: Path) -> list[x509.Certificate]:
    """The certificates of a PEM file. ValueError when it cannot be read or has none."""
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: holds no certificate in PEM form") from None


def _certificate(path: Path) -> Path:
    certificates_in(path)
    return path


def _key(path: Path) -> Path:
    data = _read(path)
    try:
        serialization.load_pem_private_key(data, password=None)
    except TypeError:
        raise ValueError(f"{path}: the key is locked by a passphrase: store it without one") from None
    except Exception:  # cryptography raises several kinds, depending on what is wrong with the bytes
        raise ValueError(f"{path}: holds no private key in PEM form") from None
    return path


def _version(value: object) -> object:
    return f"TLSv{value}" if value in ("1.2", "1.3") else value


CertificateFile = Annotated[FilePath, AfterValidator(_certificate)]
KeyFile = Annotated[FilePath, AfterValidator(_key)]
Version = Annotated[Literal["TLSv1.2", "TLSv1.3"], BeforeValidator(_version)]


class ClientTls(Model):
    """How clients may connect, or must."""

    cert: CertificateFile
    key: KeyFile
    client_ca: CertificateFile | None = None
    min_version: Version = "TLSv1.2"
    required: Flag = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.context()
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert, self.key, self.client_ca) if path is not None)

    def context(self) -> ssl.SSLContext:
        """A new context from the files as they are now. ValueError when they cannot be used."""
        _key(self.key)  # or OpenSSL might ask the terminal for a passphrase
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _common(context, self.min_version)
        _load_pair(context, self.cert, self.key)
        if self.client_ca is not None:
            _load_ca(context, self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def validity_problem(self, now: dt.datetime) -> str | None:
        """Why the certificate should not be shown at this time; None when it may be."""
        return _validity_problem(self.cert, now)


class OutgoingTls(Model):
    """How connections to other servers are encrypted; `mode` off: not at all."""

    mode: Literal["required", "off"] = "required"
    ca: CertificateFile | None = None
    cert: CertificateFile | None = None
    key: KeyFile | None = None
    verify: Literal["none", "ca", "full"] = "full"
    min_version: Version = "TLSv1.2"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key are given together, or neither")
        self.context()
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.ca, self.cert, self.key) if path is not None)

    def context(self) -> ssl.SSLContext:
        """A new context from the files as they are now. ValueError when they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _common(context, self.min_version)
        if self.verify != "full":
            context.check_hostname = False
        if self.verify == "none":
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            _load_ca(context, self.ca)
        if self.cert is not None and self.key is not None:
            _key(self.key)
            _load_pair(context, self.cert, self.key)
        return context

    def validity_problem(self, now: dt.datetime) -> str | None:
        """Why our own certificate should not be shown at this time; None when it may be or there is none."""
        return None if self.cert is None else _validity_problem(self.cert, now)


class BackendTls(OutgoingTls):
    """Those to the hosts. `replication_ca`: a file on the machines of the servers, by which slaves verify a
    master that the tools let them replicate from.
    """

    replication_ca: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_replication(self) -> Self:
        if self.replication_ca is not None and (self.mode == "off" or self.verify == "none"):
            raise ValueError("replication_ca is to verify by: give verify, ca or full, or leave it out")
        return self


def _validity_problem(cert: Path, now: dt.datetime) -> str | None:
    certificate = certificates_in(cert)[0]
    if now > certificate.not_valid_after_utc:
        return f"{cert}: expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < certificate.not_valid_before_utc:
        return f"{cert}: not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return None


def _common(context: ssl.SSLContext, version: str) -> None:
    context.minimum_version = _VERSIONS[version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION


def _load_pair(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    certificates_in(cert)  # says better than OpenSSL what is wrong
    try:
        context.load_cert_chain(cert, key)
    except ssl.SSLError as error:
        if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise ValueError(f"the key {key} does not belong to the certificate {cert}") from None
        raise ValueError(f"{cert}: cannot be used: {(error.reason or str(error)).lower()}") from None
    except OSError as error:
        raise ValueError(f"{cert}: {error.strerror}") from None


def _load_ca(context: ssl.SSLContext, path: Path) -> None:
    certificates_in(path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise ValueError(f"{path}: cannot be used: {(error.reason or str(error)).lower()}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def _or_off(model: type[Model]) -> BeforeValidator:
    """The word `off` in place of a mapping."""

    def read(value: object) -> object:
        if value == "off":
            return {"mode": "off"}
        if value is not None and not isinstance(value, (dict, Model)):
            raise ValueError(f"must be off or a mapping with the fields {', '.join(model.model_fields)}")
        return value

    return BeforeValidator(read)


OutgoingTlsField = Annotated[OutgoingTls | None, _or_off(OutgoingTls)]
BackendTlsField = Annotated[BackendTls | None, _or_off(BackendTls)]
