# Types of what is served.

from proxy.engine.snapshot cimport Snapshot

cdef class Serving:
    cdef public object _backends, _changed, _coming, _peers, _spawn, _stats, columns_seen, problems
    cdef public bint _settled
    cdef public long long _looks
    cdef public double _doubt_from, _patience
    cdef public Snapshot snapshot
