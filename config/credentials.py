"""Passwords, roles and lists of databases: what users of the proxy and accounts of the servers have alike."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Self

from pydantic import PrivateAttr, SecretStr, model_validator

from config.fields import FilePath
from config.model import Model


class Role(StrEnum):
    """What a user may do: read; read and write; everything, DDL and administration included."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Credentials(Model):
    """A password, given in one of three ways."""

    password: SecretStr | None = None
    password_env: str | None = None
    password_file: FilePath | None = None
    _secret: str | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        self._given_once()
        self._secret = self._read()
        return self

    def _given_once(self) -> None:
        names = ("password", "password_env", "password_file", "password_hash")
        given = [name for name in names if getattr(self, name, None) is not None]
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(given)}: a password is given in one way")

    def _read(self) -> str | None:
        if self.password is not None:
            return self.password.get_secret_value()
        if self.password_env is not None:
            if self.password_env not in os.environ:
                raise ValueError(f"password_env: the environment variable {self.password_env} is not set")
            return os.environ[self.password_env]
        if self.password_file is not None:
            try:
                return self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "is not UTF-8"
                raise ValueError(f"password_file: {self.password_file}: {reason}") from error
        return None

    @property
    def secret(self) -> str | None:
        """The password in clear text, from wherever it comes; None when none was given."""
        return self._secret


class LateCredentials(Credentials):
    """A password that is looked for when it is needed: a proxy's environment need not have it."""

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        self._given_once()
        return self

    @property
    def secret(self) -> str | None:
        """See `Credentials`. ValueError when the variable or the file is not there."""
        return self._read()


def database_names(value: object) -> object:
    """`"*"`, for all, as a list of names. Names beside it would look as if they meant something."""
    if isinstance(value, list | tuple) and len(value) > 1 and "*" in value:
        raise ValueError(
            'has "*", which is for all databases, and names: write "*" alone, or the names alone'
        )
    return ("*",) if value == "*" else value
