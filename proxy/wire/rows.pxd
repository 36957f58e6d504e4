# Types of what takes a result set apart.

cdef class ResultReader:
    cdef public int state, _count
    cdef public list columns, _held
    cdef public bint ended
    cdef public bytes opening, last
    cdef public Py_ssize_t begins

    cpdef bint expect_rows(self, list columns) except -1
    cpdef bytes feed(self, bytes data, Py_ssize_t ending=*)
