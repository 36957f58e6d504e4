# Types of a host's pool.

from proxy.backends.connection cimport BackendConnection
from proxy.backends.pool cimport PoolState
from proxy.load cimport Load

cdef int _IN_TRANS

cdef class HostPool:
    cdef public str host, version, last_error
    cdef public Load load
    cdef public object limits, refusals, now, _connect, _spawn, _kills, _watch
    cdef public PoolState state
    cdef public long long failures, opened_total, _made_room
    cdef public bint retired, _looks, _full
    cdef public double _clock, _retry_at, _look_at, _failed_at, _heard, _kill_at

    cpdef release(self, BackendConnection conn)
    cpdef connection_closed(self, BackendConnection conn)
