/* The twin of by_id.py: see there for what the function does.
 *
 * The ID comes from a client: every byte of it is looked at. The text is measured first and then made in one
 * piece, of a template's own parts; a name that is made of values (a Label) is rendered by Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define DIGITS 20 /* of the largest number of 64 bits */
#define LONG 40
#define FEW 16 /* parts for which no memory is asked for */

typedef struct {
    const char *text;
    Py_ssize_t size;
    PyObject *owned; /* what the text is in, if it was made for this; else NULL */
} Piece;

static PyObject *parts_name, *render_name;

/* 1, or 0 when these are not the digits of a number of 64 bits. */
static int read_id(PyObject *raw, unsigned long long *found)
{
    const char *digits = PyBytes_AS_STRING(raw);
    const Py_ssize_t size = PyBytes_GET_SIZE(raw);
    unsigned long long number = 0;

    if (size == 0 || size >= LONG)
        return 0;
    for (Py_ssize_t at = 0; at < size; at++) {
        const unsigned int digit = (unsigned char)digits[at] - '0';
        if (digit > 9 || number > (0xFFFFFFFFFFFFFFFFULL - digit) / 10)
            return 0;
        number = number * 10 + digit;
    }
    *found = number;
    return 1;
}

static Piece write_number(char *room, unsigned long long number)
{
    int at = DIGITS;

    do {
        room[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return (Piece){room + at, DIGITS - at, NULL};
}

static int of_bytes(Piece *piece, PyObject *text)
{
    if (!PyBytes_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a value is no bytes");
        return 0;
    }
    *piece = (Piece){PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), NULL};
    return 1;
}

/* What a name made of values is. */
static int of_label(Piece *piece, PyObject *label, PyObject *values)
{
    PyObject *text = PyObject_CallMethodOneArg(label, render_name, values);

    if (text == NULL)
        return 0;
    if (!of_bytes(piece, text)) {
        Py_DECREF(text);
        return 0;
    }
    piece->owned = text;
    return 1;
}

/* One of the template's parts: 1; 0 with an exception. `computed`: database, what is stored, and the rest. */
static int of_part(Piece *piece, PyObject *part, PyObject *values, const Piece *computed)
{
    if (PyBytes_Check(part))
        return of_bytes(piece, part);
    if (!PyLong_Check(part))
        return of_label(piece, part, values);
    const Py_ssize_t index = PyLong_AsSsize_t(part), known = PyTuple_GET_SIZE(values);
    if (index == -1 && PyErr_Occurred())
        return 0;
    if (index < 0 || index >= known + 3) {
        PyErr_SetString(PyExc_IndexError, "the template names a value that there is not");
        return 0;
    }
    if (index < known)
        return of_bytes(piece, PyTuple_GET_ITEM(values, index));
    *piece = computed[index - known];
    return 1;
}

static PyObject *join(const Piece *pieces, Py_ssize_t count)
{
    Py_ssize_t size = 0;

    for (Py_ssize_t one = 0; one < count; one++)
        size += pieces[one].size;
    PyObject *text = PyBytes_FromStringAndSize(NULL, size);
    if (text == NULL)
        return NULL;
    char *at = PyBytes_AS_STRING(text);
    for (Py_ssize_t one = 0; one < count; one++) {
        memcpy(at, pieces[one].text, pieces[one].size);
        at += pieces[one].size;
    }
    return text;
}

static PyObject *fill(PyObject *parts, PyObject *values, const Piece *computed)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(parts);
    Piece few[FEW], *pieces = count > FEW ? PyMem_New(Piece, count) : few;
    Py_ssize_t done = 0;
    PyObject *text = NULL;

    if (pieces == NULL)
        return PyErr_NoMemory();
    while (done < count && of_part(pieces + done, PyTuple_GET_ITEM(parts, done), values, computed))
        done++;
    if (done == count)
        text = join(pieces, count);
    for (Py_ssize_t one = 0; one < done; one++)
        Py_XDECREF(pieces[one].owned);
    if (pieces != few)
        PyMem_Free(pieces);
    return text;
}

static PyObject *known_bits; /* those that were read last, which are mostly those that come next */
static unsigned long long known_numbers[5];

/* The five numbers of `Bits`. */
static int read_bits(PyObject *bits, unsigned long long *numbers)
{
    if (bits == known_bits) {
        memcpy(numbers, known_numbers, sizeof known_numbers);
        return 1;
    }
    if (!PyTuple_Check(bits) || PyTuple_GET_SIZE(bits) != 5) {
        PyErr_SetString(PyExc_TypeError, "bits are five numbers");
        return 0;
    }
    for (int one = 0; one < 5; one++) {
        numbers[one] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(bits, one));
        if (numbers[one] == (unsigned long long)-1 && PyErr_Occurred())
            return 0;
    }
    if (numbers[2] > 63) {
        PyErr_SetString(PyExc_ValueError, "an ID has 64 bits");
        return 0;
    }
    memcpy(known_numbers, numbers, sizeof known_numbers);
    Py_XSETREF(known_bits, Py_NewRef(bits));
    return 1;
}

static PyObject *text_by_id(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    unsigned long long number, bits[5]; /* mask, expected, shift, mask of the shard, of what is stored */

    if (given != 5 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1]) || !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "text_by_id takes bytes, a tuple, bits, a dict and a template");
        return NULL;
    }
    if (!read_bits(args[2], bits))
        return NULL;
    if (!read_id(args[0], &number) || (number & bits[0]) != bits[1])
        Py_RETURN_NONE;
    PyObject *shard = PyLong_FromUnsignedLongLong(number >> bits[2] & bits[3]);
    if (shard == NULL)
        return NULL;
    PyObject *place = PyDict_GetItemWithError(args[3], shard), *parts = NULL, *text = NULL, *found = NULL;
    if (place == NULL) {
        Py_DECREF(shard);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    Py_INCREF(place); /* a Label is rendered by Python, which may do anything */
    if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(place, 1))) {
        PyErr_SetString(PyExc_TypeError, "a place is a host and a database");
        goto done;
    }
    parts = PyObject_GetAttr(args[4], parts_name);
    if (parts == NULL)
        goto done;
    if (!PyTuple_Check(parts)) {
        PyErr_SetString(PyExc_TypeError, "a template's parts are a tuple");
        goto done;
    }
    char stored[DIGITS], rest[DIGITS];
    const unsigned long long kept = number & bits[4];
    PyObject *database = PyTuple_GET_ITEM(place, 1);
    const Piece computed[] = {
        {PyBytes_AS_STRING(database), PyBytes_GET_SIZE(database), NULL},
        write_number(stored, kept),
        write_number(rest, number - kept),
    };
    text = fill(parts, args[1], computed);
    if (text != NULL)
        found = PyTuple_Pack(4, PyTuple_GET_ITEM(place, 0), shard, text, database);
done:
    Py_XDECREF(text);
    Py_XDECREF(parts);
    Py_DECREF(place);
    Py_DECREF(shard);
    return found;
}

static PyMethodDef methods[] = {
    {"text_by_id", (PyCFunction)(void (*)(void))text_by_id, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    if (parts_name == NULL)
        parts_name = PyUnicode_InternFromString("parts");
    if (render_name == NULL)
        render_name = PyUnicode_InternFromString("render");
    return parts_name == NULL || render_name == NULL ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_by_id", NULL, 0, methods, slots};

PyMODINIT_FUNC PyInit__by_id(void)
{
    return PyModuleDef_Init(&definition);
}
