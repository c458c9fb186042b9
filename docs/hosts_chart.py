#!/usr/bin/env python3
"""Draws docs/hosts.svg: what a cluster of many hosts costs etcd, its agents and its waiters.

usage: docs/hosts_chart.py FILE      (FILE: docs/performance.md)

The figures are those of the table of hosts in FILE, which lab/perf/cluster_scale simulates. Prints
the picture. Exit codes: 0 fine, 2 bad usage or a file without that table.
"""

import math
import re
import sys

WIDTH, HEIGHT, LEFT, GAP, TOP, PANEL, DEPTH = 720, 520, 56, 72, 84, 286, 150
INK, GREY, LINE, REST, LOSS = "#1f2a35", "#5b6b7b", "#dde3e8", "#2b7a4b", "#b3402f"
HOSTS = (10, 1000)


def rows_of(text):
    """The numbers of each row of the table."""
    found = re.findall(r"(?m)^\| ([\d,]+) \| ([\d,]+) \|((?: [\d.,]+ \|){8})$", text)
    return [[float(cell.replace(",", "")) for cell in (hosts, lost, *rest.strip(" |").split(" | "))]
            for hosts, lost, rest in found]


def text_at(x, y, words, anchor="start", colour=INK, size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}" font-weight="{weight}">{words}</text>')


def share(value, least, most):
    return math.log(value / least) / math.log(most / least)


def panel_at(column, row, title, ticks, lines):
    """`lines` are (colour, [(hosts, value)...], place of the label of the last value)."""
    left, top = LEFT + column * (PANEL + GAP), TOP + row * (DEPTH + 70)
    x_of = lambda hosts: left + PANEL * share(hosts, *HOSTS)
    y_of = lambda value: top + DEPTH * (1 - share(value, ticks[0], ticks[-1]))
    out = [text_at(left - 40, top - 14, title, weight="bold")]
    for tick in ticks:
        out += [f'<line x1="{left}" x2="{left + PANEL}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}" '
                f'stroke="{LINE}" stroke-width="1"/>',
                text_at(left - 6, y_of(tick) + 4, f"{tick:,g}", "end", GREY, 11)]
    for hosts in (10, 30, 100, 300, 1000):
        out.append(text_at(x_of(hosts), top + DEPTH + 16, f"{hosts:,}", "middle", GREY, 11))
    for colour, points, above in lines:
        path = " ".join(f"{x_of(hosts):.1f},{y_of(value):.1f}" for hosts, value in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for hosts, value in points:
            out.append(f'<circle cx="{x_of(hosts):.1f}" cy="{y_of(value):.1f}" r="3.5" fill="{colour}"/>')
        hosts, value = points[-1]
        out.append(text_at(x_of(hosts) - 6, y_of(value) + (-7 if above else 15), f"{value:,g}", "end",
                           colour, 12, "bold"))
    return out


def picture_of(rows):
    line = lambda colour, column, above=True: (colour, [(row[0], row[column]) for row in rows], above)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text_at(16, 24, f"A cluster of {rows[0][0]:,g} to {rows[-1][0]:,g} hosts with a TTL of 10 s", size=14,
                weight="bold"),
        text_at(16, 44, "at rest", colour=REST, weight="bold"),
        text_at(66, 44, "and after a tenth of the hosts died at once", colour=LOSS, weight="bold"),
        *panel_at(0, 0, "Requests to etcd a second", (10, 100, 1000, 10000),
                  [line(REST, 2, False), line(LOSS, 6)]),
        *panel_at(1, 0, "Read from etcd, MB/s", (0.01, 0.1, 1, 10, 100, 1000, 10000),
                  [line(REST, 3, False), line(LOSS, 7)]),
        *panel_at(0, 1, "Seconds until all names can be used again", (1, 10, 100), [line(LOSS, 4)]),
        *panel_at(1, 1, "Memory of an agent, MB", (1, 10, 100, 1000), [line(REST, 9)]),
    ]
    out.append(text_at(WIDTH / 2, HEIGHT - 8, "hosts", "middle", GREY))
    return "\n".join([*out, "</svg>"]) + "\n"


def main(arguments):
    if len(arguments) != 1:
        print("usage: docs/hosts_chart.py FILE (docs/performance.md)", file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        rows = rows_of(file.read())
    if not rows:
        print(f"docs/hosts_chart.py: {arguments[0]} has no table of hosts", file=sys.stderr)
        return 2
    sys.stdout.write(picture_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
