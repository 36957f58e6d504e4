/* Rows with keys that sort as the server sorts them: `keyed_rows` of row_packets.py. The keys are those of
 * sort_keys.py: see there for what they are like.
 *
 * As in _row_packets.c, no byte is read or written before it is known to lie within its buffer. */
#include "_row_packets.h"

#define MOST_DIGITS 100 /* before the point; the byte that tells their number has room for 127 */

typedef struct {
    unsigned char *bytes;
    Py_ssize_t used, room;
} buffer;

typedef struct {
    Py_ssize_t begin, stop; /* without the length in front; `begin` is -1 for NULL */
} value;

typedef struct {
    char kind;
    int descending;
    Py_ssize_t column, named;
    const char *pad, *name;
    Py_ssize_t pad_size, name_size;
} sort_key;

/* Make room for so many more bytes: 1, or 0 with MemoryError. */
static int reserve(buffer *out, Py_ssize_t more)
{
    if (out->room - out->used >= more)
        return 1;
    Py_ssize_t wanted = out->used + more > 2 * out->room ? out->used + more : 2 * out->room;
    unsigned char *grown = PyMem_Realloc(out->bytes, (size_t)wanted);
    if (grown == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    out->bytes = grown;
    out->room = wanted;
    return 1;
}

static int is_digit(unsigned char byte) { return byte >= '0' && byte <= '9'; }

/* The functions that add a value's key to the buffer return 1, 0 when it is not made here, -1 with an error. */

static int add_number(buffer *out, const unsigned char *text, Py_ssize_t length)
{
    int negative = length > 0 && text[0] == '-';
    Py_ssize_t at = negative;

    while (at < length && text[at] == '0')
        at++;
    const Py_ssize_t first = at;
    while (at < length && is_digit(text[at]))
        at++;
    const Py_ssize_t whole = at - first;
    Py_ssize_t digits = at - negative, fraction = at, tail = at;
    if (at < length && text[at] == '.') {
        fraction = ++at;
        while (at < length && is_digit(text[at]))
            at++;
        digits += at - fraction;
        for (tail = at; tail > fraction && text[tail - 1] == '0';)
            tail--;
    }
    if (at != length || digits == 0 || whole > MOST_DIGITS)
        return 0;
    const Py_ssize_t size = whole + (tail - fraction) + 2;
    if (!reserve(out, size))
        return -1;
    unsigned char *key = out->bytes + out->used;
    key[0] = (unsigned char)(0x80 + whole);
    memcpy(key + 1, text + first, (size_t)whole);
    memcpy(key + 1 + whole, text + fraction, (size_t)(tail - fraction));
    key[size - 1] = 0;
    if (negative && size > 2)
        for (Py_ssize_t index = 0; index < size; index++)
            key[index] ^= 0xFF;
    out->used += size;
    return 1;
}

/* `-12:34:56.789` as the number -123456.789. */
static int add_time(buffer *out, const unsigned char *text, Py_ssize_t length)
{
    unsigned char digits[LONGEST_NUMBER];
    Py_ssize_t at = length > 0 && text[0] == '-', hours = at;

    if (length > LONGEST_NUMBER)
        return 0;
    while (at < length && is_digit(text[at]))
        at++;
    if (at == hours || length - at < 6 || text[at] != ':' || !is_digit(text[at + 1]) || !is_digit(text[at + 2]) ||
        text[at + 3] != ':' || !is_digit(text[at + 4]) || !is_digit(text[at + 5]) ||
        (length - at > 6 && text[at + 6] != '.'))
        return 0;
    memcpy(digits, text, (size_t)at);
    memcpy(digits + at, text + at + 1, 2);
    memcpy(digits + at + 2, text + at + 4, (size_t)(length - at - 4));
    return add_number(out, digits, length - 2);
}

static int add_double(buffer *out, const unsigned char *text, Py_ssize_t length)
{
    double number;
    unsigned long long bits;

    if (!read_double(text, length, &number))
        return 0;
    if (!reserve(out, 8))
        return -1;
    number += 0.0; /* -0 is 0 */
    memcpy(&bits, &number, 8);
    bits = bits >> 63 ? ~bits : bits | 1ULL << 63;
    for (int at = 0; at < 8; at++)
        out->bytes[out->used++] = (unsigned char)(bits >> (56 - 8 * at));
    return 1;
}

static int add_bytes(buffer *out, const unsigned char *text, Py_ssize_t length)
{
    if (!reserve(out, 2 * length + 2))
        return -1;
    unsigned char *key = out->bytes + out->used;
    while (length) {
        const unsigned char *zero = memchr(text, 0, (size_t)length);
        Py_ssize_t part = zero == NULL ? length : zero - text + 1;
        memcpy(key, text, (size_t)part);
        key += part;
        text += part;
        length -= part;
        if (zero != NULL)
            *key++ = 0xFF;
    }
    *key++ = 0;
    *key++ = 0;
    out->used = key - out->bytes;
    return 1;
}

static int add_padded(buffer *out, const unsigned char *text, Py_ssize_t length, const char *pad, Py_ssize_t size)
{
    if (length % size)
        return 0;
    while (length && memcmp(text + length - size, pad, (size_t)size) == 0)
        length -= size;
    const Py_ssize_t whole = length + length / size + 1;
    if (!reserve(out, whole))
        return -1;
    unsigned char *key = out->bytes + out->used + whole - 1;
    *key = 2;
    while (length) { /* from the end, as each mark tells how what is behind it compares with spaces */
        length -= size;
        const int found = memcmp(text + length, pad, (size_t)size);
        const unsigned char behind = *key;
        key -= size;
        memcpy(key, text + length, (size_t)size);
        *--key = found < 0 ? 1 : found > 0 ? 3 : behind;
    }
    out->used += whole;
    return 1;
}

static int add_key(buffer *out, const sort_key *key, const unsigned char *data, const value *values)
{
    const value *one = values + key->column;
    const Py_ssize_t start = out->used;
    int found = 1;

    if (key->named >= 0) {
        const value *name = values + key->named;
        if (name->begin < 0 || name->stop - name->begin != key->name_size ||
            memcmp(data + name->begin, key->name, (size_t)key->name_size) != 0)
            return 0;
    }
    if (!reserve(out, 1))
        return -1;
    out->bytes[out->used++] = one->begin >= 0;
    if (one->begin >= 0) {
        const unsigned char *text = data + one->begin;
        const Py_ssize_t length = one->stop - one->begin;
        switch (key->kind) {
        case 'n':
            found = add_number(out, text, length);
            break;
        case 't':
            found = add_time(out, text, length);
            break;
        case 'd':
            found = add_double(out, text, length);
            break;
        case 'b':
            found = add_bytes(out, text, length);
            break;
        case 'p':
            found = add_padded(out, text, length, key->pad, key->pad_size);
            break;
        default:
            found = 0;
        }
    }
    if (key->descending)
        for (Py_ssize_t at = start; at < out->used; at++)
            out->bytes[at] ^= 0xFF;
    return found;
}

/* Where a row's values stand: 1, with where the first `shown` end; 0 when the row is not plain. */
static int read_values(const unsigned char *data, Py_ssize_t pos, Py_ssize_t end, value *values, Py_ssize_t columns,
                       Py_ssize_t shown, Py_ssize_t *visible)
{
    for (Py_ssize_t column = 0; column < columns; column++) {
        if (column == shown)
            *visible = pos;
        int found = read_string(data, pos, end, &values[column].begin, &values[column].stop);
        if (found < 0)
            return 0;
        if (!found)
            values[column].begin = -1;
        pos = values[column].stop;
    }
    if (shown == columns)
        *visible = pos;
    return pos == end;
}

/* The keys that a tuple of tuples tells of, NULL with an error; to be freed. What they point to is the tuple's. */
static sort_key *read_keys(PyObject *told, Py_ssize_t columns)
{
    if (!PyTuple_Check(told)) {
        PyErr_SetString(PyExc_TypeError, "the keys are a tuple");
        return NULL;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(told);
    sort_key *keys = PyMem_New(sort_key, count ? count : 1);
    if (keys == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *one = PyTuple_GET_ITEM(told, index);
        sort_key *key = keys + index;
        if (!PyTuple_Check(one)) {
            PyErr_SetString(PyExc_TypeError, "a key is a tuple");
            goto failed;
        }
        if (!PyArg_ParseTuple(one, "cpny#ny#", &key->kind, &key->descending, &key->column, &key->pad, &key->pad_size,
                              &key->named, &key->name, &key->name_size))
            goto failed;
        if (key->column < 0 || key->column >= columns || key->named < -1 || key->named >= columns ||
            (key->kind == 'p' && key->pad_size < 1)) {
            PyErr_SetString(PyExc_ValueError, "a key is not of these columns");
            goto failed;
        }
    }
    return keys;
failed:
    PyMem_Free(keys);
    return NULL;
}

static PyObject *packet_of(const unsigned char *payload, Py_ssize_t size)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, HEADER + size);
    if (made != NULL) {
        unsigned char *packet = (unsigned char *)PyBytes_AS_STRING(made);
        put_little(packet, (unsigned long long)size, HEADER);
        memcpy(packet + HEADER, payload, (size_t)size);
    }
    return made;
}

PyObject *keyed_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t pos, columns, shown, most;
    Py_buffer view = {0};
    PyObject *found = NULL, *made = NULL, *packets = NULL;
    sort_key *keys = NULL;
    value *values = NULL;
    buffer out = {0};

    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "six arguments are needed");
        return NULL;
    }
    pos = PyLong_AsSsize_t(args[1]);
    columns = pos == -1 && PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[2]);
    shown = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[3]);
    most = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[5]);
    if (PyErr_Occurred())
        return NULL;
    if (pos < 0 || columns < 0 || columns > 0xFFFF || shown < 0 || shown > columns || most > 0xFFFFFF) {
        PyErr_SetString(PyExc_ValueError, "the position, the columns or the limit are out of range");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    keys = read_keys(args[4], columns);
    values = PyMem_New(value, columns + 1);
    made = PyList_New(0);
    packets = PyList_New(0);
    if (keys == NULL || made == NULL || packets == NULL)
        goto done;
    if (values == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    const unsigned char *data = view.buf;
    const Py_ssize_t number = PyTuple_GET_SIZE(args[4]);
    for (Py_ssize_t length; (length = plain_row(data, view.len, pos, most)) > 0;) {
        const Py_ssize_t begin = pos + HEADER;
        Py_ssize_t visible = 0;
        if (!read_values(data, begin, begin + length, values, columns, shown, &visible))
            break;
        int plain = 1;
        out.used = 0;
        for (Py_ssize_t index = 0; index < number && plain > 0; index++)
            plain = add_key(&out, keys + index, data, values);
        if (plain < 0)
            goto done;
        if (!plain)
            break;
        if (!append(made, PyBytes_FromStringAndSize((const char *)out.bytes, out.used)) ||
            !append(packets, packet_of(data + begin, visible - begin)))
            goto done;
        pos = begin + length;
    }
    found = Py_BuildValue("OOn", made, packets, pos);
done:
    PyMem_Free(keys);
    PyMem_Free(values);
    PyMem_Free(out.bytes);
    Py_XDECREF(made);
    Py_XDECREF(packets);
    PyBuffer_Release(&view);
    return found;
}
