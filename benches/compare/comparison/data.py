"""What was measured, as data beside the page: each table's cells, one to a line."""

import csv
import io
import re

from comparison.clients import FLOORS

# Sections that a reader of the page wants: the others are data.
SHOWN = ("What is aimed at", "Growth", "Not measured")
NAME = "performance.csv"


def parted(text):
    """The page with a line for each row in place of its tables, and the tables as data."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    titled = [(section[3:].partition("\n")[0], section) for section in sections]
    kept = {title: section for title, section in titled if title in SHOWN}
    figures = [row for title, section in titled for row in cells(title, section)]
    page = head + kept["What is aimed at"] + summary(figures) + "".join(kept.get(title, "") for title in SHOWN[1:])
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("row", "client", "figure", "value"))
    writer.writerows(figures)
    return page, lines.getvalue()


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
    lines = ["## All rows", "",
             f"Above 1 is in our favour. The whole of it is in [{NAME}]({NAME}): every client, ranges, latency, processor's time, memory.", "",
             "| row | ours | to the best peer | to null |", "|---|---|---|---|"]
    for row, by_client in ratios.items():
        peers = {client: ratio for client, ratio in by_client.items() if client not in (*FLOORS, "ours")}
        best = min(peers, key=peers.get, default=None)
        peer = f"{peers[best]:.2f} x ({best})" if best else ""
        null = f"{by_client['null']:.2f} x" if "null" in by_client else ""
        lines.append(f"| {row} | {values[row, 'ours']} | {peer} | {null} |")
    return "\n".join([*lines, "", ""])
