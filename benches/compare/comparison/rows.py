"""What is measured: the lines of the page."""

from dataclasses import dataclass, field

from comparison.clients import ALL, AUTHORITY, RUST


@dataclass
class Row:
    """What is measured, against which server, by whom."""

    key: str
    title: str
    # Its setting; behind a slash, which rows share one. What leaves a million nodes behind slows down what comes after it.
    server: str
    task: list
    clients: list = field(default_factory=lambda: ALL)
    unit: str = "ops_per_second"
    best: object = max
    # The client has one core, and the server another.
    pinned: bool = True
    # Rounds, for what takes long; how many times longer than others it is measured; seconds until it is given up.
    rounds: int = 1000
    longer: float = 1
    patience: int = 120
    # Whether we are to come within a few percent of the floor, which takes more rounds to see.
    is_close: bool = False
    # Whether allocations are counted as well, in a run of its own.
    counted: bool = False

    def in_flight(self):
        return int(self.task[self.task.index("--in-flight") + 1]) if "--in-flight" in self.task else 1


def at_once(workload, count, *more):
    return [workload, "--in-flight", str(count), *more]


def spaced(count):
    return f"{count:,}".replace(",", " ")


REQUESTS = [name for name in ALL if name != "curator"]
SESSIONS = [name for name in ALL if name != "null-tokio"]
LOCKS = ["null", "null-tokio", "ours", "kezhuw", "go", "curator", "kazoo"]
# Those that can be asked to wait: kezhuw's guard is given back by dropping it.
AWAITED = [name for name in LOCKS if name != "kezhuw"]
# Those that connect before they send: zookeeper-async writes its first request behind the handshake, without an answer.
GREETERS = [name for name in ALL if name not in ("null-tokio", "zookeeper-async")]
# The floor of these is on tokio in any case.
HAND_OFFS = [name for name in LOCKS if name != "null-tokio"]
# The driver of the others has one lock.
MANY_LOCKERS = ["null", "null-tokio", "ours", "kezhuw"]
# Tasks, sessions and locks.
MANY_LOCKS = (("many-locks", "1 000 locks in turn by 64 tasks on one session", 64, 1, 1_000),
              ("session-locks", "100 sessions, each with a lock of its own", 100, 100, 100))
OURS = ["ours"]
# We come first: our program makes the nodes that all of them follow.
CACHES = ["ours", "curator", "kazoo"]
# Those whose program knows every workload.
RUSTY = ["null", "ours", *RUST]
RATES = (1_000, 10_000)
LISTED = (1_000, 10_000)
TASKS = (1, 8, 64, 512)
STORMS = (1_000, 10_000)
LINES = (100, 1_000, 10_000)
WATCHES = (1_000, 10_000, 100_000)
NODES = (10_000, 100_000, 1_000_000)


def rows():
    return [*requests(), *locks(), *ensemble(), *sessions(), *ours_alone()]


def requests():
    for server, name in (("instant", "instant"), ("3.8", "3.8"), ("3.8-workers", "3.8, its own worker threads"),
                         ("3.9", "3.9")):
        for count in (1, 16, 256):
            yield Row(f"get-{count}-{server}", f"{name}: get, {count} in flight", server, at_once("get", count), REQUESTS,
                      is_close=server != "3.8-workers", counted=server == "instant")
        yield Row(f"set-256-{server}", f"{name}: set, 256 in flight", server, at_once("set", 256), REQUESTS,
                  is_close=server != "3.8-workers", counted=server == "instant")
    for count in (1, 16, 256):
        yield Row(f"get-{count}-tls", f"instant, over TLS: get, {count} in flight", "instant-tls", at_once("get", count, "--tls", str(AUTHORITY)),
                  ["null", "ours", "kezhuw", "go"], is_close=True, counted=True)
    for server in ("instant", "3.9"):
        for children in LISTED:
            for count in (1, 16):
                yield Row(f"list-{children}-{count}-{server}", f"{server}: list {spaced(children)} children, {count} in flight", server,
                          at_once("list", count, "--children", str(children)), REQUESTS, counted=server == "instant")
    for server in ("instant", "3.9"):
        for rate in RATES:
            yield Row(f"steady-{rate}-{server}", f"{server}: {spaced(rate)} gets a second, timed from when each was to begin", server,
                      ["steady", "--rate", str(rate)], ["null", "ours", *RUST], "p99_us", min)
    for workload, title in (("mixed", "nine reads to a write"), ("create-delete", "create and delete"), ("multi", "multi of 16")):
        # One task that waits for the oldest would not go on with the others: what is two requests needs a task for each.
        style = ["--style", "tasks"] if workload == "create-delete" else []
        yield Row(f"{workload}-instant", f"instant: {title}, 256 in flight", "instant", at_once(workload, 256, *style), RUSTY)
    for payload, length, count in ((1 << 10, "1 KiB", 256), (64 << 10, "64 KiB", 16), (1_000_000, "1 MB", 4)):
        for workload in ("get", "set"):
            yield Row(f"{workload}-{payload}-bytes", f"instant: {workload} of {length}, {count} in flight", "instant",
                      at_once(workload, count, "--payload", str(payload)), RUSTY)


def locks():
    for server in ("3.8", "3.9"):
        yield Row(f"lock-{server}", f"{server}: lock and unlock, awaited", server, ["lock"], AWAITED, is_close=True)
        yield Row(f"lock-unawaited-{server}", f"{server}: lock and unlock, not awaited", server, ["lock", "--unawaited"], LOCKS[:4], is_close=True)
        for count in (2, 16, 64):
            yield Row(f"hand-off-{count}-{server}", f"{server}: hand-offs, {count} contenders, not awaited", server,
                      at_once("hand-off", count, "--unawaited"), HAND_OFFS, is_close=True)
        for key, title, count, sessions, locks in MANY_LOCKS:
            for words, more in (("awaited", []), ("not awaited", ["--unawaited"])):
                yield Row(f"{key}{'-unawaited' if more else ''}-{server}", f"{server}: {title}, {words}", server,
                          at_once("many-locks", count, "--sessions", str(sessions), "--locks", str(locks), *more),
                          [name for name in MANY_LOCKERS if more or name in AWAITED], is_close=True)


def ensemble():
    """Three that wait for their disk, by way of one that follows."""
    server = "3.9-ensemble"
    for key, title, task in (("get-256", "get, 256 in flight", at_once("get", 256)), ("set-256", "set, 256 in flight", at_once("set", 256)),
                             ("lock", "lock and unlock, awaited", ["lock"]),
                             ("hand-off-16", "hand-offs, 16 contenders, not awaited", at_once("hand-off", 16, "--unawaited"))):
        others = {"get": ["kezhuw", "java"], "set": ["kezhuw", "java"], "lock": ["curator"], "hand-off": ["kezhuw", "curator"]}
        yield Row(f"{key}-{server}", f"3.9, ensemble of three with fsync: {title}", server, task, ["null", "ours", "go", *others[task[0]]],
                  is_close=True)


def sessions():
    for server in ("3.8", "3.9"):
        yield Row(f"connect-{server}", f"{server}: connect to first reply", server, ["connect"], GREETERS, "p50_us", min, is_close=True)
    for count, clients in ((1, OURS), (1_000, SESSIONS), (10_000, OURS)):
        # Long enough for a ping of each: there are clients that let two thirds of the 10 s pass.
        yield Row(f"idle-{count}", f"{spaced(count)} idle session{'s' * (count > 1)}", "instant", at_once("idle", count), clients,
                  "resident_kib_grown", min, longer=12, counted=True)


def ours_alone():
    for tasks in TASKS:
        yield Row(f"tasks-{tasks}", f"instant: get, {tasks} tasks on two threads, two cores", "instant",
                  at_once("get", tasks, "--threads", "2", "--style", "tasks"), OURS, pinned=False)
    for count in WATCHES:
        title = spaced(count)
        yield Row(f"reconnect-{count}", f"reconnect with {title} watches, and a hundredth of that of persistent ones", "instant",
                  at_once("reconnect", count), OURS, counted=True)
        yield Row(f"fan-out-{count}", f"{title} watched nodes are written", "instant", at_once("fan-out", count), OURS)
    for count in STORMS:
        yield Row(f"storm-{count}", f"{spaced(count)} sessions come back when a server does that was down for 5 s", "instant", at_once("storm", count), OURS,
                  "seconds_to_all", min, rounds=3)
    for count in LINES:
        title = spaced(count)
        yield Row(f"waiters-{count}", f"3.9: {title} waiters on one lock, over 16 sessions", f"3.9/waiters-{count}",
                  at_once("waiters", count, "--sessions", "16"), OURS, rounds=1, patience=1800, counted=True)
    for count in NODES:
        title = spaced(count)
        for shape, more in (("flat", []), ("tree", ["--children", "10"])):
            yield Row(f"cache-{shape}-{count}", f"3.9: a cache of {title} nodes, {'ten children each' if more else 'all below one'}",
                      f"3.9/cache-{shape}-{count}",
                      at_once("cache", count, "--payload", "100", *more), CACHES if count < max(NODES) else CACHES[:2],
                      rounds=3, patience=1800, counted=True)
    for cohorts in (1, 2):
        yield Row(f"cohort-{cohorts}", f"3.9: 64 tasks in {cohorts} cohort{'s' * (cohorts > 1)}", "3.9",
                  at_once("cohort", 64, "--sessions", str(cohorts)), OURS)
