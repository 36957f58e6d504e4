# Types of the merge of rows that come in any order. Sorted runs and aggregates are Python's.

cdef class Window:
    cdef public object left, skip


cdef class _Output:
    cdef public object _columns, _hidden, _offset
    cdef public Window _window
    cdef public long long emitted
    cdef public int seq


cdef class Concatenation(_Output):
    cdef public object _keys
    cdef public bint all

    cpdef bytes rows(self, int run, bytes block)
    cpdef bytes ended(self, int run)
