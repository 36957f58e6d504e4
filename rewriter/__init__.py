"""A statement in, a plan out: pure functions, no I/O. Imports config only.

Read the room in this order:

    fingerprint.py one pass over the bytes: the literals out, the fingerprint left; rows.py folds an INSERT's
                   rows
    env.py         what a statement's meaning depends on besides its text
    planner.py     the front door: `Rewriter.plan`, its cache (cache.py) and the rules, in order (rules.py)
    splice.py      changed text to templates, templates and values to SQL
    connection_state.py  which state a statement leaves on a connection, and which plan may leave it
    plan.py        what all plans have, and the questions that each answers; bound.py: what one sends, once it
                   is bound; touched.py: tables with a cache
    explain.py     EXPLAIN ROUTE, in words

and below it, each of which imports only what stands before it:

    text/          what a text says, whatever the tables: tokens.py, with their places; facts.py, clauses as
                   spans, which reader.py and parse*.py make; opening.py, executable comments opened
    sql/statements/  the table of statement forms, one row for each statement of the manuals; facts.py,
                   what the tokens add to a row; effects.py, state that a statement leaves on its connection;
                   functions.py, the functions that it calls
    tree/          the second reader: sqlglot's tree of the same tokens
    route/         scope.py, whose is a name; values.py, constants, evaluated when the literals are at hand;
                   predicates.py, WHERE and ON to routes, soundly; routing.py, constants to shards;
                   columns.py, what changes so that a shard understands it; context.py, what all rules share
    sql/privileges/  the access that a statement needs, and the databases that it names
    plans/         the frozen variants: every way of running a statement; sharded.py, inserting.py, gather.py,
                   read_write.py: those that are more than a template; variants.py: tables with an entry for
                   each
    plain/         statements that are not for shards, or that the proxy answers itself
    reads/         select.py and scatter.py: SELECT on one shard and on several; partial.py and grouping.py:
                   groups that shards make and a server combines; pieces.py and links.py: rows to be gathered
    writes/        insert.py, change.py; found.py, filling.py, read_write.py: writes that read first;
                   reorder.py: CALL of an orderable mapping's procedure
    advice/        what a statement costs, and what would route it

Statements are read by their clauses, and expressions only as far as routing and names need it; the rest stays
the client's bytes (docs/decisions/two-readers.md says why, and what sqlglot is for).
"""
