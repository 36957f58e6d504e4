"""Which clients there are, what each needs, and how its program is started.

What the set-up has made for them is in .drivers (see .ci/drivers).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
CLIENTS = HERE / "clients"
MADE = HERE.parent.parent / ".drivers"
PYTHON = MADE / "python/bin/python"


@dataclass(frozen=True)
class Client:
    """A driver or tool. `argv` starts its program, the description's path goes behind it; `missing` tells
    what it lacks on this machine, or nothing. `flavours`: the servers it is for.
    """

    name: str
    language: str
    argv: tuple[str, ...]
    version_argv: tuple[str, ...]
    missing: Callable[[], str]
    flavours: tuple[str, ...] = ("mariadb", "mysql9")

    def version(self) -> str:
        done = subprocess.run(
            self.version_argv, capture_output=True, text=True, check=False, env=environment()
        )
        found = re.search(r"Distrib ([\d.]+)", done.stdout) or re.search(r"(\d+(?:\.\d+)+)", done.stdout)
        return found[1] if found else "?"


def environment() -> dict[str, str]:
    return {**os.environ, "NODE_PATH": str(MADE / "node/node_modules"), "PYTHONDONTWRITEBYTECODE": "1"}


def _succeeds(*argv: str) -> bool:
    if shutil.which(argv[0]) is None and not Path(argv[0]).exists():
        return False
    return not subprocess.run(argv, capture_output=True, check=False, env=environment()).returncode


def _lacks(what: str, *argv: str) -> Callable[[], str]:
    @cache
    def missing() -> str:
        return "" if _succeeds(*argv) else what

    return missing


def _python(name: str, module: str, package: str, program: str = "steps.py", test: str = "") -> Client:
    version = f"import importlib.metadata as m; print(m.version({package!r}))"
    return Client(
        name,
        "Python",
        (str(PYTHON), str(CLIENTS / "python" / program), name),
        (str(PYTHON), "-c", version),
        _lacks(f"{package} of PyPI", str(PYTHON), "-c", test or f"import {module}"),
    )


def _node(name: str) -> Client:
    program = str(CLIENTS / "node/steps.js")
    package = MADE / "node/node_modules" / name / "package.json"
    return Client(
        f"Node {name}",
        "Node",
        ("node", program, name),
        ("node", "-p", f"JSON.parse(require('fs').readFileSync('{package}')).version"),
        _lacks(f"Node with {name} of npm", "node", "-e", f"require('{name}')"),
    )


def _java(name: str, scheme: str, jar: str) -> Client:
    path = f"{MADE / 'java'}:{MADE / 'java' / jar}"
    # two cores are shared with the servers: the quick compiler only
    java = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "Steps", scheme)
    version = (*java, "--version")
    return Client(name, "Java", java, version, _lacks(f"Java, Maven and {jar}", *version))


def _perl(name: str) -> Client:
    program = str(CLIENTS / "perl/steps.pl")
    module = f"lib{'dbd-mysql' if name == 'mysql' else 'dbd-mariadb'}-perl of Debian"
    version = ("perl", program, name, "--version")
    return Client(f"DBD::{name}", "Perl", ("perl", program, name), version, _lacks(module, *version))


def _php(name: str, extension: str) -> Client:
    program = str(CLIENTS / "php/steps.php")
    code = f"echo phpversion('{extension}');"
    test = f"exit(extension_loaded('{extension}') && extension_loaded('mbstring') ? 0 : 1);"
    return Client(
        f"PHP {name}",
        "PHP",
        ("php", program, name),
        ("php", "-r", code),
        _lacks("php-cli, php-mysql and php-mbstring of Debian", "php", "-r", test),
    )


def _tool(name: str, kind: str, path: str, package: str, flavour: str = "") -> Client:
    return Client(
        name,
        "command",
        (str(PYTHON), str(CLIENTS / "python/programs.py"), kind, path),
        (path, "--version"),
        _lacks(package, path, "--version"),
        (flavour,) if flavour else ("mariadb", "mysql9"),
    )


def _catalog() -> list[Client]:
    c_extension = "import mysql.connector as c; assert c.HAVE_CEXT"
    nine = os.environ.get("SHARDGATE_MYSQL9", "")
    return [
        _tool("mariadb", "cli", "mariadb", "mariadb-client of Debian", "mariadb"),
        _tool("mariadb-dump", "dump", "mariadb-dump", "mariadb-client of Debian", "mariadb"),
        _tool("mysql", "cli", f"{nine}/mysql", "MySQL 9's mysql, in $SHARDGATE_MYSQL9", "mysql9"),
        _tool(
            "mysqldump", "dump", f"{nine}/mysqldump", "MySQL 9's mysqldump, in $SHARDGATE_MYSQL9", "mysql9"
        ),
        _tool("sysbench", "sysbench", "sysbench", "sysbench of Debian"),
        _python("pymysql", "pymysql", "PyMySQL"),
        _python("aiomysql", "aiomysql", "aiomysql"),
        _python("asyncmy", "asyncmy", "asyncmy"),
        _python("mysqlclient", "MySQLdb", "mysqlclient"),
        _python("connector-python", "mysql.connector", "mysql-connector-python"),
        _python("connector-python-c", "mysql.connector", "mysql-connector-python", test=c_extension),
        _python("sqlalchemy", "sqlalchemy, pymysql", "SQLAlchemy", "orms.py"),
        _python("django", "django, MySQLdb", "Django", "orms.py"),
        _node("mysql2"),
        _node("mariadb"),
        Client(
            "go-sql-driver",
            "Go",
            (str(MADE / "go/steps"),),
            (str(MADE / "go/steps"), "--version"),
            _lacks("Go 1.24 or later, and the driver's module", str(MADE / "go/steps"), "--version"),
        ),
        _java("Connector/J", "mysql", "mysql-connector-j.jar"),
        _java("MariaDB Connector/J", "mariadb", "mariadb-java-client.jar"),
        _php("mysqli", "mysqli"),
        _php("pdo", "pdo_mysql"),
        _perl("mysql"),
        _perl("MariaDB"),
        Client(
            "Ruby mysql2",
            "Ruby",
            ("ruby", str(CLIENTS / "ruby/steps.rb")),
            ("ruby", str(CLIENTS / "ruby/steps.rb"), "--version"),
            _lacks("ruby and ruby-mysql2 of Debian", "ruby", "-e", "require 'mysql2'"),
        ),
    ]


CATALOG = _catalog()
