# Types of the column definitions that a plan's client gets.

cdef class Definitions:
    cdef public object _place, opened
    cdef public bint _exact, known, cut
    cdef public dict _zeros
    cdef public list _shown, _union, read, _columns
    cdef public bytes begins
    cdef public tuple _head

    cpdef remember(self, bytes begins, list read)
    cpdef list columns(self, list definitions)
