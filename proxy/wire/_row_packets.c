/* The twin of row_packets.py: see there for what the functions do.
 *
 * Lengths come from a server and may say anything. No byte is read or written before it is known to lie within
 * the buffer, and `pos` never exceeds the buffer's size: what is added is compared with what is left first. */
#include "_row_packets.h"

#define EOF_SIZE 9 /* with its header */

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
    for (Py_ssize_t length; (length = plain_row(data, view.len, pos, most)) > 0;) {
        header = (unsigned long)data[pos + 3] << 24 | (unsigned long)length;
        pos += HEADER + length;
        rows++;
    }
    PyBuffer_Release(&view);
    return Py_BuildValue("nnk", pos, rows, header);
}

static PyObject *whole_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t pos, most, rows = 0;
    Py_buffer view;
    unsigned long numbers[2] = {0, 0}; /* warnings and status */

    if (!read_integers(args, count, 0, &pos, &most))
        return NULL;
    if (pos < 0) {
        PyErr_SetString(PyExc_ValueError, "the position is negative");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *data = view.buf;
    for (Py_ssize_t length; (length = plain_row(data, view.len, pos, most)) > 0; rows++)
        pos += HEADER + length;
    const int ends = view.len - pos == EOF_SIZE && payload_length(data + pos) == EOF_SIZE - HEADER &&
                     data[pos + HEADER] == 0xFE;
    for (int one = 0; ends && one < 2; one++)
        numbers[one] = (unsigned long)data[pos + 5 + 2 * one] | (unsigned long)data[pos + 6 + 2 * one] << 8;
    PyBuffer_Release(&view);
    if (!ends)
        Py_RETURN_NONE;
    PyObject *found = PyTuple_New(3), *made = PyLong_FromSsize_t(rows);
    for (Py_ssize_t one = 0; found != NULL && made != NULL; one++) {
        PyTuple_SET_ITEM(found, one, made);
        if (one == 2)
            return found;
        made = PyLong_FromUnsignedLong(numbers[one]);
    }
    Py_XDECREF(found);
    Py_XDECREF(made);
    return NULL;
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

static PyObject *split_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t pos, most;
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
    PyObject *rows = PyList_New(0);
    for (Py_ssize_t length; rows != NULL && (length = plain_row(data, view.len, pos, most)) > 0;) {
        if (!append(rows, PyBytes_FromStringAndSize((const char *)data + pos + HEADER, length)))
            Py_CLEAR(rows);
        pos += HEADER + length;
    }
    PyBuffer_Release(&view);
    return rows == NULL ? NULL : Py_BuildValue("Nn", rows, pos);
}

/* -- text rows made binary ----------------------------------------------------------------------------------- */

#define LONGEST_VALUE 12  /* bytes of a binary value that is no string */

/* The integer that the whole text is, modulo 2^64; 0 when it is none or has more digits than 2^64. */
static int read_integer(const unsigned char *text, Py_ssize_t length, unsigned long long *value)
{
    int negative = length > 0 && text[0] == '-';
    Py_ssize_t at = negative;

    if (at == length || length - at > 19) /* 19 digits fit; what is longer is read elsewhere */
        return 0;
    unsigned long long number = 0;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9')
            return 0;
        number = number * 10 + (unsigned)(text[at] - '0');
    }
    *value = negative ? 0 - number : number;
    return 1;
}

/* So many digits and no others. */
static int read_digits(const unsigned char *text, int count, unsigned *value)
{
    *value = 0;
    for (int at = 0; at < count; at++) {
        if (text[at] < '0' || text[at] > '9')
            return 0;
        *value = *value * 10 + (unsigned)(text[at] - '0');
    }
    return 1;
}

/* `2020-01-31`, `2020-01-31 12:00:00.000001`; the bytes written, 0 when it is none of these. */
static int put_date(unsigned char *out, const unsigned char *text, Py_ssize_t length)
{
    unsigned year, month, day, hour = 0, minute = 0, second = 0, micros = 0;

    if (length != 10 && length != 19 && !(length >= 21 && length <= 26))
        return 0;
    if (text[4] != '-' || text[7] != '-' || !read_digits(text, 4, &year) || !read_digits(text + 5, 2, &month) ||
        !read_digits(text + 8, 2, &day))
        return 0;
    if (length > 10 &&
        (text[10] != ' ' || text[13] != ':' || text[16] != ':' || !read_digits(text + 11, 2, &hour) ||
         !read_digits(text + 14, 2, &minute) || !read_digits(text + 17, 2, &second)))
        return 0;
    if (length > 19) {
        if (text[19] != '.' || !read_digits(text + 20, (int)length - 20, &micros))
            return 0;
        for (Py_ssize_t at = length; at < 26; at++)
            micros *= 10;
    }
    int size = micros ? 11 : hour || minute || second ? 7 : year || month || day ? 4 : 0;
    out[0] = (unsigned char)size;
    if (size) {
        put_little(out + 1, year, 2);
        out[3] = (unsigned char)month;
        out[4] = (unsigned char)day;
    }
    if (size > 4) {
        out[5] = (unsigned char)hour;
        out[6] = (unsigned char)minute;
        out[7] = (unsigned char)second;
    }
    if (size > 7)
        put_little(out + 8, micros, 4);
    return 1 + size;
}

/* A value's binary form; the bytes written, 0 when it is not written here. */
static int put_value(unsigned char *out, char kind, const unsigned char *text, Py_ssize_t length)
{
    unsigned long long integer;
    double number;

    switch (kind) {
    case '1':
    case '2':
    case '4':
    case '8':
        if (!read_integer(text, length, &integer))
            return 0;
        put_little(out, integer, kind - '0');
        return kind - '0';
    case 'd':
        if (!read_double(text, length, &number))
            return 0;
        memcpy(&integer, &number, 8);
        put_little(out, integer, 8);
        return 8;
    case 't':
        return put_date(out, text, length);
    default:
        return 0;
    }
}

/* The payload of a binary row, at most `end` - `pos` + LONGEST_VALUE bytes a column and its NULL bitmap; its size,
 * -1 when the row is not plain. */
static Py_ssize_t put_row(unsigned char *out, const char *kinds, Py_ssize_t columns, const unsigned char *data,
                          Py_ssize_t pos, Py_ssize_t end)
{
    Py_ssize_t size = 1 + (columns + 9) / 8;

    memset(out, 0, (size_t)size);
    for (Py_ssize_t column = 0; column < columns; column++) {
        Py_ssize_t begin = 0, stop = 0;
        int found = read_string(data, pos, end, &begin, &stop);
        if (found < 0)
            return -1;
        if (!found) {
            out[1 + (column + 2) / 8] |= (unsigned char)(1 << (column + 2) % 8);
        } else if (kinds[column] == 's') {
            memcpy(out + size, data + pos, (size_t)(stop - pos));
            size += stop - pos;
        } else {
            int written = put_value(out + size, kinds[column], data + begin, stop - begin);
            if (!written)
                return -1;
            size += written;
        }
        pos = stop;
    }
    return pos == end ? size : -1;
}

static PyObject *binary_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t seq, most, pos, columns, rows = 0, used = 0, room = 0;
    unsigned char *out = NULL;
    char *kinds;
    Py_buffer view;

    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "five arguments are needed");
        return NULL;
    }
    pos = PyLong_AsSsize_t(args[1]);
    if (pos == -1 && PyErr_Occurred())
        return NULL;
    if (pos < 0) {
        PyErr_SetString(PyExc_ValueError, "the position is negative");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(args[2], &kinds, &columns) < 0 || !read_integers(args + 2, 3, 1, &seq, &most))
        return NULL;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *data = view.buf;
    const Py_ssize_t beside = HEADER + 1 + (columns + 9) / 8 + LONGEST_VALUE * columns;
    for (Py_ssize_t length; (length = plain_row(data, view.len, pos, most)) > 0;) {
        if (room - used < beside + length) {
            Py_ssize_t wanted = used + beside + length > 2 * room ? used + beside + length : 2 * room;
            unsigned char *grown = PyMem_Realloc(out, (size_t)wanted);
            if (grown == NULL) {
                PyMem_Free(out);
                PyBuffer_Release(&view);
                return PyErr_NoMemory();
            }
            out = grown;
            room = wanted;
        }
        Py_ssize_t size = put_row(out + used + HEADER, kinds, columns, data, pos + HEADER, pos + HEADER + length);
        if (size < 0 || size >= most)
            break;
        put_little(out + used, (unsigned long long)size, 3);
        out[used + 3] = (unsigned char)(seq++ & 0xFF);
        used += HEADER + size;
        pos += HEADER + length;
        rows++;
    }
    PyBuffer_Release(&view);
    PyObject *made = PyBytes_FromStringAndSize((const char *)out, used);
    PyMem_Free(out);
    if (made == NULL)
        return NULL;
    return Py_BuildValue("Nnn", made, pos, rows);
}

static PyMethodDef methods[] = {
    {"walk_rows", (PyCFunction)(void (*)(void))walk_rows, METH_FASTCALL, NULL},
    {"renumber", (PyCFunction)(void (*)(void))renumber, METH_FASTCALL, NULL},
    {"binary_rows", (PyCFunction)(void (*)(void))binary_rows, METH_FASTCALL, NULL},
    {"split_rows", (PyCFunction)(void (*)(void))split_rows, METH_FASTCALL, NULL},
    {"whole_rows", (PyCFunction)(void (*)(void))whole_rows, METH_FASTCALL, NULL},
    {"keyed_rows", (PyCFunction)(void (*)(void))keyed_rows, METH_FASTCALL, NULL},
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
