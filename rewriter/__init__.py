"""A statement in, a plan out: pure functions, no I/O. Imports config only.

Read the room in this order:

    shape.py       one pass over the bytes: the literals out, the shape left
    env.py         what a statement's meaning depends on besides its text
    planner.py     the front door: `Rewriter.plan`, its cache (cache.py) and the rules, in order
    statement.py   executable comments opened; what the first word says
    tokens.py      a statement's tokens, with their places and literals
    facts.py       what a statement says, as spans; reader.py, parse*.py make them
    scope.py       whose is a name: tables and columns to what they are
    values.py      constants, evaluated when the literals are at hand; literals.py reads these
    routing.py     keys, comparisons, routes: constants to shards; keys.py: which columns route
    predicates.py  WHERE and ON to routes, soundly
    fills.py       session values, parameters, own functions and hints, whatever the tables
    columns.py     what changes in the text so that a shard understands it; edits.py collects the changes
    splice.py      changed text to templates, templates and values to SQL
    plan.py, plans.py, sharded.py, inserting.py
                   the frozen variants: every way of running a statement; binding.py, bound.py
    rules.py, unsharded.py, select.py, several.py, change.py, insert.py, builtins.py, show.py
                   the rules, by the kind of statement; context.py is what they share
    found.py, rowkeys.py, filling.py, read_write.py, duplicate.py
                   writes that read first, and by what they name rows; ON DUPLICATE KEY UPDATE
    explain.py     EXPLAIN ROUTE, in words

No SQL parser library is used: ARCHITECTURE.md says why. Statements are read by their clauses, and expressions
only as far as routing and names need it; the rest stays the client's bytes.
"""
