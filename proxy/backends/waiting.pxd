# Types of who waits for connections, and of the shares of users.

cdef class Share:
    cdef public long long most, scarce, _kept
    cdef public double _part
    cdef public bint _watch

    cpdef bint allows(self, long long have, long long used, str user=*) except -1


cdef class Waiting:
    cdef public dict queues
    cdef public Py_ssize_t _count
