/* What the result of a list of IDs begins and ends with: `FanOut._begin` and `_finish`, where its rows are the client's
 * as they come and nothing was warned of. */
#include "_plain.h"

#define OF_AN_OPENED 8 /* columns, union, status, extended, seq; head, first, read */
#define FIRST_NUMBER 1 /* of a client's result */
#define SHARDS 1       /* of a HostStatement */

/* Whether a merger passes rows on as they come. */
int gives_all(PyObject *merger)
{
    return IS(merger, Concatenation) && AT(merger, Concatenation, all) == Py_True &&
           is_int(AT(merger, Concatenation, seq)) && is_int(AT(merger, Concatenation, emitted));
}

/* Session.status, outside of a transaction; -1 for any other. */
static long status_of(PyObject *session)
{
    PyObject *transaction = IS(session, Session) ? AT(session, Session, transaction) : NULL;

    if (!IS(transaction, Transaction) || AT(transaction, Transaction, explicit) != Py_False ||
        !is_empty_dict(AT(transaction, Transaction, held)) || !is_int(AT(session, Session, modes_status)))
        return -1;
    const long status = PyLong_AsLong(AT(session, Session, modes_status));
    return AT(session, Session, autocommit) == Py_True ? status | AUTOCOMMIT : status;
}

/* Whether a branch's statement is for several shards; -1 when that cannot be told. */
static int is_union(PyObject *fan, PyObject *branch)
{
    PyObject *bound = AT(fan, FanOut, bound), *run = AT(branch, Branch, run);
    PyObject *statements = IS(bound, Bound) ? PyTuple_GET_ITEM(bound, 0) : NULL;
    const Py_ssize_t number = is_int(run) ? PyLong_AsSsize_t(run) : -1;

    if (statements == NULL || !PyTuple_CheckExact(statements) || number < 0 || number >= PyTuple_GET_SIZE(statements))
        return -1;
    PyObject *statement = PyTuple_GET_ITEM(statements, number);
    PyObject *shards = IS(statement, HostStatement) ? PyTuple_GET_ITEM(statement, SHARDS) : NULL;
    return shards != NULL && PyTuple_CheckExact(shards) ? PyTuple_GET_SIZE(shards) > 1 : -1;
}

static int is_number(PyObject *value, long number)
{
    return is_int(value) && PyLong_AsLong(value) == number;
}

/* What results of these columns began with the last time, if this one is of the same kind; else NULL. Borrowed. */
static PyObject *opened_as(PyObject *fan, PyObject *branch, PyObject *client)
{
    PyObject *definitions = AT(fan, FanOut, definitions), *session = AT(client, Exchange, session);
    PyObject *opened = AT(definitions, Definitions, opened), *reader = AT(branch, Branch, reader);
    const long status = status_of(session);
    const int together = is_union(fan, branch);

    if (status < 0 || together < 0 || opened == NULL || !PyTuple_Check(opened) ||
        PyTuple_GET_SIZE(opened) != OF_AN_OPENED || AT(definitions, Definitions, known) != Py_True ||
        !is_number(AT(client, Exchange, seq), FIRST_NUMBER - 1) ||
        PyTuple_GET_ITEM(opened, 0) != AT(reader, ResultReader, columns) ||
        PyTuple_GET_ITEM(opened, 1) != (together ? Py_True : Py_False) ||
        !is_number(PyTuple_GET_ITEM(opened, 2), status) ||
        PyTuple_GET_ITEM(opened, 3) != extended_of(session) ||
        !is_number(PyTuple_GET_ITEM(opened, 4), FIRST_NUMBER))
        return NULL;
    return opened;
}

static PyObject *make_merger(PyObject *opened)
{
    PyObject *merger = make(NUMBER_Concatenation), *window = make(NUMBER_Window);

    if (merger == NULL || window == NULL) {
        Py_XDECREF(merger);
        Py_XDECREF(window);
        return NULL;
    }
    put_new(&AT(window, Window, left), Py_None);
    put_new(&AT(window, Window, skip), zero);
    put_new(&AT(merger, Concatenation, seq), PyTuple_GET_ITEM(opened, 6));
    put_new(&AT(merger, Concatenation, emitted), zero);
    put_new(&AT(merger, Concatenation, _offset), zero);
    put(&AT(merger, Concatenation, _window), window);
    put_new(&AT(merger, Concatenation, _columns), PyTuple_GET_ITEM(opened, 7));
    put_new(&AT(merger, Concatenation, _hidden), zero);
    put_new(&AT(merger, Concatenation, _keys), Py_None);
    put_new(&AT(merger, Concatenation, all), Py_True);
    return merger;
}

/* `_begin` of a fan-out that will take all rows: what the client's result begins with; NULL with an exception. */
PyObject *fan_begins(PyObject *fan, PyObject *branch, PyObject *client)
{
    PyObject *opened = opened_as(fan, branch, client);

    if (opened == NULL)
        return PyObject_CallMethodOneArg(fan, name__begin, branch);
    PyObject *merger = make_merger(opened);
    if (merger == NULL || !put_int(&AT(fan, FanOut, _width), PyList_GET_SIZE(PyTuple_GET_ITEM(opened, 0)))) {
        Py_XDECREF(merger);
        return NULL;
    }
    put(&AT(fan, FanOut, merger), merger);
    return Py_NewRef(PyTuple_GET_ITEM(opened, 5));
}

/* -- its end ------------------------------------------------------------------------------------------------- */

static int has_connections(PyObject *branches)
{
    for (Py_ssize_t one = 0; one < PyList_GET_SIZE(branches); one++) {
        PyObject *branch = PyList_GET_ITEM(branches, one);
        if (!IS(branch, Branch) || AT(branch, Branch, conn) != Py_None)
            return 1;
    }
    return 0;
}

/* Whether all that is left to do is to tell the client of the end. */
static int is_finished(PyObject *fan, PyObject *client)
{
    PyObject *told = AT(fan, FanOut, told), *bound = AT(fan, FanOut, bound), *branches = AT(fan, FanOut, branches);
    PyObject *session = AT(client, Exchange, session), *merger = AT(fan, FanOut, merger);
    PyObject *transaction = IS(session, Session) ? AT(session, Session, transaction) : NULL;
    PyObject *tracker = transaction == NULL ? NULL : AT(session, Session, tracker);

    return AT(fan, FanOut, _later) == Py_None && is_empty_list(AT(fan, FanOut, _over)) &&
           is_empty_list(AT(fan, FanOut, _lost)) && AT(fan, FanOut, error) == Py_None && gives_all(merger) && branches != NULL && PyList_CheckExact(branches) &&
           !has_connections(branches) && IS(bound, Bound) && PyTuple_GET_ITEM(bound, 3) == no_values &&
           IS(told, Told) && is_empty_list(AT(told, Told, diagnostics)) && is_number(AT(told, Told, count), 0) &&
           IS(transaction, Transaction) && AT(transaction, Transaction, next) == Py_None &&
           (tracker == Py_None || (IS(tracker, Tracker) && PySet_CheckExact(AT(tracker, Tracker, touched)))) &&
           status_of(session) >= 0;
}

/* As `Session.apply`, of rows that were sent. */
static int note_rows(PyObject *session, PyObject *emitted, PyObject *diagnostics)
{
    PyObject *tracker = AT(session, Session, tracker);

    if (tracker != Py_None) {
        PyObject *touched = AT(tracker, Tracker, touched);
        for (Py_ssize_t one = 0; one < PyTuple_GET_SIZE(rows_sent); one++)
            if (PySet_Add(touched, PyTuple_GET_ITEM(rows_sent, one)) < 0)
                return 0;
    }
    put_new(&AT(session, Session, row_count), row_count_of_rows);
    put_new(&AT(session, Session, found_rows), emitted);
    put_new(&AT(session, Session, diagnostics), diagnostics);
    return 1;
}

static PyObject *eof_of(PyObject *seq, long status)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, EOF_SIZE);

    if (made != NULL) {
        unsigned char *bytes = (unsigned char *)PyBytes_AS_STRING(made);
        put_little(bytes, EOF_SIZE - HEADER, 3);
        bytes[3] = (unsigned char)(PyLong_AsSsize_t(seq) & 0xFF);
        bytes[HEADER] = 0xFE;
        put_little(bytes + HEADER + 1, 0, 2);
        put_little(bytes + HEADER + 3, (unsigned long long)status, 2);
    }
    return made;
}

/* `_finish`: 1, or 0 with an exception. */
int fan_finishes(PyObject *fan, PyObject *client)
{
    if (!is_finished(fan, client))
        return !PyErr_Occurred() && done_by(PyObject_CallMethodNoArgs(fan, name__finish));
    PyObject *session = Py_NewRef(AT(client, Exchange, session)), *merger = Py_NewRef(AT(fan, FanOut, merger));
    PyObject *none = PyList_New(0), *emitted = Py_NewRef(AT(merger, Concatenation, emitted));
    int done = none != NULL && note_rows(session, emitted, AT(AT(fan, FanOut, told), Told, diagnostics));
    if (done) {
        put_new(&AT(fan, FanOut, branches), none);
        PyObject *end = eof_of(AT(merger, Concatenation, seq), status_of(session));
        done = end != NULL && written(client, end) && finish(client, AT(client, Exchange, host), PyLong_AsSsize_t(emitted), 0);
    }
    Py_XDECREF(none);
    Py_DECREF(emitted);
    Py_DECREF(merger);
    Py_DECREF(session);
    return done;
}
