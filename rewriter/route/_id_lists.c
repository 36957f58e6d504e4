/* The twin of id_lists.py: see there for what the functions do.
 *
 * The list comes from a client: every byte is looked at before it is used, and nothing is kept that is longer
 * than what is to be made. Shards are looked up in the topology's own dict, so that nothing is kept between two
 * calls. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 20      /* of the largest number of 64 bits */
#define SAFE_DIGITS 19 /* so many cannot be too large */
#define FEW_PIECES 32
#define FEW 64 /* so many are sorted by the simplest way */

enum { DATABASE = -1, BASE = -2, CONSTANTS = -3 };

typedef struct {
    unsigned long long shard, stored;
    Py_ssize_t number; /* its place in the list */
} Id;

typedef struct {
    char *text;
    Py_ssize_t size, room;
} Buffer;

typedef struct {
    PyObject *host;   /* borrowed from `places` */
    PyObject *made;   /* list of (host, shards, text) */
    PyObject *shards; /* of the text at hand; NULL for none */
    Buffer buffer;
} Group;

/* A piece of a shard's text: `kind` is 0 for `text`. */
typedef struct {
    long kind;
    const char *text;
    Py_ssize_t size;
} Piece;

typedef struct {
    unsigned long long mask, expected, shard_mask, stored_mask;
    unsigned int shift;
    PyObject *between; /* bytes */
    Py_ssize_t most_ids, chunk, most_bytes;
    Piece *pieces, few[FEW_PIECES];
    Py_ssize_t count;
    Py_ssize_t fixed;     /* bytes of the pieces that are text, and of numbers that are no IDs at most */
    Py_ssize_t databases; /* how often there is its name */
    Py_ssize_t lists;     /* and the IDs */
} Form;

static int is_space(unsigned char one)
{
    return one == ' ' || (one >= '\t' && one <= '\r');
}

static int is_digit(unsigned char one)
{
    return one >= '0' && one <= '9';
}

/* Reads the next number of a list: 1 for one of 64 bits, 0 for one that is none, -1 for what is no list. */
static int next_number(const unsigned char **pos, const unsigned char *end, unsigned long long *found)
{
    const unsigned char *at = *pos;
    int fits = 1, negative = 0;
    unsigned long long number = 0;

    while (at < end && is_space(*at))
        at++;
    if (at < end && *at == '-') {
        negative = 1;
        at++;
    }
    if (at == end || !is_digit(*at))
        return -1;
    const unsigned char *safe = end - at > SAFE_DIGITS ? at + SAFE_DIGITS : end;
    for (; at < safe && is_digit(*at); at++)
        number = number * 10 + (*at - '0');
    for (; at < end && is_digit(*at); at++) {
        unsigned int digit = *at - '0';
        if (number > (0xFFFFFFFFFFFFFFFFULL - digit) / 10)
            fits = 0;
        else
            number = number * 10 + digit;
    }
    while (at < end && is_space(*at))
        at++;
    if (at < end && *at++ != ',')
        return -1;
    *pos = at;
    *found = number;
    return fits && !(negative && number);
}

static int compare(const void *one, const void *other)
{
    const Id *a = one, *b = other;
    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void sort(Id *ids, Py_ssize_t count)
{
    if (count > FEW) {
        qsort(ids, (size_t)count, sizeof(Id), compare);
        return;
    }
    for (Py_ssize_t one = 1; one < count; one++) {
        const Id moved = ids[one];
        Py_ssize_t at = one;
        for (; at > 0 && ids[at - 1].shard > moved.shard; at--)
            ids[at] = ids[at - 1];
        ids[at] = moved;
    }
}

/* Those of the list that may be IDs, by shard and in their order. NULL with an exception, or without one when
 * they are too many. */
static Id *read_ids(const unsigned char *raw, Py_ssize_t size, const Form *form, Py_ssize_t *count)
{
    const unsigned char *pos = raw, *end = raw + size;
    Py_ssize_t room = 1, used = 0;
    int sorted = 1;

    for (const unsigned char *at = raw; at < end; at++)
        room += *at == ',';
    *count = room;
    if (room > form->most_ids)
        return NULL;
    Id *ids = PyMem_New(Id, room);
    if (ids == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (size == 0 || end[-1] == ',')
        goto no_list;
    while (pos < end) {
        unsigned long long number;
        int found = next_number(&pos, end, &number);
        if (found < 0)
            goto no_list;
        if (!found || (number & form->mask) != form->expected)
            continue;
        ids[used].shard = number >> form->shift & form->shard_mask;
        ids[used].stored = number & form->stored_mask;
        ids[used].number = used;
        if (used && ids[used].shard < ids[used - 1].shard)
            sorted = 0;
        used++;
    }
    if (!sorted)
        sort(ids, used);
    *count = used;
    return ids;
no_list:
    PyErr_SetString(PyExc_ValueError, "no list of integers");
    PyMem_Free(ids);
    return NULL;
}

static int make_room(Buffer *buffer, Py_ssize_t size)
{
    if (buffer->room - buffer->size < size) {
        const Py_ssize_t room = buffer->room * 2 + size + 1024;
        char *larger = PyMem_Realloc(buffer->text, (size_t)room);
        if (larger == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        buffer->text = larger;
        buffer->room = room;
    }
    return 1;
}

/* These put something where there is room for it, and tell where it ends. */
static char *put_text(char *at, const char *text, Py_ssize_t size)
{
    if (size) /* there may be no text yet */
        memcpy(at, text, (size_t)size);
    return at + size;
}

static char *put_number(char *at, unsigned long long number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[DIGITS];
    int first = DIGITS;

    for (; number >= 100; number /= 100)
        memcpy(digits + (first -= 2), pairs + 2 * (number % 100), 2);
    if (number >= 10)
        memcpy(digits + (first -= 2), pairs + 2 * number, 2);
    else
        digits[--first] = (char)('0' + number);
    return put_text(at, digits + first, DIGITS - first);
}

/* One shard's text, whose IDs are the first `count` of `ids`. */
static int add_shard(Buffer *buffer, const Form *form, const Id *ids, Py_ssize_t count, PyObject *database)
{
    const Py_ssize_t named = PyBytes_GET_SIZE(database), listed = count * (DIGITS + 2);

    if (!make_room(buffer, form->fixed + form->databases * named + form->lists * listed))
        return 0;
    char *at = buffer->text == NULL ? NULL : buffer->text + buffer->size;
    for (const Piece *piece = form->pieces; piece < form->pieces + form->count; piece++) {
        if (piece->kind == DATABASE)
            at = put_text(at, PyBytes_AS_STRING(database), named);
        else if (piece->kind == BASE)
            at = put_number(at, ids->shard << form->shift | form->expected);
        else if (piece->kind == CONSTANTS)
            for (Py_ssize_t one = 0; one < count; one++)
                at = put_number(one ? put_text(at, ", ", 2) : at, ids[one].stored);
        else
            at = put_text(at, piece->text, piece->size);
    }
    buffer->size = at - buffer->text;
    return 1;
}

/* The pieces of a shard's text: 1; 0 with an exception. */
static int read_pieces(Form *form, PyObject *pieces)
{
    form->fixed = form->databases = form->lists = 0;
    form->count = PyTuple_GET_SIZE(pieces);
    form->pieces = form->count > FEW_PIECES ? PyMem_New(Piece, form->count) : form->few;
    if (form->pieces == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t number = 0; number < form->count; number++) {
        PyObject *one = PyTuple_GET_ITEM(pieces, number);
        Piece *piece = form->pieces + number;
        *piece = (Piece){0, NULL, 0};
        if (PyBytes_Check(one)) {
            piece->text = PyBytes_AS_STRING(one);
            piece->size = PyBytes_GET_SIZE(one);
            form->fixed += piece->size;
            continue;
        }
        piece->kind = PyLong_AsLong(one);
        form->databases += piece->kind == DATABASE;
        form->lists += piece->kind == CONSTANTS;
        if (piece->kind == BASE)
            form->fixed += DIGITS;
        else if (piece->kind != DATABASE && piece->kind != CONSTANTS)
            PyErr_SetString(PyExc_ValueError, "no such piece");
        if (PyErr_Occurred())
            return 0;
    }
    return 1;
}

/* The text at hand is complete: 1; 0 with an exception. */
static int end_text(Group *group)
{
    if (group->shards == NULL)
        return 1;
    PyObject *shards = PyList_AsTuple(group->shards);
    Py_CLEAR(group->shards);
    if (shards == NULL)
        return 0;
    PyObject *text = PyBytes_FromStringAndSize(group->buffer.text, group->buffer.size);
    PyObject *made = text == NULL ? NULL : PyTuple_Pack(3, group->host, shards, text);
    Py_DECREF(shards);
    Py_XDECREF(text);
    if (made == NULL)
        return 0;
    int failed = PyList_Append(group->made, made);
    Py_DECREF(made);
    group->buffer.size = 0;
    return !failed;
}

/* The group of a host, which is made if there is none; NULL with an exception. */
static Group *group_of(PyObject *host, PyObject *numbers, Group **groups, Py_ssize_t *count)
{
    if (*count && (*groups)[*count - 1].host == host)
        return *groups + *count - 1; /* most often */
    PyObject *known = PyDict_GetItemWithError(numbers, host);
    if (known != NULL)
        return *groups + PyLong_AsSsize_t(known);
    if (PyErr_Occurred())
        return NULL;
    Group *more = PyMem_Resize(*groups, Group, *count + 1);
    if (more == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *groups = more;
    Group *group = more + *count;
    memset(group, 0, sizeof(Group));
    group->host = host;
    group->made = PyList_New(0);
    PyObject *number = PyLong_FromSsize_t(*count);
    if (group->made == NULL || number == NULL || PyDict_SetItem(numbers, host, number) < 0) {
        Py_XDECREF(number);
        Py_CLEAR(group->made);
        return NULL;
    }
    Py_DECREF(number);
    ++*count;
    return group;
}

/* One shard's text for its host: 1; 0 with an exception; -1 when it is too long. */
static int put_shard(Group *group, const Form *form, const Id *ids, Py_ssize_t count, PyObject *shard,
                     PyObject *database)
{
    if (group->shards != NULL && PyList_GET_SIZE(group->shards) >= form->chunk && !end_text(group))
        return 0;
    if (group->shards == NULL) {
        group->shards = PyList_New(0);
        if (group->shards == NULL)
            return 0;
    }
    else {
        const Py_ssize_t size = PyBytes_GET_SIZE(form->between);
        if (!make_room(&group->buffer, size))
            return 0;
        put_text(group->buffer.text + group->buffer.size, PyBytes_AS_STRING(form->between), size);
        group->buffer.size += size;
    }
    if (PyList_Append(group->shards, shard) < 0 || !add_shard(&group->buffer, form, ids, count, database))
        return 0;
    return group->buffer.size > form->most_bytes ? -1 : 1;
}

/* All texts, in the order of the groups. */
static PyObject *collect(Group *groups, Py_ssize_t count)
{
    PyObject *all = PyList_New(0);

    for (Py_ssize_t one = 0; all != NULL && one < count; one++) {
        Py_ssize_t end = PyList_GET_SIZE(all);
        if (!end_text(groups + one) || PyList_SetSlice(all, end, end, groups[one].made) < 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *make(const Id *ids, Py_ssize_t count, const Form *form, PyObject *places)
{
    Group *groups = NULL;
    Py_ssize_t used = 0, next;
    PyObject *numbers = PyDict_New(), *result = NULL;
    int done = numbers != NULL;

    for (Py_ssize_t at = 0; done > 0 && at < count; at = next) {
        for (next = at + 1; next < count && ids[next].shard == ids[at].shard; next++)
            ;
        PyObject *shard = PyLong_FromUnsignedLongLong(ids[at].shard);
        PyObject *place = shard == NULL ? NULL : PyDict_GetItemWithError(places, shard);
        if (place == NULL)
            done = PyErr_Occurred() ? 0 : -1; /* a shard that there is not: who asks tells the error */
        else if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(place, 1))) {
            PyErr_SetString(PyExc_TypeError, "a place is a host and a database");
            done = 0;
        }
        else {
            Group *group = group_of(PyTuple_GET_ITEM(place, 0), numbers, &groups, &used);
            PyObject *database = PyTuple_GET_ITEM(place, 1);
            done = group == NULL ? 0 : put_shard(group, form, ids + at, next - at, shard, database);
        }
        Py_XDECREF(shard);
    }
    if (done > 0)
        result = collect(groups, used);
    else if (done < 0)
        result = Py_NewRef(Py_None);
    for (Py_ssize_t one = 0; one < used; one++) {
        Py_XDECREF(groups[one].made);
        Py_XDECREF(groups[one].shards);
        PyMem_Free(groups[one].buffer.text);
    }
    PyMem_Free(groups);
    Py_XDECREF(numbers);
    return result;
}

static PyObject *texts_by_host(PyObject *module, PyObject *args)
{
    Form form;
    const char *raw;
    Py_ssize_t size, count;
    PyObject *places, *pieces;

    if (!PyArg_ParseTuple(args, "y#(KKIKK)O!O!S(nnn):texts_by_host", &raw, &size, &form.mask, &form.expected, &form.shift,
                          &form.shard_mask, &form.stored_mask, &PyDict_Type, &places, &PyTuple_Type, &pieces,
                          &form.between, &form.most_ids, &form.chunk, &form.most_bytes))
        return NULL;
    if (form.shift > 63) {
        PyErr_SetString(PyExc_ValueError, "an ID has 64 bits");
        return NULL;
    }
    Id *ids = read_ids((const unsigned char *)raw, size, &form, &count);
    if (ids == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *result = read_pieces(&form, pieces) ? make(ids, count, &form, places) : NULL;
    if (form.pieces != form.few)
        PyMem_Free(form.pieces);
    PyMem_Free(ids);
    return result;
}

static PyObject *is_list(PyObject *module, PyObject *raw)
{
    if (!PyBytes_Check(raw)) {
        PyErr_SetString(PyExc_TypeError, "bytes are needed");
        return NULL;
    }
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(raw), *end = at + PyBytes_GET_SIZE(raw);
    for (int first = 1;; first = 0) {
        if (!first && at < end && *at == '-')
            at++;
        if (at == end || !is_digit(*at))
            Py_RETURN_FALSE;
        while (at < end && is_digit(*at))
            at++;
        if (at == end)
            Py_RETURN_TRUE;
        while (at < end && is_space(*at))
            at++;
        if (at == end || *at++ != ',')
            Py_RETURN_FALSE;
        while (at < end && is_space(*at))
            at++;
    }
}

static PyMethodDef methods[] = {
    {"is_list", is_list, METH_O, NULL},
    {"texts_by_host", texts_by_host, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_id_lists", NULL, 0, methods};

PyMODINIT_FUNC PyInit__id_lists(void)
{
    return PyModuleDef_Init(&definition);
}
