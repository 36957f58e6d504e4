/* Pieces of the reply to one of a fan-out's statements, whose rows go on to the client as they come: what
 * `BackendConnection.data_received`, `ReplyScanner`, `FanOut.received` and `branch_done` do of nothing but rows. */
#include "_plain.h"

#include "../_load.h"

#define LEAST_OF_A_PACKET (HEADER + 1)
#define NUMBER_OF_THE_EOF 6 /* so many bytes before the end of what rows begin with */

/* What has come of a reply, with what was held back of it before. */
typedef struct {
    PyObject *bytes;       /* ours */
    Py_ssize_t begin, end; /* its whole rows */
    Py_ssize_t rows;
    Py_ssize_t partial; /* bytes of the packet that goes on in the next piece */
    Py_ssize_t missing; /* bytes of that; 0 when it is not known how long it is */
    int first;          /* the reply begins here, and what its rows begin with is known */
    int ended;          /* an EOF packet is behind the rows */
    int number;         /* of the last whole packet; -1: there is none */
    unsigned warnings, status;
} Piece;

/* -- the server's bytes ------------------------------------------------------------------------------------- */

/* Whether the scanner is at the beginning of a reply whose column definitions are those of the last one. */
static int begins_as_known(PyObject *conn, PyObject *scanner, PyObject *data)
{
    PyObject *header = AT(scanner, ReplyScanner, _header), *number = AT(scanner, ReplyScanner, first_number);

    return AT(scanner, ReplyScanner, state) == state_first && AT(scanner, ReplyScanner, _fed) == Py_False &&
           AT(scanner, ReplyScanner, expected) == Py_None && (number == Py_None || number == one_reply) &&
           PyBytes_CheckExact(header) && PyBytes_GET_SIZE(header) > NUMBER_OF_THE_EOF &&
           PyBytes_GET_SIZE(AT(conn, BackendConnection, _held)) == 0 &&
           PyBytes_GET_SIZE(data) >= PyBytes_GET_SIZE(header) && PyBytes_AS_STRING(data)[3] == 1 &&
           !memcmp(PyBytes_AS_STRING(data), PyBytes_AS_STRING(header), (size_t)PyBytes_GET_SIZE(header));
}

/* Whether the scanner is among rows, and what is held back is what it has seen of the next one. */
static int goes_on(PyObject *conn, PyObject *scanner)
{
    PyObject *skip = AT(scanner, ReplyScanner, _skip), *carry = AT(scanner, ReplyScanner, _carry);
    PyObject *partial = AT(scanner, ReplyScanner, partial);

    return AT(scanner, ReplyScanner, state) == state_rows && AT(scanner, ReplyScanner, _fed) == Py_True &&
           AT(scanner, ReplyScanner, _continued) == Py_False && AT(scanner, ReplyScanner, _out) == Py_False &&
           is_int(skip) && is_int(partial) && PyBytes_CheckExact(carry) &&
           PyLong_AsSsize_t(partial) == PyBytes_GET_SIZE(AT(conn, BackendConnection, _held));
}

/* What is behind the whole rows: 1, or 0 for Python to read. */
static int read_rest(Piece *piece)
{
    const unsigned char *data = (const unsigned char *)PyBytes_AS_STRING(piece->bytes) + piece->end;
    const Py_ssize_t left = PyBytes_GET_SIZE(piece->bytes) - piece->end;

    piece->partial = left;
    if (left < LEAST_OF_A_PACKET)
        return left < HEADER || payload_length(data) != 0;
    const Py_ssize_t length = payload_length(data);
    if (length == 0 || length >= MAX_PAYLOAD)
        return 0;
    if (data[HEADER] < 0xFE) {
        piece->missing = HEADER + length - left;
        return piece->missing > 0;
    }
    if (data[HEADER] == 0xFF || length != EOF_SIZE - HEADER || left > EOF_SIZE)
        return 0;
    if (left < EOF_SIZE)
        return 1; /* it is cut */
    piece->partial = 0;
    piece->ended = 1;
    piece->number = data[3];
    piece->warnings = data[5] | (unsigned)data[6] << 8;
    piece->status = data[7] | (unsigned)data[8] << 8;
    return 1;
}

static PyObject *joined(PyObject *before, PyObject *data)
{
    const Py_ssize_t held = PyBytes_GET_SIZE(before), more = PyBytes_GET_SIZE(data);

    if (held == 0)
        return Py_NewRef(data);
    PyObject *made = PyBytes_FromStringAndSize(NULL, held + more);
    if (made != NULL) {
        memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(before), (size_t)held);
        memcpy(PyBytes_AS_STRING(made) + held, PyBytes_AS_STRING(data), (size_t)more);
    }
    return made;
}

/* 1 where it is nothing but rows, and perhaps their end; else 0. `piece->bytes` is to be let go in any case. */
static int read_piece(PyObject *conn, PyObject *scanner, PyObject *data, Piece *piece)
{
    PyObject *held = AT(conn, BackendConnection, _held);

    if (!PyBytes_CheckExact(held) || PyBytes_GET_SIZE(held) + PyBytes_GET_SIZE(data) >= MAX_PAYLOAD)
        return 0;
    piece->first = AT(conn, BackendConnection, _plain) == Py_True;
    if (piece->first ? !begins_as_known(conn, scanner, data) : !goes_on(conn, scanner))
        return 0;
    piece->bytes = joined(held, data);
    if (piece->bytes == NULL)
        return 0;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(piece->bytes);
    const Py_ssize_t end = PyBytes_GET_SIZE(piece->bytes);
    piece->begin = piece->first ? PyBytes_GET_SIZE(AT(scanner, ReplyScanner, _header)) : 0;
    piece->number = piece->first ? bytes[piece->begin - NUMBER_OF_THE_EOF] : -1;
    piece->end = piece->begin;
    for (Py_ssize_t length; (length = plain_row(bytes, end, piece->end, MAX_PAYLOAD)) > 0; piece->rows++) {
        piece->number = bytes[piece->end + 3];
        piece->end += HEADER + length;
    }
    if (!read_rest(piece))
        return 0;
    const long usual = PyLong_AsLong(AT(AT(conn, BackendConnection, settings), Settings, status));
    return !piece->ended || (!(piece->status & MORE_RESULTS) &&
                             (long)(piece->status & (IN_TRANS | AUTOCOMMIT | STATE_CHANGED)) == usual);
}

/* As ReplyScanner.whole leaves it. */
static int note_whole(PyObject *scanner, const Piece *piece)
{
    put_new(&AT(scanner, ReplyScanner, rows_begun), Py_True);
    put_new(&AT(scanner, ReplyScanner, matched), Py_None);
    put_new(&AT(scanner, ReplyScanner, ending), ending_size);
    put_new(&AT(scanner, ReplyScanner, state), state_done);
    return put_int(&AT(scanner, ReplyScanner, rows), piece->rows) &&
           put_int(&AT(scanner, ReplyScanner, warnings), piece->warnings) &&
           put_int(&AT(scanner, ReplyScanner, status), piece->status);
}

/* As ReplyScanner.feed leaves it. `rest`: what goes on in the next piece. */
static int note_fed(PyObject *scanner, const Piece *piece, PyObject *rest)
{
    const int skips = !piece->first && PyLong_AsSsize_t(AT(scanner, ReplyScanner, _skip)) > 0;
    const Py_ssize_t before = piece->first ? 0 : PyLong_AsSsize_t(AT(scanner, ReplyScanner, rows)) - skips;
    int number = piece->number;

    if (skips && piece->rows == 1 && !piece->ended) /* whatever number it has: its header was not looked at again */
        number = (int)(PyLong_AsSsize_t(AT(scanner, ReplyScanner, seq)) + 1) & 0xFF;
    put_new(&AT(scanner, ReplyScanner, _fed), Py_True);
    put_new(&AT(scanner, ReplyScanner, _carry), piece->missing ? no_bytes : rest);
    if (piece->first) {
        put_new(&AT(scanner, ReplyScanner, _new), Py_False);
        put_new(&AT(scanner, ReplyScanner, rows_begun), Py_True);
        put_new(&AT(scanner, ReplyScanner, ok), Py_None);
    }
    put_new(&AT(scanner, ReplyScanner, within_row), Py_False);
    put_new(&AT(scanner, ReplyScanner, state), piece->ended ? state_done : state_rows);
    if (piece->ended) {
        put_new(&AT(scanner, ReplyScanner, ending), ending_size);
        if (!put_int(&AT(scanner, ReplyScanner, warnings), piece->warnings) ||
            !put_int(&AT(scanner, ReplyScanner, status), piece->status))
            return 0;
    }
    /* a row counts as soon as it is known that it is one */
    return put_int(&AT(scanner, ReplyScanner, rows), before + piece->rows + (piece->missing > 0)) &&
           put_int(&AT(scanner, ReplyScanner, _skip), piece->missing) &&
           put_int(&AT(scanner, ReplyScanner, partial), piece->partial) &&
           (number < 0 || put_int(&AT(scanner, ReplyScanner, seq), number));
}

/* What `data_received` and `_reply_over` note of the piece. */
static int note_piece(PyObject *conn, PyObject *scanner, const Piece *piece)
{
    if (piece->first && piece->ended)
        return note_whole(scanner, piece);
    const Py_ssize_t whole = PyBytes_GET_SIZE(piece->bytes) - piece->partial;
    PyObject *rest = whole == 0 ? Py_NewRef(piece->bytes)
                                : PyBytes_FromStringAndSize(PyBytes_AS_STRING(piece->bytes) + whole, piece->partial);
    const int noted = rest != NULL && note_fed(scanner, piece, rest);
    if (noted) {
        put_new(&AT(conn, BackendConnection, _plain), Py_False);
        put_new(&AT(conn, BackendConnection, _held), rest);
        put_new(&AT(conn, BackendConnection, _torn), Py_False);
        if (piece->ended) {
            put_new(&AT(conn, BackendConnection, given), zero);
            put_new(&AT(conn, BackendConnection, replies), zero);
        } else if (piece->end) {
            put_new(&AT(conn, BackendConnection, given), AT(scanner, ReplyScanner, seq));
        }
    }
    Py_XDECREF(rest);
    return noted;
}

/* -- the client's rows -------------------------------------------------------------------------------------- */

/* Whether a fan-out's rows are the client's as they come. */
static int takes_all(PyObject *fan)
{
    PyObject *merger = AT(fan, FanOut, merger);

    return gives_all(merger) && is_int(AT(fan, FanOut, bytes)) && AT(fan, FanOut, error) == Py_None &&
           AT(fan, FanOut, ceiling) == Py_None && is_empty_dict(AT(fan, FanOut, _zeros));
}

/* Whether these will be: nothing was given yet, and what the client's result begins with is known. */
static int will_take_all(PyObject *fan)
{
    PyObject *definitions = AT(fan, FanOut, definitions);

    return AT(fan, FanOut, merger) == Py_None && AT(fan, FanOut, merge) == merge_of_all && is_int(AT(fan, FanOut, bytes)) &&
           AT(fan, FanOut, error) == Py_None && AT(fan, FanOut, ceiling) == Py_None && IS(definitions, Definitions) &&
           is_empty_dict(AT(definitions, Definitions, _zeros)) && PyList_CheckExact(AT(definitions, Definitions, _columns)) &&
           PyList_GET_SIZE(AT(definitions, Definitions, _columns)) > 0;
}

/* The columns of a piece whose rows have only to be given new numbers; NULL when there is more to do. Borrowed. */
static PyObject *columns_of(PyObject *fan, PyObject *reader, const Piece *piece)
{
    PyObject *definitions = AT(fan, FanOut, definitions), *columns, *width = AT(fan, FanOut, _width);
    const int begun = takes_all(fan);

    if (!IS(reader, ResultReader) || !is_empty_list(AT(reader, ResultReader, _held)) || !is_int(width) ||
        !(begun || (piece->first && will_take_all(fan))))
        return NULL;
    if (piece->first) {
        PyObject *begins = IS(definitions, Definitions) ? AT(definitions, Definitions, begins) : NULL;
        if (begins == NULL || !PyBytes_CheckExact(begins) || PyBytes_GET_SIZE(begins) != piece->begin ||
            memcmp(PyBytes_AS_STRING(begins), PyBytes_AS_STRING(piece->bytes), (size_t)piece->begin) ||
            AT(reader, ResultReader, state) != zero)
            return NULL;
        columns = AT(definitions, Definitions, read);
    } else {
        if (AT(reader, ResultReader, state) != reader_rows)
            return NULL;
        columns = AT(reader, ResultReader, columns);
    }
    return PyList_CheckExact(columns) && PyList_GET_SIZE(columns) > 0 &&
                   (!begun || PyList_GET_SIZE(columns) == PyLong_AsSsize_t(width))
               ? columns
               : NULL;
}

/* The piece's rows as bytes of their own. Where they were joined for this, and nobody else has them, it is those, and
 * the piece has none any more. */
static PyObject *take_rows(Piece *piece)
{
    if (piece->begin > 0 || Py_REFCNT(piece->bytes) > 1)
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(piece->bytes) + piece->begin, piece->end - piece->begin);
    PyObject *rows = piece->bytes;
    piece->bytes = NULL;
    if (PyBytes_GET_SIZE(rows) != piece->end)
        _PyBytes_Resize(&rows, piece->end); /* shorter; NULL with an exception */
    return rows;
}

/* The piece's rows, numbered from `number`. */
static PyObject *numbered(Piece *piece, Py_ssize_t number)
{
    PyObject *out = take_rows(piece);

    if (out == NULL)
        return NULL;
    unsigned char *bytes = (unsigned char *)PyBytes_AS_STRING(out);
    for (Py_ssize_t at = 0, end = PyBytes_GET_SIZE(out); at < end; at += HEADER + payload_length(bytes + at))
        bytes[at + 3] = (unsigned char)number++;
    return out;
}

/* What the client's result begins with: 1, or 0 with an exception. */
static int give_head(PyObject *fan, PyObject *branch, PyObject *client)
{
    PyObject *head = fan_begins(fan, branch, client);

    return head != NULL && written(client, head);
}

/* The piece's rows, through the merger: 1, or 0 with an exception. */
static int write_rows(PyObject *fan, PyObject *client, Piece *piece)
{
    PyObject *merger = AT(fan, FanOut, merger);
    const Py_ssize_t number = PyLong_AsSsize_t(AT(merger, Concatenation, seq));
    PyObject *out = numbered(piece, number);

    if (out != NULL && put_int(&AT(merger, Concatenation, seq), (number + piece->rows) & 0xFF) &&
        add_int(&AT(merger, Concatenation, emitted), piece->rows) &&
        add_int(&AT(fan, FanOut, bytes), piece->end - piece->begin))
        return written(client, out);
    Py_XDECREF(out);
    return 0;
}

/* FanOut.received, of rows that are the client's: 1, or 0 with an exception. */
static int give_rows(PyObject *fan, PyObject *branch, PyObject *client, PyObject *reader, PyObject *columns,
                     Piece *piece)
{
    if (piece->first) {
        put_new(&AT(reader, ResultReader, columns), columns);
        put_new(&AT(reader, ResultReader, state), reader_rows);
        if (!put_int(&AT(reader, ResultReader, _count), PyList_GET_SIZE(columns)))
            return 0;
    }
    if (piece->ended) {
        put_new(&AT(reader, ResultReader, state), reader_ended);
        put_new(&AT(reader, ResultReader, ended), Py_True);
    }
    if (AT(fan, FanOut, merger) == Py_None && !give_head(fan, branch, client))
        return 0;
    if (piece->end > piece->begin && !write_rows(fan, client, piece))
        return 0;
    return AT(client, Exchange, writing_paused) == Py_False || done_by(PyObject_CallMethodNoArgs(fan, name_flow));
}

/* `_given`: 1; 0 when the receiver cannot read it, and was told so, or with an exception. */
static int give(PyObject *conn, PyObject *branch, PyObject *fan, PyObject *client, Piece *piece)
{
    PyObject *reader = AT(branch, Branch, reader);
    PyObject *columns = client == NULL || !PyObject_TypeCheck(client, classes[NUMBER_Exchange])
                            ? NULL
                            : columns_of(fan, reader, piece);

    if (columns != NULL) {
        Py_INCREF(reader);
        Py_INCREF(columns);
        const int done = give_rows(fan, branch, client, reader, columns, piece);
        Py_DECREF(columns);
        Py_DECREF(reader);
        return done;
    }
    PyObject *data = PyBytes_FromStringAndSize(PyBytes_AS_STRING(piece->bytes),
                                               PyBytes_GET_SIZE(piece->bytes) - piece->partial);
    PyObject *args[] = {conn, branch, data};
    PyObject *given = data == NULL ? NULL : PyObject_VectorcallMethod(name__given, args, 3, NULL);
    const int done = given != NULL && given != Py_False;
    Py_XDECREF(data);
    Py_XDECREF(given);
    return done;
}

/* -- the end of a branch ------------------------------------------------------------------------------------ */

/* Whether the connection has only to go back. */
static int is_over_simply(PyObject *conn, PyObject *branch, PyObject *fan, PyObject *client, const Piece *piece)
{
    PyObject *session = client == NULL || !PyObject_TypeCheck(client, classes[NUMBER_Exchange])
                            ? NULL
                            : AT(client, Exchange, session);
    PyObject *transaction = IS(session, Session) ? AT(session, Session, transaction) : NULL;

    return IS(transaction, Transaction) && AT(transaction, Transaction, explicit) == Py_False &&
           is_empty_dict(AT(transaction, Transaction, held)) && is_float(AT(client, Exchange, first)) &&
           is_float(AT(conn, BackendConnection, ended)) && is_float(AT(conn, BackendConnection, sent)) &&
           (AT(client, Exchange, visits) == Py_None || PyList_CheckExact(AT(client, Exchange, visits))) && takes_all(fan) && is_int(AT(fan, FanOut, _running)) &&
           !piece->warnings && !(piece->status & IN_TRANS) && AT(client, Exchange, writing_paused) == Py_False &&
           AT(branch, Branch, paused) == Py_False && is_empty_list(AT(branch, Branch, statements)) &&
           AT(branch, Branch, conn) == conn && AT(conn, BackendConnection, closed) == Py_False &&
           AT(conn, BackendConnection, pinned) == Py_False && AT(conn, BackendConnection, receiver) == Py_None;
}

static int add_visit(PyObject *visits, PyObject *host, PyObject *loads)
{
    PyObject *values = PyTuple_Pack(2, host, loads);
    PyObject *visit = values == NULL ? NULL : make_tuple(NUMBER_Visit, values);

    return append(visits, visit);
}

/* Exchange.visited. */
static int visit(PyObject *client, PyObject *conn, PyObject *loads)
{
    PyObject *sent = AT(conn, BackendConnection, sent), *ended = AT(conn, BackendConnection, ended), **visits;

    if (PyFloat_AS_DOUBLE(sent) == 0.0)
        sent = ended;
    visits = &AT(client, Exchange, visits);
    if (*visits == Py_None) {
        PyObject *none = PyList_New(0);
        if (none == NULL)
            return 0;
        put(visits, none);
    }
    if (AT(client, Exchange, host) == Py_None) {
        put_new(&AT(client, Exchange, host), AT(conn, BackendConnection, host));
        put_new(&AT(client, Exchange, shard), Py_None);
        put_new(&AT(client, Exchange, first), sent);
    } else if (PyList_GET_SIZE(*visits) == 0) {
        PyObject *shard = AT(client, Exchange, shard);
        PyObject *before = shard == Py_None ? Py_NewRef(no_values) : PyTuple_Pack(1, shard);
        const int added = before != NULL && add_visit(*visits, AT(client, Exchange, host), before);
        Py_XDECREF(before);
        if (!added)
            return 0;
        put_new(&AT(client, Exchange, shard), Py_None);
    }
    if (!add_visit(*visits, AT(conn, BackendConnection, host), loads))
        return 0;
    if (PyFloat_AS_DOUBLE(sent) < PyFloat_AS_DOUBLE(AT(client, Exchange, first)))
        put_new(&AT(client, Exchange, first), sent);
    put_new(&AT(client, Exchange, last), ended);
    return 1;
}

/* FanOut.branch_done, where the connection has only to go back. */
static int end_branch(PyObject *conn, PyObject *branch, PyObject *fan, PyObject *client)
{
    if (!visit(client, conn, AT(branch, Branch, loads)))
        return 0;
    put_new(&AT(branch, Branch, conn), Py_None);
    if (!release(conn))
        return 0;
    const Py_ssize_t running = PyLong_AsSsize_t(AT(fan, FanOut, _running)) - 1;
    if (!put_int(&AT(fan, FanOut, _running), running))
        return 0;
    return running != 0 || fan_finishes(fan, client);
}

/* -- all of it ---------------------------------------------------------------------------------------------- */

/* What follows from a piece that was read. */
static int take(PyObject *conn, PyObject *branch, PyObject *scanner, Piece *piece)
{
    PyObject *fan = Py_NewRef(AT(branch, Branch, fan)), *client = Py_NewRef(AT(fan, FanOut, client));
    int done = note_piece(conn, scanner, piece);

    if (done && piece->ended) {
        put_new(&AT(conn, BackendConnection, receiver), Py_None);
        done = PyFloat_AS_DOUBLE(AT(conn, BackendConnection, sent)) == 0.0 || count(conn, PyLong_AsSsize_t(AT(scanner, ReplyScanner, rows)));
    }
    if (done && (piece->ended || piece->end)) {
        done = give(conn, branch, fan, client, piece);
        if (!done && !PyErr_Occurred()) /* it was told */
            done = 1;
        else if (done && piece->ended)
            done = is_over_simply(conn, branch, fan, client, piece)
                       ? end_branch(conn, branch, fan, client)
                       : done_by(PyObject_CallMethodOneArg(branch, name_reply_done, conn));
    }
    Py_DECREF(client);
    Py_DECREF(fan);
    return done;
}

/* A branch, its connection and bytes: False where these are more than rows; then nothing was done. */
PyObject *piece(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Piece piece = {0};

    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "piece takes a branch, a connection and bytes");
        return NULL;
    }
    PyObject *branch = args[0], *conn = args[1], *data = args[2];
    if (!IS(branch, Branch) || !IS(AT(branch, Branch, fan), FanOut) || !IS(conn, BackendConnection) ||
        !PyBytes_CheckExact(data) || AT(conn, BackendConnection, receiver) != branch)
        Py_RETURN_FALSE;
    PyObject *scanner = AT(conn, BackendConnection, scanner);
    if (!IS(scanner, ReplyScanner) || !IS(AT(conn, BackendConnection, settings), Settings) ||
        AT(conn, BackendConnection, replies) != one_reply || AT(conn, BackendConnection, _sync_packets) != zero ||
        AT(conn, BackendConnection, _sync_error) != Py_None || !is_countable(conn) ||
        !read_piece(conn, scanner, data, &piece)) {
        Py_XDECREF(piece.bytes);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    const int done = take(conn, branch, scanner, &piece);
    Py_XDECREF(piece.bytes);
    return done ? Py_NewRef(Py_True) : NULL;
}
