/* The twin of row_packets.py: see there for what the two functions do.
 *
 * Lengths come from a server and may say anything. No byte is read or written before it is known to lie within
 * the buffer, and `pos` never exceeds the buffer's size: what is added is compared with what is left first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define HEADER 4

static Py_ssize_t payload_length(const unsigned char *header)
{
    return (Py_ssize_t)header[0] | (Py_ssize_t)header[1] << 8 | (Py_ssize_t)header[2] << 16;
}

/* The second and third argument, which are integers; the second one of any size where `wraps`. */
static int read_integers(PyObject *const *args, Py_ssize_t count, int wraps, Py_ssize_t *one, Py_ssize_t *most)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "three arguments are needed");
        return 0;
    }
    *one = wraps ? (Py_ssize_t)(PyLong_AsUnsignedLongMask(args[1]) & 0xFF) : PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return 0;
    *most = PyLong_AsSsize_t(args[2]);
    return !(*most == -1 && PyErr_Occurred());
}

static PyObject *walk_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t pos, most, rows = 0;
    unsigned long header = 0;
    Py_buffer view;

    if (!read_integers(args, count, 0, &pos, &most))
        return NULL;
    if (pos < 0) {
        PyErr_SetString(PyExc_ValueError, "the position is negative");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *data = view.buf;
    while (view.len - pos > HEADER) { /* the header and the payload's first byte are there */
        Py_ssize_t length = payload_length(data + pos);
        if (length > view.len - pos - HEADER || data[pos + HEADER] >= 0xFE || length == 0 || length >= most)
            break;
        header = (unsigned long)data[pos + 3] << 24 | (unsigned long)length;
        pos += HEADER + length;
        rows++;
    }
    PyBuffer_Release(&view);
    return Py_BuildValue("nnk", pos, rows, header);
}

static PyObject *renumber(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t seq, most, pos = 0, rows = 0;
    Py_buffer view;

    if (!read_integers(args, count, 1, &seq, &most))
        return NULL;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t end = view.len;
    PyObject *out = PyBytes_FromStringAndSize(view.buf, end);
    PyBuffer_Release(&view);
    if (out == NULL)
        return NULL;
    unsigned char *data = (unsigned char *)PyBytes_AS_STRING(out);
    while (end - pos >= HEADER) {
        Py_ssize_t length = payload_length(data + pos);
        if (length > end - pos - HEADER)
            break;
        data[pos + 3] = (unsigned char)(seq++ & 0xFF);
        pos += HEADER + length;
        rows += length != most;
    }
    if (pos != end) {
        Py_DECREF(out);
        PyErr_SetString(PyExc_ValueError, "the block ends within a packet");
        return NULL;
    }
    return Py_BuildValue("Nnn", out, seq & 0xFF, rows);
}

static PyMethodDef methods[] = {
    {"walk_rows", (PyCFunction)(void (*)(void))walk_rows, METH_FASTCALL, NULL},
    {"renumber", (PyCFunction)(void (*)(void))renumber, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_row_packets", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__row_packets(void)
{
    return PyModuleDef_Init(&definition);
}
