"""docs/performance.md, and the data beside it."""

from comparison import codec, data, growth, targets
from comparison.clients import MISSING, VERSIONS
from comparison.figures import tables
from comparison.measuring import MORE
from comparison.rows import rows


def page(results):
    """The page, its data, and the plot that it shows."""
    aims = targets.targets(results, codec.targets(), growth.targets(results))
    lines = ["# Performance", "", "Written by `benches/compare/run.py`; do not edit.", "", *about(), "",
             "## What is aimed at", "", *targets.table(aims), *codec.section(), *growth.table(results), "", "## Throughput, latency, memory", *tables(results),
             *system_calls(results.calls)]
    if MISSING:
        lines += ["", "## Not measured", ""] + [f"* {name}: {why}" for name, why in MISSING.items()]
    return data.parted("\n".join(lines) + "\n", [row.title for row in rows()])


def about():
    yield "* client pinned to one core, server to the other, unless it says otherwise; a row is measured with all clients in turn"
    yield "* real servers: `forceSync=no`, data on a RAM disk, `nio.numWorkerThreads=0` unless it says otherwise"
    yield (f"* ratios, round by round: the median, and of aims the least and the most; {MORE} more rounds of null and ours where a few percent matter")
    yield "* null writes requests that were encoded once and counts replies: the upper bound. null-tokio does that on tokio"
    yield "* " + "; ".join(f"{name}: {version}" for name, version in VERSIONS.items() if name != "ours")


def system_calls(calls):
    if not calls:
        return
    yield from ("", f"## {data.CALLS}", "", "Instant server; whole process, counted by `perf stat`.", "",
                "| client | one at a time | 256 in flight |", "|---|---|---|")
    for name in dict.fromkeys(name for name, _ in calls):
        cells = ["" if calls[name, count] is None else f"{calls[name, count]:.3f}" for count in (1, 256)]
        yield f"| {name} | {cells[0]} | {cells[1]} |"
