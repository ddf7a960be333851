"""Measuring: servers, and clients' programs in turn."""

import json
import subprocess
import sys
from statistics import median

from comparison.clients import ALL, AUTHORITY, BENCH, CLIENTS, COUNTED, FLOORS, RUST, run

CLIENT_CORE, SERVER_CORE = "0", "1"
# Rounds of the floors and of ours alone, where it is a matter of a few percent.
MORE = 4
# Clients that are given the choice between one task that has all requests and a task for each; the better one counts.
STYLES = ["ours", *RUST]


class Server:
    """A server on its core, for as long as the block lasts."""

    SETTINGS = {
        "instant": ["instant"],
        "instant-tls": ["instant", "--tls", str(AUTHORITY)],
        "testkit": ["testkit"],
        "3.8": ["3.8", "--workers", "0"],
        "3.8-workers": ["3.8"],
        "3.9": ["3.9", "--workers", "0"],
        "3.9-ensemble": ["3.9", "--workers", "0", "--members", "3", "--fsync"],
    }

    def __init__(self, kind):
        setting, _, _ = kind.partition("/")
        self.command = ["taskset", "-c", SERVER_CORE, str(BENCH), "serve", *self.SETTINGS[setting]]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("the server has not started")
        return self.address

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)


def measure(command, row, task, address, options):
    """One report, or why there is none."""
    pin = ["taskset", "-c", CLIENT_CORE] if row.pinned else []
    seconds = float(options.seconds) * row.longer
    command = [*pin, *command, *task, "--server", address, "--seconds", seconds, "--warm-up", options.warm_up]
    try:
        done = run(*command, timeout=row.patience)
    except subprocess.TimeoutExpired:
        return None, f"did not come to an end within {row.patience} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()
        return None, said[-1][:160] if said else f"ended with {done.returncode}"
    return json.loads(lines[-1]), None


def system_calls(name, task, address):
    """Per operation, of the process and all its threads: the difference between many operations and few. The median of
    three, since what a client does besides is not the same twice."""
    few, many = 2_000, 12_000
    differences = []
    for _ in range(3):
        counts = [calls_of(name, [*task, "--operations", operations], address) for operations in (few, many)]
        if None in counts:
            return None
        differences.append((counts[1] - counts[0]) / (many - few))
    return median(differences)


def calls_of(name, task, address):
    """System calls of a client's program from its beginning to its end."""
    command = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "taskset", "-c", CLIENT_CORE, *CLIENTS[name],
               *task, "--server", address]
    try:
        done = run(*command, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return None
    line = next((line for line in done.stderr.splitlines() if "sys_enter" in line), "")
    return int(line.split(",")[0]) if not done.returncode and line.split(",")[0].isdigit() else None


def styles(name, row):
    """The commands that a client is measured with; the better one counts."""
    task = row.task
    if name in STYLES and task[0] in ("get", "list", "set") and "--style" not in task and row.in_flight() > 1:
        return [[*task, "--style", style] for style in ("ring", "tasks")]
    return [task]


def measured_in(round_, row, options):
    """Who: in the rounds behind those of all, the floors and we, where it is a matter of a few percent."""
    if round_ < options.runs:
        return [name for name in row.clients if name in CLIENTS]
    return [name for name in (*FLOORS, "ours") if row.is_close and name in row.clients and name in CLIENTS]


def by_server(chosen):
    """Rows that share a server are measured together."""
    for server in dict.fromkeys(row.server for row in chosen):
        yield server, [row for row in chosen if row.server == server]


def collect(server, rows, options):
    """By row and client: reports by style; and why there are none."""
    results, reasons = {}, {}
    with Server(server) as address:
        for round_ in range(options.runs + MORE):
            for row in (row for row in rows if round_ < row.rounds):
                for name in measured_in(round_, row, options):
                    for task in styles(name, row):
                        report, why = measure(CLIENTS[name], row, task, address, options)
                        if report is None:
                            reasons[row.key, name] = why
                        else:
                            report["round"] = round_
                            style = task[-1] if task is not row.task else ""
                            results.setdefault((row.key, name), {}).setdefault(style, []).append(report)
                if round_ < options.runs or row.is_close:
                    print(f"{server}: round {round_ + 1}: {row.title}", file=sys.stderr, flush=True)
        for row in (row for row in rows if row.counted):
            report, why = measure([COUNTED, "ours"], row, row.task, address, options)
            if report is None:
                reasons[row.key, COUNTED.name] = why
            else:
                results[row.key, "counted"] = {"": [report]}
    return results, reasons


def calls_of_gets():
    """System calls with the instant server."""
    table = {}
    with Server("instant") as address:
        for name in (name for name in ALL if name in CLIENTS and name != "curator"):
            for count in (1, 256):
                table[name, count] = system_calls(name, ["get", "--in-flight", str(count)], address)
    return table
