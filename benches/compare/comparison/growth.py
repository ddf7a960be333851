"""What one child, watch or waiter costs, by how many there are."""

from comparison.core import BENCH, nanoseconds
from comparison.figures import number
from comparison.plot import plot
from comparison.rows import LINES, WATCHES, spaced
from comparison.targets import Target

TITLE = "Growth"
PLOT = "performance-growth.svg"
# Memory is farther away when there is more of it: so many times more for one of the most than for one of the fewest.
FARTHER = 2.0
GRANT = "waiter granted (p50 of hand-offs)"


def series(results):
    """What is counted, what one of it costs in nanoseconds, by how many there are, and where that is from."""
    def of_row(name, counts, cost):
        figures = {count: results.of(f"{name}-{count}") for count in counts}
        return {count: value for count, it in figures.items() if it and (value := cost(it, count)) is not None}

    def of_bench(counts, group, function):
        times = {count: nanoseconds(group.format(count), function.format(count)) for count in counts}
        return {count: time / count for count, time in times.items() if time}

    def joined(it, count):
        # Each lists those in front: so many names in all.
        seconds = it.median("seconds_to_form")
        return seconds and seconds * 1e9 / (count * (count - 1) / 2)

    counts = (1_000, 10_000, 100_000)
    yield "child listed", of_bench(counts, "listing of {} lock nodes", "decode and walk"), BENCH.format("codec")
    yield "child looked at by a waiter", of_bench(counts, "whom to wait for", "{} children"), BENCH.format("line")
    yield "watch fired, session alone", of_bench(counts, "{} watches", "fire"), BENCH.format("session")
    yield "watch restored, session alone", of_bench(counts, "{} watches", "restore"), BENCH.format("session")
    yield "watch restored, client", of_row("reconnect", WATCHES, lambda it, _: it.cpu * 1e3), "`--only 'reconnect-*'`"
    yield "watch fired, client", of_row("fan-out", WATCHES, lambda it, _: it.cpu * 1e3), "`--only 'fan-out-*'`"
    yield GRANT, of_row("waiters", LINES, lambda it, _: it.p50 and it.p50 * 1e3), "`--only 'waiters-*'`"
    yield "name listed as a line forms, server included", of_row("waiters", LINES, joined), "`--only 'waiters-*'`"


def targets(results):
    for what, costs, command in series(results):
        aim = f"at most {FARTHER:.0f} x from few to many"
        if what == GRANT:
            aim = "at most linear: each lists those in line"
        if len(costs) < 2:
            yield Target(f"growth: {what}", aim, "", None, command)
            continue
        few, many = costs[min(costs)], costs[max(costs)]
        most = max(costs) / min(costs) if what == GRANT else FARTHER
        yield Target(f"growth: {what}", aim, f"{many / few:.2f} x from {min(costs):,} to {max(costs):,}".replace(",", " "),
                     many <= most * few, command)


def table(results):
    """What is known of this run."""
    found = [(what, costs) for what, costs, _ in series(results) if costs]
    counts = sorted({count for _, costs in found for count in costs})
    if found:
        yield from ("", f"## {TITLE}", "", "| one | " + " | ".join(map(spaced, counts)) + " |", "|---|" + "---|" * len(counts))
    for what, costs in found:
        yield f"| {what} | " + " | ".join(number(costs.get(count)) for count in counts) + " |"


def section(figures):
    """The lines of the page, if anything is known, of this run or of earlier ones."""
    if not any(title == TITLE for title, *_ in figures):
        return ""
    return "\n".join([f"## {TITLE}", "", "Nanoseconds for one, by how many there are: flat, if all together cost as many times more as there are more.", "",
                      f"![nanoseconds for one, by how many there are]({PLOT})", "", ""])


def picture(figures):
    costs = {}
    for title, what, count, value in figures:
        if title == TITLE:
            amount = float(value.removesuffix(" k").replace(" ", "")) * (1000 if value.endswith(" k") else 1)
            costs.setdefault(what, {})[int(count.replace(" ", ""))] = amount
    return plot(list(costs.items()), "how many there are", "nanoseconds for one") if costs else None
