"""Has `zk serve` stand in for servers that other clients' tests start as processes of their own.

Those tests write a zoo.cfg for each server, start a process with it, and kill that process to stop the server. `member`
beside this is such a process: it tells this one what is in its zoo.cfg, and lives as long as its server. All members of an
ensemble are one process of `zk serve`, which starts when they are all there, and stops when the last one's data are gone.

Usage: ensembles.py SOCKET. The path of the command `zk` is in $ZK_COMMAND, further arguments for it in $ZK_SERVE_ARGS.
"""

import asyncio
import json
import os
import pathlib
import shlex
import sys
import tempfile

import zoo_cfg

# Of a server's data directory: it belongs to the ensemble of which this names the process.
MARK = "zk-serve"


class Ensemble:
    """One process of `zk serve`."""

    def __init__(self, key):
        self.key = key
        self.process = None
        self.members = {}
        self.waiting = {}
        self.ids = []
        self.ports = {}
        self.changes = asyncio.Lock()

    async def join(self, member):
        """Starts a member, and the process if that was the last one to come."""
        async with self.changes:
            await self.start(member)

    async def leave(self, member):
        """Stops a member."""
        async with self.changes:
            if self.waiting.pop(member.id, None) or self.members.pop(member.id, None) is None:
                return
            if self.process and self.is_alive():
                await self.order(f"stop {self.index(member)}")

    async def start(self, member):
        # A process that has ended, or whose data were removed, comes to an end before another begins.
        if self.process and not self.is_alive():
            await self.end()
        if self.process and member.id in self.ids and not member.has_mark(self.mark()):
            if self.members:
                raise ValueError(f"server {member.id} has lost its data")
            await self.end()
        if self.process and member.id in self.ids:
            await self.order(f"start {self.index(member)}")
            self.members[member.id] = member
        elif self.process:
            await self.add(member)
        else:
            self.waiting[member.id] = member
            if set(member.expected) <= set(self.waiting):
                await self.begin(member.expected)

    async def begin(self, ids):
        """Starts the process, with these members and what waits for them. The one that was started last follows, since the
        others make a majority before it comes."""
        everyone = [self.waiting.pop(number) for number in ids]
        last = max(everyone, key=lambda one: one.process).id
        late, self.waiting = self.waiting, {}
        self.ids = list(ids)
        self.data = [one.data for one in everyone]
        self.scratch = tempfile.TemporaryDirectory()
        command = [os.environ["ZK_COMMAND"]]
        command += zoo_cfg.arguments(everyone, pathlib.Path(self.scratch.name))
        command += shlex.split(os.environ.get("ZK_SERVE_ARGS", ""))
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        print("+", *command, f"({self.process.pid})", file=sys.stderr, flush=True)
        addresses = (await self.process.stdout.readline()).decode().strip().split(",")
        if not await self.process.stdout.readline():
            raise ValueError("zk serve has not started: " + " ".join(map(str, command)))
        ports = (int(address.rsplit(":", 1)[1]) for address in addresses)
        self.ports = dict(zip(self.ids, ports))
        for one in everyone:
            self.members[one.id] = one
            one.mark(self.mark())
        if len(ids) > 2:
            await self.order(f"stop {ids.index(last)}")
            await self.leader_of(self.ports[next(number for number in ids if number != last)])
            await self.order(f"start {ids.index(last)}")
        for one in late.values():
            await self.add(one)

    async def leader_of(self, port):
        """Waits until a member has a leader."""
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"srvr")
            answer = await reader.read()
            writer.close()
            if b"Mode: " in answer:
                return
            await asyncio.sleep(0.02)

    async def add(self, member):
        """A server that the others do not know comes to them."""
        port, _ = member.ports()
        await self.order(f"add {member.id} {port}")
        self.ids.append(member.id)
        self.ports[member.id] = port
        self.members[member.id] = member
        member.mark(self.mark())

    def mark(self):
        return str(self.process.pid)

    def is_alive(self):
        return self.process.returncode is None

    async def reap(self):
        """Ends the process once its members have stopped and their data are gone."""
        async with self.changes:
            if self.process and not self.members and not any(it.exists() for it in self.data):
                await self.end()

    async def end(self):
        if self.process:
            if self.process.returncode is None:
                self.process.kill()
            await self.process.wait()
            self.scratch.cleanup()
        self.process = None
        self.members = {}

    async def order(self, line):
        self.process.stdin.write((line + "\n").encode())
        answer = await self.process.stdout.readline()
        if answer != b"ok\n":
            raise ValueError(f"{line}: {answer!r}")

    def index(self, member):
        return self.ids.index(member.id)


ENSEMBLES = {}


async def attend(reader, writer):
    """Speaks with one member: a line with what it is; its server stops when it hangs up."""
    member = zoo_cfg.Member(**json.loads(await reader.readline()))
    ensemble = ENSEMBLES.setdefault(member.ensemble, Ensemble(member.ensemble))
    try:
        await ensemble.join(member)
        writer.write(f"ok {ensemble.ports.get(member.id, 0)}\n".encode())
        await reader.read()
    except (ValueError, OSError) as error:
        writer.write(f"{error}\n".encode())
        print(error, file=sys.stderr, flush=True)
    finally:
        await ensemble.leave(member)
        writer.close()


async def main():
    server = await asyncio.start_unix_server(attend, sys.argv[1])
    print("ready", flush=True)
    # It ends with whatever started it, which has its standard input.
    async with server:
        over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        while not (await asyncio.wait([over], timeout=1))[0]:
            for ensemble in list(ENSEMBLES.values()):
                await ensemble.reap()
    for ensemble in list(ENSEMBLES.values()):
        await ensemble.end()


asyncio.run(main())
