"""Has kazoo's own test suite run against `zk serve`.

A pytest plugin. kazoo's tests ask a harness for a cluster of Java servers; this gives them one process of
`zk serve` instead, whose path is in $ZK_COMMAND. `run` beside it does everything that is needed for that.
"""

import atexit
import logging
import os
import pathlib
import subprocess
import sys
import threading
import types

# The module that starts servers wants libraries that make certificates. Nobody needs either.
sys.modules["kazoo.testing.common"] = types.ModuleType("kazoo.testing.common")
sys.modules["kazoo.testing.common"].ZookeeperCluster = None

import kazoo.testing.harness as harness  # noqa: E402


class Server:
    """One member, as kazoo's tests see it."""

    def __init__(self, cluster, index, address):
        self.cluster = cluster
        self.index = index
        self.address = address
        # Where TLS would be: nowhere.
        self.secure_address = "127.0.0.1:1"
        self.client_port = int(address.rsplit(":", 1)[1])
        self.secure_client_port = 1
        self.running = True

    def stop(self):
        self.cluster.order(f"stop {self.index}")
        self.running = False

    def run(self):
        self.cluster.order(f"start {self.index}")
        self.running = True

    def get_logs(self, num_lines=100):
        return []


class Cluster:
    def __init__(self):
        command = [os.environ["ZK_COMMAND"], "serve", "--control", "--port", "0"]
        command += ["--members", "3", "--ttl", "--read-only"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        atexit.register(self.process.kill)
        self.orders = threading.Lock()
        addresses = self.process.stdout.readline().strip().split(",")
        self.process.stdout.readline()
        self.servers = [Server(self, *member) for member in enumerate(addresses)]

    def order(self, line):
        with self.orders:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        assert answer == "ok\n", answer

    def __getitem__(self, index):
        return self.servers[index]

    def __iter__(self):
        return iter(self.servers)

    def start(self):
        for server in self.servers:
            if not server.running:
                server.run()

    def terminate(self):
        # It goes with the test process; the next test case finds it as a cluster that was not reset.
        pass

    def get_logs(self):
        return []


CLUSTER = Cluster()
harness.get_global_cluster = lambda: CLUSTER


def excluded():
    """Tests that are not run: name, kind and reason."""
    lines = (pathlib.Path(__file__).parent / "excluded.txt").read_text().splitlines()
    return [line.split(None, 2) for line in lines if line and not line.startswith("#")]


unmet = 0


def pytest_collection_modifyitems(items):
    import pytest

    global unmet
    for name, kind, reason in excluded():
        named = [item for item in items if name in item.nodeid.replace(".py", "")]
        unmet += len(named) if kind == "unmet" else 0
        for item in named:
            item.add_marker(pytest.mark.skip(reason=f"{kind}: {reason}"))
        if not named and len(items) > 300:
            raise pytest.UsageError(f"excluded.txt names {name}, which is not there")


def pytest_terminal_summary(terminalreporter):
    count = {key: len(terminalreporter.stats.get(key, [])) for key in ("passed", "failed", "error")}
    total = sum(count.values()) + unmet
    if total:
        percent = 100 * count["passed"] / total
        terminalreporter.write_line(
            f"{count['passed']} have passed of {total} that need neither a JVM nor other words:"
            f" {percent:.1f} %"
        )


def pytest_unconfigure():
    # Tests leave clients behind; nobody wants to read what becomes of them.
    logging.disable(logging.CRITICAL)
    CLUSTER.process.kill()
