# Types of a session's transaction.

from proxy.backends.connection cimport BackendConnection

cdef class Transaction:
    cdef public bint explicit, code, told
    cdef public object begin, modes, next
    cdef public dict held, pins
    cdef public bytes ending, gtrid
    cdef public object opened
    cdef public tuple savepoints, spots
    cdef public str lost, lost_by
    cdef public BackendConnection first
    cdef public double since
    cdef public long long number

    cpdef bint keeps(self, BackendConnection conn) except -1
