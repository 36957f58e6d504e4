"""What Django and SQLAlchemy do with test_own_schema.py's tables: `python -m tests.integration.orms PORT`.

A program of its own, since Django is configured once in a process. Prints what it found as one JSON object.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pymysql


def with_django(port: int) -> dict[str, Any]:
    """Migrations of Django's own tables, then saves, upserts and relations on the schema's."""
    import django
    from django.conf import settings

    pymysql.version_info = (2, 2, 1, "final", 0)
    pymysql.install_as_MySQLdb()
    where = {"NAME": "demo", "USER": "demo", "PASSWORD": "demo", "HOST": "127.0.0.1", "PORT": port}
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.mysql", **where}},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import DatabaseError, connection, models

    def meta(table: str) -> Any:
        return type("Meta", (), {"app_label": "own", "db_table": table})

    class Album(models.Model):  # type: ignore[misc]
        data = models.JSONField(default=dict)
        Meta = meta("albums")

    class Photo(models.Model):  # type: ignore[misc]
        album = models.ForeignKey(Album, models.DO_NOTHING, null=True, db_constraint=False)
        n = models.IntegerField(null=True)
        Meta = meta("photos2")

    class Word(models.Model):  # type: ignore[misc]
        k = models.CharField(max_length=20, primary_key=True)
        v = models.IntegerField()
        Meta = meta("words")

    class Note(models.Model):  # type: ignore[misc]
        album = models.ForeignKey(Album, models.DO_NOTHING)
        Meta = meta("notes")

    call_command("migrate", verbosity=0)
    found: dict[str, Any] = {"migrated": "django_migrations" in connection.introspection.table_names()}
    user = User.objects.create_user("a", "a@example.com", "x")
    user.first_name = "b"
    user.save()
    found["updated"] = not User.objects.update_or_create(username="a", defaults={"last_name": "c"})[1]
    album = Album.objects.create(data={"x": 1})
    Photo.objects.filter(album=album).delete()  # other tests use IDs of their own making
    photo = Photo.objects.create(album=album, n=1)
    photo.n = 2
    photo.save()
    found["together"] = photo.pk >> 46 == album.pk >> 46
    found["of_album"] = list(Photo.objects.filter(album=album).values_list("n", flat=True))
    found["joined"] = Photo.objects.select_related("album").get(pk=photo.pk).album.data
    found["saved"] = not Photo.objects.update_or_create(pk=photo.pk, defaults={"n": 5})[1]
    Word.objects.create(k="dj", v=1)
    Word(k="dj", v=2).save()
    Word.objects.bulk_create(
        [Word(k="dj", v=9), Word(k="dk", v=3)], update_conflicts=True, update_fields=["v"]
    )
    mine = Word.objects.filter(k__in=["dj", "dk"])
    found["words"] = sorted(mine.values_list("k", "v"))
    try:
        with connection.schema_editor() as editor:
            editor.create_model(Note)
    except DatabaseError as error:
        found["foreign_key"] = [error.args[0], "db_constraint=False" in error.args[1]]
    mine.delete()
    photo.delete()
    album.delete()
    return found


def with_sqlalchemy(port: int) -> dict[str, Any]:
    """merge(), an upsert of all columns, an UPDATE of all columns, and Alembic's table."""
    import sqlalchemy as sa
    from sqlalchemy.dialects.mysql import insert

    engine = sa.create_engine(f"mysql+pymysql://demo:demo@127.0.0.1:{port}/demo")
    tables = sa.MetaData()
    version = sa.Table("alembic_version", tables, sa.Column("version_num", sa.String(32), primary_key=True))
    links = sa.Table("links", sa.MetaData(), autoload_with=engine)
    tables.create_all(engine)
    row = {"a": 5, "b": 900, "sequence": 1, "n": 1}
    upsert = insert(links).values(row)
    upsert = upsert.on_duplicate_key_update({name: upsert.inserted[name] for name in row})
    with engine.begin() as connection:
        counts = [connection.execute(upsert).rowcount]
        changed = sa.update(links).where(links.c.a == 5, links.c.b == 900).values({**row, "n": 4})
        counts.append(connection.execute(changed).rowcount)
        connection.execute(version.insert().values(version_num="abc"))
        read = connection.scalar(sa.select(links.c.n).where(links.c.a == 5, links.c.b == 900))
        kept = connection.scalars(sa.select(version.c.version_num)).all()
        connection.execute(sa.delete(links).where(links.c.a == 5, links.c.b == 900))
    tables.drop_all(engine)
    return {"counts": counts, "read": read, "version": list(kept)}


if __name__ == "__main__":
    number = int(sys.argv[1])
    print(json.dumps({"django": with_django(number), "sqlalchemy": with_sqlalchemy(number)}))
