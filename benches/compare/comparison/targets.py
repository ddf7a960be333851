"""What is aimed at, and whether it is reached."""

from dataclasses import dataclass

from comparison.figures import number
from comparison.rows import NODES, TASKS

RUN = "`benches/compare/run.py --only '{}'`"
# Of 10 s, a client lets a third pass before it asks whether the server is still there.
PING_MS, LATE_MS = 3_333, 1_000


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
    yield to_null(results, "3.8, connect to first reply", "at most 1.15 x null", "connect-3.8", most=1.15)
    for key, what in (("lock-3.8", "awaited"), ("lock-unawaited-3.8", "not awaited")):
        yield to_null(results, f"3.8, lock and unlock, {what}", "0.95 x null", key, least=0.95)
    for count in (2, 16, 64):
        key, what = f"hand-off-{count}-3.8", f"3.8, hand-offs, {count} contenders"
        yield to_null(results, what, "0.95 x null", key, least=0.95)
        yield to_best(results, what, "1.2 x the best peer", key, least=1.2)
        ours = results.of(key)
        tail, unit = None, ""
        if ours:
            tail, unit = ours.p99 / ours.p50, f" x ({number(ours.p99)} to {number(ours.p50)} µs)"
        yield bound(what + ", p99", "at most 2 x p50", key, tail, 2, unit)
    yield never_falls(results)
    yield from idle(results)
    yield from restored(results)
    yield from followed(results)
    yield from codec
    yield from growth


def never_falls(results):
    """Within 3 %: as much as one run differs from the next."""
    values = [it.value if (it := results.of(f"tasks-{tasks}")) else None for tasks in TASKS]
    what, aim = "get on two threads with " + ", ".join(map(str, TASKS)) + " tasks", "never falls, but for 3 %"
    if None in values:
        return Target(what, aim, "", None, RUN.format("tasks-*"))
    met = all(after >= 0.97 * before for before, after in zip(values, values[1:]))
    return Target(what, aim, ", ".join(map(number, values)) + " ops/s", met, RUN.format("tasks-*"))


def idle(results):
    key, what = "idle-10000", "10 000 idle sessions"
    ours, counted = results.of(key), results.of(key, "counted")
    yield bound(what + ", heap of each", "at most 10 KiB", key, counted and counted.median("heap_per_session"), 10 << 10, " bytes")
    yield bound(what + ", longest silence", f"pings after {PING_MS} ms, by {PING_MS + LATE_MS} ms", key,
                ours and ours.median("longest_silence_ms"), PING_MS + LATE_MS, " ms")
    share = ours and ours.median("cpu_share")
    yield bound(what + ", share of a core", "under 5 %", key, share and share * 100, 5, " %")


def restored(results):
    """The handshake, frames of as many watches as they hold, and a read."""
    key, what = "reconnect-100000", "100 000 one-shot and 1 000 persistent watches restored"
    ours = results.of(key)
    if ours is None:
        yield Target(what, "one pass, bounded memory", "", None, RUN.format(key))
        return
    requests, peak = ours.median("requests_seen"), ours.median("peak_kib_grown_meanwhile")
    measured = f"{ours.cpu:.2f} µs each, {number(requests)} requests, peak {number(peak)} KiB higher"
    met = requests is not None and requests <= 1_100 and peak is not None and peak <= 64 << 10
    yield Target(what, "one pass, less than 64 MiB", measured, met, RUN.format(key))


def followed(results):
    """Beside as many gets of the same server, and beside what has to be kept."""
    for count in NODES:
        for shape in ("flat", "tree"):
            key, what = f"cache-{shape}-{count}", f"cache of {count:,} nodes, {shape}".replace(",", " ")
            ours = results.of(key)
            yield bound(what + ", time to follow", "at most 1.5 x as many gets", key, ours and ours.median("times_gets"), 1.5, " x")
            kept = ours and ours.median("bytes_per_node")
            yield bound(what + ", memory of a node", "1.2 x path, data and metadata, and 100 bytes", key,
                        kept and ours.median("resident_per_node"), kept and 1.2 * kept + 100, " bytes")


def table(all_targets):
    words = {True: "yes", False: "**no**", None: "not measured"}
    yield "| what | aim | measured | met | command |"
    yield "|---|---|---|---|---|"
    for it in all_targets:
        yield f"| {it.what} | {it.aim} | {it.measured} | {words[it.met]} | {it.command} |"
