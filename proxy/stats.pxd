# Types of the counters that every statement adds to.

cimport cython


cdef class KindStats:
    cdef public long long ok
    cdef public dict others
    cdef public list counts
    cdef public double seconds


cdef class Use:
    cdef public long long count, errors, shards
    cdef public double seconds, longest
    cdef public object rows
    cdef public list buckets
    cdef public dict hosts

    cpdef visited(self, visits)


cdef class Stats:
    cdef public dict kinds, uses, digests, shapes, refusals
    cdef public object names
    cdef public double started
    cdef public long long started_connections, topology_changes, topology_refused
    cdef public long long schema_changes, schema_refused, settings_refused, workers_replaced
    cdef public list recent_changes

    @cython.locals(use=Use, one=KindStats, number=Py_ssize_t, bound=double)
    cpdef Use observe(self, str kind, str outcome, double seconds, plan=*)
