"""Answers over shards against the answers of one plain server that holds all rows.

A generated statement runs on both sides and everything a client can see is compared: rows, their order as far
as ORDER BY says it, column names and types, affected rows, warnings, errors; after writes the whole tables.

    catalog.py      what the generator knows about tables: columns, their families, IDs, values
    wide.py         a schema of many column types and all kinds of tables, and rows for it
    world.py        a schema with its rows, and where each row belongs, worked out independently of the proxy
    arena.py        a world on shards behind a proxy and on a plain server
    parts.py        statements in parts that can be taken away: expressions, SELECTs
    expressions.py, routes.py, selects.py, writes.py, generator.py      making statements, from a seed
    answers.py      running a statement; compare.py what differs; refusals.py what the proxy may refuse
    runner.py       the loop, and making a difference small; report.py what is printed of it
    anyschema/     the same on random schemas, with its own generators

`python -m tests.differential --seed 7 --count 10000` looks for differences; test_differential.py runs a fixed
seed. Statement number n of a seed depends on nothing else, so `--only n` runs it alone.
"""
