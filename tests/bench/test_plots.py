"""Plots: well-formed, with every point in its place; and those in docs are of the figures beside them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from bench import figures
from bench.plots import BOTTOM, LEFT, LINE, RIGHT, TOP, Plot, Point, Series, svg

SVG = "{http://www.w3.org/2000/svg}"
PLOT = Plot(
    "Rows & <columns>",
    "rows",
    "µs a statement",
    (
        Series("shardgate", (Point(1, 10, 8, 12), Point(10, 20, 20, 20), Point(100, 40, 30, 80))),
        Series("HAProxy", (Point(1, 9, 9, 9), Point(100, 41, 40, 42))),
        Series("another", (Point(10, 5, 4, 6),)),
    ),
    ("2026-11-23, load 1 & more",),
)


def circles(plot: Plot) -> list[list[tuple[float, float]]]:
    """The points drawn, by series."""
    groups = ET.fromstring(svg(plot)).findall(f"{SVG}g")
    return [
        [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in group.iter(f"{SVG}circle")]
        for group in groups
    ]


def texts(plot: Plot) -> list[str]:
    return ["".join(one.itertext()) for one in ET.fromstring(svg(plot)).iter(f"{SVG}text")]


@pytest.mark.parametrize("log_x", [True, False])
@pytest.mark.parametrize("log_y", [True, False])
def test_every_point_is_drawn_in_its_place(log_x: bool, log_y: bool) -> None:
    drawn = circles(replace(PLOT, log_x=log_x, log_y=log_y))
    assert [len(one) for one in drawn] == [3, 2, 1]
    for points in drawn:
        assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in points)
    first, second, third = drawn[0]
    assert (first[0], third[0]) == (LEFT, RIGHT)
    assert first[1] > second[1] > third[1]  # up is less
    assert (second[0] == pytest.approx((LEFT + RIGHT) / 2)) == log_x
    assert (first[1] - second[1] == pytest.approx(second[1] - third[1], abs=0.2)) == log_y


def test_a_linear_axis_begins_at_nothing() -> None:
    (first, second, _), *_ = circles(PLOT)
    assert BOTTOM - second[1] == pytest.approx(2 * (BOTTOM - first[1]), abs=0.2)


def test_texts_tell_what_is_drawn() -> None:
    said = texts(PLOT)
    assert {"Rows & <columns>", "rows", "µs a statement", "2026-11-23, load 1 & more", "100"} <= set(said)
    assert {"shardgate", "HAProxy", "another"} <= set(said)
    assert "<title>shardgate, 100: 40 (30–80)</title>" in svg(PLOT)


def test_colours_for_light_and_for_dark() -> None:
    light, _, dark = svg(PLOT).partition("@media (prefers-color-scheme:dark)")
    colour = re.compile(r"\.s0 path,\.s0 line\{stroke:(#\w+)\}")
    assert colour.findall(light) != colour.findall(dark)
    assert len(set(re.findall(r"\.s\d path,\.s\d line\{stroke:(#\w+)\}", light))) == 3


def test_names_do_not_cover_each_other() -> None:
    ends = [Point(1, 100 + n / 100, 100, 101) for n in range(6)]
    root = ET.fromstring(
        svg(replace(PLOT, series=tuple(Series(f"n{n}", (one,)) for n, one in enumerate(ends))))
    )
    places = sorted(
        float(one.get("y", "")) for one in root.iter(f"{SVG}text") if one.get("class", "").startswith("n")
    )
    assert len(places) == 6
    assert all(below - above >= LINE - 0.1 for above, below in itertools.pairwise(places))


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        svg(replace(PLOT, series=()))
    with pytest.raises(ValueError, match="0 has no place on a logarithmic axis"):
        svg(replace(PLOT, log_y=True, series=(Series("a", (Point(1, 0, 0, 0),)),)))


def test_a_single_point_is_enough() -> None:
    ((place,),) = circles(replace(PLOT, series=PLOT.series[2:]))
    assert place[0] == (LEFT + RIGHT) / 2


def test_docs_show_the_plots_of_the_figures_kept() -> None:
    """After a change of either: python -m bench.figures"""
    known = figures.documents()
    made = {name: text for document in known for name, text in figures.plots(document)}
    kept = {file.name: file.read_text(encoding="utf-8") for file in figures.PLOTS.glob("*.svg")}
    assert kept == made
    assert (figures.PLOTS / figures.PAGE).read_text(encoding="utf-8") == figures.page(known)
    shown = (figures.PLOTS.parent / "benchmarks.md").read_text(encoding="utf-8")
    assert all(f"(plots/{name})" in shown for name in made)


def test_figures_carry_how_they_were_measured() -> None:
    for document in figures.documents():
        when, programs, how = figures.notes(document)
        assert re.match(r"20\d\d-\d\d-\d\d, \d+ × .+, kernel .+, load [\d.]+–[\d.]+; commit \w+", when)
        assert re.search(r"(MariaDB|MySQL) \d+", programs)
        assert re.match(r"\d+ rounds? of \d+ s", how)
