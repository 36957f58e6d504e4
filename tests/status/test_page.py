"""How the page writes numbers."""

from __future__ import annotations

import pytest

from proxy.status import page


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (page.duration, 0.4, "0 s"),
        (page.duration, 59, "59 s"),
        (page.duration, 725, "12 min 5 s"),
        (page.duration, 3600, "1 h"),
        (page.duration, 3605, "1 h 5 s"),
        (page.duration, 86400 * 3 + 3600 * 4 + 59, "3 d 4 h"),
        (page.latency, 0, "–"),
        (page.latency, 0.00009, "90 µs"),
        (page.latency, 0.00123, "1.23 ms"),
        (page.latency, 0.0408, "40.8 ms"),
        (page.latency, 2.5, "2.5 s"),
        (page.latency, 7410.7, "2 h 3 min"),
        (page.server, "5.5.5-10.11.19-MariaDB", "10.11.19-MariaDB"),
        (page.server, "", "–"),
        (page.number, 1234567, "1\u202f234\u202f567"),
        (page.percent, 0.99999, "99.9 %"),
        (page.percent, 1.0, "100 %"),
        (page.percent, 0.25, "25.0 %"),
        (page.rate, 0.0013, "0.0013"),
        (page.rate, 4321.9, "4\u202f321"),
        (page.size, 512, "512 B"),
        (page.size, 53 << 20, "53 MB"),
        (page.size, 3 << 30, "3.0 GB"),
        (page.cpu, 12.34, "12.3 s"),
        (page.cpu, 3700, "1 h 1 min"),
        (page.share, (1, 4), "25.0%"),
        (page.share, (0, 0), "0"),
        (page.moment, 0, "1970-01-01 00:00:00 UTC"),
        (page.refresh_of, "5", 5),
        (page.refresh_of, "7", 0),
        (page.refresh_of, "³", 0),
        (page.refresh_of, "-5", 0),
        (page.refresh_of, "9" * 5000, 0),
    ],
)
def test_format(function, value, text) -> None:
    assert function(value) == text


def test_every_host_has_a_hue_of_its_own() -> None:
    found = page.hues([f"db{number}" for number in range(24)])
    assert len(set(found.values())) == 24
    assert all(0 <= hue < 360 for hue in found.values())
