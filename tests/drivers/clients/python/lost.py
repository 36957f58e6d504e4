"""What a driver makes of a host that is away: python lost.py NAME DESCRIPTION.json

The description has host, port, user, password, `away` (a statement for that host) and `there` (one for another). One
JSON object goes to standard output: the error as the driver shows it, and whether the connection lived on.
"""

import json
import sys


def dbapi(connect, d):
    connection = connect()
    cursor = connection.cursor()

    def ask(sql):
        cursor.execute(sql)
        return cursor.fetchall()[0][0]

    before = ask("SELECT CONNECTION_ID()")
    try:
        ask(d["away"])
        raise SystemExit("no error")
    except Exception as error:
        told = error
    return (
        told,
        str(told.args[0]),
        " ".join(map(str, told.args[1:])),
        before == ask("SELECT CONNECTION_ID()"),
        ask(d["there"]),
    )


def mysqlclient(d):
    import MySQLdb

    return dbapi(
        lambda: MySQLdb.connect(
            host=d["host"], port=d["port"], user=d["user"], passwd=d["password"], db="demo"
        ),
        d,
    )


def pymysql(d):
    import pymysql

    return dbapi(
        lambda: pymysql.connect(
            host=d["host"], port=d["port"], user=d["user"], password=d["password"], database="demo"
        ),
        d,
    )


def connector(d):
    import mysql.connector

    return dbapi(
        lambda: mysql.connector.connect(
            host=d["host"],
            port=d["port"],
            user=d["user"],
            password=d["password"],
            database="demo",
            autocommit=True,
        ),
        d,
    )


def sqlalchemy(d):
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(f"mysql+mysqldb://{d['user']}:{d['password']}@{d['host']}:{d['port']}/demo")
    with engine.connect() as connection:
        before = connection.execute(text("SELECT CONNECTION_ID()")).scalar()
        connection.rollback()
        try:
            connection.execute(text(d["away"]))
            raise SystemExit("no error")
        except DBAPIError as error:
            told = error
        connection.rollback()
        after = connection.execute(text("SELECT CONNECTION_ID()")).scalar()
        there = connection.execute(text(d["there"])).scalar()
    alive = not told.connection_invalidated and before == after
    return told.orig, str(told.orig.args[0]), str(told.orig.args[1]), alive, there


def django(d):
    from django.conf import settings

    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.mysql", "NAME": "demo", "USER": d["user"], "PASSWORD": d["password"],
                "HOST": d["host"], "PORT": d["port"], "CONN_MAX_AGE": None,
            }
        }
    )  # fmt: skip
    import django

    django.setup()
    from django.db import DatabaseError, connection

    def ask(sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()[0][0]

    before = ask("SELECT CONNECTION_ID()")
    try:
        ask(d["away"])
        raise SystemExit("no error")
    except DatabaseError as error:
        told = error
    connection.close_if_unusable_or_obsolete()  # as at the end of a request
    after = ask("SELECT CONNECTION_ID()")
    return told, str(told.args[0]), str(told.args[1]), before == after, ask(d["there"])


with open(sys.argv[2]) as file:
    d = json.load(file)
error, code, text, alive, there = globals()[sys.argv[1]](d)
print(
    json.dumps(
        {"class": type(error).__name__, "code": code, "text": text, "alive": alive, "there": str(there)}
    )
)
