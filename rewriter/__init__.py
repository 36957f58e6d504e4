"""A statement in, a plan out: pure functions, no I/O.

Read the room in this order:

    shape.py       one pass over the bytes: the literals out, the shape left
    env.py         what a statement's meaning depends on besides its text
    plans.py       the frozen variants: every way of running a statement
    planner.py     the front door: `Rewriter.plan`
"""
