# Types of what finds the end of a reply.

from proxy.wire.column_metadata cimport Header
from proxy.wire.packets cimport parse_ok
from proxy.wire.pieces cimport piece
cimport cython

cdef int _MORE, _CURSOR, _OUT


cdef class ReplyScanner:
    cdef public object first_number, ok, err
    cdef public Header expected, matched
    cdef public int status, warnings, state, seq
    cdef public object rows
    cdef public Py_ssize_t ok_size, ending, partial
    cdef public bint files, rows_begun, within_row
    cdef public bytes database
    cdef public bytes _header, _carry
    cdef public bint _out, _fed, _new, _continued
    cdef public int _definitions, _columns
    cdef public Py_ssize_t _skip

    cpdef start(self, int state=*)
    @cython.locals(expected=Header, begin=bytes, last=Py_ssize_t, pos=Py_ssize_t)
    cpdef bint whole(self, bytes data) except -1
    cpdef Py_ssize_t feed(self, bytes data) except -2
    cpdef int _first(self, bytes payload) except -1
    cpdef int _prepared(self, bytes payload) except -1
    cpdef int _block(self, int count, int following) except -1
    cpdef int _definitions_end(self, bytes payload) except -1
    cpdef int _end(self, bytes payload) except -1
