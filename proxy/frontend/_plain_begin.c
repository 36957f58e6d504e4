/* A statement's way from the client's packet to its plan, and that of a plain one to the text for its host:
 * `ClientConnection.data_received`, `query` and `Rewriter.find`; and `pipeline.execute`, for a SELECT or the row of an
 * INSERT that is routed by one ID and restricted by nothing. All others are Python's to execute. */
#include "_plain.h"

#define QUERY_BEGIN (HEADER + 1)
#define LENGTH_KNOWN(bytes, size) (payload_length((const unsigned char *)(bytes)) == (size) - HEADER)

/* A statement, and the key of the settings that it is read with; both borrowed. */
typedef struct {
    const char *text;
    Py_ssize_t size;
    PyObject *key;
} Text;

/* What was found for it: references that are ours. */
typedef struct {
    PyObject *plan, *values;
} Found;

static int is_digit(char one)
{
    return one >= '0' && one <= '9';
}

static int are_digits(const char *text, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at < size; at++)
        if (!is_digit(text[at]))
            return 0;
    return size > 0;
}

/* Whether the packet is one whole `command`, and the client waits for nothing. */
static int is_one(PyObject *client, PyObject *data, char command)
{
    const char *bytes = PyBytes_AS_STRING(data);
    const Py_ssize_t size = PyBytes_GET_SIZE(data);
    PyObject *reader = AT(client, ClientConnection, _reader);

    return AT(client, Exchange, ready) == Py_True && size > QUERY_BEGIN && bytes[HEADER] == command && bytes[3] == 0 &&
           LENGTH_KNOWN(bytes, size) && size - HEADER != MAX_PAYLOAD && IS(reader, PacketReader) && is_false(AT(reader, PacketReader, pending));
}

/* Whether the session's transaction is not lost, and may be on any number of hosts. */
int is_unbroken(PyObject *session)
{
    PyObject *transaction = AT(session, Session, transaction), *mode = AT(session, Session, transaction_mode);

    return IS(transaction, Transaction) && is_false(AT(transaction, Transaction, lost)) && mode != NULL &&
           PyUnicode_Check(mode) && PyUnicode_CompareWithASCIIString(mode, "multi") == 0;
}

/* Whether nothing but the plan decides what the session may ask. */
static int is_unrestricted(PyObject *session)
{
    PyObject *user = AT(session, Session, user);

    return IS(user, User) && AT(user, User, databases) == Py_None && is_unbroken(session);
}

/* What a dictionary has under (text, key): borrowed, NULL for nothing, or with an exception. Takes `text`. */
static PyObject *kept(PyObject *among, PyObject *text, PyObject *key)
{
    PyObject *both = text == NULL ? NULL : PyTuple_Pack(2, text, key);
    PyObject *found = both == NULL || !PyDict_CheckExact(among) ? NULL : PyDict_GetItemWithError(among, both);

    Py_XDECREF(text);
    Py_XDECREF(both);
    return found;
}

/* A plan that is kept, if there is one, and the statement's one literal. Takes `literal`. */
static int found_with(Found *found, PyObject *plan, PyObject *literal)
{
    PyObject *values = plan == NULL || literal == NULL ? NULL : PyTuple_Pack(2, literal, no_bytes);

    Py_XDECREF(literal);
    if (values == NULL)
        return 0;
    *found = (Found){Py_NewRef(plan), values};
    return 1;
}

/* A statement that ends in a number, and is known but for it. */
static int find_short(Found *found, PyObject *rewriter, const Text *sql, const char *number)
{
    PyObject *before = PyBytes_FromStringAndSize(sql->text, number - 1 - sql->text);
    PyObject *plan = kept(AT(rewriter, Rewriter, _short), before, sql->key);

    return plan != NULL && found_with(found, plan, PyBytes_FromStringAndSize(number, sql->text + sql->size - number));
}

static PyObject *text_and(const char *text, Py_ssize_t size, char more)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, size + 1);

    if (made != NULL) {
        memcpy(PyBytes_AS_STRING(made), text, (size_t)size);
        PyBytes_AS_STRING(made)[size] = more;
    }
    return made;
}

/* The plan of what is known but for one literal, which is all from `begin` to `closed`: borrowed, or as `kept`. */
static PyObject *kept_around(PyObject *rewriter, const Text *sql, const char *begin, const char *closed)
{
    PyObject *before = PyBytes_FromStringAndSize(sql->text, begin - sql->text);
    PyObject *behind = text_and(closed, sql->text + sql->size - closed, 0);
    PyObject *around = before == NULL || behind == NULL ? NULL : PyTuple_Pack(2, before, behind);

    Py_XDECREF(before);
    Py_XDECREF(behind);
    return kept(AT(rewriter, Rewriter, _enclosed), around, sql->key);
}

/* What is known but for one string in single quotes, of which the first one is `quote`: as enclosed.py. */
static int find_enclosed(Found *found, PyObject *rewriter, const Text *sql, const char *quote)
{
    const char *begin = quote + 1, *end = sql->text + sql->size, *closed = end;

    while (closed > begin && closed[-1] != '\'')
        closed--;
    if (closed == begin || quote == sql->text || memchr("xXbB", quote[-1], 4))
        return 0;
    const size_t inside = (size_t)(closed - 1 - begin);
    if (memchr(begin, '\'', inside) || memchr(begin, '\\', inside) || memchr(begin, 0, inside))
        return 0;
    PyObject *plan = kept_around(rewriter, sql, begin, closed);
    return plan != NULL && found_with(found, plan, PyBytes_FromStringAndSize(begin, closed - begin));
}

static PyObject *without_digits(const Text *sql)
{
    char room[MOST_AROUND];
    Py_ssize_t size = 0;

    for (Py_ssize_t at = 0; at < sql->size; at++)
        if (!is_digit(sql->text[at]))
            room[size++] = sql->text[at];
    return PyBytes_FromStringAndSize(room, size);
}

/* (*before, middle, *after) */
static PyObject *values_around(PyObject *before, PyObject *after, const char *middle, Py_ssize_t size)
{
    const Py_ssize_t first = PyTuple_GET_SIZE(before), rest = PyTuple_GET_SIZE(after);
    PyObject *values = PyTuple_New(first + 1 + rest);
    PyObject *own = values == NULL ? NULL : PyBytes_FromStringAndSize(middle, size);

    if (own == NULL) {
        Py_XDECREF(values);
        return NULL;
    }
    for (Py_ssize_t one = 0; one < first; one++)
        PyTuple_SET_ITEM(values, one, Py_NewRef(PyTuple_GET_ITEM(before, one)));
    PyTuple_SET_ITEM(values, first, own);
    for (Py_ssize_t one = 0; one < rest; one++)
        PyTuple_SET_ITEM(values, first + 1 + one, Py_NewRef(PyTuple_GET_ITEM(after, one)));
    return values;
}

/* Around.find. */
static int find_around(Found *found, PyObject *rewriter, const Text *sql)
{
    PyObject *around = sql->size > around_limit ? NULL : AT(rewriter, Rewriter, _around);
    PyObject *known = IS(around, Around) ? kept(AT(around, Around, _known), without_digits(sql), sql->key) : NULL;

    if (known == NULL || !PyTuple_Check(known) || PyTuple_GET_SIZE(known) != 5)
        return 0;
    PyObject *head = PyTuple_GET_ITEM(known, 0), *tail = PyTuple_GET_ITEM(known, 1);
    PyObject *before = PyTuple_GET_ITEM(known, 2), *after = PyTuple_GET_ITEM(known, 3);
    if (!PyBytes_Check(head) || !PyBytes_Check(tail) || !PyTuple_Check(before) || !PyTuple_Check(after))
        return 0;
    const Py_ssize_t begin = PyBytes_GET_SIZE(head), rest = PyBytes_GET_SIZE(tail), size = sql->size - begin - rest;
    if (size <= 0 || memcmp(sql->text, PyBytes_AS_STRING(head), (size_t)begin) ||
        memcmp(sql->text + sql->size - rest, PyBytes_AS_STRING(tail), (size_t)rest) || !are_digits(sql->text + begin, size))
        return 0;
    PyObject *plan = Py_NewRef(PyTuple_GET_ITEM(known, 4));
    PyObject *values = values_around(before, after, sql->text + begin, size);
    if (values == NULL) {
        Py_DECREF(plan);
        return 0;
    }
    *found = (Found){plan, values};
    return 1;
}

/* What is known but for a list of integers in its last parentheses: as enclosed.py. */
static int find_listed(Found *found, PyObject *rewriter, const Text *sql)
{
    const char *end = sql->text + sql->size, *begin = end;

    while (begin > sql->text && begin[-1] != '(')
        begin--;
    const char *closed = begin == sql->text ? NULL : memchr(begin, ')', (size_t)(end - begin));
    if (closed == NULL || memchr(begin, ',', (size_t)(closed - begin)) == NULL)
        return 0;
    PyObject *inside = PyBytes_FromStringAndSize(begin, closed - begin);
    PyObject *listed = inside == NULL ? NULL : PyObject_CallOneArg(is_list, inside);
    const int plain = listed == Py_True;
    Py_XDECREF(listed);
    if (!plain) {
        Py_XDECREF(inside);
        return 0;
    }
    PyObject *plan = kept_around(rewriter, sql, begin, closed);
    if (plan != NULL)
        return found_with(found, plan, inside);
    Py_DECREF(inside);
    return 0;
}

/* Rewriter.find, without cutting the statement. */
static int find_plan(Found *found, PyObject *rewriter, const Text *sql)
{
    const char *end = sql->text + sql->size, *number = end;
    const char *quote = memchr(sql->text, '\'', (size_t)sql->size);

    while (number > sql->text && is_digit(number[-1]))
        number--;
    const int numbered = number < end && number > sql->text && number[-1] == ' ';
    if (numbered && (find_short(found, rewriter, sql, number) || find_around(found, rewriter, sql)))
        return 1;
    if (quote == NULL && find_listed(found, rewriter, sql))
        return 1;
    if (quote == NULL && memchr(sql->text, '(', (size_t)sql->size))
        return 0; /* cut it */
    return (quote != NULL && find_enclosed(found, rewriter, sql, quote)) ||
           (!numbered && number == end && find_around(found, rewriter, sql));
}

/* The places of the shards of a keyspace, borrowed of the snapshot. */
PyObject *places_of(PyObject *snapshot, PyObject *keyspace)
{
    PyObject *known = AT(snapshot, Snapshot, places);
    PyObject *places = PyDict_GetItemWithError(known, keyspace);

    if (places != NULL || PyErr_Occurred())
        return places;
    PyObject *keyspaces = PyObject_GetAttr(AT(snapshot, Snapshot, topology), name_keyspaces);
    PyObject *one = keyspaces == NULL ? NULL : PyObject_GetItem(keyspaces, keyspace);
    places = one == NULL ? NULL : PyObject_GetAttr(one, name_places);
    const int failed = places == NULL || PyDict_SetItem(known, keyspace, places);
    Py_XDECREF(keyspaces);
    Py_XDECREF(one);
    Py_XDECREF(places);
    return failed ? NULL : places;
}

/* What `text_by_id` or `row_by_id` makes, a tuple of that size: by the literal of that number, `how` its ID tells the
 * shard, and a template; or NULL. */
static PyObject *bind_by(PyObject *function, Py_ssize_t size, PyObject *literal, PyObject *values, PyObject *how,
                         PyObject *places, PyObject *template)
{
    const Py_ssize_t number = is_int(literal) ? PyLong_AsSsize_t(literal) : -1;

    if (places == NULL || number < 0 || number >= PyTuple_GET_SIZE(values))
        return NULL;
    PyObject *args[] = {PyTuple_GET_ITEM(values, number), values, how, places, template};
    PyObject *bound = PyObject_Vectorcall(function, args, 5, NULL);
    if (bound == NULL || (PyTuple_CheckExact(bound) && PyTuple_GET_SIZE(bound) == size))
        return bound;
    Py_DECREF(bound);
    return NULL;
}

/* Whether a plan may run as it is, for a user of that role. */
#define MAY_RUN(plan, class, role) \
    (PyObject_RichCompareBool(AT(plan, class, access), role, Py_GT) == 0 && \
     AT(plan, class, implicit_commit) == Py_False && AT(plan, class, session_slots) == no_values)

/* Sharded.at_point: host, shard, text and database, or NULL. */
PyObject *point_of(PyObject *plan, PyObject *values, PyObject *snapshot)
{
    PyObject *point = AT(plan, ShardSelect, point);

    if (!IS(point, Point))
        return NULL;
    return bind_by(text_by_id, 4, AT(point, Point, literal), values, AT(point, Point, bits),
                   places_of(snapshot, AT(point, Point, keyspace)), AT(point, Point, template));
}

/* Insert.at_one: host, shard, text, database and K, or NULL. */
static PyObject *at_one(PyObject *plan, PyObject *values, PyObject *snapshot, PyObject *role)
{
    PyObject *by_id = AT(plan, Insert, by_id);

    if (by_id == Py_None || !PyTuple_Check(by_id) || PyTuple_GET_SIZE(by_id) == 0 ||
        AT(plan, Insert, asks) != Py_False || AT(plan, Insert, returning) != Py_False || !MAY_RUN(plan, Insert, role))
        return NULL;
    return bind_by(row_by_id, 5, PyTuple_GET_ITEM(by_id, 0), values, by_id, places_of(snapshot, AT(plan, Insert, keyspace)),
                   AT(plan, Insert, short));
}

/* ClientConnection.query, up to the statement's execution. Takes `text`. */
static int note_command(PyObject *client, PyObject *snapshot, PyObject *text)
{
    put_new(&AT(client, Exchange, ready), Py_False);
    put_new(&AT(client, Exchange, seq), zero);
    put_new(&AT(client, Exchange, snapshot), snapshot);
    put_new(&AT(client, Exchange, again), Py_None);
    put(&AT(client, Exchange, sql), text);
    put_new(&AT(client, Exchange, kind), text_unplanned);
    put_new(&AT(client, Exchange, plan), Py_None);
    return put_float(&AT(client, Exchange, begun), now());
}

/* A SELECT that was bound goes to its host; for `statement`, if it is prepared, or None. */
int run_select(PyObject *client, PyObject *plan, PyObject *bound, PyObject *statement)
{
    PyObject *relay = Py_NewRef(AT(client, Exchange, relay));
    PyObject *args[] = {relay,
                        PyTuple_GET_ITEM(bound, 0),
                        PyTuple_GET_ITEM(bound, 2),
                        AT(plan, ShardSelect, column_metadata),
                        PyTuple_GET_ITEM(bound, 3),
                        statement};

    put_new(&AT(client, Exchange, kind), kind_of_selects);
    put_new(&AT(client, Exchange, plan), plan);
    PyObject *asked = ask(NULL, args, 6);
    if (asked == Py_False) {
        Py_DECREF(asked);
        asked = PyObject_VectorcallMethod(name_ask, args, 6, NULL);
    }
    Py_DECREF(relay);
    return done_by(asked);
}

/* So does an INSERT: 1, 0 with an exception; -1 when it is Python's to execute. */
static int run_insert(PyObject *client, PyObject *plan, PyObject *bound)
{
    PyObject *relay = AT(client, Exchange, relay);
    PyObject *known = IS(relay, Relay) ? AT(relay, Relay, known) : NULL;
    PyObject *load = known != NULL && PyDict_CheckExact(known)
                         ? PyDict_GetItemWithError(known, PyTuple_GET_ITEM(bound, 3))
                         : NULL;

    if (load == NULL)
        return PyErr_Occurred() ? 0 : -1;
    put_new(&AT(client, Exchange, kind), kind_of_inserts);
    put_new(&AT(client, Exchange, plan), plan);
    Py_INCREF(relay);
    Py_INCREF(load);
    PyObject *args[] = {relay,    PyTuple_GET_ITEM(bound, 0), PyTuple_GET_ITEM(bound, 2),       PyTuple_GET_ITEM(bound, 4),
                        Py_False, no_values,                  AT(plan, Insert, column_metadata), facts_unread,
                        load};
    PyObject *sent = send(NULL, args, 9);
    const int done = sent == Py_False ? -1 : sent != NULL;
    Py_XDECREF(sent);
    Py_DECREF(load);
    Py_DECREF(relay);
    return done;
}

/* pipeline.execute; with its plan, if there is one. */
static int execute(PyObject *client, PyObject *text, const Found *found)
{
    PyObject *planned = found == NULL ? NULL : PyTuple_Pack(2, found->plan, found->values);
    PyObject *args[] = {client, text, planned};

    if (found != NULL && planned == NULL)
        return 0;
    const int done = done_by(PyObject_VectorcallMethod(name_execute, args, found == NULL ? 2 : 3, NULL));
    Py_XDECREF(planned);
    return done;
}

/* A statement whose plan is known. */
static int run_found(PyObject *client, PyObject *snapshot, PyObject *text, const Found *found)
{
    PyObject *session = AT(client, Exchange, session), *plan = found->plan, *bound = NULL;
    int done = -1, lists = 0;

    if (AT(snapshot, Snapshot, all_serving) == Py_True && is_unrestricted(session)) {
        PyObject *role = AT(AT(session, Session, user), User, role);
        if (IS(plan, ShardSelect) && MAY_RUN(plan, ShardSelect, role))
            lists = (bound = point_of(plan, found->values, snapshot)) == NULL && !PyErr_Occurred();
        else if (IS(plan, Insert))
            bound = at_one(plan, found->values, snapshot, role);
    }
    PyErr_Clear(); /* Python meets it again, and knows what to do */
    if (bound != NULL)
        done = IS(plan, Insert) ? run_insert(client, plan, bound) : run_select(client, plan, bound, Py_None);
    else if (lists)
        done = run_many(client, plan, found->values, snapshot);
    Py_XDECREF(bound);
    return done < 0 ? execute(client, text, found) : done;
}

/* Whether a statement is looked for as it is: not one that is masked first, or planned off the loop. */
static int is_looked_for(PyObject *client, PyObject *session, Py_ssize_t size)
{
    PyObject *limit = AT(client, Exchange, long_statement);

    return AT(session, Session, unsafe_charset) == Py_False && is_int(limit) && size <= PyLong_AsSsize_t(limit);
}

/* A client, and what it has sent: False when that is no command that is run here; then nothing was done of it. */
PyObject *begin(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Found found;

    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "begin takes a client and bytes");
        return NULL;
    }
    PyObject *client = args[0], *data = args[1];
    if (!PyObject_TypeCheck(client, classes[NUMBER_ClientConnection]) || !PyBytes_CheckExact(data) ||
        !IS(AT(client, Exchange, serving), Serving))
        Py_RETURN_FALSE;
    if (is_one(client, data, COM_STMT_EXECUTE)) {
        const int repeated = execute_again(client, data);
        return repeated ? PyBool_FromLong(repeated > 0) : NULL;
    }
    if (!is_one(client, data, COM_QUERY) || AT(client, Exchange, attributes) != Py_False)
        Py_RETURN_FALSE;
    PyObject *session = AT(client, Exchange, session), *snapshot = AT(AT(client, Exchange, serving), Serving, snapshot);
    PyObject *env = IS(session, Session) ? AT(session, Session, env) : NULL;
    PyObject *rewriter = IS(snapshot, Snapshot) ? AT(snapshot, Snapshot, rewriter) : NULL;
    if (!IS(env, Env) || !IS(rewriter, Rewriter) || !is_int(AT(rewriter, Rewriter, hits)))
        Py_RETURN_FALSE;
    const Py_ssize_t size = PyBytes_GET_SIZE(data) - QUERY_BEGIN;
    PyObject *text = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + QUERY_BEGIN, size);
    if (text == NULL)
        return NULL;
    const Text sql = {PyBytes_AS_STRING(text), size, AT(env, Env, key)};
    Py_INCREF(snapshot);
    Py_INCREF(text);
    int known = 0, done = note_command(client, snapshot, text);
    if (done && is_looked_for(client, session, size)) {
        known = find_plan(&found, rewriter, &sql);
        PyErr_Clear(); /* as for what is not known */
        done = !known || add_int(&AT(rewriter, Rewriter, hits), 1);
    }
    if (done)
        done = known ? run_found(client, snapshot, text, &found) : execute(client, text, NULL);
    if (known) {
        Py_DECREF(found.plan);
        Py_DECREF(found.values);
    }
    Py_DECREF(text);
    Py_DECREF(snapshot);
    return done ? Py_NewRef(Py_True) : NULL;
}
