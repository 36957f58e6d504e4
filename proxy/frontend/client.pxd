# The type of what the proxy makes for each connection that comes in.

from proxy.frontend.connection cimport ClientConnection

cdef class Client(ClientConnection):
    pass
