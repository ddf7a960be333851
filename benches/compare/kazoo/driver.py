"""kazoo, measured like the others: see benches/src/task.rs for the command line and report.rs for the output."""

import collections
import json
import logging
import os
import resource
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.cache import TreeCache, TreeEvent

LOCK = "/bench-lock"
logging.disable(logging.CRITICAL)


class Task:
    in_flight = 1
    payload = 128
    seconds = 3.0
    warm_up = 1.0
    operations = 0
    unawaited = False
    children = 0

    def __init__(self, arguments):
        self.workload = arguments.pop(0)
        while arguments:
            name = arguments.pop(0)[2:].replace("-", "_")
            if name == "unawaited":
                self.unawaited = True
                continue
            value = arguments.pop(0)
            kind = type(getattr(Task, name, ""))
            setattr(self, name, kind(value))


class Phase:
    """A time, or a count, in which operations are done."""

    def __init__(self, task, seconds, operations):
        self.end = time.monotonic() + seconds
        self.left = operations if task.operations else None
        self.done = 0
        self.samples = []

    def goes_on(self):
        if self.left is None:
            return time.monotonic() < self.end
        self.left -= 1
        return self.left >= 0


def connect(task):
    client = KazooClient(hosts=task.server, timeout=10.0)
    client.start(30)
    return client


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key))


def processor():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def requests(phase, in_flight, begin):
    """Keeps so many under way, and waits for the oldest."""
    under_way = collections.deque()
    for _ in range(in_flight):
        if phase.goes_on():
            under_way.append((time.monotonic(), begin()))
    while under_way:
        begun, request = under_way.popleft()
        request.get()
        phase.done += 1
        phase.samples.append(time.monotonic() - begun)
        if phase.goes_on():
            under_way.append((time.monotonic(), begin()))


def loop(phase, operation):
    while phase.goes_on():
        begun = time.monotonic()
        operation()
        phase.samples.append(time.monotonic() - begun)
        phase.done += 1


def hand_off(phase, clients):
    state = {"released": None}
    mutex = threading.Lock()

    def contend(client):
        goes_on = True
        while goes_on:
            lock = client.Lock(LOCK)
            lock.acquire()
            with mutex:
                goes_on = phase.goes_on()
                if goes_on:
                    phase.done += 1
                    if state["released"]:
                        phase.samples.append(time.monotonic() - state["released"])
                state["released"] = time.monotonic()
            lock.release()

    threads = [threading.Thread(target=contend, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cached(task, client, report):
    """Follows the nodes that our own client's program has made."""
    shape = "tree-%d" % task.children if task.children else "flat"
    root = "/bench-%s-%d-%d" % (shape, task.payload, task.in_flight)
    if not client.exists(root):
        sys.exit("there are no such nodes yet: ours makes them")
    ready, nodes = threading.Event(), set()

    def heard(event):
        if event.event_type == TreeEvent.INITIALIZED:
            ready.set()
        elif event.event_type == TreeEvent.NODE_ADDED:
            nodes.add(event.event_data.path)

    cache = TreeCache(client, root)
    cache.listen(heard)

    def run(phase):
        before = status("VmRSS:")
        cache.start()
        ready.wait()
        phase.done = len(nodes) - 1
        report["resident_per_node"] = (status("VmRSS:") - before) * 1024 / max(phase.done, 1)

    return run


def main():
    task = Task(sys.argv[1:])
    client = connect(task)
    path, data = "/bench-%d" % task.payload, b"\7" * task.payload
    try:
        client.create(path, data)
    except NodeExistsError:
        pass
    report = {"client": "kazoo", "workload": task.workload, "in_flight": task.in_flight,
              "payload": task.payload, "style": "ring", "unawaited": task.unawaited}

    if task.workload == "get":
        def run(phase):
            requests(phase, task.in_flight, lambda: client.get_async(path))
    elif task.workload == "list":
        # Our own client's program has made its children.
        listed = "/bench-list-%d" % task.children

        def run(phase):
            requests(phase, task.in_flight, lambda: client.get_children_async(listed))
    elif task.workload == "set":
        def run(phase):
            requests(phase, task.in_flight, lambda: client.set_async(path, data))
    elif task.workload == "lock":
        lock = client.Lock(LOCK)

        def cycle():
            lock.acquire()
            lock.release()

        def run(phase):
            loop(phase, cycle)
    elif task.workload == "connect":
        def run(phase):
            while phase.goes_on():
                begun = time.monotonic()
                one = connect(task)
                one.get(path)
                phase.samples.append(time.monotonic() - begun)
                phase.done += 1
                one.stop()
                one.close()
    elif task.workload == "hand-off":
        clients = [connect(task) for _ in range(task.in_flight)]

        def run(phase):
            hand_off(phase, clients)
    elif task.workload == "idle":
        before = status("VmRSS:")
        clients = [connect(task) for _ in range(task.in_flight)]

        def run(phase):
            time.sleep(max(0, phase.end - time.monotonic()))
            phase.done = len(clients)
            report["resident_kib_grown"] = status("VmRSS:") - before
    elif task.workload == "cache":
        run = cached(task, client, report)
    else:
        sys.exit("not with kazoo: " + task.workload)

    if task.workload not in ("idle", "cache"):
        run(Phase(task, task.warm_up, 0))
    phase = Phase(task, task.seconds, task.operations)
    cpu, begun = processor(), time.monotonic()
    run(phase)
    elapsed, cpu = time.monotonic() - begun, processor() - cpu
    samples = sorted(phase.samples)
    if samples:
        last = len(samples) - 1
        for name, share in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)):
            report[name] = samples[round(last * share)] * 1e6
    report.update(operations=phase.done, seconds=elapsed, ops_per_second=phase.done / elapsed,
                  cpu_us_per_op=cpu * 1e6 / max(phase.done, 1), cpu_share=cpu / elapsed,
                  resident_kib=status("VmRSS:"), peak_kib=status("VmHWM:"))
    print(json.dumps(report), flush=True)
    # Hundreds of clients take their time to stop.
    os._exit(0)


main()
