# Types of the reader of a client's packets.

cdef class PacketReader:
    cdef public Py_ssize_t limit, pending
    cdef public int seq
    cdef public bytes _data
    cdef public Py_ssize_t _pos, _need, _size
    cdef public list _chunks
    cdef public tuple _parts

    cpdef put(self, bytes data)
    cpdef take(self)

cpdef bytes query_packet(bytes sql)
cpdef parse_ok(bytes payload)
