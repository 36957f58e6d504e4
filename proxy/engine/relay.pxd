# Types of the way of one statement to one host.

from proxy.descriptors cimport write_out
from proxy.backends.connection cimport BackendConnection
from proxy.engine cimport lease
from proxy.engine.exchange cimport Exchange
from proxy.engine.session_sync cimport open_on
from proxy.load cimport Load, Loads
from proxy.session.prepared cimport HostRepeat
from proxy.wire.column_metadata cimport Header
from proxy.wire.packets cimport query_packet
from proxy.wire.pieces cimport piece
cimport cython

cdef int _IN_TRANS

cdef class Relay:
    cdef public Exchange client
    cdef public Loads loads
    cdef public dict known
    cdef public object shards, task, waiter, broken, id_offset, effects, literals, facts, request, once
    cdef public object statement, refused, column_metadata, placing
    cdef public BackendConnection conn, draining
    cdef public Load shard
    cdef public bytes sql, withheld
    cdef public str database
    cdef public bint plain, keeps_insert_id, stale, fresh
    cdef object __weakref__

    @cython.locals(load=Load, conn=BackendConnection)
    cpdef ask(self, str host, bytes sql, column_metadata, bytes shard, statement=*)
    cpdef run(self, str host, bytes sql, str database=*, column_metadata=*, facts=*, shards=*, effects=*,
              tuple literals=*, id_offset=*, bint keeps_insert_id=*, request=*)
    cpdef take_up(self, BackendConnection conn, request, HostRepeat repeat, bint fresh)
    cpdef forget(self)
    cpdef _take(self, str host, BackendConnection conn)
    cpdef send(self, BackendConnection conn)
    @cython.locals(header=Header)
    cpdef reply_data(self, BackendConnection conn, bytes data)
    cpdef reply_done(self, BackendConnection conn)
    cpdef begin_to_drain(self, BackendConnection conn)
