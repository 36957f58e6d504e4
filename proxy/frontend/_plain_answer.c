/* A plain reply's way to the client, and what follows from it. */
#include "_plain.h"

#include "../_load.h"

#define MOST_DIGITS 18 /* of the rows that an UPDATE has found */

/* -- the server's bytes ------------------------------------------------------------------------------------- */

/* Rows under known columns, or an OK packet. */
typedef struct {
    int is_ok;
    PyObject *header; /* what the rows begin with, that is known; NULL: what the last ones have begun with */
    Py_ssize_t begin; /* where the rows begin, or what an OK packet tells in words */
    Py_ssize_t rows;  /* or those that were changed */
    unsigned warnings, status;
    unsigned long long insert_id; /* as the client is told it */
    int composed;                 /* it is not as the server told it */
    Py_ssize_t matched;           /* rows that an UPDATE has found; -1: it says nothing of them */
} Reply;

/* Whether data[:size], without the database's name wherever it stands, is the key. */
static int begins_with(PyObject *data, Py_ssize_t size, PyObject *database, PyObject *key)
{
    const char *at = PyBytes_AS_STRING(data), *end = at + size;
    const char *wanted = PyBytes_AS_STRING(key), *wanted_end = wanted + PyBytes_GET_SIZE(key);
    const char *name = PyBytes_AS_STRING(database);
    const Py_ssize_t length = PyBytes_GET_SIZE(database);

    if (PyBytes_GET_SIZE(data) < size)
        return 0;
    while (at < end) {
        const char *next = length ? memchr(at, name[0], (size_t)(end - at)) : NULL;
        const int named = next != NULL && end - next >= length && !memcmp(next, name, (size_t)length);
        const char *stop = next == NULL ? end : named ? next : next + 1;
        if (wanted_end - wanted < stop - at || memcmp(at, wanted, (size_t)(stop - at)))
            return 0;
        wanted += stop - at;
        at = named ? next + length : stop;
    }
    return wanted == wanted_end;
}

/* Where the rows begin, when the column definitions are known; else 0. */
static Py_ssize_t known_columns(PyObject *scanner, PyObject *data, PyObject **header)
{
    PyObject *expected = AT(scanner, ReplyScanner, expected), *last = AT(scanner, ReplyScanner, _header);

    *header = NULL;
    if (IS(expected, Header)) {
        PyObject *key = AT(expected, Header, key), *database = AT(scanner, ReplyScanner, database);
        const Py_ssize_t size = PyLong_AsSsize_t(AT(expected, Header, size));
        if (size <= 0 || !PyBytes_CheckExact(key) || !PyBytes_CheckExact(database) ||
            !PyBytes_CheckExact(AT(expected, Header, shown)) || !begins_with(data, size, database, key))
            return 0;
        *header = expected;
        return size;
    }
    if (expected != Py_None || !PyBytes_CheckExact(last) || PyBytes_GET_SIZE(data) < PyBytes_GET_SIZE(last) ||
        memcmp(PyBytes_AS_STRING(data), PyBytes_AS_STRING(last), (size_t)PyBytes_GET_SIZE(last)))
        return 0;
    return PyBytes_GET_SIZE(last);
}

static void read_status(Reply *reply, const unsigned char *status, const unsigned char *warnings)
{
    reply->status = status[0] | (unsigned)status[1] << 8;
    reply->warnings = warnings[0] | (unsigned)warnings[1] << 8;
}

/* Known columns, plain rows and an EOF packet. */
static int read_rows(PyObject *scanner, PyObject *data, Reply *reply)
{
    Py_ssize_t pos = reply->begin = known_columns(scanner, data, &reply->header);
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(data);
    const Py_ssize_t end = PyBytes_GET_SIZE(data);

    if (pos == 0)
        return 0;
    for (Py_ssize_t length; (length = plain_row(bytes, end, pos, MAX_PAYLOAD)) > 0; reply->rows++)
        pos += HEADER + length;
    if (end - pos != EOF_SIZE || payload_length(bytes + pos) != EOF_SIZE - HEADER || bytes[pos + HEADER] != 0xFE)
        return 0;
    read_status(reply, bytes + pos + 7, bytes + pos + 5);
    return 1;
}

/* A length-encoded number at `pos`: where it ends; 0 when it does not lie within, or is none. */
static Py_ssize_t read_number(const unsigned char *bytes, Py_ssize_t pos, Py_ssize_t end, unsigned long long *value)
{
    if (pos >= end)
        return 0;
    const int size = bytes[pos] < 0xFB ? 0 : bytes[pos] == 0xFC ? 2 : bytes[pos] == 0xFD ? 3 : bytes[pos] == 0xFE ? 8 : -1;
    if (size < 0 || size > end - pos - 1)
        return 0;
    *value = size ? 0 : bytes[pos];
    for (int at = size; at > 0; at--)
        *value = *value << 8 | bytes[pos + at];
    return pos + 1 + size;
}

/* The number behind "matched: " in the words of an OK packet, which those of an UPDATE have; -1: there is none. */
static Py_ssize_t read_matched(const unsigned char *words, Py_ssize_t size)
{
    static const char said[] = "matched: ";
    const Py_ssize_t length = sizeof said - 1;
    Py_ssize_t at = 0, matched = -1, digits = 0;

    while (at + length < size && memcmp(words + at, said, (size_t)length))
        at++;
    for (at += length; at < size && words[at] >= '0' && words[at] <= '9' && digits < MOST_DIGITS; at++, digits++)
        matched = (matched < 0 ? 0 : matched * 10) + (words[at] - '0');
    return matched;
}

/* An OK packet as the first one of its reply. */
static int read_ok(PyObject *data, Reply *reply)
{
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(data);
    const Py_ssize_t end = PyBytes_GET_SIZE(data);
    unsigned long long rows;

    if (end < SHORTEST_OK || payload_length(bytes) != end - HEADER || bytes[3] != 1 || bytes[HEADER] != 0)
        return 0;
    Py_ssize_t pos = read_number(bytes, HEADER + 1, end, &rows);
    pos = pos == 0 ? 0 : read_number(bytes, pos, end, &reply->insert_id);
    if (pos == 0 || end - pos < 4 || rows > PY_SSIZE_T_MAX)
        return 0;
    read_status(reply, bytes + pos, bytes + pos + 2);
    reply->is_ok = 1;
    reply->rows = (Py_ssize_t)rows;
    reply->begin = pos + 4;
    reply->matched = read_matched(bytes + reply->begin, end - reply->begin);
    return 1;
}

/* Whether the bytes are the whole reply, with nothing unusual said. */
static int read_reply(PyObject *conn, PyObject *scanner, PyObject *data, Reply *reply)
{
    if (!read_rows(scanner, data, reply) && !read_ok(data, reply))
        return 0;
    const long usual = PyLong_AsLong(AT(AT(conn, BackendConnection, settings), Settings, status));
    return !(reply->status & MORE_RESULTS) &&
           (long)(reply->status & (IN_TRANS | AUTOCOMMIT | STATE_CHANGED)) == usual;
}

/* An `Ok`, without its constructor in Python. */
static PyObject *make_ok(PyObject *data, const Reply *reply)
{
    PyObject *values = Py_BuildValue("(nKIIy#)", reply->rows, reply->insert_id, reply->status, reply->warnings,
                                     PyBytes_AS_STRING(data) + reply->begin, PyBytes_GET_SIZE(data) - reply->begin);

    return values == NULL ? NULL : make_tuple(NUMBER_Ok, values);
}

/* As ReplyScanner.whole leaves it, and `composed`. */
static int note_reply(PyObject *scanner, PyObject *data, const Reply *reply)
{
    if (reply->is_ok) {
        PyObject *ok = make_ok(data, reply);
        if (ok == NULL)
            return 0;
        put(&AT(scanner, ReplyScanner, ok), ok);
        if (!put_int(&AT(scanner, ReplyScanner, ok_size), PyBytes_GET_SIZE(data)))
            return 0;
    } else {
        put_new(&AT(scanner, ReplyScanner, matched), reply->header == NULL ? Py_None : reply->header);
        put_new(&AT(scanner, ReplyScanner, rows_begun), Py_True);
        put_new(&AT(scanner, ReplyScanner, ending), ending_size);
        if (!put_int(&AT(scanner, ReplyScanner, rows), reply->rows))
            return 0;
    }
    put_new(&AT(scanner, ReplyScanner, state), state_done);
    return put_int(&AT(scanner, ReplyScanner, warnings), reply->warnings) &&
           put_int(&AT(scanner, ReplyScanner, status), reply->status);
}

/* -- what hosts and shards had to do ------------------------------------------------------------------------ */

/* Whether BackendConnection._count has only to add to the host's load, and to those of its shards. */
int is_countable(PyObject *conn)
{
    PyObject *shard = AT(conn, BackendConnection, shard), *load = AT(conn, BackendConnection, load);

    return is_float(AT(conn, BackendConnection, sent)) && is_load(load, 0) &&
           (shard == Py_None || /* they have the same number for a time */
            is_load(shard, PyList_GET_SIZE(AT(load, Load, buckets)) - 1));
}

/* `share`, with these three arguments: without a call into Python, where it is compiled and knows them. */
static int share_among(PyObject *const *args)
{
    PyObject *shared = share_compiled == Py_None ? Py_NewRef(Py_False) : PyObject_Vectorcall(share_compiled, args, 3, NULL);

    if (shared == Py_False)
        Py_SETREF(shared, PyObject_Vectorcall(share, args, 3, NULL));
    return done_by(shared);
}

int count(PyObject *conn, Py_ssize_t rows)
{
    PyObject *load = AT(conn, BackendConnection, load), *shard = AT(conn, BackendConnection, shard);
    PyObject *shards = AT(conn, BackendConnection, shards);
    const double ended = now(), seconds = ended - PyFloat_AS_DOUBLE(AT(conn, BackendConnection, sent));
    const Py_ssize_t bucket = load_bucket(seconds, PyList_GET_SIZE(AT(load, Load, buckets)));

    if (!put_float(&AT(conn, BackendConnection, ended), ended) ||
        !add_load(load, seconds, rows, bucket))
        return 0;
    if (shard != Py_None) {
        Py_INCREF(shard);
        put_new(&AT(conn, BackendConnection, shard), Py_None);
        const int added = is_load(shard, bucket) && add_load(shard, seconds, rows, bucket);
        Py_DECREF(shard);
        return added;
    }
    if (PyTuple_CheckExact(shards) && PyTuple_GET_SIZE(shards) == 0)
        return 1;
    PyObject *args[] = {Py_NewRef(shards), PyFloat_FromDouble(seconds), PyLong_FromSsize_t(rows)};
    put_new(&AT(conn, BackendConnection, shards), no_values);
    const int added = args[1] != NULL && args[2] != NULL && share_among(args);
    Py_DECREF(args[0]);
    Py_XDECREF(args[1]);
    Py_XDECREF(args[2]);
    return added;
}

/* -- the client's answer ------------------------------------------------------------------------------------- */

/* Whether nothing is to be done to the reply but, where a shard has told a local ID, to tell the composed one. */
static int is_given_simply(PyObject *relay, PyObject *session, Reply *reply)
{
    if (!reply->is_ok && reply->header == NULL && AT(relay, Relay, column_metadata) != Py_None)
        return 0;
    if (reply->is_ok && (AT(relay, Relay, column_metadata) != Py_None || AT(relay, Relay, statement) != Py_None))
        return 0;
    if (AT(relay, Relay, plain) == Py_True)
        return 1;
    PyObject *offset = AT(relay, Relay, id_offset);
    if (AT(relay, Relay, plain) != Py_False || AT(relay, Relay, effects) != Py_None || !IS(session, Session) ||
        AT(session, Session, tracks_replies) != Py_False)
        return 0;
    if (!reply->is_ok || !reply->insert_id || offset == Py_None)
        return 1;
    const unsigned long long base = is_int(offset) ? PyLong_AsUnsignedLongLong(offset) : 0;
    if (PyErr_Occurred() || reply->rows > MOST_IN_A_BYTE || base + reply->insert_id < FROM_EIGHT_BYTES ||
        base > ~0ULL - reply->insert_id)
        return 0;
    reply->insert_id += base;
    reply->composed = 1;
    return 1;
}

/* The OK packet with the composed ID. */
static PyObject *composed_ok(PyObject *data, const Reply *reply)
{
    const Py_ssize_t rest = PyBytes_GET_SIZE(data) - reply->begin;
    PyObject *out = PyBytes_FromStringAndSize(NULL, COMPOSED_OK + rest);

    if (out == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AS_STRING(out);
    put_little(at, (unsigned long long)(COMPOSED_OK - HEADER + rest), 3);
    at[3] = (unsigned char)PyBytes_AS_STRING(data)[3];
    at[4] = 0;
    at[5] = (unsigned char)reply->rows;
    at[6] = 0xFE;
    put_little(at + 7, reply->insert_id, 8);
    put_little(at + 15, reply->status, 2);
    put_little(at + 17, reply->warnings, 2);
    memcpy(at + COMPOSED_OK, PyBytes_AS_STRING(data) + reply->begin, (size_t)rest);
    return out;
}

/* What the client gets of rows that begin with a known header. */
static PyObject *shown_rows(PyObject *data, const Reply *reply)
{
    PyObject *shown = AT(reply->header, Header, shown);
    const Py_ssize_t size = PyBytes_GET_SIZE(shown), rest = PyBytes_GET_SIZE(data) - reply->begin;
    PyObject *out = PyBytes_FromStringAndSize(NULL, size + rest);

    if (out == NULL)
        return NULL;
    memcpy(PyBytes_AS_STRING(out), PyBytes_AS_STRING(shown), (size_t)size);
    memcpy(PyBytes_AS_STRING(out) + size, PyBytes_AS_STRING(data) + reply->begin, (size_t)rest);
    return out;
}

/* To the client. Takes `out`. */
int written(PyObject *client, PyObject *out)
{
    PyObject *transport = Py_NewRef(AT(client, Exchange, transport));
    const int done = write_to(transport, AT(client, Exchange, descriptor), out);

    Py_DECREF(transport);
    Py_DECREF(out);
    return done;
}

/* Relay.reply_data. */
static int give(PyObject *relay, PyObject *conn, PyObject *client, PyObject *data, const Reply *reply)
{
    PyObject *statement = AT(relay, Relay, statement), *out;

    if (statement != Py_None) {
        out = reply->header == NULL || AT(relay, Relay, plain) != Py_True ? NULL : binary_reply(statement, reply->header, data);
        if (out == NULL) {
            PyObject *args[] = {relay, conn, data};
            return !PyErr_Occurred() && done_by(PyObject_VectorcallMethod(name_reply_data, args, 3, NULL));
        }
        return written(client, out);
    }
    out = reply->composed ? composed_ok(data, reply) : reply->header != NULL ? shown_rows(data, reply) : Py_NewRef(data);
    return out != NULL && written(client, out);
}

/* -- the connection's return --------------------------------------------------------------------------------- */

/* The list of idle connections that it goes to; NULL when HostPool.release has more to do. */
static PyObject *place_for(PyObject *conn, PyObject *pool)
{
    if (!IS(pool, HostPool) || !is_false(AT(pool, HostPool, retired)))
        return NULL;
    PyObject *state = AT(pool, HostPool, state);
    if (!IS(state, PoolState))
        return NULL;
    PyObject *waiting = AT(state, PoolState, waiting), *busy = AT(state, PoolState, busy);
    PyObject *idle = AT(state, PoolState, idle), *variant = AT(conn, BackendConnection, capability_set);
    if (!IS(waiting, Waiting) || !is_empty_dict(AT(waiting, Waiting, queues)) || !PyDict_CheckExact(busy) ||
        !PyTuple_CheckExact(idle) || !is_int(variant) || !is_false(AT(conn, BackendConnection, closed)) ||
        !is_false(AT(conn, BackendConnection, resetting)) || AT(conn, BackendConnection, receiver) != Py_None ||
        !is_false(AT(conn, BackendConnection, doomed)) || !is_false(AT(conn, BackendConnection, prepared)) ||
        !is_false(AT(conn, BackendConnection, undone)) || !is_false(AT(conn, BackendConnection, pinned)) ||
        !is_false(AT(conn, BackendConnection, unclean)) || !is_false(AT(conn, BackendConnection, unread)))
        return NULL;
    const Py_ssize_t number = PyLong_AsSsize_t(variant);
    if (number < 0 || number >= PyTuple_GET_SIZE(idle) || PyDict_Contains(busy, conn) != 1)
        return NULL;
    PyObject *place = PyTuple_GET_ITEM(idle, number);
    return PyList_CheckExact(place) ? place : NULL;
}

int release(PyObject *conn)
{
    PyObject *pool = AT(conn, BackendConnection, owner), *place = place_for(conn, pool);

    if (place == NULL)
        return !PyErr_Occurred() && done_by(PyObject_CallMethodOneArg(pool, name_release, conn));
    put_new(&AT(conn, BackendConnection, idle_since), AT(pool, HostPool, _clock));
    return PyDict_DelItem(AT(AT(pool, HostPool, state), PoolState, busy), conn) == 0 &&
           PyList_Append(place, conn) == 0;
}

/* -- the end of the statement -------------------------------------------------------------------------------- */

typedef struct {
    PyObject *use, *kind;
} Counted;

static int are_visits(PyObject *visits)
{
    if (visits == Py_None)
        return 1;
    if (visits == NULL || !PyList_CheckExact(visits))
        return 0;
    for (Py_ssize_t one = 0; one < PyList_GET_SIZE(visits); one++) {
        PyObject *visit = PyList_GET_ITEM(visits, one);
        if (!IS(visit, Visit) || !(PyList_CheckExact(PyTuple_GET_ITEM(visit, 1)) || PyTuple_CheckExact(PyTuple_GET_ITEM(visit, 1))))
            return 0;
    }
    return 1;
}

/* Whether Exchange.finish has only to count, with what it counts in. */
static int is_finished_simply(PyObject *client, PyObject *stats, Counted *counted)
{
    if (AT(client, Exchange, sink) != Py_None || !are_visits(AT(client, Exchange, visits)) ||
        AT(client, Exchange, leaving) != leaving_not || AT(client, Exchange, writing_paused) != Py_False ||
        AT(client, Exchange, _waiting) != Py_False || !is_float(AT(client, Exchange, begun)) ||
        !is_float(AT(client, Exchange, queued)) || PyFloat_AS_DOUBLE(AT(client, Exchange, queued)) != 0.0 ||
        AT(client, Exchange, plan) == Py_None || !IS(stats, Stats))
        return 0;
    counted->use = PyDict_GetItemWithError(AT(stats, Stats, uses), AT(client, Exchange, plan));
    counted->kind = PyDict_GetItemWithError(AT(stats, Stats, kinds), AT(client, Exchange, kind));
    if (!IS(counted->use, Use) || !IS(counted->kind, KindStats))
        return 0;
    PyObject *use = counted->use, *kind = counted->kind;
    PyObject *buckets = AT(use, Use, buckets), *counts = AT(kind, KindStats, counts);
    return is_float(AT(use, Use, seconds)) && is_float(AT(use, Use, longest)) && PyDict_CheckExact(AT(use, Use, hosts)) &&
           is_float(AT(kind, KindStats, seconds)) && PyList_CheckExact(buckets) && PyList_CheckExact(counts) &&
           PyList_GET_SIZE(buckets) > bound_count && PyList_GET_SIZE(counts) > bound_count;
}

static int add_host(PyObject *hosts, PyObject *host)
{
    PyObject *times = PyDict_GetItemWithError(hosts, host);

    if (times != NULL && add_in_place(times, 1))
        return 1;
    const long long before = times == NULL ? 0 : PyLong_AsLongLong(times);
    if (PyErr_Occurred())
        return 0;
    PyObject *after = PyLong_FromLongLong(before + 1);
    const int failed = after == NULL || PyDict_SetItem(hosts, host, after);
    Py_XDECREF(after);
    return !failed;
}

/* As Use.visited; or the one host, and its shard if it was for one. */
static int add_places(PyObject *use, PyObject *visits, PyObject *host, int on_shard)
{
    const Py_ssize_t count = visits == Py_None ? 0 : PyList_GET_SIZE(visits);
    Py_ssize_t shards = count ? 0 : on_shard;

    if (count == 0 && !add_host(AT(use, Use, hosts), host))
        return 0;
    for (Py_ssize_t one = 0; one < count; one++) {
        PyObject *visit = PyList_GET_ITEM(visits, one);
        if (!add_host(AT(use, Use, hosts), PyTuple_GET_ITEM(visit, 0)))
            return 0;
        shards += PySequence_Fast_GET_SIZE(PyTuple_GET_ITEM(visit, 1));
    }
    return shards == 0 || add_int(&AT(use, Use, shards), shards);
}

/* As Stats.observe, and what finish adds of rows. */
static int observe(const Counted *counted, double seconds, Py_ssize_t rows)
{
    PyObject *use = counted->use, *kind = counted->kind;
    Py_ssize_t number = 0;

    while (number < bound_count && bounds[number] < seconds)
        number++;
    return add_int(&AT(use, Use, count), 1) && add_float(&AT(use, Use, seconds), seconds) &&
           add_bucket(AT(use, Use, buckets), number) && add_longest(&AT(use, Use, longest), seconds) &&
           add_int(&AT(use, Use, rows), rows) && add_int(&AT(kind, KindStats, ok), 1) &&
           add_bucket(AT(kind, KindStats, counts), number) && add_float(&AT(kind, KindStats, seconds), seconds);
}

int finish(PyObject *client, PyObject *host, Py_ssize_t rows, int on_shard)
{
    Counted counted;
    const int simple = is_finished_simply(client, AT(client, Exchange, stats), &counted);

    if (!simple && PyErr_Occurred())
        return 0;
    const double at = now(), begun = simple ? PyFloat_AS_DOUBLE(AT(client, Exchange, begun)) : 0.0;
    const double limit = simple ? PyFloat_AsDouble(AT(client, Exchange, observe_after)) : 0.0;
    if (!simple || at - begun > limit) /* the slow-query log, and whatever else looks at statements */
        return !PyErr_Occurred() && done_by(PyObject_CallMethodOneArg(client, name_finish, text_ok));
    if (!observe(&counted, at - begun, rows) ||
        !add_places(counted.use, AT(client, Exchange, visits), host, on_shard) || !put_float(&AT(client, Exchange, begun), at))
        return 0;
    put_new(&AT(client, Exchange, work), Py_None);
    put_new(&AT(client, Exchange, host), Py_None);
    if (AT(client, Exchange, visits) != Py_None && PyList_GET_SIZE(AT(client, Exchange, visits)))
        put_new(&AT(client, Exchange, visits), Py_None);
    put_new(&AT(client, Exchange, ready), Py_True);
    return 1;
}

/* What the session knows of the statement: as `Session.apply` and `passed`. */
static int note_outcome(PyObject *relay, PyObject *session, const Reply *reply)
{
    if (!reply->is_ok) {
        put_new(&AT(session, Session, row_count), row_count_of_rows);
        return put_int(&AT(session, Session, found_rows), reply->rows);
    }
    if (!put_int(&AT(session, Session, row_count), reply->rows))
        return 0;
    if (reply->matched >= 0 && AT(session, Session, counts_matched) == Py_True &&
        !put_int(&AT(session, Session, found_rows), reply->matched))
        return 0;
    const int made = AT(relay, Relay, plain) == Py_True || is_false(AT(relay, Relay, keeps_insert_id));
    if (!made || !reply->insert_id)
        return 1;
    PyObject *id = PyLong_FromUnsignedLongLong(reply->insert_id);
    if (id != NULL)
        put(&AT(session, Session, last_insert_id), id);
    return id != NULL;
}

/* Relay.reply_done. */
static int end(PyObject *relay, PyObject *conn, PyObject *client, const Reply *reply)
{
    PyObject *session = AT(client, Exchange, session), *shards = AT(relay, Relay, shards);
    PyObject *transaction = IS(session, Session) ? AT(session, Session, transaction) : NULL;

    if (!IS(transaction, Transaction) || !is_empty_dict(AT(transaction, Transaction, held)) ||
        !is_empty_list(AT(session, Session, diagnostics)) || reply->warnings || (reply->status & IN_TRANS) ||
        AT(conn, BackendConnection, pinned) != Py_False || AT(client, Exchange, host) != Py_None ||
        AT(client, Exchange, writing_paused) != Py_False || !PyTuple_CheckExact(shards) || PyTuple_GET_SIZE(shards)) {
        PyObject *args[] = {relay, conn};
        return done_by(PyObject_VectorcallMethod(name_reply_done, args, 2, NULL));
    }
    PyObject *shard = AT(relay, Relay, shard), *host = Py_NewRef(AT(conn, BackendConnection, host));
    put_new(&AT(relay, Relay, conn), Py_None);
    put_new(&AT(client, Exchange, host), host);
    put_new(&AT(client, Exchange, shard), shard);
    put_new(&AT(client, Exchange, first), AT(conn, BackendConnection, sent));
    put_new(&AT(client, Exchange, last), AT(conn, BackendConnection, ended));
    const int on_shard = shard != Py_None;
    const int done = note_outcome(relay, session, reply) && release(conn) && finish(client, host, reply->rows, on_shard);
    Py_DECREF(host);
    return done;
}

PyObject *answer(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Reply reply = {0};

    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "answer takes a relay, a connection and bytes");
        return NULL;
    }
    PyObject *relay = args[0], *conn = args[1], *data = args[2];
    if (!IS(relay, Relay) || !PyObject_TypeCheck(conn, classes[NUMBER_BackendConnection]) || !PyBytes_CheckExact(data))
        Py_RETURN_FALSE;
    PyObject *client = AT(relay, Relay, client), *scanner = AT(conn, BackendConnection, scanner);
    if (AT(conn, BackendConnection, _plain) != Py_True || AT(conn, BackendConnection, receiver) != relay ||
        !IS(scanner, ReplyScanner) || !IS(AT(conn, BackendConnection, settings), Settings) || client == NULL ||
        !PyObject_TypeCheck(client, classes[NUMBER_Exchange]) || !is_countable(conn) ||
        !read_reply(conn, scanner, data, &reply) ||
        !is_given_simply(relay, AT(client, Exchange, session), &reply)) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_FALSE;
    }
    const int counts = PyFloat_AS_DOUBLE(AT(conn, BackendConnection, sent)) != 0.0;
    Py_XINCREF(reply.header);
    Py_INCREF(client);
    int done = note_reply(scanner, data, &reply);
    put_new(&AT(conn, BackendConnection, receiver), Py_None);
    done = done && (!counts || count(conn, reply.rows)) && give(relay, conn, client, data, &reply) &&
           end(relay, conn, client, &reply);
    Py_DECREF(client);
    Py_XDECREF(reply.header);
    if (!done)
        return NULL;
    Py_RETURN_TRUE;
}
