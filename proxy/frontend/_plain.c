/* What plain.py says: the way of a plain statement to its host, and that of its reply to the client. Here is where the
 * slots are found, and the module. */
#include "_plain.h"

PyTypeObject *classes[COUNT];

#undef PLACE_OF
#define PLACE_OF(class, name) Py_ssize_t class##_##name;
SLOTS(PLACE_OF)

#undef NAME_OF
#define NAME_OF(name) PyObject *name_##name;
NAMES(NAME_OF)

PyObject *row_count_of_rows, *leaving_not, *state_first, *state_rows, *state_done, *reader_rows, *reader_ended;
PyObject *kind_of_selects, *kind_of_inserts, *text_by_id, *row_by_id, *facts_unread;
PyObject *texts_by_host, *is_list, *union_all, *merge_of_all, *class_of_reject, *rows_sent, *extended_metadata, *loads_of, *share_compiled, *share;
PyObject *protocol_error, *execute_prepared, *partial, *binary_rows, *direct;
PyObject *text_ok, *text_unplanned, *zero, *one_reply, *ending_size, *most_of_a_packet, *no_bytes, *no_values;
double unit, bounds[MOST_BOUNDS];
Py_ssize_t bound_count, around_limit;

#define TEXT_OF(name) #name,
static const char *const class_names[] = {CLASSES(TEXT_OF)};

static int read_bounds(PyObject *given)
{
    bound_count = PyTuple_GET_SIZE(given);
    if (bound_count > MOST_BOUNDS) {
        PyErr_SetString(PyExc_ValueError, "too many bounds");
        return 0;
    }
    for (Py_ssize_t one = 0; one < bound_count; one++)
        bounds[one] = PyFloat_AsDouble(PyTuple_GET_ITEM(given, one));
    return !PyErr_Occurred();
}

/* An object of a class, without its __init__: all of its slots are to be filled. */
PyObject *make(int number)
{
    return classes[number]->tp_new(classes[number], no_values, NULL);
}

/* A named tuple of these values, without its constructor in Python. Takes `values`, a tuple of as many as it has. */
PyObject *make_tuple(int number, PyObject *values)
{
    PyObject *args = PyTuple_Pack(1, values);
    PyObject *made = args == NULL ? NULL : PyTuple_Type.tp_new(classes[number], args, NULL);

    Py_DECREF(values);
    Py_XDECREF(args);
    return made;
}

/* The `kind` of a class of plans. */
static int read_kind(int number, PyObject **kind)
{
    PyObject *found = PyObject_GetAttr((PyObject *)classes[number], name_kind);

    Py_XSETREF(*kind, found);
    return found != NULL;
}

/* Values that Python's code compares with, by the names that they have here. */
#define VALUES(X) \
    X(row_count_of_rows) X(leaving_not) X(state_first) X(state_rows) X(state_done) X(reader_rows) X(reader_ended) \
    X(facts_unread) X(text_by_id) X(row_by_id) X(texts_by_host) X(is_list) X(union_all) X(merge_of_all) \
    X(class_of_reject) X(rows_sent) X(extended_metadata) X(loads_of) X(share_compiled) X(share) X(protocol_error) X(execute_prepared) X(partial) X(binary_rows) X(direct)

static int read_values(PyObject *given)
{
#define READ_VALUE(name)                                             \
    PyObject *value_##name = PyDict_GetItemString(given, #name);     \
    if (value_##name == NULL) {                                      \
        PyErr_SetString(PyExc_TypeError, "the value " #name " is missing"); \
        return 0;                                                    \
    }                                                                \
    Py_XSETREF(name, Py_NewRef(value_##name));
    VALUES(READ_VALUE)
    return 1;
}

/* The classes by their names; the values by theirs; UNIT and BUCKETS; LONGEST. */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *given, *values, *limits;

    if (!PyArg_ParseTuple(args, "O!O!dO!n", &PyDict_Type, &given, &PyDict_Type, &values, &unit, &PyTuple_Type, &limits,
                          &around_limit))
        return NULL;
    if (around_limit > MOST_AROUND) {
        PyErr_SetString(PyExc_ValueError, "longer statements than there is room for");
        return NULL;
    }
    for (int one = 0; one < COUNT; one++) {
        PyObject *class = PyDict_GetItemString(given, class_names[one]);
        if (class == NULL || !PyType_Check(class)) {
            PyErr_Format(PyExc_TypeError, "the class %s is missing", class_names[one]);
            return NULL;
        }
        Py_XSETREF(classes[one], (PyTypeObject *)Py_NewRef(class));
    }
#define FIND(class, name) && find_slot(classes[NUMBER_##class], #name, &class##_##name)
    if (!(1 SLOTS(FIND)) || !read_bounds(limits) || !read_values(values) ||
        !read_kind(NUMBER_ShardSelect, &kind_of_selects) || !read_kind(NUMBER_Insert, &kind_of_inserts))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"begin", (PyCFunction)(void (*)(void))begin, METH_FASTCALL, NULL},
    {"piece", (PyCFunction)(void (*)(void))piece, METH_FASTCALL, NULL},
    {"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))send, METH_FASTCALL, NULL},
    {"receive", receive, METH_NOARGS, NULL},
    {"ask", (PyCFunction)(void (*)(void))ask, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
#define MAKE_NAME(name) && (name_##name = PyUnicode_InternFromString(#name)) != NULL
    if (!(1 NAMES(MAKE_NAME)))
        return -1;
    text_ok = PyUnicode_InternFromString("ok");
    text_unplanned = PyUnicode_InternFromString("unplanned");
    zero = PyLong_FromLong(0);
    one_reply = PyLong_FromLong(1);
    ending_size = PyLong_FromLong(EOF_SIZE);
    most_of_a_packet = PyLong_FromLong(MAX_PAYLOAD);
    no_bytes = PyBytes_FromStringAndSize(NULL, 0);
    no_values = PyTuple_New(0);
    return PyErr_Occurred() ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_plain", NULL, 0, methods, slots};

PyMODINIT_FUNC PyInit__plain(void)
{
    return PyModuleDef_Init(&definition);
}
