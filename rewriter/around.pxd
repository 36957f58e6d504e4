# Types of what finds statements that are known but for one integer.

cimport cython

cdef bytes _BEGINS, _DIGITS


cdef class Around:
    cdef public dict _known

    @cython.locals(head=bytes, tail=bytes, middle=bytes, before=tuple, after=tuple, begin=Py_ssize_t,
                   end=Py_ssize_t)
    cpdef find(self, bytes sql, bytes key)
