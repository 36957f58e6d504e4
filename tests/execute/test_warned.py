"""Warnings of a text are told once, those of rows for each."""

from proxy.engine.warned import Told
from proxy.session.outcome import Diagnostic

OLD = Diagnostic("Warning", 1287, "'BINARY expr' is deprecated")
NATIONAL = Diagnostic("Warning", 3720, "NATIONAL implies")
ROW = Diagnostic("Warning", 1292, "Truncated incorrect DOUBLE value: 'x'")


def test_a_text_that_says_it_twice_is_told_twice() -> None:
    told = Told()
    told.count = 16
    told.add([OLD, NATIONAL, NATIONAL, ROW] * 3, shards=3)
    assert told.diagnostics == [OLD, NATIONAL, NATIONAL, ROW, ROW, ROW]
    told.add([OLD, NATIONAL, NATIONAL, ROW], shards=1)
    assert told.diagnostics == [OLD, NATIONAL, NATIONAL, ROW, ROW, ROW, ROW]
    assert told.count == 7


def test_what_a_server_has_cut_short_is_told_once() -> None:
    told = Told()
    told.count = 3
    told.add([OLD], shards=3)
    assert (told.diagnostics, told.count) == ([OLD], 3)
