# Types of a session.

from proxy.backends.settings cimport Settings
from proxy.session.prepared cimport Statements
from proxy.session.transaction cimport Transaction

cdef int _AUTOCOMMIT, _IN_TRANS, _NO_BACKSLASH_ESCAPES, _ANSI_QUOTES, _READ_ONLY

cdef class User:
    cdef readonly str name
    cdef readonly object role, databases
    cdef readonly bint scatter_allowed
    cdef readonly object scatter_rows
    cdef readonly str transaction_mode
    cdef readonly object max_connections
    cdef readonly long long account


cdef class Session:
    cdef public bint _utf8, autocommit, counts_matched, digests, local_files, multi_results, multi_statements
    cdef public bint no_backslash_escapes, scatter_writes, tls, tracks_replies, unsafe_charset, with_deleted
    cdef public str address, database, server_version, transaction_mode
    cdef public long long accounted, capability_set, id, memory_limit, modes_status, variables_limit
    cdef public double idle_default
    cdef public object counts, defaults, env, found_rows, holders_elsewhere, identities, introduction
    cdef public object last_insert_id, lock_holders, memory, row_count
    cdef public Settings login_settings, settings, shown_settings
    cdef public object tracker, undeciding
    cdef public User user
    cdef public object diagnostics
    cdef public Statements prepared
    cdef public Transaction transaction
    cdef object __weakref__

    cpdef int status(self) except -1
    cpdef apply(self, outcome)
    cpdef passed(self, rows)
    cpdef matched(self, bytes info)
