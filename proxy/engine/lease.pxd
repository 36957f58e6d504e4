# Types of how connections are taken and given back.

from proxy.backends.connection cimport BackendConnection
from proxy.backends.host cimport HostPool
from proxy.engine.exchange cimport Exchange
cimport cython

@cython.locals(pool=HostPool)
cpdef BackendConnection take(Exchange client, str host, str database=*)
cpdef free(BackendConnection conn)
