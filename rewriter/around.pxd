# Types of what finds statements that are known but for one integer.

cimport cython


cdef class Around:
    cdef public dict _known

    @cython.locals(head=bytes, tail=bytes, middle=bytes, before=tuple, after=tuple)
    cpdef find(self, bytes sql, bytes key)
