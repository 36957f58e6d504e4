"""`shardgate init`: first settings, schema and topology, with comments, and the GRANTs of their accounts.

The three documents are beside this file, with `@NAME@` where a password goes. accounts.sql is made from them,
so that it has what `shardgate fleet create` would grant; each kind of server reads its own lines of it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from config.flavour import MARIADB, MYSQL
from config.load import load_schema, load_settings, load_topology
from config.settings import Settings
from fleet.accounts import accounts_on, text_literal
from fleet.core.errors import Refused
from fleet.grants import Server, grants, quoted_account

DOCUMENTS: Final = ("shardgate.yaml", "schema.yaml", "topology.yaml")
ACCOUNTS: Final = "accounts.sql"
FILES: Final = (*DOCUMENTS, ACCOUNTS)
NEXT: Final = """\
Written to {}:
  topology.yaml   which server has which shards: put your servers' addresses in place of db1:3306 and db2:3306
  schema.yaml     which tables there are: examples, to be replaced by your own
  shardgate.yaml  the proxy's settings, with passwords that were made up: can stay as it is
  accounts.sql    run it as the administrator of each master: mysql -h db1 -u root -p < accounts.sql
Then, in that folder:
  shardgate check                see whether the files are sound
  shardgate fleet create         make the databases and tables on your servers
  shardgate check --connect      see whether the servers are as they should be
  shardgate serve                run the proxy
docs/quickstart.md goes through all of it.
"""
"""What is printed then; it takes the folder."""
_PRIVATE: Final = ("shardgate.yaml", ACCOUNTS)
"""Those with passwords."""
_PASSWORD: Final = re.compile(r"@\w+@")

_HEAD: Final = """\
-- Accounts for your servers, with the passwords that are in shardgate.yaml: keep this file private.
-- Run it once as the administrator of each master; slaves get the accounts from their master:
--     mysql -h db1 -u root -p < accounts.sql
-- MariaDB reads the statements in /*M! … */, MySQL those in /*!80000 … */; each skips the other's.
"""
_FLEET: Final = """
-- For the commands `shardgate fleet …`, which make databases and accounts, and move them between servers.
"""
_OWN: Final = """
-- The proxy's own account: it looks at tables, and runs nothing of your applications.
"""
_ROLE: Final = """
-- What users of the role {} say runs under this account. In names of databases `_` stands for any one
-- character: db_____ is the shards db00000 to db99999.
"""
_ADMIN: Final = """
-- What users of the role admin say runs under this account. On MariaDB it cannot write where read_only is
-- set, so that a master can be taken out of service while the proxy runs.
"""
_REST: Final = """
-- When schema.yaml or topology.yaml get a new keyspace, or shardgate.yaml gets `xa: {enabled: true}`,
-- `shardgate fleet create` grants what that needs.
"""


def write(folder: Path) -> list[Path]:
    """Write the files into `folder`, which is made when missing. Refused when one of them is there, or cannot
    be written: then none is.
    """

    def password(found: re.Match[str]) -> str:
        return f"{secrets.token_urlsafe(15)}aA1-"  # with characters of all kinds, as servers may ask

    here = Path(__file__).parent
    texts = {name: _PASSWORD.sub(password, (here / name).read_text("utf-8")) for name in DOCUMENTS}
    texts[ACCOUNTS] = accounts_sql(texts)
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [name for name in FILES if os.path.lexists(folder / name)]
        if there:
            raise Refused(
                f"{folder} has {' and '.join(there)} already: nothing was written. Name another folder"
            )
        for name, text in texts.items():
            path = folder / name
            mode = 0o600 if name in _PRIVATE else 0o644
            with open(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8"
            ) as file:
                made.append(path)
                file.write(text)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        raise Refused(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    return made


def accounts_sql(texts: dict[str, str]) -> str:
    """The accounts of the three documents, by their names, as statements for the first master."""
    settings = load_settings(texts["shardgate.yaml"].encode())
    assert settings.fleet is not None
    name, text = settings.fleet.login("")
    user = quoted_account(name)
    parts = [_HEAD, _FLEET, f"CREATE USER {user} IDENTIFIED BY {text_literal(text)};\n"]
    parts.append(f"GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION;\n")
    return "".join([*parts, *_of_proxy(settings, texts), _REST])


def _of_proxy(settings: Settings, texts: dict[str, str]) -> Iterator[str]:
    schema = load_schema(texts["schema.yaml"].encode())
    topology = load_topology(texts["topology.yaml"].encode(), schema=schema)
    (host,) = topology.hosts
    xa = settings.xa.enabled
    for one in accounts_on(settings.backends, host, distributed=xa):
        role = str(one.account.role) if one.account else ""
        yield _ADMIN if role == "admin" else _ROLE.format(role) if role else _OWN
        user = quoted_account(one.user)
        yield f"CREATE USER {user} IDENTIFIED BY {text_literal(one.password)};\n"
        mariadb, mysql = (
            [
                grant.sql(user)
                for grant in grants(schema, topology, host, one.account, Server(flavour), distributed=xa)
            ]
            for flavour in (MARIADB, MYSQL)
        )
        for sql in dict.fromkeys((*mariadb, *mysql)):
            if sql not in mysql:
                yield f"/*M! {sql} */;\n"
            else:
                yield f"{sql};\n" if sql in mariadb else f"/*!80000 {sql} */;\n"
