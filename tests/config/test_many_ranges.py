"""Topologies of many ranges are read in bulk, and long runs of list items without YAML's parser: what comes
of it is the same as by the long way.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from config import document as documents
from config import runs
from config.apart import Task, found
from config.document import ConfigError, parse
from config.json_lines import JsonLines
from config.layout import BUILTIN
from config.load import load_topology
from config.moves import moves
from config.ranges import Range, Ranges, State
from config.read_ranges import LEAST
from config.read_topology import _read, read_reduced, read_topology
from config.sources import reading
from config.sources.reading import Reading
from config.topology import Keyspace, Topology
from rewriter.env import Env
from rewriter.planner import Rewriter
from rewriter.plans.sharded import ShardSelect
from tests.local.places import SCHEMA

Value = dict[str, Any]

HOSTS = ("db1:3306", "DB1:3306", "db2", "db3:3307", "[::1]:3306", "unix:/run/a.sock")


def plainly(document: documents.Document) -> Topology | None:
    """The long way."""
    return _read(document, BUILTIN, {})


def told(topology: Topology | None) -> object:
    """All that a topology says."""
    if topology is None:
        return None
    return (
        topology.version, topology.digest, topology.hosts, topology.slaves, topology.default,
        [(one.signature, list(one.ranges), one.places, one.all_shards, one.open_shards)
         for one in topology.keyspaces.values()],
    )  # fmt: skip


# --- the ranges of a document --------------------------------------------------------------------


def of_ranges(ranges: list[Value], **fields: Any) -> Value:
    main = {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges, **fields}
    return {"version": 3, "keyspaces": {"main": main, "global": {"master": "db1:3306"}}}


def many(count: int) -> list[Value]:
    return [{"range": [n, n], "master": "db1:3306", "slave": "db3:3307"} for n in range(count)]


def edits() -> st.SearchStrategy[list[tuple[int, Value | None]]]:
    """What is done to some ranges: fields put over theirs; None: another order."""
    fields = st.fixed_dictionaries(
        {},
        optional={
            "range": st.one_of(
                st.tuples(st.integers(-1, 130), st.integers(-1, 130)).map(list),
                st.sampled_from(
                    [[3], [1, 2, 3], "0-3", None, [0, True], [0.0, 1], [65535, 65536], [10, 1 << 60]]
                ),
            ),
            "master": st.sampled_from([*HOSTS, "", None, 7, "db 1", "db1:x", ["db1"]]),
            "slave": st.sampled_from([*HOSTS, "", None, 7]),
            "open": st.sampled_from([True, False, None, 1, "true"]),
            "state": st.sampled_from([*map(str, State), None, "gone", 1, ["serving"], True]),
            "hosts": st.just(1),
        },
    )
    return st.lists(st.tuples(st.integers(0, LEAST + 9), st.one_of(st.none(), fields)), max_size=3)


@settings(deadline=None, max_examples=100)
@given(
    edits(),
    st.sampled_from(
        [{}, {"shards": 110}, {"shards": 111}, {"shards": "x"}, {"layout": None}, {"ranges_": 1}]
    ),
    st.sampled_from(["layout", "hash"]),
    st.booleans(),
    st.sampled_from(
        [None, {"master": "db3:3307"}, {"master": "db1:3306"}, {"master": "db9:1", "slave": "db1"}]
    ),
)
@example([], {}, "layout", False, None)
@example([(5, {"state": "frozen"}), (6, {"open": False})], {}, "layout", False, None)
@example([(5, None)], {"shards": 110}, "hash", True, None)
def test_many_ranges_are_read_as_few_are(
    changes: list[tuple[int, Value | None]], fields: Value, rule: str, mapped: bool, default: Value | None
) -> None:
    ranges: Any = many(LEAST + 10)
    for at, change in changes:
        if change is None:
            ranges.append(ranges.pop(at))
        else:
            ranges[at] = {**ranges[at], **change}
    if mapped:
        ranges = {f"r{index}": one for index, one in enumerate(ranges)}
    value = of_ranges(ranges, **({} if rule == "layout" else {"layout": None, "hash": "md5", "shards": 110}))
    value["keyspaces"]["main"].update(fields)
    if rule == "hash":
        del value["keyspaces"]["main"]["layout"]
    if default is not None:
        value["default"] = default
    text = json.dumps(value).encode()
    quick, plain = parse(text), parse(text)
    assert told(read_topology(quick)) == told(plainly(plain))
    assert quick.problems == plain.problems


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(["db{shard}", "d{shard}", "db1{shard}", "db{shard}1", "db{shard:05d}", "x{shard:05d}"])
)
def test_databases_of_two_keyspaces(pattern: str) -> None:
    value = of_ranges(many(LEAST + 30), database="db{shard}")
    value["keyspaces"]["other"] = {"layout": "pinterest", "database": pattern, "ranges": many(LEAST + 30)}
    quick, plain = (parse(json.dumps(value)) for _ in range(2))
    assert told(read_topology(quick)) == told(plainly(plain))
    assert quick.problems == plain.problems


# --- runs of list items --------------------------------------------------------------------------


def hosts() -> st.SearchStrategy[str]:
    quoted = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
    return st.one_of(
        st.sampled_from(
            ["db1:3306", "true", "No", "1.5", "0x10", "a:", "12:30", "~", "null", "-", "a#b", "a b"]
        ),
        quoted.map(json.dumps),
        quoted.map(lambda text: "'" + text.replace("'", "''") + "'"),
    )


def item(indent: str, number: int, flow: int, host: str, more: str) -> str:
    lines = [f"range: [{number}, {number}]", f"master: {host}", *([more] if more else [])]
    if flow == 0:
        return f"{indent}- {{{', '.join(lines)}}}\n"
    if flow == 1:
        lines[0] = f"range:\n{indent}  - {number}\n{indent}  - {number}"
    return f"{indent}- " + f"\n{indent}  ".join(lines) + "\n"


def generic(text: str) -> object:
    try:
        found = documents._parse_all(text, "")
    except ConfigError as error:
        return error.problems
    return found.value, found.problems


def quickly(text: str) -> object:
    try:
        found = documents._parse_yaml(text, "")
    except ConfigError as error:
        return error.problems
    return found.value, found.problems


ODD = (
    "# a comment\n", "      # one\n", "\n", "  - {a: b}\n", "      state: frozen\n", "    - [1, 2]\n",
    "    - &x {a: 1}\n", "    - *x\n", "    - {a: 1, a: 2}\n", "    - a: 1\n      a: 2\n", "    - |\n",
    "    - >-\n", "    - {a: b} # c\n", "    - 'two\n", "    - {a: b,\n", "---\n", "...\n", '    - "q\n',
    "    -   {range: [1, 2], master: x}\n", '    - {range: [1, 2], master: "\\x41"}\n', "  other:\n",
    "    - a:\n      - 1\n", "\t- {a: b}\n", "    - ? x\n", "    - {range: [007, 0], master: y}\n",
    "    - shardgate-run-0\n",
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 109), st.sampled_from(ODD)), max_size=3),
    st.lists(st.tuples(st.integers(0, 109), st.integers(0, 2), hosts()), max_size=3),
    st.integers(0, 2),
    st.sampled_from(["    ", "  ", ""]),
    st.sampled_from(["version: 1\nlist:\n", "", "a: |\n", "a: 'b\n", "a: [\n", "- 1\n", "list: &x\n"]),
    st.sampled_from(["", "end: 1\n", "  end: 1\n", "'\n", "]\n", "    - 1\n"]),
)
@example([], [], 0, "    ", "version: 1\nlist:\n", "")
@example([], [], 1, "  ", "version: 1\nlist:\n", "end: 1\n")
def test_runs_are_read_as_the_parser_does(
    odd: list[tuple[int, str]],
    other: list[tuple[int, int, str]],
    flow: int,
    indent: str,
    before: str,
    behind: str,
) -> None:
    least = runs.LEAST
    runs.LEAST = 10  # type: ignore[misc]
    try:
        items = [item(indent, number, flow, '"db1:3306"', "open: true") for number in range(110)]
        for at, way, host in other:
            items[at] = item(indent, at, way, host, "")
        for at, line in odd:
            items.insert(at, line)
        text = before + "".join(items) + behind
        assert len(text) > 2000
        large = documents._LARGE
        documents._LARGE = 100  # type: ignore[misc]
        try:
            assert quickly(text) == generic(text)
        finally:
            documents._LARGE = large  # type: ignore[misc]
    finally:
        runs.LEAST = least  # type: ignore[misc]


@pytest.mark.parametrize("flow", [0, 1, 2])
def test_a_run_is_found(flow: int) -> None:
    text = "list:\n" + "".join(item("  ", number, flow, "db1:3306", "open: no") for number in range(500))
    cut = runs.Cut(text, lambda part: documents._parse_all(part, "").value)
    assert [len(run.items) for run in cut.runs] == [498]  # the first and the last stay
    assert len(cut.text) < 300
    assert quickly(text) == generic(text)


def test_lines_are_told_of_a_document_with_runs() -> None:
    text = "list:\n" + "".join(item("  ", number, 0, "db1:3306", "") for number in range(500))
    read = parse(text)
    assert read.place(("list", 400, "master")) == "list[400].master (line 402)"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text('ab{}[]",:\\é\n ', max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text('ab{}[]",:\\é ', min_size=1, max_size=4), inner, max_size=4),
    ),
    max_leaves=12,
)


def paths(value: object, path: documents.Path = ()) -> Iterator[documents.Path]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from paths(one, (*path, key))


@given(
    st.one_of(st.dictionaries(st.text("abc", max_size=3), JSON), st.lists(JSON)),
    st.sampled_from([None, 0, 2, "\t"]),
)
def test_lines_of_json_are_those_of_yaml(value: object, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    read = parse(text)
    assert isinstance(read._lines, JsonLines)
    lines = documents._lines_of(text.replace("\t", " "))
    assert {path: read.line_of(path) for path in paths(value)} == lines
    assert read.line_of(("nothing", "there")) == lines[()]


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "list:\n" + "".join(item("  ", number, 0, "db1:3306", "") for number in range(500))
    values = 2 + 500 * 5
    monkeypatch.setattr(documents, "MAX_VALUES", values)
    assert len(parse(text).at(("list",))) == 500
    monkeypatch.setattr(documents, "MAX_VALUES", values - 1)
    with pytest.raises(ConfigError, match="has more than"):
        parse(text)


# --- columns -------------------------------------------------------------------------------------


def spans() -> st.SearchStrategy[list[Range]]:
    """Ranges that do not overlap, perhaps with gaps, in any order."""
    lengths = st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 2), st.sampled_from("abc"), st.sampled_from("xy-"),
                  st.booleans(), st.sampled_from(State)), max_size=12)  # fmt: skip

    def made(listed: list[tuple[int, int, str, str, bool, State]]) -> list[Range]:
        found, at = [], 0
        for length, gap, master, slave, open, state in listed:
            at += gap if gap == 2 else 0
            other = None if slave == "-" else slave
            found.append(Range(at, at + length - 1, master, other, open, state))
            at += length
        return found

    return lengths.map(made).flatmap(st.permutations).map(list)


@given(spans(), spans())
def test_columns_say_what_ranges_do(ranges: list[Range], before: list[Range]) -> None:
    columns, old = Ranges.of(ranges), Ranges.of(before)
    ordered = sorted(ranges, key=lambda one: one.first)
    assert list(columns) == ordered
    assert columns == ordered
    assert pickle.loads(pickle.dumps(columns)) == columns
    assert columns.masters == tuple(dict.fromkeys(one.master for one in ranges))
    by_shard = {shard: one for one in ranges for shard in range(one.first, one.last + 1)}
    assert columns.shards() == tuple(sorted(by_shard))
    assert columns.masters_of() == [by_shard[shard].master for shard in sorted(by_shard)]
    for state in State:
        assert columns.in_state(state) == [one for one in ordered if one.state is state]
        wanted = [shard for shard in sorted(by_shard) if by_shard[shard].state is state]
        assert columns.shards_in(state, closed=True) == tuple(wanted)
        wanted = [shard for shard in wanted if by_shard[shard].open]
        assert columns.shards_in(state, closed=False) == tuple(wanted)
    assert columns.all_serving == all(one.state is State.SERVING for one in ranges)
    assert columns.any_open() == any(one.open for one in ranges)
    for host, held in columns.held().items():
        mine = [one.state for one in by_shard.values() if one.master == host]
        assert held.shards == {state: mine.count(state) for state in set(mine)}
        assert set(held.slaves) == {one.slave for one in ranges if one.master == host and one.slave}
    others = {shard: one for one in before for shard in range(one.first, one.last + 1)}

    def fact(one: Range | None) -> object:
        return one and (one.master, one.slave, one.open, one.state)

    changed = columns.changed(old)
    assert changed is not None
    every = sorted({*by_shard, *others})
    expected = [one for one in every if fact(by_shard.get(one)) != fact(others.get(one))]
    assert [shard for shard, _, _ in changed] == expected


def keyspace(ranges: list[Range]) -> Keyspace:
    return Keyspace("main", BUILTIN["pinterest"], pattern="db{shard:05d}", ranges=ranges)


@given(spans(), st.data())
def test_what_is_taken_over_is_right(ranges: list[Range], data: st.DataObject) -> None:
    old = keyspace(ranges)
    assert len(old.places) == len(old.all_shards) >= len(old.open_shards)
    after = [
        Range(one.first, one.last, data.draw(st.sampled_from("abcd")), one.slave, one.open, one.state)
        for one in data.draw(st.one_of(st.just(ranges), spans()))
    ]
    new, alone = keyspace(after), keyspace(after)
    new.take_over(old)
    assert new.places == alone.places
    assert new.all_shards == alone.all_shards
    assert new.open_shards == alone.open_shards


# --- 65,536 --------------------------------------------------------------------------------------

MOST = 65_536


def largest() -> Value:
    return of_ranges([{"range": [n, n], "master": f"h{n % 7}:3306", "open": n < 8} for n in range(MOST)])


def state(one: Value) -> str:
    return f", state: {one['state']}" if "state" in one else ""


def as_lines(value: Value) -> str:
    """YAML, with a line for each range."""
    main = {**value["keyspaces"]["main"]}
    ranges = main.pop("ranges")
    head = yaml.safe_dump(value | {"keyspaces": value["keyspaces"] | {"main": main}}, sort_keys=False)
    lines = "".join(
        f"    - {json.dumps(one)}\n".replace('": ', ": ").replace(', "', ", ").replace('{"', "{")
        for one in ranges
    )
    return head.replace("  main:\n", f"  main:\n    ranges:\n{lines}")


@pytest.mark.parametrize("as_yaml", [False, True])
def test_65536_ranges(as_yaml: bool) -> None:
    value = largest()
    ranges = value["keyspaces"]["main"]["ranges"]
    write = as_lines if as_yaml else partial(json.dumps, indent=2)
    source = Reading("topology", BUILTIN)
    first = source.topology(write(value).encode(), at_once=True)
    assert first.keyspaces["main"].host_of(40_000) == f"h{40_000 % 7}:3306"
    ranges[40_000]["master"], ranges[9]["state"] = "new:3306", "frozen"
    value["version"] = 4
    second = source.topology(write(value).encode(), at_once=False)
    second.take_over(first)
    places = second.keyspaces["main"].places
    assert len(places) == MOST
    for shard, (host, database) in places.items():
        assert host == ("new:3306" if shard == 40_000 else f"h{shard % 7}:3306")
        assert database == b"db%05d" % shard
    rewriter, env = Rewriter(SCHEMA, second), Env(database="demo")
    for shard in (0, 9, 39_999, 40_000, 40_001, MOST - 1):
        plan, literals = rewriter.plan(
            b"SELECT data FROM pins WHERE id = %d" % (shard << 46 | 1 << 36 | 7), env
        )
        assert isinstance(plan, ShardSelect)
        (statement,) = plan.bind(literals, second, lambda shards: shards[0]).statements
        assert (statement.host, statement.shards) == (places[shard][0], (shard,))
        assert b"`db%05d`" % shard in statement.sql
    assert second.physical("db40000") == (second.keyspaces["main"], 40_000)
    assert second.keyspaces["main"].open_shards == tuple(range(8))
    frozen = second.keyspaces["main"].range_of(9)
    assert frozen is not None
    assert frozen.state is State.FROZEN
    told = moves(first, second)
    assert told == ["main 40000: master h2:3306 → new:3306", "main 9: serving → frozen"]


def test_errors_in_65536_ranges_have_their_places() -> None:
    value = largest()
    ranges = value["keyspaces"]["main"]["ranges"]
    ranges[1000]["master"] = "no port:x"
    ranges[50_000]["range"] = [50_000, 50_001]
    ranges[60_000]["colour"] = "red"
    text = "\n".join(json.dumps(value, indent=2).splitlines()).encode()
    with pytest.raises(ConfigError) as caught:
        Reading("topology.json", BUILTIN).topology(text, at_once=False)
    problems = [str(one) for one in caught.value.problems]
    assert [one.split(":")[1].split(" ")[1] for one in problems] == [
        "keyspaces.main.ranges[1000].master",
        "keyspaces.main.ranges[60000].colour",
        "keyspaces.main.ranges[50001].range",
    ]
    lines = text.decode().splitlines()
    assert "no port:x" in lines[int(problems[0].split("line ")[1].split(")")[0]) - 1]


# --- the other process ---------------------------------------------------------------------------


@pytest.fixture
def always_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE", 0)


@pytest.mark.usefixtures("always_apart")
def test_a_process_reads_what_this_one_would() -> None:
    for ranges in (many(LEAST + 10), many(3), [*many(LEAST + 10), {"range": [5, 5], "master": ""}]):
        text = json.dumps(of_ranges(ranges)).encode()
        try:
            expected: object = told(load_topology(text, name="x"))
        except ConfigError as error:
            expected = error.problems
        try:
            got: object = told(Reading("x", BUILTIN).topology(text, at_once=False))
        except ConfigError as error:
            got = error.problems
        assert got == expected


@pytest.mark.usefixtures("always_apart")
def test_without_a_process_it_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(of_ranges(many(3))).encode()
    expected = told(load_topology(text))
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert told(Reading("x", BUILTIN).topology(text, at_once=False)) == expected
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert told(Reading("x", BUILTIN).topology(text, at_once=False)) == expected


@pytest.mark.usefixtures("always_apart")
def test_who_stops_does_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    source = Reading("x", BUILTIN)
    source.stop()
    with pytest.raises(ConfigError, match="is stopping"):
        source.topology(b"{}", at_once=False)


def test_what_was_read_is_not_read_again() -> None:
    text = json.dumps(of_ranges(many(3))).encode()
    source = Reading("x", BUILTIN)
    assert source.topology(text, at_once=True) is source.topology(bytes(bytearray(text)), at_once=True)


def test_the_program_reduces_first() -> None:
    text = json.dumps(of_ranges(many(LEAST))).encode()
    first = found(Task(text, "x")).reduced
    assert first is not None
    assert told(read_reduced(first, BUILTIN)) == told(load_topology(text))
    assert found(Task(b"{", "x")).problems
    assert found(Task(json.dumps(of_ranges(many(3))).encode(), "x")).reduced is None
