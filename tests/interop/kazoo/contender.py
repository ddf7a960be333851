"""Takes a lock through kazoo again and again, and tells the resource of it.

src/interop/contender.rs is the same for zk-locks, and explains the arguments.
"""

import logging
import os
import socket
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock

RETRY = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5}

# Of sessions. An acquire or a release that fails may leave a node in the queue, behind which this process would
# wait in vain: so it gives up in the end, and ends the session, which removes the node.
PATIENCE = 5


class SharedLock(Lock):
    """A lock that gets along with Curator's: the same names, and those are what it waits for."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


LOCKS = {"kazoo": SharedLock, "kazoo-as-is": Lock}


class Resource:
    """The resource, over a connection of our own."""

    def __init__(self, addr, party, name):
        host, port = addr.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("r")
        self.ended = False
        self.ask(f"hello {party} {name}")

    def ask(self, request):
        """Whether the resource agrees."""
        self.socket.sendall(f"{request}\n".encode())
        answer = self.answers.readline()
        if not answer:
            os._exit(1)
        self.ended = self.ended or answer == "end\n"
        return answer == "ok\n"


class Contender:
    def __init__(self, arguments, task):
        _, servers, path, addr, party, name, _, hold, session, _ = arguments
        self.servers, self.path, self.name = servers, path, f"{name}.{task}"
        self.hold, self.session = int(hold) / 1000, int(session) / 1000
        self.patience = PATIENCE * self.session
        self.lock = LOCKS[party]
        self.resource = Resource(addr, party, self.name)
        self.client = None

    def connect(self):
        self.client = KazooClient(
            hosts=self.servers,
            timeout=self.session,
            connection_retry=RETRY,
            command_retry=RETRY,
        )
        self.client.start(timeout=self.patience)

    def disconnect(self):
        client, self.client = self.client, None
        if client:
            client.stop()
            client.close()

    def run(self):
        while not self.resource.ended:
            try:
                if not self.client:
                    self.connect()
                self.turn()
            except Exception as failed:
                logging.exception("a turn has failed")
                word = "gave-up-waiting" if isinstance(failed, LockTimeout) else type(failed).__name__
                self.resource.ask(f"note {word}")
                self.disconnect()
        self.disconnect()

    def turn(self):
        lock = self.lock(self.client, self.path, self.name)
        lock.acquire(timeout=self.patience)
        try:
            self.visit(f"{self.path}/{lock.node}")
        finally:
            lock.release()

    def visit(self, node):
        stat = self.client.retry(self.client.exists, node)
        if stat is None:
            self.resource.ask("note lost-before-use")
        elif self.resource.ask(f"enter alone {stat.czxid} {node}"):
            if self.hold:
                time.sleep(self.hold)
            self.resource.ask(f"leave {stat.czxid}")


def end_with_parent():
    """Whoever has started this process holds the other end of its input."""
    while os.read(0, 1):
        pass
    os._exit(1)


def main(arguments):
    logging.basicConfig(format="%(asctime)s %(message)s")
    threading.Thread(target=end_with_parent, daemon=True).start()
    contenders = [Contender(arguments, task) for task in range(int(arguments[6]))]
    threads = [threading.Thread(target=contender.run) for contender in contenders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main(sys.argv[1:])
