# The type of the settings that a session or a connection has.

cdef class Settings:
    cdef public object values, _statements
    cdef public Settings base, system
    cdef public double idle_limit
    cdef public long long user_bytes
    cdef public bint named
    cdef public int status
    cdef object __weakref__

    cpdef get(self, str name)
