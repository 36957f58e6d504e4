# Types of a host's connections: who gets which.

from proxy.backends.connection cimport BackendConnection
from proxy.backends.settings cimport Settings
from proxy.backends.waiting cimport Share, Waiting

cimport cython


cdef class PoolState:
    cdef public Share share, _places
    cdef public tuple idle
    cdef public dict busy
    cdef public Py_ssize_t opening
    cdef public Waiting waiting

    @cython.locals(idle=list, conn=BackendConnection)
    cpdef BackendConnection take(self, Settings settings, str database, Py_ssize_t capability_set, str user=*)
    cpdef give(self, BackendConnection conn, double now)
    @cython.locals(index=Py_ssize_t, conn=BackendConnection)
    cdef BackendConnection _fitting(self, list idle, Settings settings, str database)
    cpdef forget(self, BackendConnection conn)
