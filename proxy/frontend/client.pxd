# The type of what the proxy makes for each connection that comes in.

from proxy cimport pipeline
from proxy.execute.prepared cimport prepare
from proxy.frontend.connection cimport ClientConnection

cdef class Client(ClientConnection):
    pass
