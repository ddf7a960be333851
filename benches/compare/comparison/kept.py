"""What was measured last of each row: one run may be of some rows only, and the page has all of them."""

import datetime
import json
import os
import platform
from pathlib import Path

from comparison.clients import ALL, BUILT, VERSIONS


# With more cores than this in use by others before the first run, operations per second and the 99th percentile are the
# scheduler's. What holds then: processor's time for each operation, medians of times, memory, system calls.
BUSY = 0.25


class Kept:
    """Where it is kept, apart for each choice of clients."""

    def __init__(self, clients):
        self.place = BUILT / "rows" / ("all" if set(clients) == set(ALL) else ",".join(sorted(clients)))
        self.calls = self.place / "system calls"

    def keep(self, row, by_client, reasons, options):
        write(self.place / row.key, {
            "date": str(datetime.date.today()), "commit": VERSIONS["ours"], "machine": machine(), "busy": options.busy,
            "rounds": f"{options.runs} interleaved runs of {options.seconds} s each",
            "reports": {name: by_style for (key, name), by_style in by_client.items() if key == row.key},
            "reasons": {name: why for (key, name), why in reasons.items() if key == row.key},
        })

    def keep_calls(self, calls):
        write(self.calls, [[name, count, value] for (name, count), value in calls.items()])

    def records(self, rows):
        """By row, for those that were measured."""
        paths = {row.key: self.place / row.key for row in rows}
        return {key: json.loads(path.read_text()) for key, path in paths.items() if path.exists()}

    def calls_of_gets(self):
        calls = json.loads(self.calls.read_text()) if self.calls.exists() else []
        return {(name, count): value for name, count, value in calls}


def how(record):
    """When a row was measured, of which commit, how, and on what."""
    busy = [f"while others used {record['busy']:.2f} cores"] if record["busy"] > BUSY else []
    return ", ".join((record["date"], record["commit"], "medians of " + record["rounds"], record["machine"], *busy))


def machine():
    models = (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return f"Linux {platform.release()}, {os.cpu_count()} cores ({next(models, platform.machine())})"


def write(path, content):
    """At once or not at all: a run may be ended at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content))
    beside.replace(path)
