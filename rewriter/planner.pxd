# Types of the rewriter: how a statement's plan is found.

from rewriter.around cimport Around
from rewriter.enclosed cimport enclosed
cimport cython

cdef class Rewriter:
    cdef public Around _around
    cdef public dict _behind_stem, _enclosed, _folded, _short
    cdef public object _cache, _differ, _leaving, _limits, _schema, _topology, generation
    cdef public long long _folded_bytes, differences, hits, misses
    cdef object __weakref__

    @cython.locals(before=bytes, last=bytes, stem=bytes, outside=tuple, literal=bytes)
    cpdef find(self, bytes sql, env)
