# The type of what a statement is sent as, where that is no COM_QUERY alone.

from proxy.backends.connection cimport BackendConnection

cdef class Request:
    cdef public object own, relay

    cpdef reply_data(self, BackendConnection conn, bytes data)
    cpdef reply_done(self, BackendConnection conn)
