"""Statements that leave, change or show the state of a session, beside plain reads and writes."""

from __future__ import annotations

from tests.fuzz.sessions.grammar import CHARSETS, COLLATIONS, MODES, RESULTS, Grammar, Rules
from tests.fuzz.sessions.world import COUNTRIES, LISTS, NAMES, SHARDED, Table

# --- reads -------------------------------------------------------------------------------------------


def select_plain(g: Grammar) -> str:
    table = g.table()
    return (
        f"SELECT {g.hint()} {table.key} , {table.column} FROM T:{table.name} WHERE"
        f" {g.where(table)} ORDER BY {table.key} , {table.column}"
    )


def select_state(g: Grammar) -> str:
    return f"SELECT {g.hint()} {g.any()}"


def select_two(g: Grammar) -> str:
    first, second = g.any(), g.show()
    if "LAST_INSERT_ID ( " in first and "LAST_INSERT_ID" in second:
        second = g.num()  # beside the one with a value, the other is answered by the proxy
    return f"SELECT {first} , {second}"


def select_counter(g: Grammar) -> str:
    """One row, so that nothing depends on the order of rows: of a table whose key is unique."""
    table, var = g.table(), g.var()
    while table is LISTS:
        table = g.table()
    return g.pick(
        f"SELECT {var} := COALESCE( {var} , 0 ) + 1",
        f"SELECT {table.key} , {var} := COALESCE( {var} , 0 ) + 1 AS e FROM T:{table.name}"
        f" WHERE {table.key} = {g.key(table)}",
    )


def select_routine(g: Grammar) -> str:
    shown = g.show()
    if shown == "@b":  # which a function may assign: before or after it is read
        shown = g.num()
    return f"SELECT {g.routine()}" + g.pick("", f" , {shown}", " FROM DUAL")


def select_mutating(g: Grammar) -> str:
    """In each clause, with tables of each kind."""
    table, expression = g.table(), g.any()
    where = g.where(table)
    place = g.random.randrange(7)
    if (place in (3, 4) and "LAST_INSERT_ID" in expression) or (place == 1 and "'a' ||" in expression):
        # a warning in a condition is given as often as a server looks, which depends on its other rows
        expression = g.mutate(insert_id=False)
    name = f"T:{table.name}"
    if place == 0:
        return f"SELECT {g.hint()} {expression} FROM {name} WHERE {table.key} = {g.key(table)}"
    if place == 1:
        return (
            f"SELECT {table.key} FROM {name} WHERE {table.key} = {g.key(table)} AND {expression} IS NOT NULL"
        )
    if place == 2:
        return f"SELECT {table.key} FROM {name} WHERE {table.key} = {g.key(table)} ORDER BY {expression}"
    if place == 3:
        return f"SELECT COUNT(*) FROM {name} WHERE {where} HAVING {expression} IS NOT NULL"
    if place == 4:
        return f"SELECT {table.key} , {expression} AS e FROM {name} WHERE {where} ORDER BY {table.key}"
    if place == 5:
        return f"SELECT {table.key} FROM {name} WHERE {table.key} = {g.key(table)} UNION SELECT {expression}"
    return f"SELECT * FROM ( SELECT {expression} AS e ) x"


def select_into(g: Grammar) -> str:
    table = g.table()
    kind = g.random.randrange(4)
    if kind == 0:
        return f"SELECT {g.show()} INTO {g.var()}"
    if kind == 1:
        return f"SELECT {g.show()} , {g.num()} INTO @a , @b"
    if kind == 2:
        return (
            f"SELECT {table.column} FROM T:{table.name} WHERE {table.key} = {g.key(table)} LIMIT 1"
            f" INTO {g.var()}"
        )
    return f"SELECT COUNT(*) , MIN( {table.key} ) INTO @a , @b FROM T:{table.name} WHERE {g.where(table)}"


def select_scatter(g: Grammar) -> str:
    table = g.sharded()
    return g.pick(
        f"SELECT COUNT(*) FROM T:{table.name}",
        f"SELECT {table.key} FROM T:{table.name} ORDER BY {table.key} LIMIT 3",
        f"SELECT MIN( {table.key} ) , MAX( {table.key} ) FROM T:{table.name}",
        # no expression that warns: each shard would for the rows that it reads, see docs/sql.md
        f"SELECT {table.key} , {g.var()} FROM T:{table.name} ORDER BY {table.key} DESC LIMIT 2",
        "SELECT caption FROM T:demo.photos ORDER BY caption , id LIMIT 3",
        "SELECT MIN( caption ) , MAX( caption ) FROM T:demo.photos",
        f"SELECT COUNT(*) FROM T:{table.name} WHERE {g.mutate(insert_id=False)} IS NOT NULL",
        f"SELECT SQL_CALC_FOUND_ROWS {table.key} FROM T:{table.name} ORDER BY {table.key} LIMIT 2",
        f"SELECT DISTINCT {table.key} FROM T:{table.name} ORDER BY {table.key} LIMIT 2",
    )


def select_join(g: Grammar) -> str:
    board = g.random.choice(SHARDED[1].keys[g.session])
    extra = g.pick("", "", f" , {g.any(insert_id=False)} AS e")
    return g.pick(
        f"SELECT p.id{extra} FROM T:demo.board_has_pins m JOIN T:demo.pins p ON p.id ="
        f" m.pin_id WHERE m.board_id = {board} ORDER BY p.id",
        f"SELECT m.pin_id , n.username{extra} FROM T:demo.board_has_pins m JOIN"
        f" T:demo.usernames n ON n.username = {g.key(NAMES)} WHERE m.board_id = {board} ORDER"
        " BY m.pin_id",
        f"SELECT m.pin_id , f.v{extra} FROM T:demo.board_has_pins m JOIN T:legacy.f{g.session}"
        f" f ON f.id = 1 WHERE m.board_id = {board} ORDER BY m.pin_id",
        f"SELECT f.id , c.name{extra} FROM T:legacy.f{g.session} f JOIN T:legacy.customers c"
        " ON c.id = f.id ORDER BY f.id",
        f"SELECT f.id , n.user_id FROM T:legacy.f{g.session} f JOIN T:demo.usernames n ON"
        f" n.username = {g.key(NAMES)} ORDER BY f.id",
        "SELECT n.username , c.name FROM T:demo.usernames n JOIN T:demo.countries c ON c.code"
        f" = {g.key(COUNTRIES)} WHERE n.username = {g.key(NAMES)}",
    )


def select_found_rows(g: Grammar) -> str:
    table = g.table()
    return (
        f"SELECT SQL_CALC_FOUND_ROWS {table.key} FROM T:{table.name} WHERE {g.where(table)}"
        f" ORDER BY {table.key} LIMIT 1"
    )


def select_lock(g: Grammar) -> str:
    table = g.table()
    return (
        f"SELECT {table.column} FROM T:{table.name} WHERE {table.key} = {g.key(table)}"
        f" {g.pick('FOR UPDATE', 'LOCK IN SHARE MODE')}"
    )


def select_counts(g: Grammar) -> str:
    return g.pick(
        "SELECT FOUND_ROWS ( )",
        "SELECT ROW_COUNT ( )",
        "SELECT F:FOUND_ROWS ( ) , F:ROW_COUNT ( )",
        "SELECT F:LAST_INSERT_ID ( )",
        "SELECT @@warning_count , @@error_count",
        "SELECT @@error_count",
    )


def show_diagnostics(g: Grammar) -> str:
    return g.pick(
        "SHOW WARNINGS",
        "SHOW WARNINGS LIMIT 1",
        "SHOW ERRORS",
        "SHOW COUNT(*) WARNINGS",
        "SHOW COUNT(*) ERRORS",
        "SHOW WARNINGS",
    )


def show_variables(g: Grammar) -> str:
    name = g.pick(
        "sql_mode", "character_set_results", "autocommit", "sort_buffer_size", "collation_connection"
    )
    return f"SHOW {g.pick('', 'SESSION')} VARIABLES LIKE '{name}'"


# --- writes ------------------------------------------------------------------------------------------


def _value(g: Grammar, table: Table) -> str:
    value = g.mutate(insert_id=table.name != "demo.photos") if g.random.random() < 0.35 else g.num()
    return table.value.format(value)


def update(g: Grammar) -> str:
    table = g.table()
    value = _value(g, table)
    where = (
        g.where(table, write=True)
        if ":=" not in value and "LOCK" not in value
        else f"{table.key} = {g.key(table)}"
    )
    extra = f" AND {g.mutate(insert_id=False)} IS NOT NULL" if g.random.random() < 0.12 else ""
    limit = " LIMIT 1" if g.random.random() < 0.05 and "IN" not in where else ""
    return f"UPDATE {g.hint()} T:{table.name} SET {table.column} = {value} WHERE {where}{extra}{limit}"


def update_assigned(g: Grammar) -> str:
    """The one that leaks rows: one row, as for `select_counter`."""
    table = g.table()
    while table is LISTS:
        table = g.table()
    old = table.column if table.column != "data" else "JSON_SET( data , '$.k' , 5 )"
    return (
        f"UPDATE T:{table.name} SET {table.column} = ( {g.var()} := {old} ) WHERE {table.key}"
        f" = {g.key(table)}"
    )


def delete(g: Grammar) -> str:
    table = g.table()
    extra = f" AND {g.any(insert_id=False)} IS NOT NULL" if g.random.random() < 0.3 else ""
    return f"DELETE FROM T:{table.name} WHERE {g.where(table, write=True)}{extra}"


def insert(g: Grammar) -> str:
    table = g.table()
    value = _value(g, table)
    verb = g.pick("INSERT INTO", "REPLACE INTO", "INSERT IGNORE INTO", "INSERT INTO")
    key = g.key(table)
    columns, values = f"{table.key} , {table.column}", f"{key} , {value}"
    if table.name == "demo.board_has_pins":
        columns, values = f"board_id , pin_id , {table.column}", f"{key} , 5 , {value}"
    elif table.name == "demo.photos":
        columns, values = columns + " , user_id", f"{values} , {_photo_user(key)}"
    tail = ""
    if verb == "INSERT INTO" and g.random.random() < 0.5 and table.name != "demo.board_has_pins":
        tail = f" ON DUPLICATE KEY UPDATE {table.column} = {_value(g, table)}"
    elif g.mariadb and g.random.random() < 0.15:
        tail = f" RETURNING {table.key} AS k" + g.pick("", f" , {g.mutate()} AS e")
    return f"{verb} T:{table.name} ( {columns} ) VALUES ( {values} ){tail}"


def _photo_user(key: str) -> int:
    """The user of the photo with that ID: its sequence has session and row."""
    session, row = divmod(int(key) & 0x3FF, 10)
    return (session * 17 + row * 9 + 2) << 46 | 3 << 36 | 9_000_000 + session * 10 + row


def insert_own(g: Grammar) -> str:
    """With an AUTO_INCREMENT and a trigger."""
    value = g.pick(g.num(), g.text(), g.mutate(), g.show())
    return g.pick(
        f"INSERT INTO T:legacy.f{g.session} ( v ) VALUES ( {value} )",
        f"INSERT INTO T:legacy.f{g.session} ( v ) VALUES ( {g.num()} ) , ( {value} )",
        f"INSERT INTO T:legacy.f{g.session} SET v = {value}",
        f"INSERT INTO T:legacy.g{g.session} ( v ) VALUES ( {value} )",
        f"INSERT INTO T:legacy.f{g.session} ( v ) SELECT name FROM T:legacy.customers WHERE id < 3",
        f"INSERT INTO T:legacy.h{g.session} ( v ) SELECT username FROM T:demo.usernames WHERE"
        f" username = {g.key(NAMES)}",
        f"INSERT INTO T:legacy.f{g.session} ( v , n ) VALUES ( 'x' , 'y' )",
    )


def insert_select(g: Grammar) -> str:
    table = g.sharded()
    return (
        f"INSERT INTO T:legacy.h{g.session} ( v ) SELECT {table.key} FROM T:{table.name} WHERE"
        f" {g.where(table)} ORDER BY {table.key}"
    )


def do(g: Grammar) -> str:
    return f"DO {g.mutate()}" + g.pick("", f" , {g.mutate()}")


# --- the session's settings --------------------------------------------------------------------------


def set_variable(g: Grammar) -> str:
    return g.pick(
        f"SET {g.var()} = {g.pick(g.num(), g.text(), g.any(), 'NULL')}",
        f"SET {g.var()} := {g.num()} , {g.var()} = {g.text()}",
        f"SET {g.var()} = ( SELECT {g.any()} )",
        f"SET {g.var()} = T:legacy.setv ( {g.num()} )",
        f"SET {g.var()} = ( SELECT v FROM T:legacy.f{g.session} WHERE id = 1 )",
    )


def set_system(g: Grammar) -> str:
    scope = g.pick("", "SESSION", "LOCAL")
    return g.pick(
        f"SET {scope} sql_mode = {g.pick(*MODES)}",
        f"SET {scope} sql_mode = {g.pick(*MODES)}",
        f"SET @@sql_mode = {g.pick(*MODES)}",
        f"SET @@session.sort_buffer_size = {g.pick('300000', '400000', 'DEFAULT')}",
        f"SET {scope} time_zone = {g.pick(repr('+00:00'), repr('+02:00'))}",
        f"SET {scope} foreign_key_checks = {g.pick('0', '1', 'ON')} , {g.var()} = {g.num()}",
        "SET sql_mode = CONCAT( @@sql_mode , ',ANSI_QUOTES' )",
        f"SET {g.var()} = @@sql_mode",
        "SET no_such_variable = 1",
        "SET sql_mode = 'NO_SUCH_MODE'",
        f"SET {scope} sql_select_limit = {g.pick('DEFAULT', '1000')}",
    )


def set_charset(g: Grammar) -> str:
    return g.pick(
        f"SET NAMES {g.pick(*CHARSETS)}",
        f"SET NAMES {g.pick('utf8mb4 COLLATE utf8mb4_bin', 'DEFAULT', repr('latin1'))}",
        f"SET CHARACTER SET {g.pick(*CHARSETS[:4])}",
        f"SET character_set_results = {g.pick(*RESULTS)}",
        f"SET SESSION character_set_results = {g.pick(*RESULTS)}",
        f"SET collation_connection = {g.pick(*COLLATIONS)}",
        "SET NAMES utf8mb4",
    )


def set_statement(g: Grammar) -> str:
    table = g.table()
    return f"SET STATEMENT {g.pick('max_statement_time = 10', 'sort_buffer_size = 300000')} FOR " + g.pick(
        f"SELECT {g.any()}",
        f"SELECT {table.key} FROM T:{table.name} WHERE {table.key} = {g.key(table)}",
        f"INSERT INTO T:legacy.g{g.session} ( v ) VALUES ( {g.any()} )",
    )


def use(g: Grammar) -> str:
    name = g.pick("demo", "legacy", "legacy", "other", "demo", "nowhere")
    if name != "nowhere":
        g.database = name
    return f"USE {g.pick(name, f'`{name}`')}"


def databases(g: Grammar) -> str:
    name = f"fz{g.session}"
    kind = g.random.randrange(4)
    if kind == 0:
        return f"CREATE DATABASE IF NOT EXISTS {name}"
    if kind == 1:
        g.database = name
        return f"USE {name}"
    if kind == 2:
        if g.database == name:
            g.database = ""
        return f"DROP DATABASE {g.pick('IF EXISTS', '')} {name}"
    return f"CREATE TABLE IF NOT EXISTS {name}.t ( x INT )"


# --- what keeps a connection -------------------------------------------------------------------------


def temporary(g: Grammar) -> str:
    table = g.pick("legacy.tmp", "legacy.tmp", f"legacy.g{g.session}")
    return g.pick(
        f"CREATE TEMPORARY TABLE T:{table} ( id INT , v VARCHAR(60) )",
        f"CREATE TEMPORARY TABLE IF NOT EXISTS T:{table} ( id INT , v VARCHAR(60) )",
        f"CREATE TEMPORARY TABLE T:{table} AS SELECT 1 AS id , {g.show()} AS v",
        f"INSERT INTO T:{table} ( v ) VALUES ( {g.any()} )",
        f"SELECT v FROM T:{table}",
        f"SELECT COUNT(*) FROM T:{table}",
        f"UPDATE T:{table} SET v = {g.any()}",
        f"DROP TEMPORARY TABLE T:{table}",
        f"DROP TEMPORARY TABLE IF EXISTS T:{table}",
        "DROP TABLE IF EXISTS T:legacy.tmp",
    )


def lock_tables(g: Grammar) -> str:
    """Then the session uses that table alone (`while_locked`): of others the proxy knows no locks."""
    g.locked.add(g.session)
    return f"LOCK TABLES T:legacy.f{g.session} WRITE"


def handler(g: Grammar) -> str:
    table = f"legacy.f{g.session}"
    return g.pick(
        f"HANDLER T:{table} OPEN AS h",
        "HANDLER h READ FIRST",
        "HANDLER h READ NEXT LIMIT 2",
        "HANDLER h READ `PRIMARY` = ( 2 )",
        "HANDLER h CLOSE",
    )


def inner(g: Grammar) -> str:
    """A statement within a text, without single quotes."""
    name = g.pick("legacy", "other")
    return g.pick(
        f"USE {name}",
        f"/*␣app␣*/␣USE␣{name}".replace("␣", " "),
        "SET sql_mode = DEFAULT",
        f"SET sql_mode = {g.pick('ANSI', 'PIPES_AS_CONCAT', 'ANSI_QUOTES')}",
        f"SET NAMES {g.pick('latin1', 'utf8mb4', 'cp1251')}",
        f"SET {g.var()} = {g.num()}",
        f"SELECT {g.var()} := {g.num()}",
        f"-- x\nSELECT {g.var()} , DATABASE()",
        f"INSERT INTO legacy.f{g.session} (v) VALUES ({g.num()})",
        f"INSERT INTO legacy.g{g.session} (v) VALUES ({g.num()})",
        f"UPDATE legacy.f{g.session} SET v = {g.var()} WHERE id = 1",
        "CREATE TEMPORARY TABLE legacy.tmp (id INT, v VARCHAR(60))",
        "SELECT GET_LOCK(@l, 0)",
        "SET character_set_results = NULL",
        "SET autocommit = 1",
        f"DO {g.num()}",
        "SELECT 1 FROM legacy.nothing",
        f"SELECT v FROM legacy.f{g.session} WHERE id = 1",
    ).replace(" ", "␣")


def prepare(g: Grammar) -> str:
    name = g.pick("p", "p", "q")
    if g.database != "legacy" and g.random.random() < 0.6:
        g.database = "legacy"
        return "USE legacy"
    return g.pick(
        f"PREPARE {name} FROM '{inner(g)}'",
        f"PREPARE {name} FROM '{inner(g)}'",
        f"PREPARE {name} FROM '{inner(g)}'",
        f"PREPARE {name} FROM 'SELECT␣?␣+␣1'",
        f"PREPARE {name} FROM 'INSERT␣INTO␣legacy.g{g.session}␣(v)␣VALUES␣(?)'",
        f"EXECUTE {name}",
        f"EXECUTE {name}",
        f"EXECUTE {name} USING {g.var()}",
        f"DEALLOCATE PREPARE {name}",
        f"DROP PREPARE {name}",
        f"PREPARE {name} FROM {g.var()}",
    )


def execute_immediate(g: Grammar) -> str:
    return f"EXECUTE IMMEDIATE '{inner(g)}'"


def compound(g: Grammar) -> str:
    return (
        f"BEGIN NOT ATOMIC SET {g.var()} = {g.num()} ;"
        f" {g.pick('', 'SELECT ' + g.show() + ' ;', 'SET sql_mode = DEFAULT ;')} END"
    )


def call(g: Grammar) -> str:
    return g.pick(
        f"CALL T:legacy.setp ( {g.num()} )",
        f"CALL T:legacy.two ( {g.num()} )",
        f"CALL T:legacy.dyn ( '{inner(g)}' )",
        f"CALL T:legacy.dyn ( '{inner(g)}' )",
        f"CALL T:legacy.outp ( {g.var()} )",
        f"CALL T:legacy.lockp ( {g.lock()} )",
        "CALL T:legacy.tempp ( )",
        "CALL T:legacy.buff ( )",
        f"CALL T:legacy.insp ( {g.num()} )",
        "CALL T:legacy.warn ( )",
        "CALL T:legacy.fail ( )",
    )


def diagnostics(g: Grammar) -> str:
    return g.pick(
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'sig'",
        "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'careful' , MYSQL_ERRNO = 1642",
        "SELECT no_such_column",
        "SELECT * FROM T:legacy.nothing",
        "SELECT 1 / 0 , CAST( 'zz' AS SIGNED )",
        "SELEC 1",
    )


def get_diagnostics(g: Grammar) -> str:
    return g.pick(
        "GET DIAGNOSTICS @a = NUMBER , @b = ROW_COUNT",
        "GET DIAGNOSTICS CONDITION 1 @c = RETURNED_SQLSTATE , @d = MYSQL_ERRNO",
    )


# --- transactions ------------------------------------------------------------------------------------


def transaction(g: Grammar) -> str:
    point = g.pick("s1", "s1", "`s2`")
    return g.pick(
        "BEGIN",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION READ WRITE",
        "COMMIT",
        "COMMIT",
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK",
        "COMMIT AND CHAIN",
        "ROLLBACK AND NO CHAIN",
        f"SAVEPOINT {point}",
        f"SAVEPOINT {point}",
        f"ROLLBACK TO {g.pick('', 'SAVEPOINT')} {point}",
        f"RELEASE SAVEPOINT {point}",
        "SET autocommit = 0",
        "SET autocommit = 1",
        "SET autocommit = 1",
        "SET SESSION autocommit = DEFAULT",
        "SET TRANSACTION READ ONLY",
    )


def nothing(g: Grammar) -> str:
    """Of several kinds that change little."""
    return g.pick("SELECT 1", "DO 1", "FLUSH STATUS", "SELECT DATABASE ( )", "SELECT @a , @b , @c , @d")


def release(g: Grammar) -> str:
    return g.pick(
        "SELECT F:RELEASE_ALL_LOCKS ( )", "DO F:RELEASE_ALL_LOCKS ( )", f"DO F:RELEASE_LOCK ( {g.lock()} )"
    )


RULES: Rules = (
    (6, "", select_plain),
    (5, "", select_state),
    (4, "", select_two),
    (2, "", select_counter),
    (3, "", select_routine),
    (9, "", select_mutating),
    (4, "", select_into),
    (3, "", select_scatter),
    (3, "", select_join),
    (2, "", select_found_rows),
    (2, "", select_lock),
    (6, "", select_counts),
    (5, "", show_diagnostics),
    (2, "", show_variables),
    (6, "", update),
    (2, "", update_assigned),
    (4, "", delete),
    (6, "", insert),
    (5, "", insert_own),
    (2, "", insert_select),
    (3, "", do),
    (5, "", set_variable),
    (5, "", set_system),
    (5, "", set_charset),
    (1.5, "mariadb", set_statement),
    (5, "", use),
    (0.4, "", databases),
    (6, "", temporary),
    (1, "", lock_tables),
    (2, "", handler),
    (5, "", prepare),
    (3, "mariadb", execute_immediate),
    (1, "mariadb", compound),
    (5, "", call),
    (4, "", diagnostics),
    (1, "", get_diagnostics),
    (6, "", transaction),
    (2, "", nothing),
    (2, "", release),
)
