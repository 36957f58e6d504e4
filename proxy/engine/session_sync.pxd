# Types of what a connection is told before a statement.

from proxy.backends.connection cimport BackendConnection
from proxy.session.transaction cimport Transaction

cdef int _IN_TRANS

cpdef bint open_on(Transaction transaction, BackendConnection conn) except -1
