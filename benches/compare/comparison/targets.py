"""What is aimed at, and whether it is reached."""

from dataclasses import dataclass

from comparison.figures import number
from comparison.rows import MANY_LOCKS, NODES, STORMS, TASKS, spaced

RUN = "`benches/compare/run.py --only '{}'`"
# A client lets a third of a session's timeout pass before it asks whether the server is still there.
TIMEOUT_MS, PING_MS, LATE_MS = 10_000, 3_333, 1_000


@dataclass
class Target:
    what: str
    aim: str
    measured: str
    # None if it was not measured.
    met: bool | None
    command: str


def ratio(what, aim, key, ours, other, name=None, least=None, most=None):
    """One of our figures to that of another client, round by round."""
    name = name or (ours and ours.unit)
    beside = ours and other and ours.beside(other, name)
    if not beside:
        return Target(what, aim, "", None, RUN.format(key))
    value, *spread = beside
    met = value >= least if least is not None else value <= most
    text = "{:.2f} x ({:.2f} to {:.2f}; {} to {})"
    measured = text.format(value, *spread, number(ours.median(name)), number(other.median(name)))
    return Target(what, aim, measured, met, RUN.format(key))


def bound(what, aim, key, value, most, unit="", command=RUN):
    if value is None:
        return Target(what, aim, "", None, command.format(key))
    return Target(what, aim, f"{number(value)}{unit}", value <= most, command.format(key))


def to_null(results, what, aim, key, name=None, **limits):
    """Against the floor; and how the runtime that we are on stands to it by itself, where that was measured."""
    null, on_tokio = results.of(key, "null"), results.of(key, "null-tokio")
    target = ratio(what, aim, key, results.of(key), null, name, **limits)
    beside = null and on_tokio and on_tokio.beside(null, name or null.unit)
    if beside:
        target.measured += f"; tokio alone {beside[0]:.2f} x"
    return target


def to_best(results, what, aim, key, name=None, best=max, **limits):
    """Against the best of the peers in that figure, whoever it is."""
    peers = results.peers(key).values()
    other = best(peers, key=lambda it: it.median(name or it.unit)) if peers else None
    return ratio(what, aim, key, results.of(key), other, name, **limits)


def targets(results, codec, growth):
    yield from first(results)
    cpu = "cpu_us_per_op"
    in_memory, allocations = "instant, get, ", results.of("get-256-instant", "counted")
    yield to_best(results, in_memory + "256 in flight", "3 x the best peer", "get-256-instant", least=3)
    yield to_null(results, in_memory + "256 in flight", "0.45 x null", "get-256-instant", least=0.45)
    yield to_best(results, in_memory + "256 in flight, CPU", "1/3 of the best peer's", "get-256-instant", cpu, min, most=1 / 3)
    yield to_null(results, in_memory + "16 in flight", "0.95 x null", "get-16-instant", least=0.95)
    yield to_null(results, in_memory + "16 in flight, CPU", "at most 1.25 x null", "get-16-instant", cpu, most=1.25)
    yield bound("allocations for a get, 256 in flight", "2, rarely a buffer", "get-256-instant",
                allocations and allocations.median("allocations_per_op"), 2.1)
    for count, most in ((256, 0.1), (1, 2.0)):
        yield bound(f"system calls for a get, {count} in flight", f"at most {most}", "none",
                    results.calls.get(("ours", count)), most + 0.005)
    for key, what in (("get-256-3.8", "get, 256 in flight"), ("set-256-3.8", "set, 256 in flight"), ("get-1-3.8", "get, one at a time")):
        yield to_null(results, f"3.8, {what}", "0.97 x null", key, least=0.97)
    for server in ("3.8", "3.9"):
        what = f"{server}, connect to first reply"
        yield to_null(results, what, "at most 1.05 x null", f"connect-{server}", most=1.05)
        yield to_null(results, what + ", CPU", "at most 1.15 x null", f"connect-{server}", cpu, most=1.15)
    yield from locks(results)
    yield never_falls(results)
    yield from idle(results)
    yield from restored(results)
    yield from followed(results)
    yield from back(results)
    yield from codec
    yield from growth


def first(results):
    """Every row in which there is a peer. Where most of the time is the system's, 0.6 of a peer is below what null needs."""
    for row in results.rows.values():
        if not results.peers(row.key) or results.of(row.key) is None:
            continue
        limit = {"most": 1.03} if row.best is min else {"least": 0.97}
        yield to_best(results, row.title, "first, or within 3 %", row.key, best=row.best, **limit)
        if row.unit == "ops_per_second":
            what, aim, cpu = row.title + ", CPU", "at most 0.6 x the best peer's, or 1.15 x null's", "cpu_us_per_op"
            lean = to_best(results, what, aim, row.key, cpu, min, most=0.6)
            floor = to_null(results, what, aim, row.key, cpu, most=1.15)
            lean.measured += floor.measured and f"; to null {floor.measured}"
            lean.met = lean.met or floor.met
            yield lean


def locks(results):
    for server in ("3.8", "3.9"):
        for key, what in (("lock", "awaited"), ("lock-unawaited", "not awaited")):
            yield to_null(results, f"{server}, lock and unlock, {what}", "0.95 x null", f"{key}-{server}", least=0.95)
        for key, title, *_ in MANY_LOCKS:
            yield to_null(results, f"{server}, {title}", "0.9 x null", f"{key}-{server}", least=0.9)
        for count in (2, 16, 64):
            key, what = f"hand-off-{count}-{server}", f"{server}, hand-offs, {count} contenders"
            yield to_null(results, what, "0.95 x null", key, least=0.95)
            yield to_best(results, what, "1.2 x the best peer", key, least=1.2)
            ours = results.of(key)
            tail, unit = None, ""
            if ours:
                tail, unit = ours.p99 / ours.p50, f" x ({number(ours.p99)} to {number(ours.p50)} µs)"
            yield bound(what + ", p99", "at most 2 x p50", key, tail, 2, unit)


def back(results):
    """Sessions of the benches last for 10 s."""
    for count in STORMS:
        key, what = f"storm-{count}", f"{spaced(count)} sessions behind a server that was down"
        ours = results.of(key)
        down, until, lost = (ours and ours.median(name) for name in ("seconds_down", "seconds_to_all", "sessions_lost"))
        away = None if None in (down, until) else down + until
        yield bound(what + ", until all are back", "within their timeout", key, away, TIMEOUT_MS / 1000, " s")
        yield bound(what + ", lost", "none", key, lost, 0)
        yield bound(what + ", dials of each in a second", "at most 5", key,
                    away and ours.median("dials") / count / away, 5)


def never_falls(results):
    """Within 3 %: as much as one run differs from the next."""
    values = [it.value if (it := results.of(f"tasks-{tasks}")) else None for tasks in TASKS]
    what, aim = "get on two threads with " + ", ".join(map(str, TASKS)) + " tasks", "never falls, but for 3 %"
    if None in values:
        return Target(what, aim, "", None, RUN.format("tasks-*"))
    met = all(after >= 0.97 * before for before, after in zip(values, values[1:]))
    return Target(what, aim, ", ".join(map(number, values)) + " ops/s", met, RUN.format("tasks-*"))


def idle(results):
    for count in (1_000, 10_000):
        key = f"idle-{count}"
        ours = results.of(key)
        grown = ours and ours.median("resident_kib_grown") / count
        yield bound(f"{spaced(count)} idle sessions, resident memory of each", "at most 5 KiB", key, grown, 5, " KiB")
    key, what = "idle-10000", "10 000 idle sessions"
    ours = results.of(key)
    yield bound(what + ", longest silence", f"pings after {PING_MS} ms, by {PING_MS + LATE_MS} ms", key,
                ours and ours.median("longest_silence_ms"), PING_MS + LATE_MS, " ms")
    share = ours and ours.median("cpu_share")
    yield bound(what + ", share of a core", "under 5 %", key, share and share * 100, 5, " %")


def restored(results):
    """The handshake, frames of as many watches as they hold, and a read."""
    key, what = "reconnect-100000", "100 000 one-shot and 1 000 persistent watches restored"
    aim = "one pass, less than 64 MiB"
    ours = results.of(key)
    if ours is None:
        yield Target(what, aim, "", None, RUN.format(key))
        return
    requests, peak = ours.median("requests_seen"), ours.median("peak_kib_grown_meanwhile")
    measured = f"{ours.cpu:.2f} µs each, {number(requests)} requests, peak {number(peak)} KiB higher"
    met = requests is not None and requests <= 1_100 and peak is not None and peak <= 64 << 10
    yield Target(what, aim, measured, met, RUN.format(key))


def followed(results):
    """Beside as many gets of the same server, and beside what has to be kept."""
    for count in NODES:
        for shape in ("flat", "tree"):
            key, what = f"cache-{shape}-{count}", f"cache of {spaced(count)} nodes, {shape}"
            ours = results.of(key)
            yield bound(what + ", time to follow", "at most 1.5 x as many gets", key, ours and ours.median("times_gets"), 1.5, " x")
            kept = ours and ours.median("bytes_per_node")
            yield bound(what + ", memory of a node", "1.2 x path, data and metadata, and 100 bytes", key,
                        kept and ours.median("resident_per_node"), kept and 1.2 * kept + 100, " bytes")
            if curator := results.of(key, "curator"):
                yield ratio(what, "10 x CuratorCache", key, ours, curator, least=10)


def table(all_targets):
    words = {True: "yes", False: "**no**", None: "not measured"}
    yield "| what | aim | measured | met | command |"
    yield "|---|---|---|---|---|"
    for it in all_targets:
        yield f"| {it.what} | {it.aim} | {it.measured} | {words[it.met]} | {it.command} |"
