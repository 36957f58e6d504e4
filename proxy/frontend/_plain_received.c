/* What transports call: `ClientConnection.data_received` and `BackendConnection.data_received`, so that no Python runs
 * where the compiled steps do all there is to do. */
#include "_plain.h"

/* The exception at hand, which is caught by that. */
static PyObject *caught(void)
{
    PyObject *kind, *error, *where;

    PyErr_Fetch(&kind, &error, &where);
    PyErr_NormalizeException(&kind, &error, &where);
    if (where != NULL)
        PyException_SetTraceback(error, where);
    Py_XDECREF(kind);
    Py_XDECREF(where);
    return error;
}

/* Whether a step that was called has done all; -1 with an exception. */
static int has_done(PyObject *step, PyObject *const *args, Py_ssize_t count)
{
    PyObject *told = PyObject_Vectorcall(step, args, (size_t)count, NULL);
    const int done = told == NULL ? -1 : PyObject_IsTrue(told);

    Py_XDECREF(told);
    return done;
}

static PyObject *client_received(PyObject *client, PyObject *data)
{
    PyObject *begins = AT(client, ClientConnection, begins), *args[] = {client, data};

    if (begins != NULL && begins != Py_None) {
        Py_INCREF(begins);
        const int done = has_done(begins, args, 2);
        Py_DECREF(begins);
        if (done > 0)
            Py_RETURN_NONE;
        if (done < 0) {
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return NULL;
            PyObject *error = caught(), *told = PyObject_CallMethodOneArg(client, name_met, error);
            Py_DECREF(error);
            return told;
        }
    }
    return PyObject_CallMethodOneArg(client, name_received, data);
}

static PyObject *tell_unreadable(PyObject *conn, PyObject *receiver)
{
    PyObject *args[] = {conn, receiver, caught()}, *told = PyObject_VectorcallMethod(name__unreadable, args, 3, NULL);

    Py_DECREF(args[2]);
    return told;
}

static PyObject *backend_received(PyObject *conn, PyObject *data)
{
    PyObject *receiver = AT(conn, BackendConnection, receiver), *step = AT(conn, BackendConnection, answer);

    if (receiver != NULL && receiver != Py_None && step != NULL && step != Py_None) {
        PyObject *args[] = {Py_NewRef(receiver), conn, data}, *told = NULL;
        Py_INCREF(step);
        const int done = has_done(step, args, 3);
        Py_DECREF(step);
        if (done > 0)
            told = Py_NewRef(Py_None);
        else if (done < 0 && PyErr_ExceptionMatches(protocol_error))
            told = tell_unreadable(conn, args[0]);
        Py_DECREF(args[0]);
        if (done)
            return told;
    }
    return PyObject_CallMethodOneArg(conn, name_received, data);
}

static PyMethodDef of_clients = {"data_received", client_received, METH_O, NULL};
static PyMethodDef of_backends = {"data_received", backend_received, METH_O, NULL};

static int set_method(PyTypeObject *class, PyMethodDef *method)
{
    PyObject *made = PyDescr_NewMethod(class, method);
    const int failed = made == NULL || PyObject_SetAttrString((PyObject *)class, method->ml_name, made);

    Py_XDECREF(made);
    return !failed;
}

/* From now on these methods of the two classes are those of here. */
PyObject *receive(PyObject *module, PyObject *nothing)
{
    if (!set_method(classes[NUMBER_ClientConnection], &of_clients) ||
        !set_method(classes[NUMBER_BackendConnection], &of_backends))
        return NULL;
    Py_RETURN_NONE;
}
