# Types of a write to a socket.

cdef tuple _DIRECT

cpdef write_out(transport, int descriptor, data)
cdef bint _is_idle(transport) except -1
