# Types of one connection's share of a fan-out.

from proxy.backends.connection cimport BackendConnection
from proxy.engine.exchange cimport Exchange
from proxy.session.state cimport Session
from proxy.wire.packets cimport query_packet
from proxy.wire.rows cimport ResultReader
cimport cython

cdef class Branch:
    cdef public object draining, fan, loads
    cdef public str host
    cdef public int index, run
    cdef public list statements
    cdef public BackendConnection conn
    cdef public ResultReader reader
    cdef public bint paused

    @cython.locals(conn=BackendConnection, client=Exchange, session=Session)
    cpdef send_next(self)
