#!/usr/bin/env python3
"""Measures ZooKeeper clients side by side and says so in docs/performance.md.

    benches/compare/run.py --runs 5 --seconds 3 --write

Builds what it needs, starts a server for each setting, and runs every client's program in turn, round after round, so
that whatever else the machine does hits all of them: the client pinned to one core, the server to another. Figures are
medians of the rounds, ratios are of medians, and the spread is between the smallest and the largest of the rounds.
What cannot be built or run is listed with the reason. A run may be of some rows (`--only`): what was measured last of
each is kept in target/rows, and what others have measured stands in docs/performance.csv, from where the page takes it.

    comparison/rows.py       what is measured
    comparison/clients.py    who is measured, and how each is built
    comparison/measuring.py  servers, and clients' programs in turn
    comparison/kept.py       what was measured last
    comparison/figures.py    from reports to tables
    comparison/targets.py    what is aimed at, and whether it is reached
    comparison/core.py       what the core costs alone
    comparison/codec.py      what records cost beside copying the same bytes
    comparison/growth.py     what one costs, by how many there are
    comparison/plot.py       that as a picture
    comparison/page.py       docs/performance.md
    comparison/data.py       docs/performance.csv
"""

import argparse
import os
import resource
import signal
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

sys.dont_write_bytecode = True

from comparison import core, data, growth
from comparison.clients import ALL, BUILT, CLIENTS, MISSING, ROOT, build
from comparison.figures import Results
from comparison.kept import Kept
from comparison.measuring import by_server, calls_of_gets, collect
from comparison.page import page
from comparison.rows import rows


def cores_in_use():
    """How many others use, while nothing of ours runs. The load average would have what we have just done in it."""
    def ticks():
        user, nice, system, idle, waiting, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
        return user + nice + system, idle + waiting
    busy, idle = ticks()
    time.sleep(3)
    busy, idle = ticks()[0] - busy, ticks()[1] - idle
    return busy / max(busy + idle, 1) * os.cpu_count()


def main():
    # As an interrupt does: what runs at the moment is ended too, instead of keeping a core busy.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--warm-up", default="2")
    parser.add_argument("--only", help="rows, such as `get-*-instant,lock*`")
    parser.add_argument("--clients", default=",".join(ALL), help="who is measured")
    parser.add_argument("--settle", default="60", help="seconds between building and measuring")
    parser.add_argument("--no-calls", action="store_true", help="does not count system calls")
    parser.add_argument("--no-core", action="store_true", help="does not measure codec and session alone; takes what was measured last")
    parser.add_argument("--write", action="store_true", help="writes docs/performance.md")
    options = parser.parse_args()
    # A socket for each session, on both sides.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wanted = options.clients.split(",")
    build(wanted)
    time.sleep(float(options.settle))
    options.busy = cores_in_use()
    for name in [name for name in CLIENTS if name not in wanted]:
        del CLIENTS[name]
    chosen = [row for row in rows() if not options.only or any(fnmatch(row.key, part) for part in options.only.split(","))]
    kept = Kept(wanted)
    for server, group in by_server(chosen):
        by_client, reasons = collect(server, group, options)
        for row in group:
            kept.keep(row, by_client, reasons, options)
    if not options.no_calls:
        kept.keep_calls(calls_of_gets())
    if not options.no_core and (why := core.bench(float(options.seconds))):
        MISSING["codec and session alone"] = why
    everything = list(rows())
    records = kept.records(everything)
    text, table, plot = page(Results(everything, records, kept.calls_of_gets()))
    print(text)
    if plot:
        (BUILT / growth.PLOT).write_text(plot)
    if options.write:
        (ROOT / "docs/performance.md").write_text(text)
        (ROOT / "docs" / data.NAME).write_text(table)
        if plot:
            (ROOT / "docs" / growth.PLOT).write_text(plot)


main()
