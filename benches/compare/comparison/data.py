"""What was measured, as data beside the page: each table's cells, one to a line."""

import csv
import io
import re

from comparison.clients import FLOORS

NAME = "performance.csv"


def parted(text):
    """The page, with what matters of the tables, and all of the tables as data."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    titled = {section[3:].partition("\n")[0]: section for section in sections}
    figures = [row for title, section in titled.items() for row in cells(title, section)]
    growth = "".join(line for line in titled.get("Growth", "").splitlines(keepends=True) if not line.startswith("|"))
    page = head + summary(figures) + missed(titled["What is aimed at"]) + growth + titled.get("Not measured", "")
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("row", "client", "figure", "value"))
    writer.writerows(figures)
    return page.rstrip("\n") + "\n", lines.getvalue()


def missed(section):
    """The aims that are not reached."""
    table = [line for line in section.splitlines() if line.startswith("|")]
    header, rows = table[:2], table[2:]
    met = [line for line in rows if "| yes |" in line]
    text = f"{len(met)} of {len(rows)} aims are met; [{NAME}]({NAME}) has all. These are not:"
    return "\n".join(["## Aims", "", text, "", *header, *(line for line in rows if line not in met), "", ""])


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
