"""What was measured, as data beside the page: each table's cells, one to a line. A run may be of some rows only: those of the
others are taken from there, with when and of which commit they were measured."""

import csv
import io
import re
from collections import Counter

from comparison import growth
from comparison.clients import FLOORS, ROOT

NAME = "performance.csv"
AIMS = "What is aimed at"
CALLS = "System calls for a get"
# A cell of ours in each row: when, of which commit, how, and on what it was measured.
MEASURED = "measured"


def parted(text, rows):
    """The page, with what matters of the tables, and all of the tables as data. `rows`: the titles that there are."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    titled = {section[3:].partition("\n")[0]: section for section in sections}
    figures = merged(before(), [row for title, section in titled.items() for row in cells(title, section)], rows)
    measured = {row: value for row, _, figure, value in figures if figure == MEASURED and row in rows}
    page = head.rstrip("\n") + "\n" + how(measured) + summary(figures) + missed(figures) + growth.section(figures)
    page += titled.get("Not measured", "## Not measured\n\n") + lacking(measured, rows)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("row", "client", "figure", "value"))
    writer.writerows(figures)
    return page.rstrip("\n") + "\n", lines.getvalue(), growth.picture(figures)


def before():
    path = ROOT / "docs" / NAME
    return [tuple(row) for row in csv.reader(path.open())][1:] if path.exists() else []


def merged(old, new, rows):
    """What is new in place of what was there of the same row, or of the same aim."""
    def is_lacking(group):
        return group[0][0] == AIMS and any(value == "not measured" for *_, figure, value in group if figure == "met")

    old, new = grouped(old), grouped(new)
    known = {key: group for key, group in old.items() if key not in new or is_lacking(new[key])}
    sections = [AIMS, "Records", growth.TITLE, *rows, CALLS]
    place = {title: index for index, title in enumerate(sections)}
    # A row that there is no more is left out.
    keys = [key for key in dict.fromkeys([*old, *new]) if key[0] in place]
    keys.sort(key=lambda key: place[key[0]])
    return [figure for key in keys for figure in known.get(key) or new[key]]


def grouped(figures):
    """By row; of what is aimed at, by aim; of what grows, by what does."""
    groups = {}
    for figure in figures:
        title, what, name, value = figure
        if title == AIMS and name == "aim":
            aim = value
        key = (title, what, aim) if title == AIMS else (title, what) if title == growth.TITLE else (title,)
        groups.setdefault(key, []).append(figure)
    return groups


def how(measured):
    """When, and of which commit, rows were measured: those of the same run together."""
    counts = sorted(Counter(measured.values()).items(), reverse=True)
    lines = [f"* {count} row{'s' * (count > 1)}: {value}" for value, count in counts]
    return "\n".join([*lines, "", ""])


def lacking(measured, rows):
    missing = [row for row in rows if row not in measured]
    return f"* {len(missing)} rows: not yet: {'; '.join(missing)}\n" if missing else "* no row is missing\n"


def missed(figures):
    """The aims that are not reached."""
    groups = {key: group for key, group in grouped(figures).items() if key[0] == AIMS}
    aims = {key: {figure: value for _, _, figure, value in group} for key, group in groups.items()}
    others = {key: aim for key, aim in aims.items() if aim["met"] != "yes"}
    text = f"{len(aims) - len(others)} of {len(aims)} aims are met; [{NAME}]({NAME}) has all. These are not:"
    names = ("aim", "measured", "met", "command")
    table = (" | ".join(["", what, *(aim.get(name, "") for name in names), ""]).strip() for (_, what, _), aim in others.items())
    return "\n".join(["## Aims", "", text, "", f"| what | {' | '.join(names)} |", "|---|---|---|---|---|", *table, "", ""])


def cells(title, section):
    """Row, client, figure and value of each cell of a section's tables."""
    header = None
    for line in section.splitlines():
        if line.startswith("### "):
            title = line[4:]
        if not line.startswith("|"):
            header = None
            if line.startswith("ours: "):
                yield from ((title, "ours", *part.rsplit(": ", 1)) for part in line[6:].split("; "))
            continue
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if header is None:
            header = row
        elif not set(row[0]) <= {"-"}:
            yield from ((title, row[0], figure, value) for figure, value in zip(header[1:], row[1:]) if value)


def summary(figures):
    """Ours beside the best of the others, and beside what is possible."""
    ratios = {}
    for row, client, figure, value in figures:
        if figure == "ours is":
            ratios.setdefault(row, {})[client.split(" (")[0]] = float(value.rstrip(" x"))
    values = {(row, client.split(" (")[0]): f"{value} {figure}" for row, client, figure, value in figures
              if figure in ("ops/s", "µs", "KiB")}
    lines = ["## Beside other clients", "",
             f"Above 1 is in our favour. [{NAME}]({NAME}) has every client, ranges, latency, processor time and memory.", "",
             "| row | ours | to the best peer | to null |", "|---|---|---|---|"]
    for row, by_client in ratios.items():
        peers = {client: ratio for client, ratio in by_client.items() if client not in (*FLOORS, "ours")}
        best = min(peers, key=peers.get, default=None)
        if not best:
            continue
        peer = f"{peers[best]:.2f} x ({best})"
        null = f"{by_client['null']:.2f} x" if "null" in by_client else ""
        lines.append(f"| {row} | {values[row, 'ours']} | {peer} | {null} |")
    return "\n".join([*lines, "", ""])
