# Types of a piece of bytes: it is read from the memory of what it is a piece of.

cimport cython

@cython.locals(text="const char *")
cpdef bytes piece(bytes data, Py_ssize_t begin, Py_ssize_t end)
