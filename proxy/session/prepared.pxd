# Types of a session's prepared statements, and of what an EXECUTE has found out for the next one. Those of
# dataclasses stand in the order of their arguments.

from proxy.backends.connection cimport BackendConnection
from proxy.backends.settings cimport Settings

cdef class Repeat:
    cdef readonly object plan, generation, env, user
    cdef readonly bytes head
    cdef readonly Py_ssize_t begin, size
    cdef readonly object values


cdef class HostRepeat:
    cdef readonly object plan, generation, env, user
    cdef readonly bytes head
    cdef readonly Py_ssize_t begin
    cdef readonly Settings settings
    cdef readonly object topology
    cdef readonly str host
    cdef readonly bytes sql
    cdef readonly str database
    cdef readonly tuple key
    cdef readonly bytes head_sent
    cdef readonly tuple reading, integers


cdef class BuiltinRepeat:
    cdef readonly object plan, generation, env, user
    cdef readonly bytes head
    cdef readonly Py_ssize_t begin


cdef class Statement:
    cdef public bytes sql
    cdef public object env
    cdef public Settings settings
    cdef public object plan
    cdef public tuple literals
    cdef public object generation
    cdef public long long id
    cdef public int parameters
    cdef public object places
    cdef public bytes types
    cdef public bint private
    cdef public str exact
    cdef public object learnt
    cdef public bint by_types
    cdef public bytes exact_types
    cdef public tuple derived
    cdef public dict sent
    cdef public long long sent_bytes
    cdef public str problem
    cdef public BackendConnection cursor
    cdef public long long number
    cdef public object ahead, heading, repeat
    cdef public int text_warnings


cdef class Statements:
    cdef public dict by_id
    cdef public tuple values
    cdef public object on_host, _base, _env
    cdef public Statement latest
    cdef public long long kept, sent, _last
