# The type of what result sets begin with, which is compared with what comes.

cdef class Header:
    cdef readonly Py_ssize_t size
    cdef readonly tuple pieces
    cdef readonly bytes shown
