# The type of what statements are served by.

from rewriter.planner cimport Rewriter


cdef class Snapshot:
    cdef readonly object topology, schema
    cdef readonly Rewriter rewriter
    cdef readonly bint all_serving
    cdef readonly dict masters
