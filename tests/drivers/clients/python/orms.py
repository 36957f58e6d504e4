"""SQLAlchemy and Django on the sharded database `demo`, with the 64-bit id as primary key.

    python orms.py sqlalchemy|django DESCRIPTION.json

The steps are in the functions below, the same on both sides; one JSON line a check goes to standard output. Ids are
not reported, as they differ.
"""

from __future__ import annotations

import json
import sys


class Checks:
    def __init__(self):
        self.checks = []

    def __call__(self, function):
        self.checks.append(function)
        return function

    def run(self, *arguments):
        for function in self.checks:
            try:
                steps = function(*arguments)
            except Exception as error:
                steps = {"error": f"{type(error).__name__}: {error}"[:400]}
            print(json.dumps({"check": function.__doc__, "steps": steps}, default=str), flush=True)


def with_sqlalchemy(d):
    import sqlalchemy as sa
    from sqlalchemy import orm
    from sqlalchemy.dialects import mysql

    class Base(orm.DeclarativeBase):
        pass

    class User(Base):
        __tablename__ = "users"
        id = sa.Column(mysql.BIGINT(unsigned=True), primary_key=True)
        data = sa.Column(mysql.JSON)

    class Like(Base):
        __tablename__ = "user_likes_pins"
        user_id = sa.Column(mysql.BIGINT(unsigned=True), primary_key=True)
        pin_id = sa.Column(mysql.BIGINT(unsigned=True), primary_key=True)
        sequence = sa.Column(mysql.BIGINT)

    url = f"{d['user']}:{d['password']}@{d['host']}:{d['port']}/demo"
    engine = sa.create_engine("mysql+pymysql://" + url)
    ids = []
    checks = Checks()

    @checks
    def create(session):
        """objects"""
        found = []
        with session.begin():
            ada, grace = User(data={"name": "Ada 🐘"}), User(data={"name": "Grace"})
            session.add(ada)
            session.flush()
            session.add(grace)
        ids.extend([ada.id, grace.id])
        session.expire_all()
        found.append(session.get(User, ids[0]).data)
        query = sa.select(User).where(User.id.in_(ids))
        found.append(sorted(one.data["name"] for one in session.scalars(query)))
        found.append(session.scalar(sa.select(sa.func.count()).select_from(User).where(User.id.in_(ids))))
        session.get(User, ids[0]).data = {"name": "Ada L."}
        session.commit()
        found.append(session.scalar(sa.select(User.data).where(User.id == ids[0])))
        session.delete(session.get(User, ids[1]))
        session.flush()
        session.rollback()
        found.append(session.get(User, ids[1]) is not None)
        session.commit()
        for one in session.scalars(query).all():
            session.delete(one)
            session.commit()
        found.append(session.get(User, ids[0]))
        session.commit()
        return found

    @checks
    def lists(session):
        """mappings"""
        like = session.scalar(sa.select(Like.user_id).order_by(Like.user_id).limit(1))
        rows = session.execute(
            sa.select(Like.pin_id).where(Like.user_id == like).order_by(Like.sequence.desc()).limit(5)
        ).all()
        session.commit()
        return [list(row) for row in rows]

    @checks
    def reflection(session):
        """reflection"""
        inspector = sa.inspect(engine)
        meta = sa.MetaData()
        meta.reflect(bind=engine)
        return {
            "tables": inspector.get_table_names(),
            "views": inspector.get_view_names(),
            "columns": {
                name: [
                    [one["name"], str(one["type"]), one["nullable"]] for one in inspector.get_columns(name)
                ]
                for name in ("users", "board_has_pins", "usernames", "email_to_user", "photos")
            },
            "keys": {
                name: inspector.get_pk_constraint(name)["constrained_columns"]
                for name in inspector.get_table_names()
            },
            "indexes": sorted(
                [index["name"], index["column_names"]] for index in inspector.get_indexes("board_has_pins")
            ),
            "missing": inspector.has_table("no_such_table"),
            "reflected": sorted(meta.tables),
        }

    with orm.Session(engine) as session:
        checks.run(session)


def with_django(d):
    import django
    from django.conf import settings

    where = {
        "ENGINE": "django.db.backends.mysql",
        "NAME": "demo",
        "USER": d["user"],
        "PASSWORD": d["password"],
    }
    where |= {"HOST": d["host"], "PORT": d["port"], "OPTIONS": {"charset": "utf8mb4"}}
    settings.configure(DATABASES={"default": where}, INSTALLED_APPS=[], USE_TZ=True)
    django.setup()
    from django.db import connection, models, transaction

    class User(models.Model):
        id = models.BigAutoField(primary_key=True)
        data = models.JSONField()

        class Meta:
            app_label, managed, db_table = "demo", False, "users"

    checks = Checks()

    @checks
    def objects():
        """objects"""
        ada = User.objects.create(data={"name": "Ada 🐘"})
        grace = User.objects.create(data={"name": "Grace"})
        ids = [ada.pk, grace.pk]
        found = [User.objects.get(pk=ids[0]).data]
        found.append(sorted(one.data["name"] for one in User.objects.filter(pk__in=ids)))
        found.append(User.objects.filter(pk__in=ids).count())
        ada.data = {"name": "Ada L."}
        ada.save()
        found.append(User.objects.values_list("data", flat=True).get(pk=ids[0]))
        try:
            with transaction.atomic():
                User.objects.filter(pk=ids[1]).delete()
                raise KeyError
        except KeyError:
            found.append(User.objects.filter(pk=ids[1]).exists())
        with transaction.atomic():
            one = User.objects.select_for_update().get(pk=ids[1])
            one.data["more"] = True
            one.save()
        found.append(User.objects.in_bulk(ids)[ids[1]].data)
        found.append(User.objects.filter(pk__in=ids).delete()[0])
        found.append(User.objects.filter(pk=ids[0]).first())
        return found

    @checks
    def introspection():
        """reflection"""
        with connection.cursor() as cursor:
            look = connection.introspection
            names = ("users", "board_has_pins", "usernames", "email_to_user", "photos")
            return {
                "tables": sorted(look.table_names(cursor)),
                "columns": {
                    name: [
                        [one.name, look.get_field_type(one.type_code, one), one.null_ok]
                        for one in look.get_table_description(cursor, name)
                    ]
                    for name in names
                },
                "keys": {name: look.get_primary_key_columns(cursor, name) for name in names},
                "constraints": {
                    name: sorted(
                        [key, one["columns"], one["primary_key"], one["unique"]]
                        for key, one in look.get_constraints(cursor, name).items()
                    )
                    for name in names
                },
            }

    checks.run()


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        {"sqlalchemy": with_sqlalchemy, "django": with_django}[sys.argv[1]](json.load(file))
