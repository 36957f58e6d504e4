# Types of a server's connection. Its methods that others have versions of (`traced`, `reworded`) are cpdef: the
# compiled callers find those.

from proxy.backends.settings cimport Settings
from proxy.descriptors cimport write_out
from proxy.load cimport Load, bucket_of, share
from proxy.wire.packets cimport query_packet
from proxy.wire.replies cimport ReplyScanner
cimport cython

cdef int _IN_TRANS, _AUTOCOMMIT, _CHANGED, _WATCHED


cdef class BackendConnection:
    cdef public object _numbers, _sync_error, changes, filled, for_cursors, offers, owner, receiver
    cdef public Settings settings
    cdef public object shards, statements, transport
    cdef public bint _plain, _torn, closed, doomed, kill_wanted, pinned, prepared, resetting, unclean, undone
    cdef public bint unread
    cdef public long long _sync_packets, replies, thread_id, capability_set
    cdef public int descriptor, given, usual
    cdef public double begun, ended, granted, idle_since, sent
    cdef public bytes _held, _sync_tail, branch
    cdef public str host, database, version
    cdef public object tracked_before
    cdef public Load load, shard
    cdef public ReplyScanner scanner
    cdef object __weakref__

    cpdef has(self, settings)
    @cython.locals(size=Py_ssize_t)
    cpdef ask(self, bytes sql, receiver)
    cpdef tell(self, bytes packet)
    @cython.locals(ended=double, seconds=double, load=Load, shard=Load, bucket=Py_ssize_t)
    cpdef _count(self)
    cpdef _count_parts(self, double seconds, rows)
    cpdef _count_error(self)
    cpdef _give_up(self)
    cpdef close(self)
    cdef _let_go(self)
    @cython.locals(flags=int, end=Py_ssize_t, partial=Py_ssize_t)
    cpdef data_received(self, bytes data)
    @cython.locals(sent=double, more=bint)
    cdef _reply_over(self, receiver, bytes data)
    cdef bytes _judged(self, receiver, bytes data)
    cdef _untracked(self, bytes data)
    cdef _heard(self)
    cdef bytes _take_sync(self, bytes data)
    cpdef kill_query(self)
    cdef _fail(self, error)
    cdef bint _given(self, receiver, bytes data) except -1
    cdef _unreadable(self, receiver, problem)
    cpdef _tell_lost(self, error)
