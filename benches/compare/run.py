#!/usr/bin/env python3
"""Measures ZooKeeper clients side by side and says so in docs/performance.md.

    benches/compare/run.py --runs 5 --seconds 3 --write

Builds what it needs, starts a server for each setting, and runs every client's program in turn, round after round, so
that whatever else the machine does hits all of them: the client pinned to one core, the server to another. Figures are
medians of the rounds, ratios are of medians, and the spread is between the smallest and the largest of the rounds.
What cannot be built or run is listed with the reason.

    comparison/rows.py       what is measured
    comparison/clients.py    who is measured, and how each is built
    comparison/measuring.py  servers, and clients' programs in turn
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
import json
import os
import resource
import signal
import sys
import time
from fnmatch import fnmatch

sys.dont_write_bytecode = True

from comparison import core, data, growth
from comparison.clients import ALL, BUILT, CLIENTS, MISSING, ROOT, build
from comparison.figures import Results
from comparison.measuring import calls_of_gets, collect
from comparison.page import page
from comparison.rows import rows


def main():
    # As an interrupt does: what runs at the moment is ended too, instead of keeping a core busy.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--warm-up", default="2")
    parser.add_argument("--only", help="rows, such as `get-*-instant,lock*`")
    parser.add_argument("--clients", default=",".join(ALL), help="who is measured")
    parser.add_argument("--settle", default="60", help="seconds between building and measuring, for the load to fall")
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
    options.load = os.getloadavg()[0]
    for name in [name for name in CLIENTS if name not in wanted]:
        del CLIENTS[name]
    chosen = [row for row in rows() if not options.only or any(fnmatch(row.key, part) for part in options.only.split(","))]
    by_client, reasons = collect(chosen, options)
    calls = {} if options.no_calls else calls_of_gets()
    if not options.no_core and (why := core.bench(float(options.seconds))):
        MISSING["codec and session alone"] = why
    text, table, plot = page(options, Results(chosen, by_client, reasons, calls))
    print(text)
    raw = {f"{row} {name}": by_style for (row, name), by_style in by_client.items()}
    (BUILT / "results.json").write_text(json.dumps(raw))
    if plot:
        (BUILT / growth.PLOT).write_text(plot)
    if options.write:
        (ROOT / "docs/performance.md").write_text(text)
        (ROOT / "docs" / data.NAME).write_text(table)
        if plot:
            (ROOT / "docs" / growth.PLOT).write_text(plot)


main()
