# Types of what finds the one literal of a statement.

cimport cython

cdef int _QUOTE, _ESCAPE, _COMMA

cpdef tuple enclosed(bytes sql)
@cython.locals(before=bytes, inside=bytes, quote=bytes, behind=bytes, rest=bytes)
cdef tuple _string(bytes sql)
@cython.locals(before=bytes, opened=bytes, inside=bytes, closed=bytes, behind=bytes, rest=bytes)
cdef tuple _list(bytes sql)
