# Types of the commands of prepared statements.

from proxy.engine.exchange cimport Exchange
from proxy.engine.relay cimport Relay
from proxy.engine.snapshot cimport Snapshot
from proxy.execute.prepared.on_host cimport HostExecute
from proxy.session.prepared cimport BuiltinRepeat, HostRepeat, Repeat, Statement
from proxy.session.state cimport Session
from proxy.session.transaction cimport Transaction
from rewriter.route.point cimport at_point
cimport cython

@cython.locals(session=Session, statement=Statement, snapshot=Snapshot)
cpdef bint execute_again(Exchange client, bytes packet) except -1
@cython.locals(relay=Relay)
cpdef bint _run_point_again(Exchange client, Statement statement, Repeat repeat, bytes packet) except -1
@cython.locals(on_host=HostExecute)
cpdef bint _run_on_host_again(Exchange client, Statement statement, HostRepeat repeat, bytes packet) except -1
cpdef bint _run_builtin_again(Exchange client, Statement statement, BuiltinRepeat repeat, bytes packet) except -1
cpdef _begin_again(Exchange client, Statement statement, plan, bytes packet)
