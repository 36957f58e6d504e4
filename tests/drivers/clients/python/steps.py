"""Runs the checks of a description (see ../../checks.yaml) with one of Python's drivers.

    python steps.py DRIVER DESCRIPTION.json

A driver is a class with `open`, `run`, `several` and the transaction's calls; what it cannot do it leaves out, and the
step is reported as unsupported. One JSON line a check goes to standard output.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import sys


class Unsupported(Exception):
    pass


def shown(value):
    """A value as text that keeps its type."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)
        if len(value) > 200:
            return f"bytes {len(value)} {hashlib.md5(value).hexdigest()}"
        return "bytes " + value.hex()
    if isinstance(value, str) and len(value) > 200:
        return f"str {len(value)} {hashlib.md5(value.encode('utf-8', 'replace')).hexdigest()}"
    if isinstance(value, (datetime.datetime, datetime.date, datetime.timedelta, decimal.Decimal)):
        return f"{type(value).__name__} {value}"
    if isinstance(value, (set, frozenset)):
        return "set " + ",".join(sorted(value))
    return f"{type(value).__name__} {value!r}"


class Driver:
    """What all have in common. `connection` is the current one."""

    placeholder = "%s"
    largest = 1 << 30
    error_class = Exception

    def __init__(self, description):
        self.d = description
        self.connection = None

    def connect(self, options):
        if self.connection is not None:
            try:
                self.close()
            except Exception:
                pass
            self.connection = None
        self.connection = self.open(
            dict(
                host=self.d["host"],
                port=self.d["port"],
                user=options.get("user", self.d["user"]),
                password=options.get("password", self.d["password"]),
                database=options.get("database", self.d["database"]),
            ),
            options,
        )

    def close(self):
        self.connection.close()

    def text(self, sql):
        return self.run(sql, None, False)

    def marked(self, sql, prepared):
        return sql.replace("?", self.placeholder)

    def begin(self):
        self.connection.begin()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def kill(self):
        sql = f"KILL {self.run('SELECT CONNECTION_ID()', None, False)['raw'][0][0]}"
        other = type(self)(self.d)
        other.connect({})
        other.run(sql, None, False)
        other.close()
        return self.text("SELECT 1")

    def error(self, error):
        return [next(iter(error.args), None), getattr(error, "sqlstate", None)]


def outcome(rows, columns, affected, insert_id, warnings=None):
    return {"raw": rows, "columns": columns, "affected": affected, "id": insert_id, "warnings": warnings}


class DbApi(Driver):
    """Any driver with cursors as the DB-API has them."""

    def cursor(self, prepared):
        return self.connection.cursor()

    def run(self, sql, args, prepared):
        cursor = self.cursor(prepared)
        try:
            cursor.execute(sql, args) if args is not None else cursor.execute(sql)
            return self.outcome(cursor)
        finally:
            cursor.close()

    def outcome(self, cursor):
        rows = cursor.fetchall() if cursor.description else None
        columns = [tuple(column)[:7] for column in cursor.description] if cursor.description else None
        return outcome(rows, columns, cursor.rowcount, cursor.lastrowid)

    def several(self, sql):
        cursor = self.cursor(False)
        found = []
        try:
            cursor.execute(sql)
            while True:
                found.append(self.outcome(cursor))
                if not cursor.nextset():
                    return found
        except Exception as error:
            return [*found, {"error": self.error(error)}]
        finally:
            cursor.close()


class PyMySQL(DbApi):
    def open(self, where, options):
        import pymysql
        from pymysql.constants import CLIENT

        if options.get("compress"):
            raise Unsupported
        extra = {"ssl": {"ca": self.d["ca"]}} if options.get("tls") else {"ssl_disabled": True}
        if options.get("multi"):
            extra["client_flag"] = CLIENT.MULTI_STATEMENTS
        return pymysql.connect(**where, **extra, charset="utf8mb4", connect_timeout=10, read_timeout=60)


class MySQLdb(DbApi):
    def open(self, where, options):
        import MySQLdb

        extra = {"compress": True} if options.get("compress") else {}
        if options.get("tls"):
            extra |= {"ssl": {"ca": self.d["ca"]}, "ssl_mode": "REQUIRED"}
        elif not options.get("user", "").endswith("sha2"):
            extra["ssl_mode"] = "DISABLED"
        try:
            return MySQLdb.connect(**where, **extra, charset="utf8mb4", connect_timeout=10)
        except MySQLdb.NotSupportedError:
            extra.pop("ssl_mode", None)
            return MySQLdb.connect(**where, **extra, charset="utf8mb4", connect_timeout=10)

    def begin(self):
        self.connection.query("BEGIN")


class Connector(DbApi):
    pure = True

    def open(self, where, options):
        import mysql.connector

        extra = {"compress": True} if options.get("compress") else {}
        if options.get("tls"):
            extra |= {"ssl_ca": self.d["ca"], "ssl_verify_cert": True}
        else:
            extra["ssl_disabled"] = True
        return mysql.connector.connect(**where, **extra, use_pure=self.pure, connection_timeout=10)

    def cursor(self, prepared):
        return self.connection.cursor(prepared=prepared)

    def marked(self, sql, prepared):
        return sql if prepared else super().marked(sql, prepared)

    def begin(self):
        self.connection.start_transaction()

    def several(self, sql):
        found = []
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql)
            if hasattr(cursor, "fetchsets"):
                for _, rows in cursor.fetchsets():
                    found.append({"rows": [[shown(value) for value in row] for row in rows or []]})
            return found
        except Exception as error:
            return [*found, {"error": self.error(error)}]
        finally:
            cursor.close()


class ConnectorC(Connector):
    pure = False


class Async(Driver):
    """aiomysql and asyncmy, made to wait."""

    def __init__(self, description):
        super().__init__(description)
        import asyncio

        self.loop = asyncio.new_event_loop()

    def open(self, where, options):
        import ssl

        module = __import__(self.module)
        if options.get("compress"):
            raise Unsupported
        extra = {}
        if options.get("tls"):
            extra["ssl"] = ssl.create_default_context(cafile=self.d["ca"])
        if options.get("multi"):
            extra["client_flag"] = 1 << 16
        where["db"] = where.pop("database")
        return self.wait(module.connect(**where, **extra, charset="utf8mb4", connect_timeout=10))

    def wait(self, awaitable):
        """Its result; asyncmy can wait for ever on a connection that was killed."""
        import asyncio

        async def limited():
            return await asyncio.wait_for(awaitable, 60)

        return self.loop.run_until_complete(limited())

    def close(self):
        self.connection.close()

    def run(self, sql, args, prepared):
        async def work():
            async with self.connection.cursor() as cursor:
                await cursor.execute(sql, args)
                return await self.outcome(cursor)

        return self.wait(work())

    async def outcome(self, cursor):
        rows = await cursor.fetchall() if cursor.description else None
        columns = [tuple(column)[:7] for column in cursor.description] if cursor.description else None
        return outcome(rows, columns, cursor.rowcount, cursor.lastrowid)

    def several(self, sql):
        async def work():
            found = []
            try:
                async with self.connection.cursor() as cursor:
                    await cursor.execute(sql)
                    while True:
                        found.append(await self.outcome(cursor))
                        if not await cursor.nextset():
                            return found
            except Exception as error:
                return [*found, {"error": self.error(error)}]

        return self.wait(work())

    def begin(self):
        self.wait(self.connection.begin())

    def commit(self):
        self.wait(self.connection.commit())

    def rollback(self):
        self.wait(self.connection.rollback())


class Aiomysql(Async):
    module = "aiomysql"


class Asyncmy(Async):
    module = "asyncmy"
    largest = 1 << 24  # it does not number the packets of longer ones


DRIVERS = {
    "pymysql": PyMySQL,
    "mysqlclient": MySQLdb,
    "connector-python": Connector,
    "connector-python-c": ConnectorC,
    "aiomysql": Aiomysql,
    "asyncmy": Asyncmy,
}


class Runner:
    """Runs steps on a driver and reports them."""

    def __init__(self, driver):
        self.driver = driver
        self.saved = {}

    def step(self, step):
        try:
            return self.done(step)
        except Unsupported:
            return {"unsupported": True}
        except Exception as error:
            return {"error": self.driver.error(error), "kind": type(error).__name__}

    def done(self, step):
        driver = self.driver
        if "connect" in step:
            driver.connect(step["connect"])
            return {}
        for name in ("begin", "commit", "rollback"):
            if name in step:
                getattr(driver, name)()
                return {}
        if "kill" in step:
            try:
                driver.kill()
            except Exception:
                return {"lost": True}  # how each notices depends on who is quicker
            return {"lost": False}
        if "multi" in step:
            return [self.reported(one, step) for one in driver.several(step["multi"])]
        if "large" in step:
            return self.large(*step["large"])
        if "copy" in step:
            return self.copy(step)
        if "text" in step:
            return self.reported(driver.text(step["text"]), step)
        sql = driver.marked(step["prepared"], True)
        return self.reported(driver.run(sql, [self.argument(one) for one in step["args"]], True), step)

    def argument(self, value):
        if isinstance(value, dict):
            return self.saved[value["saved"]] if "saved" in value else bytes.fromhex(value["bytes"])
        return value

    def reported(self, found, step):
        if "raw" not in found:
            return found
        if "save" in step:
            self.saved[step["save"]] = found["id"]
            found["id"] = bool(found["id"])
        rows = found.pop("raw")
        if rows is not None:
            found["rows"] = [[shown(value) for value in row] for row in rows]
        found["columns"] = repr(found["columns"])
        return found

    def large(self, insert, select):
        driver = self.driver
        if driver.d["size"] > driver.largest:
            raise Unsupported
        value = (bytes(range(256)) * (driver.d["size"] // 256 + 1))[: driver.d["size"]]
        driver.run(driver.marked(insert, True), [value], True)
        (back,) = driver.text(select)["raw"][0]
        return {"same": bytes(back) == value}

    def copy(self, step):
        driver, prepared = self.driver, step.get("prepared", False)
        rows = (driver.run(step["copy"], [], True) if prepared else driver.text(step["copy"]))["raw"]
        for row in rows:
            values = [",".join(value) if isinstance(value, (set, frozenset)) else value for value in row]
            driver.run(driver.marked(step["into"], prepared), values, prepared)
        return {"rows": len(rows)}


def main():
    name, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    driver = DRIVERS[name](description)
    driver.connect({})
    runner = Runner(driver)
    for check in description["checks"]:
        steps = [runner.step(step) for step in check["steps"]]
        print(json.dumps({"check": check["name"], "steps": steps}, default=repr), flush=True)


if __name__ == "__main__":
    main()
