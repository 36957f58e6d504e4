/* What the files of `_row_packets` have in common. */
#ifndef ROW_PACKETS_H
#define ROW_PACKETS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#define HEADER 4
#define LONGEST_NUMBER 64 /* characters of a number that is read here */

PyObject *keyed_rows(PyObject *module, PyObject *const *args, Py_ssize_t count);

static inline Py_ssize_t payload_length(const unsigned char *header)
{
    return (Py_ssize_t)header[0] | (Py_ssize_t)header[1] << 8 | (Py_ssize_t)header[2] << 16;
}

/* How long the payload of the packet at `pos` is, if it is a whole plain row; else 0. */
static inline Py_ssize_t plain_row(const unsigned char *data, Py_ssize_t end, Py_ssize_t pos, Py_ssize_t most)
{
    if (end - pos <= HEADER) /* the header or the payload's first byte is not there */
        return 0;
    const Py_ssize_t length = payload_length(data + pos);
    return length > end - pos - HEADER || data[pos + HEADER] >= 0xFE || length >= most ? 0 : length;
}

static inline void put_little(unsigned char *out, unsigned long long value, int size)
{
    for (int at = 0; at < size; at++)
        out[at] = (unsigned char)(value >> 8 * at);
}

static inline int read_double(const unsigned char *text, Py_ssize_t length, double *value)
{
    char copy[LONGEST_NUMBER + 1];
    char *end;

    if (length == 0 || length > LONGEST_NUMBER)
        return 0;
    for (Py_ssize_t at = 0; at < length; at++)
        if (!((text[at] >= '0' && text[at] <= '9') || memchr("+-.e", text[at], 4)))
            return 0;
    memcpy(copy, text, (size_t)length);
    copy[length] = 0;
    *value = PyOS_string_to_double(copy, &end, NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return end == copy + length && isfinite(*value);
}

/* A length-encoded string at `pos` of `end` bytes: 1 with where its bytes begin and end, 0 for NULL, -1 when it
 * does not lie within, or is so long that it need not be read here. */
static inline int read_string(const unsigned char *data, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t *begin,
                              Py_ssize_t *stop)
{
    Py_ssize_t length;

    if (pos >= end)
        return -1;
    unsigned char first = data[pos];
    if (first == 0xFB) {
        *stop = pos + 1;
        return 0;
    }
    Py_ssize_t more = first < 0xFB ? 0 : first == 0xFC ? 2 : first == 0xFD ? 3 : -1;
    if (more < 0 || more > end - pos - 1)
        return -1;
    length = first;
    if (more)
        length = data[pos + 1] | (Py_ssize_t)data[pos + 2] << 8 | (more == 3 ? (Py_ssize_t)data[pos + 3] << 16 : 0);
    *begin = pos + 1 + more;
    if (length > end - *begin)
        return -1;
    *stop = *begin + length;
    return 1;
}

/* Add what was made of a row to a list: 1, or 0 with an error, also where nothing was made. */
static inline int append(PyObject *list, PyObject *made)
{
    if (made == NULL)
        return 0;
    const int failed = PyList_Append(list, made);
    Py_DECREF(made);
    return !failed;
}

#endif
