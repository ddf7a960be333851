"""What was measured last of each row: one run may be of some rows only, and the page has all of them."""

import datetime
import json

from comparison.clients import ALL, BUILT, VERSIONS


class Kept:
    """Where it is kept, apart for each choice of clients."""

    def __init__(self, clients):
        self.place = BUILT / "rows" / ("all" if set(clients) == set(ALL) else ",".join(sorted(clients)))
        self.calls = self.place / "system calls"

    def keep(self, row, by_client, reasons, options):
        write(self.place / row.key, {
            "date": str(datetime.date.today()), "commit": VERSIONS["ours"], "busy": options.busy,
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


def each(records, name):
    """What rows were measured with: each value once."""
    return sorted({record[name] for record in records.values() if name in record})


def write(path, content):
    """At once or not at all: a run may be ended at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content))
    beside.replace(path)
