# Types of the way from a plan to its execution.

from proxy.engine.exchange cimport Exchange
from proxy.engine.relay cimport Relay
from proxy.engine.snapshot cimport Snapshot
from rewriter.planner cimport Rewriter
from rewriter.route.point cimport at_point
cimport cython

@cython.locals(rewriter=Rewriter)
cpdef execute(Exchange client, bytes sql, planned=*)
cpdef run_plan(Exchange client, plan, literals)
@cython.locals(relay=Relay, snapshot=Snapshot)
cpdef _passthrough(Exchange client, plan, literals)
@cython.locals(relay=Relay, point=tuple)
cpdef bint _ask_point(Exchange client, plan, values) except -1
cpdef _select(Exchange client, plan, literals)
cpdef _write(Exchange client, plan, literals)
cpdef _insert(Exchange client, plan, literals)
@cython.locals(relay=Relay)
cpdef bint _insert_one(Exchange client, plan, values) except -1
