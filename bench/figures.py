"""Raw figures of `bench.growth` as JSON, the plots drawn of them, and the page with their tables.

What is in docs/plots is made of the JSON files there alone, so it can be made again at any time:

    python -m bench.figures
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.plots import Plot, Point, Series, shown, svg
from bench.report import number
from bench.workloads import FOLDER

PLOTS: Final = FOLDER.parent / "docs" / "plots"
PAGE: Final = "figures.md"
MEASURES: Final = {
    "cpu_us": "CPU time of the proxy, µs a statement",
    "p50_ms": "latency, ms, median of the statements",
    "p99_ms": "latency, ms, 99 % of the statements",
    "per_second": "statements a second",
    "rss_mb": "resident memory of the proxy, MB",
}
DRAWN: Final = {"cpu_us": "CPU time a statement", "p50_ms": "latency"}
RATIOS: Final = {
    "cpu_to_haproxy": "CPU time, shardgate / HAProxy",
    "p50_to_direct": "median latency, shardgate / direct",
}
HEAD: Final = """\
# Figures behind the plots

Medians over the rounds, with the least and the greatest in brackets; what was measured and how is in
[docs/benchmarks.md](../benchmarks.md#growth). This page and the plots are made of the JSON files beside them
by `python -m bench.figures`.
"""

Document = Mapping[str, Any]


def documents(folder: Path = PLOTS) -> list[Document]:
    """The raw figures in a folder, by name."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def save(document: Document, folder: Path = PLOTS) -> None:
    """Keep raw figures under their subject's name."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / f"{document['subject']}.json").write_text(text + "\n", encoding="utf-8")


def draw(folder: Path = PLOTS) -> list[Path]:
    """Write the plots and the page of all raw figures in a folder; the files written."""
    known = documents(folder)
    files = {name: text for document in known for name, text in plots(document)}
    files[PAGE] = page(known)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def plots(document: Document) -> Iterator[tuple[str, str]]:
    """The SVGs of a subject, with their files' names."""
    for measure, what in DRAWN.items():
        series = tuple(
            Series(name, tuple(Point(one["x"], *one[measure]) for one in points))
            for name, points in _measured(document, measure).items()
        )
        if not series:
            continue
        plot = Plot(
            f"{document['title']}: {what}",
            document["x_label"],
            MEASURES[measure],
            series,
            notes(document),
            log_y=measure in document["log"],
        )
        yield f"{document['subject']}-{measure.partition('_')[0]}.svg", svg(plot)


def _measured(document: Document, measure: str) -> dict[str, list[Document]]:
    """The lines that have a measure, with the points that have it."""
    lines = {name: [one for one in points if measure in one] for name, points in document["lines"].items()}
    return {name: points for name, points in lines.items() if points}


def notes(document: Document) -> tuple[str, ...]:
    """When, where, of what and how, in three lines."""
    machine, versions, options = document["machine"], document["versions"], document["options"]
    least, greatest = document["load"]
    programs = [versions["server"], _short("HAProxy", versions.get("haproxy")), f"Python {machine['python']}"]
    programs.append(f"uvloop {versions.get('uvloop', '–')}")
    rounds = "1 round" if options["rounds"] == 1 else f"{options['rounds']} rounds"
    clients = f", {options['threads']} clients" if options.get("threads") else ""
    return (
        f"{document['date'][:10]}, {machine['cores']} × {machine['cpu']}, kernel {machine['kernel']},"
        f" load {least:g}–{greatest:g}; commit {document['commit']}",
        "; ".join(one for one in programs if one),
        f"{rounds} of {options['seconds']} s{clients}; medians, whiskers from the least to"
        " the greatest; everything on loopback of one machine",
    )


def _short(name: str, version: str | None) -> str:
    """The number in ``HAProxy version 2.6.12-1 2026/10/17 - https://…``."""
    words = (version or "").split()
    found = next((word for word in words if word[:1].isdigit()), "")
    return f"{name} {found.partition('-')[0]}" if found else ""


def page(known: Sequence[Document]) -> str:
    """The page with all numbers, as Markdown."""
    parts = [HEAD]
    for document in known:
        parts.append(f"\n## {document['title']}\n\n" + "  \n".join(notes(document)) + "\n")
        for measure, title in MEASURES.items():
            lines = _measured(document, measure)
            if lines:
                parts.append(_table(document["x_label"], title, lines, measure))
        ratios = {
            RATIOS[name]: [one for one in points if "ratio" in one]
            for name, points in document["ratios"].items()
        }
        if ratios:
            parts.append(_table(document["x_label"], "round by round", ratios, "ratio"))
        parts += [f"\nNot measured: {one}\n" for one in document["failures"]]
    return "".join(parts)


def _table(x_label: str, title: str, lines: Mapping[str, Sequence[Document]], measure: str) -> str:
    values = sorted({one["x"] for points in lines.values() for one in points})
    rows = [[x_label, *lines], ["---:"] * (len(lines) + 1)]
    for x in values:
        cells = (next((one[measure] for one in points if one["x"] == x), None) for points in lines.values())
        rows.append([shown(x), *(_cell(one) for one in cells)])
    return f"\n{title}:\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(spread: Sequence[float] | None) -> str:
    if spread is None:
        return ""
    median, low, high = (number(one) for one in spread)
    return median if low == high else f"{median} ({low}–{high})"


if __name__ == "__main__":
    for path in draw():
        print(path)
