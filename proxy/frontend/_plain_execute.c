/* A COM_STMT_EXECUTE that is like its statement's last one: `prepare.execute_again`. And the binary rows that its
 * client gets: `transcode.binary_reply`. */
#include "_plain.h"

#define NUMBER_AT (HEADER + 1) /* of the statement, in four bytes; what follows is as `Repeat.head` */
#define HEAD_AT (NUMBER_AT + 4)
#define OF_A_HEADING 4 /* packets, seq, columns, encoder */
#define OF_ROWS 3      /* made, pos, rows */

static PyObject *statement_of(PyObject *session, PyObject *packet)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(packet) + NUMBER_AT;
    PyObject *statements = AT(session, Session, prepared);

    if (!IS(statements, Statements) || PyBytes_GET_SIZE(packet) < HEAD_AT)
        return NULL;
    PyObject *number = PyLong_FromUnsignedLong(at[0] | (unsigned long)at[1] << 8 | (unsigned long)at[2] << 16 |
                                               (unsigned long)at[3] << 24);
    PyObject *by_id = AT(statements, Statements, by_id);
    PyObject *found =
        number == NULL || !PyDict_CheckExact(by_id) ? NULL : PyDict_GetItemWithError(by_id, number);
    Py_XDECREF(number);
    return IS(found, Statement) ? found : NULL;
}

/* Whether the packet differs from the last one in its values only. */
static int is_like_last(PyObject *repeat, PyObject *packet)
{
    PyObject *head = AT(repeat, Repeat, head);
    const Py_ssize_t begin = PyLong_AsSsize_t(AT(repeat, Repeat, begin));

    return PyBytes_CheckExact(head) && PyBytes_GET_SIZE(packet) == PyLong_AsSsize_t(AT(repeat, Repeat, size)) &&
           begin - HEAD_AT == PyBytes_GET_SIZE(head) && begin <= PyBytes_GET_SIZE(packet) &&
           !memcmp(PyBytes_AS_STRING(packet) + HEAD_AT, PyBytes_AS_STRING(head), (size_t)PyBytes_GET_SIZE(head));
}

/* Whether what the last one has found out holds. */
static int holds(PyObject *repeat, PyObject *session, PyObject *snapshot)
{
    PyObject *rewriter = AT(snapshot, Snapshot, rewriter);

    return IS(rewriter, Rewriter) && AT(rewriter, Rewriter, generation) == AT(repeat, Repeat, generation) &&
           AT(snapshot, Snapshot, all_serving) == Py_True && AT(session, Session, env) == AT(repeat, Repeat, env) &&
           AT(session, Session, user) == AT(repeat, Repeat, user) && is_unbroken(session) && AT(session, Session, counts) == Py_None &&
           AT(session, Session, tracks_replies) == Py_False && IS(AT(repeat, Repeat, plan), ShardSelect);
}

/* An integer in digits. */
static PyObject *decimal(PyObject *number)
{
    char digits[24];
    int over, size;
    const long long value = PyLong_AsLongLongAndOverflow(number, &over);

    if (value == -1 && PyErr_Occurred())
        return NULL;
    if (over) {
        const unsigned long long high = PyLong_AsUnsignedLongLong(number);
        if (PyErr_Occurred())
            return NULL;
        size = snprintf(digits, sizeof digits, "%llu", high);
    } else {
        size = snprintf(digits, sizeof digits, "%lld", value);
    }
    return PyBytes_FromStringAndSize(digits, size);
}

/* (*literals, *values of the packet) */
static PyObject *values_of(PyObject *statement, PyObject *repeat, PyObject *packet)
{
    PyObject *literals = AT(statement, Statement, literals);
    PyObject *args[] = {AT(repeat, Repeat, values), packet, AT(repeat, Repeat, begin)};
    PyObject *given = PyObject_VectorcallMethod(name_unpack_from, args, 3, NULL);

    if (given == NULL || !PyTuple_CheckExact(given) || !PyTuple_CheckExact(literals)) {
        Py_XDECREF(given);
        return NULL;
    }
    const Py_ssize_t first = PyTuple_GET_SIZE(literals), rest = PyTuple_GET_SIZE(given);
    PyObject *values = PyTuple_New(first + rest);
    for (Py_ssize_t one = 0; one < first && values != NULL; one++)
        PyTuple_SET_ITEM(values, one, Py_NewRef(PyTuple_GET_ITEM(literals, one)));
    for (Py_ssize_t one = 0; one < rest && values != NULL; one++) {
        PyObject *made = decimal(PyTuple_GET_ITEM(given, one));
        if (made == NULL)
            Py_CLEAR(values);
        else
            PyTuple_SET_ITEM(values, first + one, made);
    }
    Py_DECREF(given);
    return values;
}

/* How the command is run again, should another topology come: `partial(prepare.execute, client, payload)`. */
static PyObject *made_again(PyObject *client, PyObject *packet)
{
    PyObject *payload =
        PyBytes_FromStringAndSize(PyBytes_AS_STRING(packet) + HEADER, PyBytes_GET_SIZE(packet) - HEADER);
    PyObject *args[] = {execute_prepared, client, payload};
    PyObject *again = payload == NULL ? NULL : PyObject_Vectorcall(partial, args, 3, NULL);

    Py_XDECREF(payload);
    return again;
}

/* A whole COM_STMT_EXECUTE of a client that is ready: 1, 0 with an exception; -1 when it is Python's to run. */
int execute_again(PyObject *client, PyObject *packet)
{
    PyObject *session = AT(client, Exchange, session), *snapshot = AT(AT(client, Exchange, serving), Serving, snapshot);
    PyObject *statement = IS(session, Session) && IS(snapshot, Snapshot) ? statement_of(session, packet) : NULL;
    PyObject *repeat = statement == NULL ? NULL : AT(statement, Statement, repeat);
    int done = -1;

    if (!IS(repeat, Repeat) || !is_like_last(repeat, packet) || !holds(repeat, session, snapshot)) {
        PyErr_Clear();
        return -1;
    }
    PyObject *plan = Py_NewRef(AT(repeat, Repeat, plan));
    Py_INCREF(statement);
    Py_INCREF(snapshot);
    PyObject *values = values_of(statement, repeat, packet);
    PyObject *bound = values == NULL ? NULL : point_of(plan, values, snapshot);
    PyObject *again = bound == NULL ? NULL : made_again(client, packet);
    if (again != NULL) {
        put_new(&AT(client, Exchange, ready), Py_False);
        put_new(&AT(client, Exchange, seq), zero);
        put_new(&AT(client, Exchange, snapshot), snapshot);
        put_new(&AT(client, Exchange, sql), AT(statement, Statement, sql));
        put(&AT(client, Exchange, again), again);
        put_new(&AT(client, Exchange, below), Py_None);
        done = put_float(&AT(client, Exchange, begun), now()) && run_select(client, plan, bound, statement);
    } else {
        PyErr_Clear(); /* Python meets it again, and knows what to do */
    }
    Py_XDECREF(bound);
    Py_XDECREF(values);
    Py_DECREF(snapshot);
    Py_DECREF(statement);
    Py_DECREF(plan);
    return done;
}

/* -- what comes back ----------------------------------------------------------------------------------------- */

static PyObject *three(PyObject *shown, PyObject *rows, const char *rest)
{
    const Py_ssize_t first = PyBytes_GET_SIZE(shown), size = PyBytes_GET_SIZE(rows);
    PyObject *out = PyBytes_FromStringAndSize(NULL, first + size + EOF_SIZE);

    if (out != NULL) {
        char *bytes = PyBytes_AS_STRING(out);
        memcpy(bytes, PyBytes_AS_STRING(shown), (size_t)first);
        memcpy(bytes + first, PyBytes_AS_STRING(rows), (size_t)size);
        memcpy(bytes + first + size, rest, EOF_SIZE);
    }
    return out;
}

/* A reply of rows behind `header`, with binary rows; NULL where a sink must make them, or with an exception. */
PyObject *binary_reply(PyObject *statement, PyObject *header, PyObject *data)
{
    PyObject *heading = IS(statement, Statement) ? AT(statement, Statement, heading) : NULL;
    PyObject *shown = AT(header, Header, shown), *out = NULL;

    if (heading == NULL || !PyTuple_Check(heading) || PyTuple_GET_SIZE(heading) != OF_A_HEADING)
        return NULL;
    PyObject *packets = PyTuple_GET_ITEM(heading, 0), *encoder = PyTuple_GET_ITEM(heading, 3);
    if (!IS(encoder, RowEncoder) || PyObject_RichCompareBool(packets, shown, Py_EQ) != 1)
        return NULL;
    PyObject *args[] = {data, AT(header, Header, size), AT(encoder, RowEncoder, kinds), PyTuple_GET_ITEM(heading, 1),
                        most_of_a_packet};
    PyObject *made = PyObject_Vectorcall(binary_rows, args, 5, NULL);
    if (made != NULL && PyTuple_CheckExact(made) && PyTuple_GET_SIZE(made) == OF_ROWS) {
        PyObject *rows = PyTuple_GET_ITEM(made, 0);
        const Py_ssize_t pos = PyLong_AsSsize_t(PyTuple_GET_ITEM(made, 1));
        if (PyBytes_CheckExact(rows) && pos >= 0 && PyBytes_GET_SIZE(data) - pos == EOF_SIZE)
            out = three(shown, rows, PyBytes_AS_STRING(data) + pos);
    }
    Py_XDECREF(made);
    return out;
}
