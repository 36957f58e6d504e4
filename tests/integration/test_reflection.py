"""What ORMs read of the schema, through the proxy and on one server with the logical tables: the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine, create_engine, inspect

from tests.integration.test_views import DATABASES
from tests.support.demo import Demo
from tests.support.servers import LocalServer


def engine(database: str, **arguments: Any) -> Engine:
    return create_engine(
        f"mysql+pymysql:///{database}", connect_args=arguments, poolclass=sqlalchemy.NullPool
    )


def through(demo: Demo, database: str) -> dict[str, Any]:
    return {"host": demo.host, "port": demo.port, "user": "demo", "password": "demo", "database": database}


def straight(plain: LocalServer, database: str) -> dict[str, Any]:
    return {
        "unix_socket": str(plain.socket),
        "user": plain.user,
        "password": plain.password,
        "database": database,
    }


def reflected(arguments: dict[str, Any]) -> dict[str, Any]:
    """All that SQLAlchemy's inspector tells of a database."""
    made = engine(**arguments)
    with made.connect() as connection:
        inspector = inspect(connection)
        tables = inspector.get_table_names()
        return {
            "schemas": [name for name in inspector.get_schema_names() if name in DATABASES],
            "default": inspector.default_schema_name,
            "tables": tables,
            "views": inspector.get_view_names(),
            "has": [inspector.has_table(name) for name in ("pins", "customers", "local_id", "nope")],
            "elsewhere": inspector.get_table_names(schema="legacy"),
            **{name: described(inspector, name) for name in tables},
        }


def described(inspector: Any, table: str) -> dict[str, Any]:
    return {
        "columns": [column | {"type": repr(column["type"])} for column in inspector.get_columns(table)],
        "primary": inspector.get_pk_constraint(table),
        "indexes": inspector.get_indexes(table),
        "foreign": inspector.get_foreign_keys(table),
        "unique": inspector.get_unique_constraints(table),
        "checks": inspector.get_check_constraints(table),
        "comment": inspector.get_table_comment(table),
        "options": {
            name: value
            for name, value in inspector.get_table_options(table).items()
            if name != "mysql_auto_increment"
        },
    }


@pytest.mark.parametrize("database", ["demo", "legacy"])
def test_sqlalchemy(demo: Demo, unharmed: None, plain: LocalServer, database: str) -> None:
    assert reflected(through(demo, database)) == reflected(straight(plain, database))


INSPECT = """
import io, json, sys
import pymysql

pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()
import django
from django.conf import settings
from django.core.management import call_command

account = json.load(sys.stdin)
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", **account}}, INSTALLED_APPS=[], USE_TZ=True
)
django.setup()
call_command("inspectdb", stdout=sys.stdout)
"""


def models(account: dict[str, Any]) -> str:
    """The models that Django's inspectdb writes for a database."""
    done = subprocess.run(
        [sys.executable, "-c", INSPECT],
        input=json.dumps(account),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("database", ["demo", "legacy"])
def test_django(demo: Demo, unharmed: None, plain: LocalServer, database: str) -> None:
    account = {"NAME": database, "HOST": demo.host, "PORT": demo.port, "USER": "demo", "PASSWORD": "demo"}
    socket = {
        "NAME": database, "HOST": str(plain.socket), "USER": plain.user, "PASSWORD": plain.password,
    }  # fmt: skip
    written = models(account)
    assert written == models(socket)
    if database == "demo":
        assert "id = models.PositiveBigIntegerField(primary_key=True)" in written or "BigAutoField" in written
