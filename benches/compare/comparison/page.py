"""docs/performance.md, and the data beside it."""

import os
import platform
from pathlib import Path

from comparison import codec, data, growth, targets
from comparison.clients import MISSING, VERSIONS
from comparison.figures import tables
from comparison.kept import each
from comparison.measuring import MORE

# With more cores than this in use by others before the first run, figures are not to be trusted.
BUSY = 0.25


def page(records, results):
    """The page, its data, and the plot that it shows. `records`: how each row was measured."""
    grown, plot = growth.section(results)
    aims = targets.targets(results, codec.targets(), growth.targets(results))
    lines = ["# Performance", "", "Written by `benches/compare/run.py`; do not edit.", "", *about(records), "",
             "## What is aimed at", "", *targets.table(aims), *codec.section(), *grown, "", "## Throughput, latency, memory", *tables(results),
             *system_calls(results.calls)]
    if MISSING:
        lines += ["", "## Not measured", ""] + [f"* {name}: {why}" for name, why in MISSING.items()]
    return *data.parted("\n".join(lines) + "\n"), plot


def about(records):
    dates, busy = each(records, "date"), max(each(records, "busy"), default=0)
    known = sum("busy" in record for record in records.values())
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    commits = ", ".join(each(records, "commit")).replace(", commit", ",")
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    yield (f"* {when}, {commits}, Linux {platform.release()}, {os.cpu_count()} cores ({cpu}); "
           f"others used {busy:.2f} cores before the first run at most, as far as known ({known} of {len(records)} rows)")
    yield ("* client pinned to one core, server to the other, unless it says otherwise; medians of "
           f"{', or of '.join(each(records, 'rounds'))}")
    yield "* real servers: `forceSync=no`, data on a RAM disk, `nio.numWorkerThreads=0` unless it says otherwise"
    yield (f"* ratios, round by round: the median, and of aims the least and the most; {MORE} more rounds of null and ours where a few percent matter")
    yield "* null writes requests that were encoded once and counts replies: the upper bound. null-tokio does that on tokio"
    yield "* " + "; ".join(f"{name}: {version}" for name, version in VERSIONS.items() if name != "ours")
    if busy > BUSY:
        yield ""
        yield ("**The machine was busy with other things.** Operations per second and the 99th percentile are the scheduler's, "
               "whose slices of 4 ms hit those most who sleep between requests on one thread. What holds: processor's time "
               "for each operation, medians of times, memory, system calls.")


def system_calls(calls):
    if not calls:
        return
    yield from ("", "## System calls for a get", "", "Instant server; whole process, counted by `perf stat`.", "",
                "| client | one at a time | 256 in flight |", "|---|---|---|")
    for name in dict.fromkeys(name for name, _ in calls):
        cells = ["" if calls[name, count] is None else f"{calls[name, count]:.3f}" for count in (1, 256)]
        yield f"| {name} | {cells[0]} | {cells[1]} |"
