# Types of an EXECUTE that is like its statement's last one.

from proxy.backends.connection cimport BackendConnection
from proxy.backends.statements cimport ServerStatements
from proxy.engine cimport lease
from proxy.engine.exchange cimport Exchange
from proxy.engine.passthrough cimport Request
from proxy.engine.relay cimport Relay
from proxy.engine.session_sync cimport open_on
from proxy.engine.snapshot cimport Snapshot
from proxy.session.prepared cimport HostRepeat, Statement
from proxy.session.state cimport Session
from proxy.session.transaction cimport Transaction
cimport cython

cdef int _IN_TRANS

cdef class HostExecute(Request):
    cdef public Exchange client
    cdef public HostRepeat repeat
    cdef public Statement statement
    cdef public bytes packet
    cdef public bint forgotten
    cdef public object execute

    @cython.locals(client=Exchange, session=Session, snapshot=Snapshot, transaction=Transaction, within=bint,
                   opens=bint, conn=BackendConnection, held=BackendConnection, number=int, relay=Relay)
    cpdef bint run(self, Statement statement, HostRepeat repeat, bytes packet) except -1
    @cython.locals(known=ServerStatements)
    cpdef int _number(self, BackendConnection conn, HostRepeat repeat) except -1
