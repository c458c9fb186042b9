#!/usr/bin/env python3
"""Draws docs/grid.svg: flight and flight-rw beside the fastest other lock on simulated machines.

usage: docs/grid_chart.py FILE      (FILE: docs/performance.md)

The figures are those of the table of ratios in FILE, which `./dev grid` measures. Prints the
picture. Exit codes: 0 fine, 2 bad usage or a file without that table.
"""

import math
import re
import sys

WIDTH, LEFT, RIGHT, TOP, ROW = 720, 210, 40, 74, 34
LEAST, MOST = 0.3, 30.0
TICKS = (0.5, 1, 2, 5, 10, 20)
INK, GREY, FASTER, SLOWER = "#1f2a35", "#5b6b7b", "#2b7a4b", "#b3402f"


def rows_of(text):
    """(lock, share of writers, cells, median, least) of each row of the table."""
    found = re.findall(r"(?m)^\| `(flight|flight-rw)` \| ([\d.]+ %) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$",
                       text)
    return [(lock, writers, int(cells), float(median), float(least))
            for lock, writers, cells, median, least in found]


def x_of(ratio):
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / LEAST) / math.log(MOST / LEAST)


def colour_of(ratio):
    return FASTER if ratio >= 1 else SLOWER


def text_at(x, y, words, anchor="start", colour=INK, size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}" font-weight="{weight}">{words}</text>')


def row_at(y, lock, writers, median, least):
    return [
        text_at(LEFT - 14, y + 4, f"{lock}, {writers} write", "end"),
        f'<line x1="{x_of(least):.1f}" x2="{x_of(median):.1f}" y1="{y}" y2="{y}" '
        f'stroke="{GREY}" stroke-width="2"/>',
        f'<line x1="{x_of(least):.1f}" x2="{x_of(least):.1f}" y1="{y - 6}" y2="{y + 6}" '
        f'stroke="{colour_of(least)}" stroke-width="2"/>',
        f'<circle cx="{x_of(median):.1f}" cy="{y}" r="5" fill="{colour_of(median)}"/>',
        text_at(x_of(least) - 5, y + 4, f"{least:g}", "end", colour_of(least), 11),
        text_at(x_of(median) + 9, y + 4, f"{median:g}", "start", colour_of(median), 12, "bold"),
    ]


def picture_of(rows):
    cells = rows[0][2]
    bottom = TOP + ROW * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 44}" '
        f'width="{WIDTH}" height="{bottom + 44}" font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{bottom + 44}" fill="#ffffff"/>',
        text_at(16, 24, "Throughput divided by that of the fastest other lock", size=14, weight="bold"),
        text_at(16, 44, f"dot: median of {cells} cells (simulated machine, ranks, locks); tick: the worst "
                "cell", colour=GREY),
    ]
    for tick in TICKS:
        x = x_of(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 10}" y2="{bottom - 6}" '
                   f'stroke="{INK if tick == 1 else "#dde3e8"}" stroke-width="1"/>')
        out.append(text_at(x, bottom + 10, f"{tick:g}", "middle", GREY, 11))
    out.append(text_at(x_of(1) - 8, bottom + 30, "slower", "end", SLOWER))
    out.append(text_at(x_of(1) + 8, bottom + 30, "faster than every other lock", "start", FASTER))
    for i, (lock, writers, _, median, least) in enumerate(rows):
        out += row_at(TOP + ROW * i + 8, lock, writers, median, least)
    return "\n".join([*out, "</svg>"]) + "\n"


def main(arguments):
    if len(arguments) != 1:
        print("usage: docs/grid_chart.py FILE (docs/performance.md)", file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        rows = rows_of(file.read())
    if not rows:
        print(f"docs/grid_chart.py: {arguments[0]} has no table of ratios", file=sys.stderr)
        return 2
    sys.stdout.write(picture_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
