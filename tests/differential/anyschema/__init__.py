"""Random schemas: every kind of table, any column types and names, layouts, shards and hosts.

    columns.py    types of columns, and values for them
    design.py     a schema with its topology and rows, from a seed
    tree.py       statements as trees, of which parts can be taken away
    scope.py      which columns an expression may name
    terms.py      random expressions; keys.py: conditions on routing columns
    reads.py      random SELECTs; changes.py: writes and transactions
    more.py       SELECTs of set forms, and of several statements
    judge.py      what differs, and what only looks so
    binary.py     the cases as prepared statements
    steps.py      one statement of a case
    run.py, loop.py       running cases, making a difference small, and what is printed

`python -m tests.differential --schemas 20 --count 300` tries 300 cases on each of 20 schemas, with `--binary`
as prepared statements, with `--rounded 0.3` with as many columns of FLOAT and DOUBLE(M,D).
"""
