-- What the workloads share: connections, sending and reading statements, and where the rows are.
--
-- The calls are those that sysbench's own driver makes (mysql_real_query is send and read in one), of the
-- client library that sysbench is linked with, but called here by LuaJIT's FFI. So a thread can connect to
-- several hosts by name and can send a statement to each before it reads the first answer, which
-- sysbench's SQL interface cannot. Every answer is checked: a wrong number of rows ends the run.
--
-- Layout `pinterest` with shards below 64: composed IDs stay below 2^53, so that Lua's numbers hold them.

local ffi = require("ffi")

ffi.cdef([[
typedef struct st_mysql MYSQL;
typedef struct st_mysql_res MYSQL_RES;
MYSQL *mysql_init(MYSQL *);
int mysql_options(MYSQL *, int, const void *);
MYSQL *mysql_real_connect(MYSQL *, const char *, const char *, const char *, const char *, unsigned int,
                          const char *, unsigned long);
const char *mysql_get_ssl_cipher(MYSQL *);
const char *mysql_error(MYSQL *);
unsigned int mysql_errno(MYSQL *);
int mysql_send_query(MYSQL *, const char *, unsigned long);
char mysql_read_query_result(MYSQL *);
MYSQL_RES *mysql_store_result(MYSQL *);
unsigned long long mysql_num_rows(MYSQL_RES *);
unsigned long long mysql_affected_rows(MYSQL *);
void mysql_free_result(MYSQL_RES *);
void mysql_close(MYSQL *);

typedef struct st_mysql_stmt MYSQL_STMT;
typedef struct {
   unsigned long *length;
   char *is_null;
   void *buffer;
   char *error;
   void *row_ptr, *store_param, *fetch_result, *skip_result;
   unsigned long buffer_length, offset, length_value;
   unsigned int number, pack_length;
   int buffer_type;
   char error_value, is_unsigned, long_data_used, is_null_value;
   void *extension;
} MYSQL_BIND;
MYSQL_STMT *mysql_stmt_init(MYSQL *);
int mysql_stmt_prepare(MYSQL_STMT *, const char *, unsigned long);
char mysql_stmt_bind_param(MYSQL_STMT *, MYSQL_BIND *);
int mysql_stmt_execute(MYSQL_STMT *);
int mysql_stmt_store_result(MYSQL_STMT *);
unsigned long long mysql_stmt_num_rows(MYSQL_STMT *);
char mysql_stmt_free_result(MYSQL_STMT *);
const char *mysql_stmt_error(MYSQL_STMT *);
unsigned int mysql_stmt_errno(MYSQL_STMT *);
]])

local C = ffi.C
local OPT_CONNECT_TIMEOUT, OPT_SSL_VERIFY_SERVER_CERT = 0, 21
local LONGLONG = 8
local TYPES = { pins = 1, boards = 2, users = 3, comments = 4 }

sysbench.cmdline.options = {
   targets = { "host:port of each server, or of the proxy, separated by commas" },
   user = { "user name" },
   password = { "password" },
   database = { "current database; none when empty", "" },
   physical = { "send what the hosts hold (db00007.pins, local IDs) and not what the proxy shows", false },
   shards = { "the shards of each host, as 0-31,32-63" },
   pins = { "pins of a shard", 0 },
   boards = { "boards of a shard", 0 },
   items = { "rows of the table that is not sharded", 0 },
   scatter = { "rows of the scattered table", 0 },
   text = { "bytes of text in an inserted object", 0 },
   ids = { "IDs in a list", 50 },
   table = { "the scattered table", "users" },
}

local client = { hosts = {} } -- hosts: {first, last} shard of each host, by number from 1
local connections = {}

local function check(failed, mysql, what)
   if failed then
      error(("%s: error %d: %s"):format(what, C.mysql_errno(mysql), ffi.string(C.mysql_error(mysql))), 0)
   end
end

function client.connect(host, port)
   local options = sysbench.opt
   local mysql = C.mysql_init(nil)
   -- Connector/C 3.4 would ask for TLS by itself, and only some of the ways measured have it
   C.mysql_options(mysql, OPT_SSL_VERIFY_SERVER_CERT, ffi.new("char[1]", 0))
   C.mysql_options(mysql, OPT_CONNECT_TIMEOUT, ffi.new("unsigned int[1]", 10))
   local database = options.database ~= "" and options.database or nil
   local done = C.mysql_real_connect(mysql, host, options.user, options.password, database, port, nil, 0)
   check(done == nil, mysql, ("connecting to %s:%d"):format(host, port))
   if C.mysql_get_ssl_cipher(mysql) ~= nil then
      error("the connection is encrypted: such numbers cannot be compared", 0)
   end
   return mysql
end

-- Called by sysbench in every thread before the first event; all threads wait for the last one.
function thread_init()
   for host, port in sysbench.opt.targets:gmatch("([^:,]+):(%d+)") do
      connections[#connections + 1] = client.connect(host, tonumber(port))
   end
   client.physical = sysbench.opt.physical
   for first, last in sysbench.opt.shards:gmatch("(%d+)-(%d+)") do
      client.hosts[#client.hosts + 1] = { first = tonumber(first), last = tonumber(last) }
   end
end

function thread_done()
   for _, mysql in ipairs(connections) do
      C.mysql_close(mysql)
   end
end

-- Send a statement to the host of that number and do not wait.
function client.send(host, sql)
   local mysql = connections[host]
   check(C.mysql_send_query(mysql, sql, #sql) ~= 0, mysql, "sending")
end

-- Read the whole answer; the number of rows, or of rows affected.
function client.read(host)
   local mysql = connections[host]
   check(C.mysql_read_query_result(mysql) ~= 0, mysql, "statement")
   local result = C.mysql_store_result(mysql)
   check(result == nil and C.mysql_errno(mysql) ~= 0, mysql, "reading")
   if result == nil then
      return tonumber(C.mysql_affected_rows(mysql))
   end
   local rows = tonumber(C.mysql_num_rows(result))
   C.mysql_free_result(result)
   return rows
end

function client.expect(rows, wanted)
   if rows ~= wanted then
      error(("an answer of %d rows, not %d"):format(rows, wanted), 0)
   end
end

-- One statement on one host, which must give so many rows.
function client.query(host, sql, wanted)
   client.send(host, sql)
   client.expect(client.read(host), wanted)
end

local prepared = {} -- by host and text: the statement, and the number that it is executed with

local function check_prepared(failed, statement, what)
   if failed then
      local message = ffi.string(C.mysql_stmt_error(statement))
      error(("%s: error %d: %s"):format(what, C.mysql_stmt_errno(statement), message), 0)
   end
end

local function prepare(host, sql)
   local statement = C.mysql_stmt_init(connections[host])
   check_prepared(C.mysql_stmt_prepare(statement, sql, #sql) ~= 0, statement, "preparing")
   local number, binds = ffi.new("int64_t[1]"), ffi.new("MYSQL_BIND[1]")
   binds[0].buffer_type, binds[0].buffer = LONGLONG, number
   check_prepared(C.mysql_stmt_bind_param(statement, binds) ~= 0, statement, "binding")
   return { statement = statement, number = number, binds = binds }
end

-- A statement with one number for its `?`, prepared once a connection, which must give so many rows.
function client.execute(host, sql, number, wanted)
   local known = prepared[host] or {}
   prepared[host] = known
   known[sql] = known[sql] or prepare(host, sql)
   local statement = known[sql].statement
   known[sql].number[0] = number
   check_prepared(C.mysql_stmt_execute(statement) ~= 0, statement, "executing")
   check_prepared(C.mysql_stmt_store_result(statement) ~= 0, statement, "reading")
   client.expect(tonumber(C.mysql_stmt_num_rows(statement)), wanted)
   C.mysql_stmt_free_result(statement)
end

-- The statements {host, sql} all at once, then all their answers, which together must have so many rows.
function client.query_all(statements, wanted)
   local rows = 0
   for _, one in ipairs(statements) do
      client.send(one.host, one.sql)
   end
   for _, one in ipairs(statements) do
      rows = rows + client.read(one.host)
   end
   client.expect(rows, wanted)
end

-- A shard by chance, and the number of the connection that leads to it.
function client.random_shard()
   local host = sysbench.rand.uniform(1, #client.hosts)
   local range = client.hosts[host]
   return sysbench.rand.uniform(range.first, range.last), client.physical and host or 1
end

-- What an object's composed ID is more than its local one.
function client.base(shard, object)
   return shard * 2 ^ 46 + TYPES[object] * 2 ^ 36
end

-- The last line of a run, for the harness.
sysbench.hooks.report_cumulative = function(stat)
   print(('bench {"events": %d, "seconds": %.6f}'):format(stat.events, stat.time_total))
end

return client
