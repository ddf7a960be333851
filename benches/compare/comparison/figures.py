"""From reports to tables."""

import statistics

from comparison.clients import FLOORS
from comparison.kept import how

# Units as readers know them, and what only some workloads have.
UNITS = {"ops_per_second": "ops/s", "p50_us": "µs", "p99_us": "µs", "seconds_to_all": "s until all are connected", "resident_kib_grown": "KiB"}
BESIDES = {
    "seconds_to_form": "seconds until all wait",
    "requests_to_form": "requests until all wait",
    "requests_seen": "requests meanwhile",
    "resident_kib_grown": "resident memory grown, KiB",
    "peak_kib_grown_meanwhile": "peak grown meanwhile, KiB",
    "longest_silence_ms": "longest silence of a session, ms",
    "cpu_share": "share of a core",
    "p999_us": "p99.9, µs",
    "longest_us": "longest, µs",
    "seconds_down": "seconds without a server",
    "seconds_to_half": "seconds until half are connected",
    "dials": "dials",
    "sessions_lost": "sessions lost",
    "times_gets": "time to follow, of that of as many gets",
    "bytes_per_node": "path, data and metadata of a node, bytes",
    "resident_per_node": "resident memory per node, bytes",
    "requests_per_change": "requests for a change, the writer's among them",
    "us_per_change": "from a write to its event, µs",
}
# In a run in which allocations are counted.
COUNTS = {
    "allocations_per_op": "allocations per operation",
    "heap_per_session": "heap per session, bytes",
    "heap_per_watch": "heap per watch, bytes",
    "heap_per_waiter": "heap per waiter, bytes",
    "heap_per_node": "heap per node, bytes",
}
# Workloads whose operations are as many as allocations are to be told of.
PER_OPERATION = ("get", "list", "set")
# Workloads that say more than others, and of which.
TELLING = {"steady": ("p999_us", "longest_us"), "idle": ("longest_silence_ms", "cpu_share"), "cohort": ("requests_seen",),
           "cache": ("times_gets", "requests_seen", "bytes_per_node", "resident_per_node", "requests_per_change", "us_per_change"),
           "storm": ("seconds_down", "seconds_to_half", "dials", "sessions_lost"),
           "reconnect": ("requests_seen", "resident_kib_grown", "peak_kib_grown_meanwhile"),
           "waiters": ("seconds_to_form", "requests_to_form", "requests_seen", "resident_kib_grown")}


class Figure:
    """The rounds of one client in one row."""

    def __init__(self, row, by_style):
        self.unit = row.unit
        medians = {style: statistics.median(report[row.unit] for report in reports) for style, reports in by_style.items()}
        self.style = row.best(medians, key=medians.get)
        self.reports = by_style[self.style]
        values = [report[row.unit] for report in self.reports]
        self.value, self.least, self.most = statistics.median(values), min(values), max(values)
        self.cpu, self.p50, self.p99 = (self.median(name) for name in ("cpu_us_per_op", "p50_us", "p99_us"))

    def beside(self, other, name):
        """This to another client in a figure, round by round, since what else the machine does differs from round to round:
        the median of the ratios, the least and the most; None without a round in which both were measured."""
        others = {report["round"]: report[name] for report in other.reports if report.get(name)}
        ratios = [report[name] / others[report["round"]] for report in self.reports if report["round"] in others]
        return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None

    def median(self, name):
        """Of something else that was reported; None if it was not."""
        values = [report[name] for report in self.reports if report.get(name) is not None]
        return statistics.median(values) if values else None


class Results:
    """All that was measured, by row and client."""

    def __init__(self, rows, records, calls):
        self.rows = {row.key: row for row in rows if row.key in records}
        self.calls = calls
        self.how = {key: how(records[key]) for key in self.rows}
        by_client = lambda name: {(key, client): it for key in self.rows for client, it in records[key][name].items()}
        self.reasons = by_client("reasons")
        self.figures = {(key, client): Figure(self.rows[key], by_style) for (key, client), by_style in by_client("reports").items()}

    def of(self, key, name="ours"):
        return self.figures.get((key, name))

    def in_row(self, key):
        names = [*self.rows[key].clients] if key in self.rows else []
        return {name: self.figures[key, name] for name in names if (key, name) in self.figures}

    def peers(self, key):
        return {name: it for name, it in self.in_row(key).items() if name not in (*FLOORS, "ours")}


def number(value):
    if value is None:
        return ""
    if value >= 10_000:
        return f"{value / 1000:,.0f} k".replace(",", " ")
    return f"{value / 1000:.1f} k" if value >= 1000 else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def tables(results):
    lines = []
    for row in results.rows.values():
        figures = results.in_row(row.key)
        if "ours" not in figures:
            if row.key in {key for key, _ in results.reasons}:
                why = results.reasons.get((row.key, "ours"), "")
                lines += ["", f"### {row.title}", "", f"not measured: {why}"]
            continue
        lines += ["", f"### {row.title}", "", *table(row, figures)]
        for name in row.clients:
            if (row.key, name) in results.reasons and name not in figures:
                lines.append(f"\n{name}: not measured: {results.reasons[row.key, name]}")
        more = [f"{BESIDES[name]}: {number(value)}" for name in TELLING.get(row.task[0], ())
                if (value := figures["ours"].median(name)) is not None]
        counted = results.of(row.key, "counted")
        names = [name for name in COUNTS if name != "allocations_per_op" or row.task[0] in PER_OPERATION]
        more += [f"{COUNTS[name]}: {number(value)}" for name in names if counted and (value := counted.median(name)) is not None]
        lines += ["", "ours: " + "; ".join([*more, f"measured: {results.how[row.key]}"])]
    return lines


def table(row, figures):
    ours = figures["ours"]
    yield f"| client | {UNITS[row.unit]} | least to most | ours is | CPU, µs/op | p50, µs | p99, µs | p99/p50 |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, it in sorted(figures.items(), key=lambda item: item[1].value, reverse=row.best is max):
        # Round by round: servers get slower, and of some clients there are more rounds.
        beside = ours.beside(it, row.unit) if row.best is max else it.beside(ours, row.unit)
        ratio = f"{beside[0]:.2f} x" if beside else ""
        style = f" ({it.style})" if it.style else ""
        tail = f"{it.p99 / it.p50:.1f}" if it.p50 and it.p99 else ""
        yield (f"| {name}{style} | {number(it.value)} | {number(it.least)} to {number(it.most)} | {ratio} | "
               f"{it.cpu:.2f} | {number(it.p50)} | {number(it.p99)} | {tail} |")
