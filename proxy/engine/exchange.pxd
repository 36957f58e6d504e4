# Types of a client's command at work. What `ClientConnection` and `Client` give it is declared here as they have
# it, so that compiled callers reach it without a look-up.

from proxy.descriptors cimport write_out
from proxy.engine.snapshot cimport Snapshot
from proxy.load cimport Load
from proxy.session.state cimport Session
from proxy.stats cimport Stats, Use
cimport cython

cdef class Exchange:
    cdef public object services, serving, pool, transport, relay, phase, named, leaving, farewell, plan
    cdef public object reading, visits, missed, work, again, below, ticket, sink, writing, _next_up
    cdef public Snapshot snapshot
    cdef public Stats stats
    cdef public Session session
    cdef public Load shard
    cdef public str kind, host
    cdef public bytes sql
    cdef public int code, descriptor, seq
    cdef public long long long_statement
    cdef public bint ready, attributes, whole, closed, _waiting, _stalled, writing_paused
    cdef public double begun, observe_after, first, last, queued
    cdef object __weakref__

    cpdef query(self, bytes sql)
    cpdef execute(self, bytes sql)
    cpdef run_plan(self, plan, literals)
    cpdef start_again(self)
    cpdef hush(self, int who)
    cpdef listen(self, int who)
    cpdef _next(self)
    cpdef write(self, data)
    cpdef fail(self, error, seq=*, conditions=*)
    @cython.locals(now=double, seconds=double, use=Use)
    cpdef finish(self, str outcome)
    cpdef observed(self, str outcome, double seconds)
    cpdef runs_again_by(self, run)
    cpdef unanswered(self)
    cpdef crashed(self, error)
    cpdef met(self, error)
    cpdef close(self)
    cdef bint _leaves(self) except -1
