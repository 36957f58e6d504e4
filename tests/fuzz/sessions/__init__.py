"""Sequences of statements in several sessions at once, on a proxy over shards and on one plain server.

After every statement the answers are compared, and at intervals the state of every session.

    world.py      the rows and routines that the statements use, and how they are put back
    grammar.py    what statements are made of, as tokens from a seed; rules.py the statements
    mangle.py     the same statement with other blanks, comments, letters' case and quotes
    client.py     a session on either side, and all that its replies say
    runner.py     cases, comparison, and making a failing case small

A case depends on the seed and its number alone, so `--only N` repeats it.
"""
