/* The twin of by_id.py: see there for what the functions do.
 *
 * The ID comes from a client, and so does the text that it is in: every byte of them is looked at. The text is measured first and then made in one
 * piece, of a template's own parts; a name that is made of values (a Label) is rendered by Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define DIGITS 20 /* of the largest number of 64 bits */
#define LONG 40
#define MOST_IN_JSON 19 /* digits of a member of a JSON text */
#define FEW 16 /* parts for which no memory is asked for */

typedef struct {
    const char *text;
    Py_ssize_t size;
    PyObject *owned; /* what the text is in, if it was made for this; else NULL */
} Piece;

static PyObject *parts_name, *render_name;

/* 1, or 0 when these are not the digits of a number of 64 bits. */
static int read_id(const char *digits, Py_ssize_t size, unsigned long long *found)
{
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

/* Where an ID's row is, and the text for it: what both functions find out. */
typedef struct {
    PyObject *shard, *place, *parts; /* ours */
} Found;

static void forget(Found *found)
{
    Py_XDECREF(found->parts);
    Py_XDECREF(found->place);
    Py_XDECREF(found->shard);
}

/* 1; 0 when there is no such shard, or with an exception. */
static int find_place(Found *found, unsigned long long shard, PyObject *places, PyObject *template)
{
    *found = (Found){PyLong_FromUnsignedLongLong(shard), NULL, NULL};
    PyObject *place = found->shard == NULL ? NULL : PyDict_GetItemWithError(places, found->shard);
    if (place == NULL)
        return 0;
    found->place = Py_NewRef(place); /* a Label is rendered by Python, which may do anything */
    if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(place, 1))) {
        PyErr_SetString(PyExc_TypeError, "a place is a host and a database");
        return 0;
    }
    found->parts = PyObject_GetAttr(template, parts_name);
    if (found->parts == NULL)
        return 0;
    if (!PyTuple_Check(found->parts)) {
        PyErr_SetString(PyExc_TypeError, "a template's parts are a tuple");
        return 0;
    }
    return 1;
}

static PyObject *nothing(void)
{
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static Piece piece_of(PyObject *text)
{
    return (Piece){PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), NULL};
}

static PyObject *text_by_id(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    unsigned long long number, bits[5]; /* mask, expected, shift, mask of the shard, of what is stored */
    Found found;

    if (given != 5 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1]) || !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "text_by_id takes bytes, a tuple, bits, a dict and a template");
        return NULL;
    }
    if (!read_bits(args[2], bits))
        return NULL;
    if (!read_id(PyBytes_AS_STRING(args[0]), PyBytes_GET_SIZE(args[0]), &number) || (number & bits[0]) != bits[1])
        Py_RETURN_NONE;
    if (!find_place(&found, number >> bits[2] & bits[3], args[3], args[4])) {
        forget(&found);
        return nothing();
    }
    char stored[DIGITS], rest[DIGITS];
    const unsigned long long kept = number & bits[4];
    PyObject *database = PyTuple_GET_ITEM(found.place, 1);
    const Piece computed[] = {piece_of(database), write_number(stored, kept), write_number(rest, number - kept)};
    PyObject *text = fill(found.parts, args[1], computed);
    PyObject *made =
        text == NULL ? NULL : PyTuple_Pack(4, PyTuple_GET_ITEM(found.place, 0), found.shard, text, database);
    Py_XDECREF(text);
    forget(&found);
    return made;
}

/* -- the row of an INSERT ------------------------------------------------------------------------------------- */

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
        at++;
    return at;
}

/* Behind a text in double quotes in which nothing is escaped; NULL for none. */
static const char *skip_text(const char *at, const char *end)
{
    const char *closed = at < end && *at == '"' ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;

    return closed == NULL ? NULL : closed + 1;
}

/* Behind a colon; NULL for none. */
static const char *skip_colon(const char *at, const char *end)
{
    at = skip_spaces(at, end);
    return at < end && *at == ':' ? skip_spaces(at + 1, end) : NULL;
}

static int is_scalar(char one)
{
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || one == '-' ||
           one == '+' || one == '.';
}

/* Behind a member whose value is a text or a word, and the comma behind it; NULL for any other. */
static const char *skip_member(const char *at, const char *end)
{
    at = skip_text(at, end);
    at = at == NULL ? NULL : skip_colon(at, end);
    if (at == NULL || at == end)
        return NULL;
    if (*at == '"') {
        at = skip_text(at, end);
    } else {
        const char *begin = at;
        while (at < end && is_scalar(*at))
            at++;
        at = at == begin ? NULL : at;
    }
    at = at == NULL ? NULL : skip_spaces(at, end);
    return at != NULL && at < end && *at == ',' ? at + 1 : NULL;
}

/* The digits of a member's value, `at` which it begins: their number; 0 when it is no plain number. */
static Py_ssize_t read_member(const char **at, const char *end)
{
    const int quoted = *at < end && **at == '"';
    const char *begin = *at += quoted, *stop = begin;

    while (stop < end && *stop >= '0' && *stop <= '9')
        stop++;
    const Py_ssize_t size = stop - begin;
    if (size == 0 || size > MOST_IN_JSON || (!quoted && size > 1 && *begin == '0') ||
        (quoted && (stop == end || *stop != '"')))
        return 0;
    stop = skip_spaces(stop + quoted, end);
    return stop < end && (*stop == ',' || *stop == '}') ? size : 0;
}

static int is_once(const char *text, const char *end, PyObject *name)
{
    const char *wanted = PyBytes_AS_STRING(name);
    const Py_ssize_t size = PyBytes_GET_SIZE(name);
    int times = 0;

    while (end - text >= size && (text = memchr(text, *wanted, (size_t)(end - text - size + 1))) != NULL) {
        const int here = !memcmp(text, wanted, (size_t)size);
        times += here;
        text += here ? size : 1;
    }
    return times == 1;
}

/* `member_of`: the digits and their number, or 0. */
static Py_ssize_t find_member(PyObject *raw, PyObject *name, const char **digits)
{
    const char *at = PyBytes_AS_STRING(raw), *end = at + PyBytes_GET_SIZE(raw);
    const Py_ssize_t size = PyBytes_GET_SIZE(name);

    if (memchr(at, '\\', (size_t)(end - at)) || !is_once(at, end, name))
        return 0;
    at = skip_spaces(at + (at < end && *at == '\''), end);
    if (at == end || *at++ != '{')
        return 0;
    for (; at != NULL; at = skip_member(at, end)) {
        at = skip_spaces(at, end);
        if (end - at < size || memcmp(at, PyBytes_AS_STRING(name), (size_t)size))
            continue;
        *digits = skip_colon(at + size, end);
        return *digits == NULL ? 0 : read_member(digits, end);
    }
    return 0;
}

/* What by_id.py's RowById has: 1, or 0 with an exception. */
static int read_by_id(PyObject *by_id, unsigned long long *bits, unsigned long long *base)
{
    if (!PyTuple_Check(by_id) || PyTuple_GET_SIZE(by_id) != 4 || !PyBytes_Check(PyTuple_GET_ITEM(by_id, 1))) {
        PyErr_SetString(PyExc_TypeError, "how a row is placed is a literal, a member, bits and an offset");
        return 0;
    }
    PyObject *offset = PyTuple_GET_ITEM(by_id, 3);
    *base = offset == Py_None ? 0 : PyLong_AsUnsignedLongLong(offset);
    return !(*base == (unsigned long long)-1 && PyErr_Occurred()) && read_bits(PyTuple_GET_ITEM(by_id, 2), bits);
}

static PyObject *row_by_id(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    unsigned long long number, bits[5], base;
    Found found;

    if (given != 5 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1]) || !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "row_by_id takes bytes, a tuple, how it is placed, a dict and a template");
        return NULL;
    }
    if (!read_by_id(args[2], bits, &base))
        return NULL;
    PyObject *member = PyTuple_GET_ITEM(args[2], 1);
    const char *digits = PyBytes_AS_STRING(args[0]);
    const Py_ssize_t size = PyBytes_GET_SIZE(member) ? find_member(args[0], member, &digits) : PyBytes_GET_SIZE(args[0]);
    if (!read_id(digits, size, &number) || (number & bits[0]) != bits[1])
        Py_RETURN_NONE;
    const unsigned long long shard = number >> bits[2] & bits[3];
    if (!find_place(&found, shard, args[3], args[4])) {
        forget(&found);
        return nothing();
    }
    const int composes = PyTuple_GET_ITEM(args[2], 3) != Py_None;
    const unsigned long long offset = composes ? base + (shard << bits[2]) : 0;
    char room[DIGITS];
    PyObject *database = PyTuple_GET_ITEM(found.place, 1), *made = NULL;
    const Piece computed[] = {piece_of(database), write_number(room, offset), {"", 0, NULL}};
    PyObject *told = composes ? PyLong_FromUnsignedLongLong(offset) : Py_NewRef(Py_None);
    PyObject *text = told == NULL ? NULL : fill(found.parts, args[1], computed);
    if (text != NULL)
        made = PyTuple_Pack(5, PyTuple_GET_ITEM(found.place, 0), found.shard, text, database, told);
    Py_XDECREF(text);
    Py_XDECREF(told);
    forget(&found);
    return made;
}

static PyMethodDef methods[] = {
    {"text_by_id", (PyCFunction)(void (*)(void))text_by_id, METH_FASTCALL, NULL},
    {"row_by_id", (PyCFunction)(void (*)(void))row_by_id, METH_FASTCALL, NULL},
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
