"""The benchmark of merges: what it makes is what servers send, and all of it arrives."""

from __future__ import annotations

import pytest

from bench.merging import CASES, Case, merge, pieces, reply
from tests.wire.streams import cut_packets, read_reply


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_rows_arrive(case: Case) -> None:
    whole = [reply(case, run, 1500) for run in range(3)]
    streams = [pieces(one, 4000) for one in whole]
    assert [b"".join(stream) for stream in streams] == whole
    assert all(cut_packets(piece)[-1][0] == len(piece) for stream in streams for piece in stream)
    assert [len(read_reply(one).rows) for one in whole] == [1500] * 3
    used, rows, size = merge(case, streams)
    assert used > 0
    assert rows == 4500
    assert 0 < size < sum(map(len, whole))
