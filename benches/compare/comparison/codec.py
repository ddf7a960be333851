"""What records cost on their way to bytes and back, beside copying the same bytes."""

import re
from dataclasses import dataclass

from comparison.core import BENCH, groups, nanoseconds
from comparison.targets import Target

# Copying, twice; and finding one's way in each record.
COPIES, NANOSECONDS = 2, 20
AIM = f"{COPIES} x memcpy + {NANOSECONDS} ns"

# What criterion's benchmark does with a record, what of it is copied for comparison, and what that is called here.
WAYS = {
    "encode": {"record": ("record copied", "encode of hot records"),
               "frame": ("frame copied", "encode of hot records, as frames and written")},
    "decode": {"record": ("record copied", "decode of hot records, borrowed"),
               "shared": ("record copied", "decode of hot records, sharing the frame's memory"),
               "walked": ("record copied", "decode of hot records, and of each in them")},
}


@dataclass
class Cost:
    """Nanoseconds, of a record or of several in one."""
    name: str
    own: float
    copy: float

    @property
    def records(self):
        found = re.match(r"multi of (\d+) ", self.name)
        return int(found[1]) if found else 1

    @property
    def limit(self):
        return COPIES * self.copy + NANOSECONDS * self.records

    @property
    def met(self):
        return self.own <= self.limit


def costs(direction, way):
    copied, _ = WAYS[direction][way]
    for group in groups(direction):
        own, copy = nanoseconds(group, way), nanoseconds(group, copied)
        if own is not None and copy is not None:
            yield Cost(group.removeprefix(direction + " "), own, copy)


def targets():
    for direction, ways in WAYS.items():
        for way, (_, what) in ways.items():
            found = list(costs(direction, way))
            alone = [cost for cost in found if cost.records == 1]
            if alone or not found:
                yield hot(what, alone)
            yield from (several(direction, way, cost) for cost in found if cost.records > 1)


def hot(what, alone):
    if not alone:
        return Target(what, AIM, "", None, BENCH.format("codec"))
    within = [cost for cost in alone if cost.met]
    worst = max(alone, key=lambda cost: cost.own - cost.limit)
    measured = f"{len(within)} of {len(alone)} within; worst {worst.name}: {worst.own:.0f} ns, copying {worst.copy:.0f} ns"
    return Target(what, AIM, measured, len(within) == len(alone), BENCH.format("codec"))


def several(direction, way, cost):
    """Of records in one: each has to be found. What they would have if they were one is said beside it."""
    as_one = COPIES * cost.copy + NANOSECONDS
    return Target(f"{direction} of a {cost.name}, {way}, for each of its {cost.records}", f"2 x memcpy + {cost.records} x {NANOSECONDS} ns",
                  f"{cost.own:.0f} ns of {cost.limit:.0f}; as one record it would have {as_one:.0f}", cost.met, BENCH.format("codec"))


def section():
    """The lines of the page."""
    lines = ["", "## Records", "",
             "Nanoseconds, of at most so many: twice what copying the same bytes takes, and 20 for each record. *Record*: its fields alone, "
             "written behind what is there, or borrowed from the frame that they came in, as the client reads them. *Frame*: a request "
             "encoded into the buffer that callers share, and then copied with its head to what is written, as the client does; the lock "
             "around that buffer is not in it. *Shared*: of a record that is to outlive its frame. *Walked*: each record of a multi "
             "decoded too, and not only checked.", "",
             "| | record | frame, shared, or walked |", "|---|---|---|"]
    rows = {}
    for direction, ways in WAYS.items():
        for way in ways:
            for cost in costs(direction, way):
                cell = f"{cost.own:.1f} of {cost.limit:.1f}" + ("" if cost.met else ", **over**")
                rows.setdefault(f"{direction} {cost.name}", {})[way] = cell if way == "record" else f"{way}: {cell}"
    for name, cells in rows.items():
        others = "; ".join(cell for way, cell in cells.items() if way != "record")
        lines.append(f"| {name} | {cells.get('record', '')} | {others} |")
    return lines if rows else []
