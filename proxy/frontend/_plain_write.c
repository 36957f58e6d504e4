/* A write to a transport: where it would go to the socket at once, by the transport's own checks, it goes there from
 * here. What the socket does not take, and every error, is the transport's business. */
#include "_plain.h"

#include <errno.h>
#include <unistd.h>

/* Whether one of uvloop's methods says 0: 1, or 0, with or without an exception. */
static int says_zero(PyObject *method, PyObject *transport)
{
    PyObject *told = PyObject_Vectorcall(method, &transport, 1, NULL);
    const int zero = told != NULL && PyObject_IsTrue(told) == 0;

    Py_XDECREF(told);
    return zero;
}

/* Whether nothing waits to be sent, and the socket is open. */
static int may_write(PyObject *transport, PyObject *descriptor)
{
    if (direct == NULL || PyTuple_GET_SIZE(direct) != 4 || descriptor == NULL || !PyLong_CheckExact(descriptor))
        return 0;
    PyObject *class = (PyObject *)Py_TYPE(transport);
    return (class == PyTuple_GET_ITEM(direct, 0) || class == PyTuple_GET_ITEM(direct, 1)) &&
           says_zero(PyTuple_GET_ITEM(direct, 2), transport) && says_zero(PyTuple_GET_ITEM(direct, 3), transport);
}

/* How much of the bytes the socket takes. */
static Py_ssize_t sent_of(PyObject *descriptor, PyObject *data)
{
    const long number = PyLong_AsLong(descriptor);
    ssize_t sent = -1;

    if (number >= 0)
        do
            sent = write((int)number, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
        while (sent < 0 && errno == EINTR);
    return sent < 0 ? 0 : sent;
}

/* `transport.write(data)`, for bytes. */
int write_to(PyObject *transport, PyObject *descriptor, PyObject *data)
{
    Py_ssize_t sent = 0;

    if (may_write(transport, descriptor))
        sent = sent_of(descriptor, data);
    if (PyErr_Occurred())
        return 0;
    if (sent == PyBytes_GET_SIZE(data))
        return 1;
    PyObject *rest = sent == 0 ? Py_NewRef(data)
                               : PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + sent, PyBytes_GET_SIZE(data) - sent);
    const int done = rest != NULL && done_by(PyObject_CallMethodOneArg(transport, name_write, rest));
    Py_XDECREF(rest);
    return done;
}
