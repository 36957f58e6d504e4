/* A SELECT by a list of IDs, on its way to several hosts: what `pipeline._select` and `FanOut` do up to the writes, for
 * rows that are the client's as they come, where each host has a connection that is free and nothing is to be learnt. */
#include "_plain.h"

#define MOST_HOSTS 16 /* more are Python's */
#define OF_A_TEXT 3   /* host, shards, SQL */

/* One host's share. References are ours, but `host`, `shards` and `sql`, which the texts have. */
typedef struct {
    PyObject *host, *shards, *sql;
    PyObject *loads, *statement, *branch;
    Lent lent;
} Part;

typedef struct {
    PyObject *client, *plan, *keyspace, *definitions, *texts;
    Py_ssize_t count;
    Part parts[MOST_HOSTS];
} Many;

static void forget(Many *many)
{
    for (Py_ssize_t one = 0; one < many->count; one++) {
        Part *part = many->parts + one;
        Py_XDECREF(part->loads);
        Py_XDECREF(part->statement);
        Py_XDECREF(part->branch);
        Py_XDECREF(part->lent.conn);
        Py_XDECREF(part->lent.pool);
    }
    Py_XDECREF(many->keyspace);
    Py_XDECREF(many->definitions);
    Py_XDECREF(many->texts);
}

/* Whether the session's settings say nothing of how many rows there may be. */
static int is_unlimited(PyObject *session)
{
    PyObject *settings = AT(session, Session, settings);
    PyObject *values = IS(settings, Settings) ? AT(settings, Settings, values) : NULL;

    return values != NULL && PyDict_CheckExact(values) && PyDict_Contains(values, name_sql_select_limit) == 0;
}

/* Session.extended; borrowed. */
PyObject *extended_of(PyObject *session)
{
    const long has = PyLong_AsLong(AT(session, Session, capability_set)), flag = PyLong_AsLong(extended_metadata);

    return has & flag ? Py_True : Py_False;
}

/* The literals that a plan's select list shows. */
static PyObject *shown_of(PyObject *plan, PyObject *values)
{
    PyObject *scattered = AT(plan, ShardSelect, scattered);

    if ((PyObject *)Py_TYPE(scattered) == class_of_reject)
        return Py_NewRef(no_values);
    PyObject *numbers = PyObject_GetAttr(scattered, name_values);
    PyObject *shown = numbers == NULL || !PyTuple_CheckExact(numbers) ? NULL : PyTuple_New(PyTuple_GET_SIZE(numbers));
    for (Py_ssize_t one = 0; shown != NULL && one < PyTuple_GET_SIZE(shown); one++) {
        const Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, one));
        if (number < 0 || number >= PyTuple_GET_SIZE(values))
            Py_CLEAR(shown);
        else
            PyTuple_SET_ITEM(shown, one, Py_NewRef(PyTuple_GET_ITEM(values, number)));
    }
    Py_XDECREF(numbers);
    return shown;
}

/* `PlansDefinitions.of`, if there are some; else NULL. Borrowed. */
static PyObject *kept_definitions(PyObject *every, PyObject *session, PyObject *plan, PyObject *shown)
{
    PyObject *plans = IS(every, PlansDefinitions) ? AT(every, PlansDefinitions, _kept) : NULL;
    PyObject *settings = AT(session, Session, settings), *which = plans == NULL ? NULL : PyWeakref_NewRef(plan, NULL);
    PyObject *kept = which == NULL || !PyDict_CheckExact(plans) ? NULL : PyDict_GetItemWithError(plans, which);
    PyObject *key = kept == NULL ? NULL : PyTuple_Pack(3, AT(settings, Settings, system), extended_of(session), shown);
    PyObject *found = key == NULL || !PyDict_CheckExact(kept) ? NULL : PyDict_GetItemWithError(kept, key);

    Py_XDECREF(which);
    Py_XDECREF(key);
    return found;
}

/* What the clients of this plan's fan-outs get as column definitions; NULL when that is to be learnt, or cuts values. */
static PyObject *find_definitions(PyObject *client, PyObject *plan, PyObject *values)
{
    PyObject *every = PyObject_GetAttr(AT(client, Exchange, services), name_definitions);
    PyObject *shown = every == NULL ? NULL : shown_of(plan, values);
    PyObject *found = shown == NULL ? NULL : kept_definitions(every, AT(client, Exchange, session), plan, shown);

    Py_XDECREF(shown);
    Py_XDECREF(every);
    return IS(found, Definitions) && AT(found, Definitions, known) == Py_True && AT(found, Definitions, cut) == Py_False
               ? Py_NewRef(found)
               : NULL;
}

/* One SELECT of several shards, as a host gets it. */
static PyObject *enclosed(PyObject *sql)
{
    const Py_ssize_t size = PyBytes_GET_SIZE(sql);
    PyObject *made = PyBytes_FromStringAndSize(NULL, size + 2);

    if (made != NULL) {
        char *text = PyBytes_AS_STRING(made);
        text[0] = '(';
        memcpy(text + 1, PyBytes_AS_STRING(sql), (size_t)size);
        text[size + 1] = ')';
    }
    return made;
}

/* What a part sends, the loads of its shards, and a connection that is free for it: 1; else 0. */
static int find_part(Many *many, Part *part, PyObject *text, PyObject *places)
{
    PyObject *relay = AT(many->client, Exchange, relay);

    if (!PyTuple_CheckExact(text) || PyTuple_GET_SIZE(text) != OF_A_TEXT)
        return 0;
    part->host = PyTuple_GET_ITEM(text, 0);
    part->shards = PyTuple_GET_ITEM(text, 1);
    if (!PyTuple_CheckExact(part->shards) || !PyBytes_CheckExact(PyTuple_GET_ITEM(text, 2)))
        return 0;
    for (const Part *other = many->parts; other < part; other++)
        if (PyObject_RichCompareBool(other->host, part->host, Py_EQ) != 0)
            return 0; /* its statements run one after another */
    PyObject *args[] = {AT(relay, Relay, known), places, part->shards};
    part->loads = PyObject_Vectorcall(loads_of, args, 3, NULL);
    if (part->loads == NULL || !PyList_CheckExact(part->loads))
        return 0;
    PyObject *sql = PyTuple_GET_ITEM(text, 2);
    sql = PyTuple_GET_SIZE(part->shards) > 1 ? enclosed(sql) : Py_NewRef(sql);
    PyObject *values = sql == NULL ? NULL : PyTuple_Pack(OF_A_TEXT, part->host, part->shards, sql);
    Py_XDECREF(sql);
    part->statement = values == NULL ? NULL : make_tuple(NUMBER_HostStatement, values);
    if (part->statement == NULL)
        return 0;
    part->sql = PyTuple_GET_ITEM(part->statement, 2);
    if (find_free(relay, part->host, part->sql, &part->lent))
        return 1;
    part->lent = (Lent){0};
    return 0;
}

/* -- the fan-out and its branches --------------------------------------------------------------------------- */

static PyObject *make_reader(void)
{
    PyObject *reader = make(NUMBER_ResultReader), *columns = PyList_New(0), *held = PyList_New(0);

    if (reader == NULL || columns == NULL || held == NULL) {
        Py_XDECREF(reader);
        Py_XDECREF(columns);
        Py_XDECREF(held);
        return NULL;
    }
    put_new(&AT(reader, ResultReader, state), zero);
    put(&AT(reader, ResultReader, columns), columns);
    put_new(&AT(reader, ResultReader, ended), Py_False);
    put_new(&AT(reader, ResultReader, opening), no_bytes);
    put_new(&AT(reader, ResultReader, last), no_bytes);
    put_new(&AT(reader, ResultReader, begins), zero);
    put_new(&AT(reader, ResultReader, _count), zero);
    put(&AT(reader, ResultReader, _held), held);
    return reader;
}

/* A `Branch` whose statement is sent next. */
static PyObject *make_branch(PyObject *fan, const Part *part, Py_ssize_t number)
{
    PyObject *branch = make(NUMBER_Branch), *reader = make_reader(), *statements = PyList_New(0);

    if (branch == NULL || reader == NULL || statements == NULL || !put_int(&AT(branch, Branch, index), number) ||
        !put_int(&AT(branch, Branch, run), number)) {
        Py_XDECREF(branch);
        Py_XDECREF(reader);
        Py_XDECREF(statements);
        return NULL;
    }
    put_new(&AT(branch, Branch, fan), fan);
    put_new(&AT(branch, Branch, host), part->host);
    put(&AT(branch, Branch, statements), statements);
    put_new(&AT(branch, Branch, conn), part->lent.conn);
    put(&AT(branch, Branch, reader), reader);
    put_new(&AT(branch, Branch, loads), part->loads);
    put_new(&AT(branch, Branch, paused), Py_False);
    put_new(&AT(branch, Branch, draining), Py_None);
    return branch;
}

static PyObject *make_bound(const Many *many)
{
    PyObject *statements = PyTuple_New(many->count);

    if (statements == NULL)
        return NULL;
    for (Py_ssize_t one = 0; one < many->count; one++)
        PyTuple_SET_ITEM(statements, one, Py_NewRef(many->parts[one].statement));
    /* statements, merge, reference, warnings, inserted, scatter, per_shard */
    PyObject *values = PyTuple_Pack(7, statements, merge_of_all, Py_None, no_values, no_values, Py_False, Py_None);
    Py_DECREF(statements);
    return values == NULL ? NULL : make_tuple(NUMBER_Bound, values);
}

static PyObject *make_told(void)
{
    PyObject *told = make(NUMBER_Told), *diagnostics = PyList_New(0), *said = PySet_New(NULL);

    if (told == NULL || diagnostics == NULL || said == NULL) {
        Py_XDECREF(told);
        Py_XDECREF(diagnostics);
        Py_XDECREF(said);
        return NULL;
    }
    put(&AT(told, Told, diagnostics), diagnostics);
    put_new(&AT(told, Told, count), zero);
    put(&AT(told, Told, _said), said);
    return told;
}

/* As FanOut.__init__ leaves it, and `_connect`. Each part gets its branch. */
static PyObject *make_fan(Many *many)
{
    PyObject *fan = make(NUMBER_FanOut), *bound = make_bound(many), *told = make_told();
    PyObject *zeros = PyDict_New(), *branches = PyList_New(many->count), *waiting = PyList_New(0);
    PyObject *over = PyList_New(0), *lost = PyList_New(0);
    int failed = fan == NULL || bound == NULL || told == NULL || zeros == NULL || branches == NULL || waiting == NULL ||
                 over == NULL || lost == NULL || !put_int(&AT(fan, FanOut, _running), many->count);

    for (Py_ssize_t one = 0; one < many->count && !failed; one++) {
        many->parts[one].branch = make_branch(fan, many->parts + one, one);
        failed = many->parts[one].branch == NULL;
        if (!failed)
            PyList_SET_ITEM(branches, one, Py_NewRef(many->parts[one].branch));
    }
    if (failed) {
        PyObject *all[] = {fan, bound, told, zeros, branches, waiting, over, lost};
        for (size_t one = 0; one < sizeof all / sizeof *all; one++)
            Py_XDECREF(all[one]);
        return NULL;
    }
    put_new(&AT(fan, FanOut, client), many->client);
    put_new(&AT(fan, FanOut, keyspace), many->keyspace);
    put(&AT(fan, FanOut, bound), bound);
    put_new(&AT(fan, FanOut, merge), merge_of_all);
    put_new(&AT(fan, FanOut, settings), Py_None);
    put_new(&AT(fan, FanOut, definitions), many->definitions);
    put_new(&AT(fan, FanOut, ceiling), Py_None);
    put_new(&AT(fan, FanOut, bytes), zero);
    put_new(&AT(fan, FanOut, error), Py_None);
    put(&AT(fan, FanOut, told), told);
    put_new(&AT(fan, FanOut, merger), Py_None);
    put_new(&AT(fan, FanOut, plain), Py_None);
    put_new(&AT(fan, FanOut, _width), zero);
    put(&AT(fan, FanOut, _zeros), zeros);
    put(&AT(fan, FanOut, branches), branches);
    put_new(&AT(fan, FanOut, _waiter), Py_None);
    put(&AT(fan, FanOut, _to_connect), waiting);
    put_new(&AT(fan, FanOut, _learning), Py_None);
    put_new(&AT(fan, FanOut, _later), Py_None);
    put(&AT(fan, FanOut, _over), over);
    put(&AT(fan, FanOut, _lost), lost);
    return fan;
}

/* Whether the connections are as they were found: what was looked for since is Python's, which may do anything. */
static int are_free(const Many *many)
{
    for (const Part *part = many->parts; part < many->parts + many->count; part++)
        if (!is_free(&part->lent))
            return 0;
    return 1;
}

/* All connections are taken, and then all statements sent: 1, 0 with an exception; -1 when one is free no more. */
static int start_all(Many *many)
{
    PyObject *client = many->client, *fan = make_fan(many);
    int done = fan == NULL ? 0 : are_free(many) ? 1 : -1;

    if (done > 0) {
        put_new(&AT(client, Exchange, work), fan);
        put_new(&AT(client, Exchange, kind), kind_of_selects);
        put_new(&AT(client, Exchange, plan), many->plan);
    }
    for (Py_ssize_t one = 0; one < many->count && done > 0; one++)
        done = take_lent(&many->parts[one].lent);
    for (Py_ssize_t one = 0; one < many->count && done > 0; one++) {
        Part *part = many->parts + one;
        PyObject *conn = part->lent.conn;
        put_new(&AT(conn, BackendConnection, begun), AT(client, Exchange, begun));
        put_new(&AT(conn, BackendConnection, shards), part->loads);
        done = send_query(part->branch, AT(client, Exchange, pieces), conn, AT(conn, BackendConnection, scanner), part->sql);
    }
    Py_XDECREF(fan);
    return done;
}

/* The keyspace of that name; ours. */
static PyObject *keyspace_of(PyObject *snapshot, PyObject *name)
{
    PyObject *keyspaces = PyObject_GetAttr(AT(snapshot, Snapshot, topology), name_keyspaces);
    PyObject *found = keyspaces == NULL ? NULL : PyObject_GetItem(keyspaces, name);

    Py_XDECREF(keyspaces);
    return found;
}

static int find_texts(Many *many, PyObject *spread, PyObject *values, PyObject *places)
{
    PyObject *literal = PyTuple_GET_ITEM(spread, 1);
    const Py_ssize_t number = is_int(literal) ? PyLong_AsSsize_t(literal) : -1;

    if (number < 0 || number >= PyTuple_GET_SIZE(values))
        return 0;
    PyObject *args[] = {PyTuple_GET_ITEM(values, number), PyTuple_GET_ITEM(spread, 2), places,
                        PyTuple_GET_ITEM(spread, 3),      union_all,                   PyTuple_GET_ITEM(spread, 4)};
    many->texts = PyObject_Vectorcall(texts_by_host, args, 6, NULL);
    return many->texts != NULL && PyList_CheckExact(many->texts) && PyList_GET_SIZE(many->texts) > 1 &&
           PyList_GET_SIZE(many->texts) <= MOST_HOSTS;
}

static int find_all(Many *many, PyObject *snapshot, PyObject *values)
{
    PyObject *client = many->client, *spread = AT(many->plan, ShardSelect, spread), *name, *places;

    if (!PyTuple_Check(spread) || PyTuple_GET_SIZE(spread) != 5 || loads_of == Py_None ||
        !IS(AT(client, Exchange, relay), Relay) || !is_unlimited(AT(client, Exchange, session)))
        return 0;
    name = PyTuple_GET_ITEM(spread, 0);
    places = places_of(snapshot, name);
    if (places == NULL || !PyDict_CheckExact(places))
        return 0;
    many->keyspace = keyspace_of(snapshot, name);
    if (many->keyspace == NULL || !find_texts(many, spread, values, places))
        return 0;
    many->definitions = find_definitions(client, many->plan, values);
    if (many->definitions == NULL)
        return 0;
    for (Py_ssize_t one = 0; one < PyList_GET_SIZE(many->texts); one++) {
        many->count = one + 1;
        if (!find_part(many, many->parts + one, PyList_GET_ITEM(many->texts, one), places))
            return 0;
    }
    return 1;
}

/* A list's SELECT, for a session that nothing restricts: 1, 0 with an exception; -1 when it is Python's to execute. */
int run_many(PyObject *client, PyObject *plan, PyObject *values, PyObject *snapshot)
{
    Many many = {client, plan, NULL, NULL, NULL, 0, {{0}}};
    int done = -1;

    if (AT(plan, ShardSelect, spread) != Py_None) {
        const int found = find_all(&many, snapshot, values);
        PyErr_Clear(); /* Python meets it again, and knows what to do */
        if (found)
            done = start_all(&many);
        forget(&many);
    }
    return done;
}
