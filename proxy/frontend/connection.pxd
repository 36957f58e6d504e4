# Types of a client's connection.

from proxy.engine.exchange cimport Exchange
from proxy.wire.packets cimport PacketReader
from proxy.wire.pieces cimport piece
cimport cython

cdef int _QUERY, _EXECUTE

cdef class ClientConnection(Exchange):
    cdef public PacketReader _reader
    cdef public int _paused
    cdef public Py_ssize_t ahead
    cdef public object peer
    cdef public long long held

    cpdef command(self, bytes payload)
    cpdef bint execute_again(self, bytes packet) except -1
    @cython.locals(size=Py_ssize_t)
    cpdef data_received(self, bytes data)
    cdef _receive(self, bytes data)
    cpdef _turn(self)
    cdef _introduce(self)
    cpdef _go_on(self)
    cdef _command(self, int seq, bytes payload)
    cdef _run(self, command)
