/* A plain statement's way to its host. */
#include "_plain.h"

/* Whether the session is such that Relay.ask has only to take a connection. */
static int is_asked_simply(PyObject *relay, PyObject *client, PyObject *session)
{
    if (!IS(session, Session) || AT(relay, Relay, once) != Py_None ||
        AT(client, Exchange, writing_paused) != Py_False)
        return 0;
    PyObject *transaction = AT(session, Session, transaction);
    return IS(AT(session, Session, user), User) && AT(session, Session, tracks_replies) == Py_False &&
           AT(session, Session, autocommit) == Py_True && IS(transaction, Transaction) &&
           AT(transaction, Transaction, explicit) == Py_False && is_empty_dict(AT(transaction, Transaction, held)) &&
           is_int(AT(session, Session, capability_set));
}

/* The connection that PoolState.take would give, if it is the one that was used last; else NULL. `place`: the list
 * whose last one it is. */
static PyObject *last_used(PyObject *pool, PyObject *session, PyObject **place)
{
    PyObject *state = IS(pool, HostPool) ? AT(pool, HostPool, state) : NULL;

    if (!IS(state, PoolState) || !IS(AT(state, PoolState, share), Share))
        return NULL;
    PyObject *busy = AT(state, PoolState, busy), *idle = AT(state, PoolState, idle);
    const Py_ssize_t scarce = PyLong_AsSsize_t(AT(AT(state, PoolState, share), Share, scarce));
    const Py_ssize_t number = PyLong_AsSsize_t(AT(session, Session, capability_set));
    if (!PyDict_CheckExact(busy) || PyDict_GET_SIZE(busy) >= scarce || !PyTuple_CheckExact(idle) || number < 0 ||
        number >= PyTuple_GET_SIZE(idle))
        return NULL;
    *place = PyTuple_GET_ITEM(idle, number);
    if (!PyList_CheckExact(*place) || PyList_GET_SIZE(*place) == 0)
        return NULL;
    PyObject *conn = PyList_GET_ITEM(*place, PyList_GET_SIZE(*place) - 1);
    return IS(conn, BackendConnection) && AT(conn, BackendConnection, settings) == AT(session, Session, settings) &&
                   AT(conn, BackendConnection, receiver) == Py_None && AT(conn, BackendConnection, closed) == Py_False &&
                   IS(AT(conn, BackendConnection, scanner), ReplyScanner)
               ? conn
               : NULL;
}

/* ReplyScanner.start. */
static int start(PyObject *scanner)
{
    if (AT(scanner, ReplyScanner, _fed) != Py_False) {
        put_new(&AT(scanner, ReplyScanner, _fed), Py_False);
        put_new(&AT(scanner, ReplyScanner, partial), zero);
        put_new(&AT(scanner, ReplyScanner, seq), zero);
        put_new(&AT(scanner, ReplyScanner, within_row), Py_False);
        put_new(&AT(scanner, ReplyScanner, _carry), no_bytes);
        put_new(&AT(scanner, ReplyScanner, _columns), zero);
        put_new(&AT(scanner, ReplyScanner, _skip), zero);
        put_new(&AT(scanner, ReplyScanner, _continued), Py_False);
        put_new(&AT(scanner, ReplyScanner, _out), Py_False);
        put_new(&AT(scanner, ReplyScanner, _new), Py_True);
    }
    put_new(&AT(scanner, ReplyScanner, state), state_first);
    put_new(&AT(scanner, ReplyScanner, warnings), zero);
    put_new(&AT(scanner, ReplyScanner, ok), Py_None);
    put_new(&AT(scanner, ReplyScanner, err), Py_None);
    put_new(&AT(scanner, ReplyScanner, ending), zero);
    put_new(&AT(scanner, ReplyScanner, rows_begun), Py_False);
    put_new(&AT(scanner, ReplyScanner, expected), Py_None);
    put_new(&AT(scanner, ReplyScanner, matched), Py_None);
    return 1;
}

/* What the scanner is to expect of a result with these columns, on that connection. */
static int expect(PyObject *scanner, PyObject *conn, PyObject *columns, PyObject *database)
{
    if (columns == Py_None)
        return 1;
    PyObject *header =
        PyDict_GetItemWithError(AT(columns, ColumnMetadata, headers), AT(conn, BackendConnection, capability_set));
    if (header == NULL && PyErr_Occurred())
        return 0;
    put_new(&AT(scanner, ReplyScanner, expected), header == NULL ? Py_None : header);
    put_new(&AT(scanner, ReplyScanner, database), database);
    return 1;
}

/* BackendConnection.ask; `answer` is what the reply is shown first. */
int send_query(PyObject *receiver, PyObject *answer, PyObject *conn, PyObject *scanner, PyObject *sql)
{
    const Py_ssize_t size = PyBytes_GET_SIZE(sql) + 1;
    PyObject *packet = PyBytes_FromStringAndSize(NULL, HEADER + size);

    if (packet == NULL)
        return 0;
    unsigned char *bytes = (unsigned char *)PyBytes_AS_STRING(packet);
    put_little(bytes, (unsigned long long)size, HEADER); /* and the number 0 */
    bytes[HEADER] = COM_QUERY;
    memcpy(bytes + HEADER + 1, PyBytes_AS_STRING(sql), (size_t)size - 1);
    put_new(&AT(conn, BackendConnection, receiver), receiver);
    put_new(&AT(conn, BackendConnection, replies), one_reply);
    put_new(&AT(conn, BackendConnection, _plain), Py_True);
    put_new(&AT(conn, BackendConnection, answer), answer);
    put_new(&AT(conn, BackendConnection, _numbers), Py_None);
    put_new(&AT(scanner, ReplyScanner, first_number), one_reply);
    PyObject *transport = Py_NewRef(AT(conn, BackendConnection, transport));
    const int sent = put_float(&AT(conn, BackendConnection, sent), now()) &&
                     write_to(transport, AT(conn, BackendConnection, descriptor), packet);
    Py_DECREF(transport);
    Py_DECREF(packet);
    return sent;
}

/* Whether there is a connection to send that statement to that host; else 0, perhaps with an exception. */
int find_free(PyObject *relay, PyObject *host, PyObject *sql, Lent *lent)
{
    if (!IS(relay, Relay) || !PyBytes_CheckExact(sql) || PyBytes_GET_SIZE(sql) + 1 >= MAX_PAYLOAD)
        return 0;
    lent->client = AT(relay, Relay, client);
    if (lent->client == NULL || !PyObject_TypeCheck(lent->client, classes[NUMBER_Exchange]))
        return 0;
    lent->session = AT(lent->client, Exchange, session);
    if (!is_asked_simply(relay, lent->client, lent->session))
        return 0;
    lent->pool = PyObject_CallOneArg(AT(relay, Relay, pool), host);
    lent->conn = lent->pool == NULL ? NULL : last_used(lent->pool, lent->session, &lent->place);
    if (lent->conn == NULL) {
        Py_XDECREF(lent->pool);
        return 0;
    }
    Py_INCREF(lent->conn);
    return 1;
}

/* Whether it is free still, and the last one of its place. */
int is_free(const Lent *lent)
{
    const Py_ssize_t count = PyList_GET_SIZE(lent->place);

    return count > 0 && PyList_GET_ITEM(lent->place, count - 1) == lent->conn &&
           AT(lent->conn, BackendConnection, receiver) == Py_None && AT(lent->conn, BackendConnection, closed) == Py_False;
}

/* PoolState.take of that connection, and ReplyScanner.start. */
int take_lent(const Lent *lent)
{
    PyObject *user = AT(AT(lent->session, Session, user), User, name);
    PyObject *busy = AT(AT(lent->pool, HostPool, state), PoolState, busy);
    const Py_ssize_t last = PyList_GET_SIZE(lent->place) - 1;

    return PyList_SetSlice(lent->place, last, last + 1, NULL) == 0 && PyDict_SetItem(busy, lent->conn, user) == 0 &&
           start(AT(lent->conn, BackendConnection, scanner));
}

/* The connection is the relay's, and has to do with `load` from now on. */
static int lend(PyObject *relay, const Lent *lent, PyObject *load)
{
    put_new(&AT(lent->client, Exchange, work), relay);
    put_new(&AT(relay, Relay, conn), lent->conn);
    put_new(&AT(relay, Relay, shard), load);
    put_new(&AT(lent->conn, BackendConnection, begun), AT(lent->client, Exchange, begun));
    put_new(&AT(lent->conn, BackendConnection, shard), load);
    return take_lent(lent);
}

static PyObject *sent(const Lent *lent, int done)
{
    Py_DECREF(lent->conn);
    Py_DECREF(lent->pool);
    return done ? Py_NewRef(Py_True) : NULL;
}

static PyObject *not_plain(void)
{
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
}

/* A relay, a host, a statement, its columns or None, the shard's database, a prepared statement or None. */
PyObject *ask(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Lent lent;

    if (given != 6) {
        PyErr_SetString(PyExc_TypeError, "ask takes six arguments");
        return NULL;
    }
    PyObject *relay = args[0], *sql = args[2], *columns = args[3], *database = args[4];
    if (!IS(relay, Relay) || !PyDict_CheckExact(AT(relay, Relay, known)) ||
        (columns != Py_None && !(IS(columns, ColumnMetadata) && PyDict_CheckExact(AT(columns, ColumnMetadata, headers)))))
        Py_RETURN_FALSE;
    PyObject *load = PyDict_GetItemWithError(AT(relay, Relay, known), database);
    if (load == NULL)
        return not_plain();
    Py_INCREF(load); /* to find the pool is Python's, which may do anything */
    if (!find_free(relay, args[1], sql, &lent)) {
        Py_DECREF(load);
        return not_plain();
    }
    put_new(&AT(relay, Relay, plain), Py_True);
    put_new(&AT(relay, Relay, statement), args[5]);
    put_new(&AT(relay, Relay, column_metadata), columns);
    PyObject *scanner = AT(lent.conn, BackendConnection, scanner);
    const int done = lend(relay, &lent, load) && expect(scanner, lent.conn, columns, database) &&
                     send_query(relay, AT(relay, Relay, answer), lent.conn, scanner, sql);
    Py_DECREF(load);
    return sent(&lent, done);
}

/* A relay, a host, a statement, the offset of its IDs or None, whether it keeps the insert id, its literals, its columns
 * or None, its facts and the load of its shard. */
PyObject *send(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Lent lent;

    if (given != 9) {
        PyErr_SetString(PyExc_TypeError, "send takes nine arguments");
        return NULL;
    }
    PyObject *relay = args[0], *sql = args[2], *load = args[8];
    if (!find_free(relay, args[1], sql, &lent))
        return not_plain();
    put_new(&AT(relay, Relay, shards), no_values);
    put_new(&AT(relay, Relay, sql), sql);
    put_new(&AT(relay, Relay, plain), Py_False);
    put_new(&AT(relay, Relay, statement), Py_None);
    put_new(&AT(relay, Relay, database), Py_None);
    put_new(&AT(relay, Relay, id_offset), args[3]);
    put_new(&AT(relay, Relay, keeps_insert_id), args[4]);
    put_new(&AT(relay, Relay, effects), Py_None);
    put_new(&AT(relay, Relay, literals), args[5]);
    put_new(&AT(relay, Relay, column_metadata), args[6]);
    put_new(&AT(relay, Relay, facts), args[7]);
    put_new(&AT(relay, Relay, request), Py_None);
    put_new(&AT(relay, Relay, fresh), Py_True);
    put_new(&AT(lent.conn, BackendConnection, shards), no_values);
    PyObject *scanner = AT(lent.conn, BackendConnection, scanner);
    return sent(&lent, lend(relay, &lent, load) && send_query(relay, AT(relay, Relay, answer), lent.conn, scanner, sql));
}
