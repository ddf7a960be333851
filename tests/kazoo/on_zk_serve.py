"""Has kazoo's own test suite run against `zk serve`.

A pytest plugin. kazoo's tests ask a harness for a cluster of Java servers; this gives them one process of
`zk serve` instead, whose path is in $ZK_COMMAND.
"""

import atexit
import os
import subprocess
import threading

import kazoo.testing.harness as harness


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
