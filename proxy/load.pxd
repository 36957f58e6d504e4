# Types of the loads: the sums of what a host or a shard had to do are numbers of C. Rows are an object, since
# a server may tell 64 bits of them at a time.

cimport cython


cdef class Load:
    cdef public str keyspace
    cdef public object shard, rows
    cdef public long long errors, waits
    cdef public double seconds, longest, waited
    cdef public list buckets
    cdef public object _before, _mark

    cpdef add(self, double seconds, rows, Py_ssize_t bucket)


cdef class Loads:
    cdef public dict hosts, shards, codes
    cdef public list _due
    cdef public Py_ssize_t _slice
    cdef public double _next_window

    cpdef list of(self, keyspace, shards)
    cpdef Load shard(self, bytes database, topology)
    cpdef failed(self, code)


@cython.locals(units="long long", number=int)
cpdef int bucket_of(double seconds) except -1
@cython.locals(load=Load, bucket=Py_ssize_t)
cpdef share(loads, double seconds, rows)
