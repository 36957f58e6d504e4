# Types of how a statement is bound that one ID routes.

cdef class Point:
    cdef readonly str keyspace
    cdef readonly Py_ssize_t literal
    cdef readonly object bits, template
    cdef readonly bint parameter


cpdef at_point(Point point, tuple values, topology)
