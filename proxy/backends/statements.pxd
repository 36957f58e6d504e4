# Types of what is prepared on a connection.

cdef class ServerStatements:
    cdef public object _numbers
    cdef public long long _bytes
    cdef public bytes leaving
    cdef public set pinned

    cpdef find(self, tuple key)
