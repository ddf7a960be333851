"""Has kazoo's own tests run against `zk serve` instead of a ZooKeeper of Java.

A plugin for pytest: it puts itself in the place of the module that starts servers. Loaded with
`-p on_zk_serve`; `run` beside it does that.

Each member stands behind a gate, a process that passes bytes on. Tests that stop a server close its
gate: connections break and new ones are refused, while the nodes stay, as they would on a disk.
"""

import asyncio
import os
import pathlib
import subprocess
import sys
import types

HERE = pathlib.Path(__file__).parent


class Gate:
    """What a test takes for a server process."""

    def __init__(self, number, target):
        self.number = number
        self.running = True
        self.process = subprocess.Popen(
            [sys.executable, __file__, *target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()
        self.client_port = int(self.address.rpartition(":")[2])

    def _say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == word

    def run(self):
        if not self.running:
            self._say("open")
            self.running = True

    def stop(self):
        if self.running:
            self._say("close")
            self.running = False

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.running = False

    def get_logs(self, num_lines=100):
        return []


class Cluster:
    """What a test takes for an ensemble: one `zk serve`, and a gate for each member."""

    def __init__(self, size=3, **_):
        self.size = size
        self.server = None
        self.members = [Absent() for _ in range(size)]

    def __getitem__(self, number):
        return self.members[number]

    def __iter__(self):
        return iter(self.members)

    def start(self):
        if self.server is None:
            command = os.environ["ZK"].split()
            self.server = subprocess.Popen(
                [*command, "serve", "--port", "0", "--members", str(self.size), "--ttl"],
                stdout=subprocess.PIPE,
                text=True,
            )
            addresses = self.server.stdout.readline().strip().split(",")
            targets = [address.rsplit(":", 1) for address in addresses]
            self.members = [Gate(number, target) for number, target in enumerate(targets)]
        for member in self.members:
            member.run()

    def stop(self):
        for member in self.members:
            member.stop()

    def terminate(self):
        if self.server is not None:
            for member in self.members:
                member.end()
            self.server.terminate()
            self.server.wait()
            self.server = None

    def reset(self):
        self.terminate()
        self.start()

    def get_logs(self):
        return []


class Absent:
    """A member before the first start."""

    running = False


module = types.ModuleType("kazoo.testing.common")
module.ZookeeperCluster = Cluster
module.ManagedZooKeeper = Gate


def excluded():
    """Tests that are not run: name, kind and reason."""
    lines = (HERE / "excluded.txt").read_text().splitlines()
    return [line.split(None, 2) for line in lines if line and not line.startswith("#")]


missing = 0


def pytest_collection_modifyitems(items):
    import pytest

    global missing
    for name, kind, reason in excluded():
        named = [item for item in items if name in item.nodeid.replace(".py", "")]
        missing += len(named) if kind == "missing" else 0
        for item in named:
            item.add_marker(pytest.mark.skip(reason=f"{kind}: {reason}"))
        if not named and len(items) > 300:
            raise pytest.UsageError(f"excluded.txt names {name}, which is not there")


def pytest_terminal_summary(terminalreporter):
    count = {key: len(terminalreporter.stats.get(key, [])) for key in ("passed", "failed", "error")}
    total = sum(count.values()) + missing
    if total:
        percent = 100 * count["passed"] / total
        terminalreporter.write_line(
            f"{count['passed']} have passed of {total} that need neither a JVM nor other words:"
            f" {percent:.1f} %"
        )


async def gate(host, port):
    """Passes bytes on between clients and one member, while it is open."""
    carriers = set()

    async def carry(reader, writer):
        try:
            inner_reader, inner_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.transport.abort()
            return

        async def one_way(source, sink):
            try:
                while chunk := await source.read(65536):
                    sink.write(chunk)
                    await sink.drain()
                sink.close()
            except (OSError, asyncio.CancelledError):
                sink.transport.abort()

        ways = [
            asyncio.ensure_future(one_way(reader, inner_writer)),
            asyncio.ensure_future(one_way(inner_reader, writer)),
        ]
        carriers.update(ways)
        await asyncio.wait(ways)
        carriers.difference_update(ways)

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    own = server.sockets[0].getsockname()
    print(f"{own[0]}:{own[1]}", flush=True)
    words = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(words)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while word := (await words.readline()).decode().strip():
        if word == "close":
            server.close()
            for way in list(carriers):
                way.cancel()
        else:
            server = await asyncio.start_server(carry, own[0], own[1])
        print(word, flush=True)


if __name__ == "__main__":
    asyncio.run(gate(sys.argv[1], int(sys.argv[2])))
else:
    sys.modules["kazoo.testing.common"] = module
