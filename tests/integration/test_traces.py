"""Statements that come with a `traceparent` are spans of its trace, and what servers get for them, too."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from demo.certificates import LocalAuthority
from tests.integration.binary import Binary, integer
from tests.integration.fixtures import Connect, MakeOwn, shard_of
from tests.integration.own import OwnProxy
from tests.integration.raw import MULTI_STATEMENTS, QUERY, Raw, command, packet, query
from tests.support.collector import CLIENT, SERVER, Collector, Span
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

ATTRIBUTES = 0x08000000
FAST = {"interval": 0.05}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found


@pytest.fixture
def proxy(own: MakeOwn, collector: Collector) -> OwnProxy:
    return own({"tracing": {"endpoint": collector.endpoint, **FAST}})


class Context:
    """A trace of an application's own."""

    def __init__(self, flags: int = 1) -> None:
        self.trace = secrets.token_hex(16)
        self.span = secrets.token_hex(8)
        self.value = f"00-{self.trace}-{self.span}-{flags:02x}"

    def behind(self, sql: str, state: str = "") -> str:
        more = f",tracestate='{quote(state, safe='')}'" if state else ""
        return f"{sql} /*action='x',traceparent='{self.value}'{more}*/"

    def attribute(self) -> bytes:
        """As the attributes of a COM_QUERY."""
        text = self.value.encode()
        return b"\2\1\0\1" + b"\x08\0\1n" + b"\xfd\0\x0btraceparent" + b"\7\0\0\0\0\0\0\0" + b"\x37" + text


def boards_of(client: Raw) -> dict[int, int]:
    """A board's ID of each shard that has one."""
    found = client.ask("SELECT id FROM boards").rows
    return {shard_of(int(row[0] or 0)): int(row[0] or 0) for row in found}


def one_and_calls(spans: list[Span], context: Context) -> tuple[Span, list[Span]]:
    """The span of the statement, and those of the servers' statements, which are its children."""
    one, *calls = spans
    assert (one.kind, one.parent) == (SERVER, context.span)
    for call in calls:
        assert (call.kind, call.parent) == (CLIENT, one.id)
        assert one.at <= call.at <= call.until <= one.until
    assert len({span.id for span in spans}) == len(spans)
    return one, calls


def test_a_comment_s_trace_goes_on(proxy: OwnProxy, collector: Collector, flavour: str) -> None:
    client = proxy.raw()
    board = next(iter(boards_of(client).values()))
    context = Context()
    sql = context.behind(f"SELECT data FROM boards WHERE id = {board}", "congo=t61,rojo=00f0")
    assert len(client.ask(sql).rows) == 1
    one, (call,) = one_and_calls(collector.of(context.trace), context)
    system = "mysql" if flavour == "mysql9" else flavour
    assert one.name == call.name == "SELECT demo.boards"
    assert one.state == call.state == "congo=t61,rojo=00f0"
    assert (one.flags & 0x3FF, call.flags & 0x3FF) == (0x301, 0x101)
    assert not one.failed
    assert not call.failed
    about = dict(one.about)
    assert about.pop("shardgate.session") == client.id
    assert about.pop("shardgate.queue_seconds") >= 0
    (host,) = about.pop("shardgate.hosts")
    assert about == {
        "db.system.name": system,
        "db.namespace": "demo",
        "db.operation.name": "SELECT",
        "db.query.summary": "SELECT demo.boards",
        "db.query.text": "SELECT data FROM boards WHERE id = ?",
        "db.response.returned_rows": 1,
        "client.address": "127.0.0.1",
        "shardgate.plan": "select",
        "shardgate.shards": 1,
        "shardgate.user": "demo",
    }
    address, _, port = host.rpartition(":")
    assert call.about == {
        "db.system.name": system,
        "db.operation.name": "SELECT",
        "db.query.summary": "SELECT demo.boards",
        "db.response.returned_rows": 1,
        "server.address": address,
        "server.port": int(port),
        "shardgate.shards": 1,
        "shardgate.shard_names": [f"main/{shard_of(board)}"],
    }
    assert one.resource["service.name"] == "shardgate"
    assert one.resource["process.pid"] == proxy.proxy.pid


@pytest.mark.either_server
def test_a_fan_out_has_a_span_for_each_host(proxy: OwnProxy, collector: Collector) -> None:
    client = proxy.raw()
    boards = boards_of(client)
    context = Context()
    client.ask(context.behind("SELECT id FROM boards ORDER BY id LIMIT 3"))
    hosts = len(proxy.demo.masters)
    one, calls = one_and_calls(collector.of(context.trace), context)
    assert {f"{call.about['server.address']}:{call.about['server.port']}" for call in calls} == set(
        one.about["shardgate.hosts"]
    )
    assert len(one.about["shardgate.hosts"]) == hosts
    shards = sum(call.about["shardgate.shards"] for call in calls)
    assert one.about["shardgate.shards"] == shards >= len(boards)
    assert one.about["db.response.returned_rows"] == 3


def running(demo: Demo) -> list[str]:
    found = []
    for number in range(len(demo.masters)):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute("SELECT INFO FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP%0.4%'")
            found += [str(row[0]) for row in cursor.fetchall() if "PROCESSLIST" not in str(row[0])]
    return found


@pytest.mark.either_server
def test_servers_are_told(own: MakeOwn, collector: Collector) -> None:
    settings = {"tracing": {"endpoint": collector.endpoint, **FAST}, "backends": {"comment": True}}
    proxy = own(settings)
    client = proxy.raw()
    board = next(iter(boards_of(client).values()))
    for sql in (
        "SELECT SLEEP(0.4)",
        f"SELECT SLEEP(0.4), data FROM boards WHERE id = {board}",
        "SELECT SLEEP(0.4), COUNT(*) FROM boards",
    ):
        context = Context()
        client.write(query(context.behind(sql, "a=b")))
        (seen, *_) = wait_until(lambda: running(proxy.demo), "the statement runs")
        assert client.reply().kind == "rows"
        ids = [one.id for one in collector.of(context.trace) if one.kind == CLIENT]
        begin = [
            f", {client.id} */ /*traceparent='00-{context.trace}-{id}-01',tracestate='a%3Db'*/ S"
            for id in ids
        ]
        assert any(one in seen for one in begin), (seen, begin)


@pytest.mark.either_server
def test_hand_on_can_be_off(own: MakeOwn, collector: Collector) -> None:
    proxy = own({"tracing": {"endpoint": collector.endpoint, "hand_on": False, **FAST}})
    client, context = proxy.raw(), Context()
    client.write(query(context.behind("SELECT SLEEP(0.4)")))
    (seen,) = wait_until(lambda: running(proxy.demo), "the statement runs")
    assert seen == context.behind("SELECT SLEEP(0.4)")
    assert client.reply().kind == "rows"
    one_and_calls(collector.of(context.trace), context)


@pytest.mark.either_server
def test_writes_have_a_span_for_each_statement_of_a_host(proxy: OwnProxy, collector: Collector) -> None:
    client = proxy.raw()
    ids = ", ".join(str(id) for id in boards_of(client).values())
    context = Context()
    changed = client.ask(context.behind(f"UPDATE boards SET data = data WHERE id IN ({ids})"))
    assert changed.kind == "ok"
    wait_until(
        lambda: any(one.trace == context.trace and one.kind == SERVER for one in collector.spans), "it"
    )
    spans = [one for one in collector.spans if one.trace == context.trace]
    one, calls = one_and_calls(sorted(spans, key=lambda span: (span.kind, span.at)), context)
    assert one.about["shardgate.affected_rows"] == changed.affected
    assert one.about["shardgate.plan"] == "write"
    assert {call.name for call in calls} >= {"UPDATE demo.boards"}
    assert one.about["shardgate.shards"] == ids.count(",") + 1
    assert len(one.about["shardgate.hosts"]) == len(proxy.demo.masters)


@pytest.mark.either_server
def test_errors(proxy: OwnProxy, collector: Collector) -> None:
    client = proxy.raw()
    context = Context()
    assert client.ask(context.behind("SELECT nothing FROM usernames WHERE username = 'secret'")).code == 1054
    one, (call,) = one_and_calls(collector.of(context.trace), context)
    for span in (one, call):
        assert span.failed
        assert (span.about["error.type"], span.about["db.response.status_code"]) == ("1054", "1054")
        assert "secret" not in str(span)
    context = Context()
    refused = client.ask(context.behind("UPDATE pins SET ts = NOW()"))
    (one,) = collector.of(context.trace)
    assert one.failed
    assert one.about["error.type"].islower()
    assert one.about["db.response.status_code"] == str(refused.code)
    context = Context()
    assert client.ask(context.behind("SELECT FROM")).code == 1064
    one_and_calls(collector.of(context.trace), context)


@pytest.mark.either_server
def test_prepared_statements(proxy: OwnProxy, collector: Collector) -> None:
    client = proxy.raw()
    board = next(iter(boards_of(client).values()))
    binary = Binary(client)
    for sql, parameter in (
        ("SELECT data FROM boards WHERE id = ?", board),
        ("SELECT COUNT(*) FROM legacy.customers WHERE id > ?", 0),
    ):
        context = Context()
        statement = binary.statement(context.behind(sql))
        for _ in range(2):
            assert len(binary.execute(statement.id, [integer(parameter)]).rows) == 1
        binary.close(statement.id)
        spans = collector.of(context.trace, 3)
        prepared, *executed = sorted((one for one in spans if one.kind == SERVER), key=lambda one: one.at)
        assert prepared.name == "PREPARE"
        assert [one.name for one in executed] == ["SELECT demo.boards" if "boards" in sql else "SELECT"] * 2
        for one in (prepared, *executed):
            assert one.parent == context.span
            assert [span.kind for span in spans if span.parent == one.id].count(CLIENT) >= 1


def test_query_attributes(proxy: OwnProxy, collector: Collector, flavour: str) -> None:
    if flavour == "mariadb":
        return  # it has none, and offers none
    client = proxy.raw(login=False)
    assert client.login(database="demo", flags=ATTRIBUTES | MULTI_STATEMENTS).kind == "ok"
    client.write(command(QUERY, b"\0\1SELECT id FROM boards LIMIT 1"))
    board = int(client.reply().value or 0)
    for sql in (b"SELECT data FROM boards WHERE id = %d" % board, b"SELECT COUNT(*) FROM legacy.customers"):
        context = Context()
        client.write(command(QUERY, context.attribute() + sql))
        assert len(client.reply().rows) == 1
        one_and_calls(collector.of(context.trace), context)
    context = Context(flags=0)
    client.write(command(QUERY, context.attribute() + b"SELECT 1"))
    assert client.reply().value == b"1"
    later = Context()
    client.write(command(QUERY, later.attribute() + b"SELECT 1; SELECT 2"))
    assert [reply.value for reply in client.replies()] == [b"1", b"2"]
    first, second, *calls = collector.of(later.trace, 2)  # each of the two statements is a span
    assert [first.parent, second.parent] == [later.span] * 2
    assert sorted(call.parent for call in calls) == sorted((first.id, second.id))
    assert not [one for one in collector.spans if one.trace == context.trace]


def test_the_server_s_attribute_is_the_call(
    proxy: OwnProxy, collector: Collector, flavour: str, component: None
) -> None:
    shown = b"SELECT mysql_query_attribute_string('traceparent'), mysql_query_attribute_string('n')"
    client = proxy.raw(login=False)
    assert client.login(database="legacy", flags=ATTRIBUTES).kind == "ok"
    context = Context()
    client.write(command(QUERY, context.attribute() + shown))
    ((value, number),) = client.reply().rows
    _, (call,) = one_and_calls(collector.of(context.trace), context)
    assert (value, number) == (f"00-{context.trace}-{call.id}-01".encode(), b"7")
    binary, context = Binary(client), Context()
    client.write(command(0x16, b"SELECT ?, " + shown[7:]))
    statement = binary.read_prepared()
    attributes = context.attribute()
    named, values = attributes[4 : -8 - 1 - 55], attributes[-8 - 1 - 55 :]
    head = b"\x17" + statement.id.to_bytes(4, "little") + b"\x08" + b"\1\0\0\0"  # type: ignore[union-attr]
    client.write(packet(head + b"\3\0\1" + b"\3\0\0" + named + b"\5\0\0\0" + values))
    (row,) = binary.answer().rows
    _, (call,) = one_and_calls(collector.of(context.trace), context)
    assert f"00-{context.trace}-{call.id}-01".encode() in row


@pytest.fixture
def component(demo: Demo, flavour: str) -> Iterator[None]:
    """What shows the attributes, on the default host."""
    if flavour == "mariadb":
        pytest.skip("has no query attributes")
    with demo.direct(0) as server, server.cursor() as cursor:
        cursor.execute("INSTALL COMPONENT 'file://component_query_attributes'")
        yield
        cursor.execute("UNINSTALL COMPONENT 'file://component_query_attributes'")


def test_every_kind_of_statement_runs(own: MakeOwn, collector: Collector) -> None:
    """Traces begin here for all of them; and what hangs below a statement is its own."""
    proxy = own({"tracing": {"endpoint": collector.endpoint, "share": 1, **FAST}})
    client = proxy.raw()
    boards = list(boards_of(client).values())[:5]
    ids = ", ".join(map(str, boards))
    for sql in (
        f"SELECT /*+ MAX_EXECUTION_TIME(5000) */ data FROM boards WHERE id = {boards[0]}",
        "/*!50000 SELECT 1 */",
        "SELECT COUNT(*) FROM boards b JOIN users u ON u.id > b.id",
        "SET @x = 5",
        "SELECT @x",
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "BEGIN",
        f"UPDATE boards SET ts = ts WHERE id IN ({ids})",
        "SAVEPOINT a",
        "ROLLBACK TO a",
        "COMMIT",
        "INSERT INTO users (data) VALUES ('{\"test_traces\": 1}')",
        "SELECT LAST_INSERT_ID()",
        "SHOW TABLES",
        "CREATE TEMPORARY TABLE legacy.shardgate_traces (n INT)",
        "INSERT INTO legacy.shardgate_traces VALUES (1), (2)",
        "DROP TEMPORARY TABLE legacy.shardgate_traces",
        "USE legacy",
        "PREPARE p FROM 'SELECT 1 + ?'",
        "EXECUTE p USING @x",
        "DEALLOCATE PREPARE p",
        "USE demo",
    ):
        assert client.ask(sql).kind != "err", (sql, client.ask(sql))
    assert Binary(client).run("SELECT id FROM boards WHERE id = ?", integer(boards[0])).kind == "rows"
    for row in client.ask("SELECT id FROM users WHERE JSON_EXTRACT(data, '$.test_traces') = 1").rows:
        assert client.ask(f"DELETE FROM users WHERE id = {(row[0] or b'0').decode()}").kind == "ok"
    client.ask("SELECT 'the last one' AS last_of_all")
    wait_until(lambda: any("last_of_all" in str(one.about) for one in collector.spans), "all spans")
    statements = {one.id: one for one in collector.spans if one.kind == SERVER}
    assert len(statements) >= 26
    assert all(not one.parent for one in statements.values())
    assert len({one.trace for one in statements.values()}) == len(statements)
    for call in (one for one in collector.spans if one.kind == CLIENT):
        assert statements[call.parent].trace == call.trace
    names = {one.name for one in statements.values()}
    assert names >= {"SELECT demo.boards", "UPDATE demo.boards", "INSERT demo.users"}
    assert names >= {"BEGIN", "COMMIT", "SAVEPOINT"}


@pytest.mark.either_server
def test_a_client_that_goes(proxy: OwnProxy, collector: Collector) -> None:
    client, context = proxy.raw(), Context()
    client.write(query(context.behind("SELECT SLEEP(30)")))

    def runs() -> bool:
        with proxy.demo.direct(0) as server, server.cursor() as cursor:
            cursor.execute("SELECT INFO FROM information_schema.PROCESSLIST")
            return any("SLEEP(30)" in str(row[0]) for row in cursor.fetchall())

    wait_until(runs, "the statement runs")
    client.close()
    one, (call,) = one_and_calls(collector.of(context.trace), context)
    assert (one.about["error.type"], call.about["error.type"]) == ("client_gone", "connection_lost")
    wait_until(lambda: not runs(), "the statement is killed")


@pytest.mark.one_server
def test_a_collector_that_hangs_stops_nothing(own: MakeOwn, collector: Collector) -> None:
    collector.answers = [0] * 50
    settings = {"endpoint": collector.endpoint, "share": 1, "queue": 10, "timeout": 1, **FAST}
    proxy = own({"tracing": settings}, expected=("traces cannot be exported",))
    client = proxy.raw()
    wait_until(lambda: client.ask("SELECT 1").value == b"1" and collector.requests > 0, "a request hangs")
    for number in range(40):
        assert client.ask(f"SELECT {number}").value == str(number).encode()
    counts = {row[0]: int(row[1] or 0) for row in client.ask("SHOW PROXY STATUS LIKE 'Trace%'").rows}
    assert counts[b"Trace_spans_waiting"] == 10
    assert counts[b"Trace_spans_dropped"] >= 30
    assert counts[b"Trace_spans_exported"] == 0
    assert proxy.metric('shardgate_trace_spans_total{outcome="dropped"}') >= 30
    assert len(proxy.logged("traces cannot be exported")) == 1


@pytest.mark.one_server
def test_what_a_collector_answers(own: MakeOwn, collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("Bearer abc\n")
    collector.answers = [503, 400]
    settings = {
        "endpoint": collector.endpoint + "/v1/traces?key=hidden",
        "headers": {"authorization": {"file": str(tmp_path / "key")}, "x-tenant": "shop"},
        "service_name": "db proxy",
        **FAST,
    }
    proxy = own({"tracing": settings}, expected=("traces cannot be exported",))
    client = proxy.raw()

    def count(outcome: str) -> int:
        return int(client.ask(f"SHOW PROXY STATUS LIKE 'Trace_spans_{outcome}'").rows[0][1] or 0)

    client.ask(Context().behind("SELECT 1"))
    wait_until(lambda: count("refused") == 2, "the second answer is a refusal")  # the first is asked again
    context = Context()
    client.ask(context.behind("SELECT 2"))
    spans = collector.of(context.trace)
    assert {one.resource["service.name"] for one in spans} == {"db proxy"}
    wait_until(lambda: count("exported") == 2, "they are counted")
    assert collector.headers[-1]["authorization"] == "Bearer abc"
    assert collector.headers[-1]["x-tenant"] == "shop"
    collector.reply = {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}
    client.ask(Context().behind("SELECT 3"))
    wait_until(lambda: (count("exported"), count("refused")) == (3, 3), "one of two was refused")
    (line,) = proxy.logged("traces cannot be exported")
    assert "hidden" not in str(line)
    assert len(proxy.logged("traces are exported again")) == 1


@pytest.mark.one_server
def test_a_collector_by_tls(own: MakeOwn, tmp_path: Path) -> None:
    authority = LocalAuthority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue())
    with Collector(context) as collector:
        tls = {"ca": str(authority.ca)}
        proxy = own({"tracing": {"endpoint": collector.endpoint, "tls": tls, **FAST}})
        trusted = Context()
        proxy.raw().ask(trusted.behind("SELECT 1"))
        one_and_calls(collector.of(trusted.trace), trusted)
        other = {"tracing": {"endpoint": collector.endpoint, **FAST}}
        proxy = own(other, expected=("traces cannot be exported",))
        proxy.raw().ask(Context().behind("SELECT 1"))
        (line,) = proxy.logged("traces cannot be exported")
        assert "certificate" in line["reason"]


@pytest.mark.one_server
def test_a_proxy_that_ends_sends_what_it_has(own: MakeOwn, collector: Collector) -> None:
    proxy = own({"tracing": {"endpoint": collector.endpoint, "interval": 60}})
    client, contexts = proxy.raw(), [Context() for _ in range(3)]
    client.ask(contexts[0].behind("SELECT 1"))  # the first is due at once
    collector.of(contexts[0].trace)
    for context in contexts[1:]:
        client.ask(context.behind("SELECT 1"))
    proxy.close_clients()
    proxy.stop()
    for context in contexts[1:]:
        collector.of(context.trace)


@pytest.mark.either_server
def test_comments_make_no_further_plans(demo: Demo, connect: Connect) -> None:
    """Also where nothing is traced: a context differs with every statement."""

    def entries() -> int:
        cursor.execute("SHOW PROXY STATUS LIKE 'Plan_cache_entries'")
        return int((cursor.fetchone() or (0, 0))[1])

    connection: Connection = connect()
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM boards LIMIT 1")
        board = (cursor.fetchone() or (0,))[0]
        forms = (
            f"SELECT data AS of_traces FROM boards WHERE id = {board}",
            "SELECT data AS of_traces FROM boards WHERE id IN (1, 2)",
            "SELECT COUNT(*) AS of_traces FROM boards",
            "SELECT 'a', 1 AS of_traces",
            "SELECT COUNT(*) AS of_traces FROM legacy.customers WHERE id = 5",
            "UPDATE boards SET data = data WHERE id = 1 AND 'of_traces' = 'x'",
            "SELECT username AS of_traces FROM usernames WHERE username = 'x'",
        )
        for form in forms:
            for behind in (True, False):
                for number in range(4):
                    value = f"/*a='{'x' * number}',traceparent='{Context().value}'*/"
                    cursor.execute(f"{form} {value}" if behind else f"{value} {form}")
                    if not number:
                        before = entries()
                assert entries() == before, form
        cursor.execute("SHOW PROXY QUERIES LIKE '%of_traces%'")
        digests = [row[0] for row in cursor.fetchall()]
    assert len(digests) == len(set(digests)) == len(forms) - 1  # the UPDATE's is without its literal
