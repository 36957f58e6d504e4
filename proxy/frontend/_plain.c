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

PyObject *row_count_of_rows, *state_first, *state_done, *leaving_not;
PyObject *kind_of_selects, *kind_of_inserts, *text_by_id, *row_by_id, *nature_unread;
PyObject *text_ok, *text_unplanned, *zero, *one_reply, *ending_size, *no_bytes, *no_values;
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

/* The `kind` of a class of plans. */
static int read_kind(int number, PyObject **kind)
{
    PyObject *found = PyObject_GetAttr((PyObject *)classes[number], name_kind);

    Py_XSETREF(*kind, found);
    return found != NULL;
}

/* The classes by their names; RESULT_SET, FIRST, DONE and Leaving.NOT; UNIT and BUCKETS; text_by_id and row_by_id;
 * UNREAD; LONGEST. */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *given, *rows, *first, *done, *leaving, *limits, *binds, *places, *unread;

    if (!PyArg_ParseTuple(args, "O!OOOOdO!OOOn", &PyDict_Type, &given, &rows, &first, &done, &leaving, &unit,
                          &PyTuple_Type, &limits, &binds, &places, &unread, &around_limit))
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
    if (!(1 SLOTS(FIND)) || !read_bounds(limits))
        return NULL;
    Py_XSETREF(row_count_of_rows, Py_NewRef(rows));
    Py_XSETREF(state_first, Py_NewRef(first));
    Py_XSETREF(state_done, Py_NewRef(done));
    Py_XSETREF(leaving_not, Py_NewRef(leaving));
    Py_XSETREF(text_by_id, Py_NewRef(binds));
    Py_XSETREF(row_by_id, Py_NewRef(places));
    Py_XSETREF(nature_unread, Py_NewRef(unread));
    if (!read_kind(NUMBER_ShardSelect, &kind_of_selects) || !read_kind(NUMBER_Insert, &kind_of_inserts))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"begin", (PyCFunction)(void (*)(void))begin, METH_FASTCALL, NULL},
    {"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))send, METH_FASTCALL, NULL},
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
