/* The twin of two functions of load.py, which says what they do. They look at all loads before they add to one. */
#include "_slots.h"

#define SLOTS(X) X(Load, buckets) X(Load, longest) X(Load, rows) X(Load, seconds)
#define PLACE_OF(class, name) static Py_ssize_t class##_##name;
SLOTS(PLACE_OF)

static PyTypeObject *class_Load;
#define IS(object, class) ((object) != NULL && Py_TYPE(object) == class_##class)

static double unit;

#include "_load.h"

/* Loads, seconds, rows. False: nothing was done. */
static PyObject *share(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "share takes loads, seconds and rows");
        return NULL;
    }
    if (!PyList_CheckExact(args[0]) || !PyFloat_CheckExact(args[1]) || !PyLong_CheckExact(args[2]))
        Py_RETURN_FALSE;
    const Py_ssize_t count = PyList_GET_SIZE(args[0]);
    const long long rows = PyLong_AsLongLong(args[2]);
    if (count == 0 || rows < 0 || !is_load(PyList_GET_ITEM(args[0], 0), 0)) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    const double seconds = PyFloat_AS_DOUBLE(args[1]) / (double)count;
    const Py_ssize_t buckets = PyList_GET_SIZE(AT(PyList_GET_ITEM(args[0], 0), Load, buckets));
    const Py_ssize_t bucket = load_bucket(seconds, buckets);
    for (Py_ssize_t one = 0; one < count; one++)
        if (!is_load(PyList_GET_ITEM(args[0], one), bucket))
            Py_RETURN_FALSE;
    for (Py_ssize_t one = 0; one < count; one++)
        if (!add_load(PyList_GET_ITEM(args[0], one), seconds, rows / count + (one < rows % count), bucket))
            return NULL;
    Py_RETURN_TRUE;
}

/* Loads by database, host and database by shard, shards: their loads; None when one is missing. */
static PyObject *loads_of(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    if (given != 3 || !PyDict_Check(args[0]) || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "loads_of takes two dicts and numbers of shards");
        return NULL;
    }
    PyObject *shards = PySequence_Fast(args[2], "shards are a sequence");
    PyObject *found = shards == NULL ? NULL : PyList_New(PySequence_Fast_GET_SIZE(shards));
    Py_ssize_t one = 0, count = found == NULL ? 0 : PyList_GET_SIZE(found);

    for (; one < count; one++) {
        PyObject *place = PyDict_GetItemWithError(args[1], PySequence_Fast_GET_ITEM(shards, one));
        PyObject *load = place != NULL && PyTuple_Check(place) && PyTuple_GET_SIZE(place) == 2
                             ? PyDict_GetItemWithError(args[0], PyTuple_GET_ITEM(place, 1))
                             : NULL;
        if (load == NULL)
            break;
        PyList_SET_ITEM(found, one, Py_NewRef(load));
    }
    Py_XDECREF(shards);
    if (one < count)
        Py_CLEAR(found);
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

/* The class Load, and UNIT. */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *class;

    if (!PyArg_ParseTuple(args, "O!d", &PyType_Type, &class, &unit))
        return NULL;
    Py_XSETREF(class_Load, (PyTypeObject *)Py_NewRef(class));
#define FIND(class, name) && find_slot(class_##class, #name, &class##_##name)
    return 1 SLOTS(FIND) ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"share", (PyCFunction)(void (*)(void))share, METH_FASTCALL, NULL},
    {"loads_of", (PyCFunction)(void (*)(void))loads_of, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_load", NULL, -1, methods};

PyMODINIT_FUNC PyInit__load(void)
{
    return PyModule_Create(&definition);
}
