/* What the files of `_plain` have in common.
 *
 * The objects are Python's. Their attributes are slots, which lie at fixed places in them: `bind` asks their classes
 * for the places, so that to read one is to read memory. Nothing is done before all is looked at that decides
 * whether Python has to do it; each step that finds anything unusual leaves itself, and only itself, to Python. */
#ifndef PLAIN_H
#define PLAIN_H

#include "../_slots.h"
#include "../wire/_row_packets.h"

#include <time.h>

#define EOF_SIZE 9 /* with its header */
#define SHORTEST_OK 11
#define COMPOSED_OK 19              /* without its words */
#define MOST_IN_A_BYTE 250          /* of a length-encoded number */
#define FROM_EIGHT_BYTES (1ULL << 24) /* numbers from here on have so many, behind 0xFE */
#define MAX_PAYLOAD 0xFFFFFF
#define IN_TRANS 0x0001 /* status flags */
#define AUTOCOMMIT 0x0002
#define COM_QUERY 0x03
#define COM_STMT_EXECUTE 0x17
#define MORE_RESULTS 0x0008
#define STATE_CHANGED 0x4000
#define MOST_BOUNDS 32
#define MOST_AROUND 2000 /* bytes of a statement that is known around its ID */

#define CLASSES(X) \
    X(ClientConnection) X(PacketReader) X(Serving) X(Snapshot) X(Rewriter) X(Around) X(Env) X(ShardSelect) X(Point) \
    X(Insert) X(Relay) X(BackendConnection) X(ReplyScanner) X(Header) X(Settings) X(Exchange) X(Session) X(Transaction) \
    X(User) X(HostPool) X(PoolState) X(Waiting) X(Ok) X(Share) X(Load) X(Stats) X(Use) X(KindStats) \
    X(ColumnMetadata) X(HostStatement) X(Bound) X(Visit) X(FanOut) X(Branch) X(Concatenation) X(ResultReader) X(Definitions) \
    X(Statements) X(Statement) X(Repeat) X(RowEncoder) X(Window) X(Told) X(Tracker) X(PlansDefinitions)

#define SLOTS(X) \
    X(ClientConnection, _reader) X(PacketReader, pending) X(Serving, snapshot) X(Snapshot, all_serving) \
    X(Snapshot, places) X(Snapshot, rewriter) X(Snapshot, topology) X(Rewriter, _around) X(Rewriter, _enclosed) \
    X(Rewriter, _short) X(Rewriter, hits) X(Around, _known) X(Env, key) X(ShardSelect, access) \
    X(ShardSelect, column_metadata) X(ShardSelect, implicit_commit) X(ShardSelect, point) \
    X(ShardSelect, session_slots) X(Point, bits) X(Point, keyspace) X(Point, literal) X(Point, template) \
    X(Insert, access) X(Insert, asks) X(Insert, by_id) X(Insert, column_metadata) X(Insert, implicit_commit) \
    X(Insert, keyspace) X(Insert, returning) X(Insert, session_slots) X(Insert, short) \
    X(Relay, answer) X(Relay, client) X(Relay, column_metadata) X(Relay, conn) X(Relay, database) X(Relay, effects) \
    X(Relay, fresh) X(Relay, id_offset) X(Relay, keeps_insert_id) X(Relay, known) X(Relay, literals) \
    X(Relay, facts) X(Relay, once) X(Relay, request) X(Relay, sql) X(Relay, plain) X(Relay, pool) X(Relay, shard) \
    X(Relay, shards) X(Relay, statement) X(BackendConnection, _numbers) X(BackendConnection, _plain) \
    X(BackendConnection, answer) X(BackendConnection, begun) X(BackendConnection, capability_set) \
    X(BackendConnection, closed) X(BackendConnection, descriptor) X(BackendConnection, doomed) X(BackendConnection, ended) X(BackendConnection, host) \
    X(BackendConnection, idle_since) X(BackendConnection, load) X(BackendConnection, owner) \
    X(BackendConnection, pinned) X(BackendConnection, prepared) X(BackendConnection, receiver) \
    X(BackendConnection, replies) X(BackendConnection, resetting) X(BackendConnection, scanner) \
    X(BackendConnection, sent) X(BackendConnection, settings) X(BackendConnection, shard) \
    X(BackendConnection, shards) X(BackendConnection, transport) X(BackendConnection, unclean) \
    X(BackendConnection, undone) X(BackendConnection, unread) X(ReplyScanner, _fed) X(ReplyScanner, _header) \
    X(ReplyScanner, database) X(ReplyScanner, ending) X(ReplyScanner, err) X(ReplyScanner, expected) \
    X(ReplyScanner, first_number) X(ReplyScanner, matched) X(ReplyScanner, ok) X(ReplyScanner, ok_size) \
    X(ReplyScanner, rows) X(ReplyScanner, rows_begun) X(ReplyScanner, state) X(ReplyScanner, status) \
    X(ReplyScanner, warnings) X(Header, key) X(Header, shown) X(Header, size) X(Settings, status) \
    X(Exchange, _waiting) X(Exchange, again) X(Exchange, attributes) X(Exchange, begun) X(Exchange, descriptor) X(Exchange, first) \
    X(Exchange, host) X(Exchange, kind) X(Exchange, last) X(Exchange, leaving) X(Exchange, long_statement) \
    X(Exchange, observe_after) X(Exchange, plan) X(Exchange, queued) X(Exchange, ready) X(Exchange, relay) \
    X(Exchange, seq) X(Exchange, serving) X(Exchange, session) X(Exchange, shard) X(Exchange, sink) \
    X(Exchange, snapshot) X(Exchange, sql) X(Exchange, stats) X(Exchange, transport) X(Exchange, visits) \
    X(Exchange, work) X(Exchange, writing_paused) X(Session, autocommit) X(Session, capability_set) X(Session, counts_matched) \
    X(Session, diagnostics) X(Session, env) X(Session, found_rows) X(Session, last_insert_id) X(Session, row_count) \
    X(Session, settings) X(Session, tracks_replies) X(Session, transaction) \
    X(Session, transaction_mode) X(Session, unsafe_charset) X(Session, user) X(Transaction, explicit) \
    X(Transaction, held) X(Transaction, lost) X(User, databases) X(User, name) X(User, role) X(HostPool, _clock) \
    X(HostPool, retired) X(HostPool, state) X(PoolState, busy) X(PoolState, idle) X(PoolState, share) \
    X(PoolState, waiting) X(Share, scarce) X(Waiting, queues) X(Load, buckets) X(Load, longest) X(Load, rows) \
    X(Load, seconds) X(ColumnMetadata, headers) X(Stats, kinds) X(Stats, uses) X(Use, buckets) X(Use, count) \
    X(Use, hosts) X(Use, longest) X(Use, rows) X(Use, seconds) X(Use, shards) X(KindStats, counts) X(KindStats, ok) \
    X(KindStats, seconds) X(BackendConnection, _held) X(BackendConnection, _sync_error) \
    X(BackendConnection, _sync_packets) X(BackendConnection, _torn) X(BackendConnection, given) \
    X(ReplyScanner, _carry) X(ReplyScanner, _continued) X(ReplyScanner, _new) X(ReplyScanner, _out) \
    X(ReplyScanner, _skip) X(ReplyScanner, partial) X(ReplyScanner, seq) X(ReplyScanner, within_row) \
    X(FanOut, _running) X(FanOut, _width) X(FanOut, _zeros) X(FanOut, bytes) X(FanOut, ceiling) X(FanOut, client) \
    X(FanOut, definitions) X(FanOut, error) X(FanOut, merger) X(Branch, conn) X(Branch, fan) X(Branch, loads) \
    X(Branch, paused) X(Branch, reader) X(Branch, statements) X(Concatenation, all) \
    X(Concatenation, emitted) X(Concatenation, seq) X(ResultReader, _count) X(ResultReader, _held) X(ResultReader, columns) \
    X(ResultReader, ended) X(ResultReader, state) X(Definitions, begins) X(Definitions, read) X(Definitions, _columns) X(Definitions, _zeros) \
    X(Definitions, cut) \
    X(Definitions, known) X(Exchange, pieces) X(Exchange, services) X(Settings, values) X(ShardSelect, spread) \
    X(FanOut, _later) X(FanOut, _learning) X(FanOut, _lost) X(FanOut, _over) X(FanOut, _to_connect) \
    X(FanOut, _waiter) X(FanOut, bound) X(FanOut, branches) X(FanOut, keyspace) X(FanOut, merge) X(FanOut, plain) \
    X(FanOut, settings) X(FanOut, told) X(Branch, draining) X(Branch, host) X(Branch, index) X(Branch, run) \
    X(ResultReader, begins) X(ResultReader, last) X(ResultReader, opening) X(ClientConnection, begins) \
    X(Exchange, below) X(Rewriter, generation) X(Session, counts) X(Session, prepared) X(Statements, by_id) \
    X(Statement, heading) X(Statement, literals) X(Statement, repeat) X(Statement, sql) X(Repeat, begin) \
    X(Repeat, env) X(Repeat, generation) X(Repeat, head) X(Repeat, plan) X(Repeat, size) X(Repeat, user) \
    X(Repeat, values) X(RowEncoder, kinds) X(Window, left) X(Window, skip) X(Concatenation, _columns) \
    X(Concatenation, _hidden) X(Concatenation, _keys) X(Concatenation, _offset) X(Concatenation, _window) \
    X(Definitions, opened) X(Told, _said) X(Told, count) X(Told, diagnostics) X(Tracker, touched) \
    X(Transaction, next) X(Session, modes_status) X(Session, tracker) X(PlansDefinitions, _kept) \
    X(Settings, system) X(ShardSelect, scattered) X(ReplyScanner, _columns)

#ifdef __GNUC__
#pragma GCC visibility push(hidden) /* one module's files: no table of addresses between them */
#endif

PyObject *begin(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *ask(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *send(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *answer(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *piece(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *receive(PyObject *module, PyObject *nothing);

/* A connection that is free, and whose it is. */
typedef struct {
    PyObject *client, *session;
    PyObject *pool, *conn; /* ours */
    PyObject *place;       /* the list whose last one it is */
} Lent;

int find_free(PyObject *relay, PyObject *host, PyObject *sql, Lent *lent);
int is_free(const Lent *lent);
int take_lent(const Lent *lent);
int send_query(PyObject *receiver, PyObject *answer, PyObject *conn, PyObject *scanner, PyObject *sql);
PyObject *point_of(PyObject *plan, PyObject *values, PyObject *snapshot);
int run_select(PyObject *client, PyObject *plan, PyObject *bound, PyObject *statement);
int write_to(PyObject *transport, PyObject *descriptor, PyObject *data);
int written(PyObject *client, PyObject *out);
int finish(PyObject *client, PyObject *host, Py_ssize_t rows, int on_shard);
PyObject *extended_of(PyObject *session);
int gives_all(PyObject *merger);
PyObject *fan_begins(PyObject *fan, PyObject *branch, PyObject *client);
int fan_finishes(PyObject *fan, PyObject *client);
int is_unbroken(PyObject *session);
int execute_again(PyObject *client, PyObject *packet);
PyObject *binary_reply(PyObject *statement, PyObject *header, PyObject *data);
int run_many(PyObject *client, PyObject *plan, PyObject *values, PyObject *snapshot);
PyObject *places_of(PyObject *snapshot, PyObject *keyspace);
PyObject *make(int number);
PyObject *make_tuple(int number, PyObject *values);

int is_countable(PyObject *conn);
int count(PyObject *conn, Py_ssize_t rows);
int release(PyObject *conn);

#define NUMBER_OF(name) NUMBER_##name,
enum { CLASSES(NUMBER_OF) COUNT };
extern PyTypeObject *classes[COUNT];

#define PLACE_OF(class, name) extern Py_ssize_t class##_##name;
SLOTS(PLACE_OF)

#define NAMES(X) \
    X(_begin) X(_finish) X(_given) X(_unreadable) X(ask) X(definitions) X(execute) X(finish) X(flow) X(keyspaces) X(kind) X(met) \
    X(places) X(received) X(release) X(reply_data) X(reply_done) X(sql_select_limit) X(unpack_from) X(values) X(write)
#define NAME_OF(name) extern PyObject *name_##name;
NAMES(NAME_OF)

extern PyObject *row_count_of_rows, *leaving_not;              /* RESULT_SET, Leaving.NOT */
extern PyObject *state_first, *state_rows, *state_done;        /* proxy.wire.replies's */
extern PyObject *reader_rows, *reader_ended;                   /* proxy.wire.rows's ROWS, ENDED */
extern PyObject *kind_of_selects, *kind_of_inserts; /* ShardSelect.kind, Insert.kind */
extern PyObject *text_by_id, *row_by_id;            /* rewriter.route.by_id's */
extern PyObject *texts_by_host, *is_list;           /* rewriter.route.id_lists's */
extern PyObject *union_all, *merge_of_all;          /* rewriter.plans.sharded's UNION; a Merge of all rows in any order */
extern PyObject *class_of_reject;                   /* rewriter.plan's Reject */
extern PyObject *rows_sent;                         /* proxy.session.outcome's ROWS_SENT */
extern PyObject *extended_metadata;                 /* proxy.backends.pool's EXTENDED_METADATA */
extern PyObject *loads_of, *share_compiled, *share;                  /* proxy.load's; the first two are None where it is not compiled */
extern PyObject *protocol_error;                    /* proxy.wire.packets's ProtocolError */
extern PyObject *execute_prepared, *partial;        /* proxy.execute.prepared.prepare's execute; functools.partial */
extern PyObject *binary_rows;                       /* proxy.wire.row_packets's */
extern PyObject *direct;                            /* proxy.descriptors's */
extern PyObject *facts_unread;                      /* rewriter.sql.statements.facts's UNREAD */
extern PyObject *text_ok, *text_unplanned, *zero, *one_reply, *ending_size, *most_of_a_packet, *no_bytes, *no_values;
extern double unit, bounds[MOST_BOUNDS]; /* proxy.load's UNIT, proxy.stats's BUCKETS */
extern Py_ssize_t bound_count, around_limit; /* rewriter.around's LONGEST */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#define IS(object, class) ((object) != NULL && Py_TYPE(object) == classes[NUMBER_##class])

static inline double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#endif
