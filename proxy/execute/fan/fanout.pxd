# Types of one statement over several hosts.

from proxy.backends.connection cimport BackendConnection
from proxy.engine cimport lease
from proxy.engine.definitions cimport Definitions
from proxy.engine.exchange cimport Exchange
from proxy.execute.fan.branch cimport Branch
from proxy.session.state cimport Session
from proxy.wire.replies cimport ReplyScanner
from proxy.wire.rows cimport ResultReader
cimport cython

cdef class FanOut:
    cdef public Exchange client
    cdef public Definitions definitions
    cdef public object keyspace, bound, merge, settings, plain, ceiling, error, told, merger, _waiter
    cdef public object _learning, _later
    cdef public list branches, _to_connect, _over, _lost
    cdef public dict _zeros
    cdef public long long bytes
    cdef public int _width, _running

    cpdef start(self)
    @cython.locals(session=Session, conn=BackendConnection)
    cpdef _connect(self)
    @cython.locals(branch=Branch)
    cpdef _go(self)
    @cython.locals(reader=ResultReader, definitions=Definitions, seq=int)
    cpdef received(self, Branch branch, bytes data, Py_ssize_t ending)
    cpdef bint _give(self, bytes head, bytes rows, int seq) except -1
    cpdef _excess(self)
    @cython.locals(scanned=ReplyScanner)
    cpdef branch_done(self, Branch branch, BackendConnection conn)
    cpdef _go_on(self, Branch branch, BackendConnection conn)
    @cython.locals(session=Session)
    cpdef _branch_over(self, Branch branch, BackendConnection conn)
    @cython.locals(branch=Branch, conn=BackendConnection)
    cpdef flow(self)
