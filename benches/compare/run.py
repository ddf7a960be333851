#!/usr/bin/env python3
"""Measures ZooKeeper clients side by side and says so in docs/performance.md.

    benches/compare/run.py --runs 5 --seconds 3 --write

Builds what it needs, starts a server for each setting, and runs every client's program in turn, round after round, so
that whatever else the machine does hits all of them: the client pinned to one core, the server to another. Figures are
medians of the rounds, ratios are of medians, and the spread is between the smallest and the largest of the rounds.
What cannot be built or run is listed with the reason.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = HERE / "target"
BENCH = ROOT / "target/release/zk-bench"
CLIENT_CORE, SERVER_CORE = "0", "1"
# With more than this many processes that want to run before the first one, figures are not to be trusted.
BUSY = 1.0

# A client's name and the command that its task is appended to; filled in by build().
CLIENTS = {}
# What could not be had, and why.
MISSING = {}
VERSIONS = {}

RUST = ["kezhuw", "tokio-zookeeper", "zookeeper-async"]
ALL = ["null", "ours", *RUST, "go", "java", "curator", "c", "kazoo"]
# Clients that are given the choice between one task that has all requests and a task for each; the better one counts.
STYLES = ["ours", *RUST]


class Row:
    """A line of a table: what is measured, against which server, by whom."""

    def __init__(self, key, title, server, task, clients=ALL, unit="ops_per_second", best=max, first=None):
        self.key, self.title, self.server, self.task = key, title, server, task
        self.clients, self.unit, self.best, self.first = clients, unit, best, first


def rows():
    requests = [name for name in ALL if name != "curator"]
    locks = ["null", "ours", "kezhuw", "go", "curator", "kazoo"]
    table = []
    for server, name in (("instant", "instant"), ("3.8", "3.8"), ("3.8-workers", "3.8, its own worker threads"),
                         ("3.9", "3.9")):
        for count in (1, 16, 256):
            table.append(Row(f"get-{count}-{server}", f"{name}: get, {count} in flight", server,
                             ["get", "--in-flight", str(count)], requests))
        table.append(Row(f"set-256-{server}", f"{name}: set, 256 in flight", server, ["set", "--in-flight", "256"], requests))
    for server in ("3.8", "3.9"):
        table += [
            Row(f"lock-{server}", f"{server}: lock and unlock, awaited", server, ["lock"], locks),
            Row(f"lock-unawaited-{server}", f"{server}: lock and unlock, not awaited", server, ["lock", "--unawaited"], locks[:3]),
        ]
        for count in (2, 16, 64):
            table.append(Row(f"hand-off-{count}-{server}", f"{server}: hand-offs, {count} contenders, not awaited", server,
                             ["hand-off", "--in-flight", str(count), "--unawaited"], locks))
        table.append(Row(f"connect-{server}", f"{server}: connect to first reply", server, ["connect"], ALL, "p50_us", min))
    table.append(Row("idle-1000", "1 000 idle sessions", "instant", ["idle", "--in-flight", "1000"], ALL, "resident_kib_grown", min))
    return table


def run(*command, **more):
    return subprocess.run([str(part) for part in command], text=True, capture_output=True, **more)


def attempt(name, step):
    """Builds a client; whatever goes wrong is the reason that it is missing."""
    try:
        CLIENTS[name] = step()
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        why = getattr(error, "stderr", None) or str(error)
        MISSING[name] = why.strip().splitlines()[-1] if why.strip() else "failed without a word"


def cargo(folder, *arguments):
    done = run("cargo", "build", "--release", "--locked", *arguments, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr)


def build(wanted):
    BUILT.mkdir(exist_ok=True)
    cargo(ROOT, "-p", "zk-benches")
    CLIENTS["null"], CLIENTS["ours"] = [BENCH, "null"], [BENCH, "ours"]
    VERSIONS["ours"] = commit()
    if any(name in RUST for name in wanted):
        try:
            cargo(HERE)
            for name in RUST:
                CLIENTS[name] = [BUILT / "release" / name]
        except RuntimeError as error:
            MISSING.update({name: str(error).splitlines()[-1] for name in RUST})
    builders = {"go": go, "kazoo": kazoo, "c": c, "java": lambda: java("java"), "curator": lambda: java("curator")}
    for name, builder in builders.items():
        if name in wanted:
            attempt(name, builder)
    lock = (HERE / "Cargo.lock").read_text().split("[[package]]")
    for name, package in (("kezhuw", "zookeeper-client"), (RUST[1], RUST[1]), (RUST[2], RUST[2])):
        entry = next(entry for entry in lock if f'name = "{package}"' in entry)
        VERSIONS[name] = f"{package} {entry.split('version = ')[1].splitlines()[0].strip(chr(34))}"


def go():
    tool = shutil.which("go") or "/usr/local/go/bin/go"
    driver = BUILT / "go-driver"
    run(tool, "build", "-o", driver, ".", cwd=HERE / "go", check=True)
    version = next(line for line in (HERE / "go/go.mod").read_text().splitlines() if "go-zookeeper/zk" in line)
    VERSIONS["go"] = version.replace("require ", "") + ", " + run(tool, "version").stdout.split()[2]
    return [driver]


def kazoo():
    place = BUILT / "kazoo"
    if not place.exists():
        run(sys.executable, "-m", "venv", place, check=True)
        run(place / "bin/pip", "install", "--quiet", "kazoo==2.11.0", check=True)
    VERSIONS["kazoo"] = f"kazoo 2.11.0, Python {platform.python_version()}"
    return [place / "bin/python", HERE / "kazoo/driver.py"]


def c():
    """The header and the library of Debian's package; unpacked beside the rest where it is not installed."""
    place = BUILT / "c"
    if not (place / "usr").exists() and not Path("/usr/include/zookeeper").exists():
        place.mkdir(exist_ok=True)
        for package in ("libzookeeper-mt-dev", "libzookeeper-mt2"):
            run("apt-get", "download", package, cwd=place, check=True)
        for package in place.glob("*.deb"):
            run("dpkg-deb", "-x", package, place, check=True)
    driver = BUILT / "c-driver"
    libraries = [path.parent for path in place.glob("usr/lib/*/libzookeeper_mt.so*")]
    found = [f"-L{libraries[0]}", f"-Wl,-rpath,{libraries[0]}"] if libraries else []
    run("cc", "-O2", "-DTHREADED", f"-I{place}/usr/include/zookeeper", "-I/usr/include/zookeeper", HERE / "c/driver.c",
        *found, "-lzookeeper_mt", "-lpthread", "-o", driver, check=True)
    packages = "".join(path.name for path in place.glob("libzookeeper-mt-dev*")) or "installed"
    VERSIONS["c"] = packages.replace("_amd64.deb", "")
    return [driver]


def java(client):
    place = BUILT / "java"
    jars = place / "jars"
    if not (place / "Driver.class").exists():
        run("mvn", "-q", "-B", "-f", HERE / "java/pom.xml", "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}", check=True)
        run("java", "-cp", f"{jars}/*", "org.eclipse.jdt.internal.compiler.batch.Main", "-17", "-nowarn", "-cp",
            ":".join(str(jar) for jar in jars.glob("*.jar")), "-d", place, HERE / "java/Driver.java", check=True)
    named = [jar.stem for jar in jars.glob("*.jar")]
    VERSIONS["java"] = next(name for name in named if name.startswith("zookeeper-") and "jute" not in name)
    VERSIONS["curator"] = next(name for name in named if name.startswith("curator-recipes"))
    return ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{place}:{jars}/*", "Driver", client]


def commit():
    described = run("git", "describe", "--always", "--dirty", "--exclude", "*", cwd=ROOT).stdout.strip()
    return f"commit {described}"


class Server:
    """A server on its core, for as long as the block lasts."""

    SETTINGS = {
        "instant": ["instant"],
        "testkit": ["testkit"],
        "3.8": ["3.8", "--workers", "0"],
        "3.8-workers": ["3.8"],
        "3.9": ["3.9", "--workers", "0"],
    }

    def __init__(self, kind):
        self.command = ["taskset", "-c", SERVER_CORE, str(BENCH), "serve", *self.SETTINGS[kind]]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("the server has not started")
        return self.address

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)


def measure(name, task, address, options):
    command = ["taskset", "-c", CLIENT_CORE, *CLIENTS[name], *task, "--server", address,
               "--seconds", options.seconds, "--warm-up", options.warm_up]
    try:
        done = run(*command, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "did not come to an end within two minutes"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()
        return None, said[-1][:160] if said else f"ended with {done.returncode}"
    return json.loads(lines[-1]), None


def system_calls(name, task, address):
    """Per operation, of the process and all its threads: the difference between many operations and few."""
    counts = []
    few, many = 2_000, 12_000
    for operations in (few, many):
        command = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "taskset", "-c", CLIENT_CORE, *CLIENTS[name],
                   *task, "--server", address, "--operations", operations]
        try:
            done = run(*command, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return None
        line = next((line for line in done.stderr.splitlines() if "sys_enter" in line), "")
        if done.returncode or not line.split(",")[0].isdigit():
            return None
        counts.append(int(line.split(",")[0]))
    return (counts[1] - counts[0]) / (many - few)


def styles(name, row):
    """The commands that a client is measured with; the better one counts."""
    task = row.task
    if name in STYLES and task[0] in ("get", "set") and task[-1] != "1":
        return [[*task, "--style", style] for style in ("ring", "tasks")]
    return [task]


def collect(options):
    results, reasons = {}, {}
    chosen = [row for row in rows() if not options.only or any(fnmatch(row.key, part) for part in options.only.split(","))]
    for server in dict.fromkeys(row.server for row in chosen):
        with Server(server) as address:
            for round_ in range(options.runs):
                for row in (row for row in chosen if row.server == server):
                    for name in (name for name in row.clients if name in CLIENTS):
                        for task in styles(name, row):
                            report, why = measure(name, task, address, options)
                            if report is None:
                                reasons[row.key, name] = why
                            else:
                                style = task[-1] if "--style" in task else ""
                                results.setdefault((row.key, name), {}).setdefault(style, []).append(report)
                    print(f"{server}: round {round_ + 1}: {row.title}", file=sys.stderr, flush=True)
    return chosen, results, reasons


def counted(options):
    """System calls with the instant server."""
    table = {}
    with Server("instant") as address:
        for name in (name for name in ALL if name in CLIENTS and name != "curator"):
            for count in (1, 256):
                table[name, count] = system_calls(name, ["get", "--in-flight", str(count)], address)
    return table


class Figure:
    """The rounds of one client in one row."""

    def __init__(self, row, by_style):
        medians = {style: statistics.median(report[row.unit] for report in reports) for style, reports in by_style.items()}
        self.style = row.best(medians, key=medians.get)
        reports = by_style[self.style]
        values = [report[row.unit] for report in reports]
        self.value, self.least, self.most = statistics.median(values), min(values), max(values)
        self.cpu = statistics.median(report["cpu_us_per_op"] for report in reports)
        tails = [report.get("p99_us") for report in reports if report.get("p99_us")]
        middles = [report.get("p50_us") for report in reports if report.get("p50_us")]
        self.p50 = statistics.median(middles) if middles else None
        self.p99 = statistics.median(tails) if tails else None


def number(value):
    if value is None:
        return ""
    if value >= 10_000:
        return f"{value / 1000:,.0f} k".replace(",", " ")
    return f"{value / 1000:.1f} k" if value >= 1000 else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def tables(chosen, results, reasons):
    lines = []
    for row in chosen:
        figures = {name: Figure(row, results[row.key, name]) for name in row.clients if (row.key, name) in results}
        if "ours" not in figures:
            continue
        ours = figures["ours"]
        unit = {"ops_per_second": "ops/s", "p50_us": "µs", "resident_kib_grown": "KiB"}[row.unit]
        lines += ["", f"### {row.title}", "",
                  f"| client | {unit} | least to most | ours is | CPU, µs/op | p50, µs | p99, µs |", "|---|---|---|---|---|---|---|"]
        for name, it in sorted(figures.items(), key=lambda item: item[1].value, reverse=row.best is max):
            ratio = ours.value / it.value if row.best is max else it.value / max(ours.value, 1e-9)
            style = f" ({it.style})" if it.style else ""
            lines.append(f"| {name}{style} | {number(it.value)} | {number(it.least)} to {number(it.most)} | {ratio:.2f} x | "
                         f"{it.cpu:.2f} | {number(it.p50)} | {number(it.p99)} |")
        for name in row.clients:
            if (row.key, name) in reasons and name not in figures:
                lines.append(f"\n{name}: not measured: {reasons[row.key, name]}")
    return lines


def page(options, chosen, results, reasons, calls):
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    lines = ["# Performance", "",
             "Made by `benches/compare/run.py`, which says how; do not edit.", "",
             f"* {datetime.date.today()}, {VERSIONS['ours']}, Linux {platform.release()}, {os.cpu_count()} cores ({cpu}); "
             f"load before the first run {options.load:.1f}",
             f"* client pinned to one core, server to the other; medians of {options.runs} interleaved runs of {options.seconds} s each",
             "* real servers: `forceSync=no`, data on a RAM disk, `nio.numWorkerThreads=0` unless it says otherwise",
             "* *ours is*: how many times better than that client; above 1 is in our favour",
             "* *ring* and *tasks*: one task that has all requests under way, or a task for each; the better one is shown",
             "* null writes requests that were encoded once and counts replies: what is possible"]
    if options.load > BUSY:
        lines += ["", "**The machine was busy with other things.** Operations per second and the 99th percentile are the scheduler's, "
                  "whose slices of 4 ms hit those most who sleep between requests on one thread. What holds: processor's time "
                  "for each operation, medians of times, memory, system calls.", ""]
    lines += [f"* {name}: {version}" for name, version in VERSIONS.items()]
    lines += ["", "## Throughput, latency, memory"] + tables(chosen, results, reasons)
    if calls:
        lines += ["", "## System calls for a get", "", "Instant server; whole process, counted by `perf stat`.", "",
                  "| client | one at a time | 256 in flight |", "|---|---|---|"]
        for name in dict.fromkeys(name for name, _ in calls):
            cells = ["" if calls[name, count] is None else f"{calls[name, count]:.3f}" for count in (1, 256)]
            lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    if MISSING:
        lines += ["", "## Not measured", ""] + [f"* {name}: {why}" for name, why in MISSING.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--warm-up", default="2")
    parser.add_argument("--only", help="rows, such as `get-*-instant,lock*`")
    parser.add_argument("--clients", default=",".join(ALL), help="who is measured")
    parser.add_argument("--settle", default="60", help="seconds between building and measuring, for the load to fall")
    parser.add_argument("--no-calls", action="store_true", help="does not count system calls")
    parser.add_argument("--write", action="store_true", help="writes docs/performance.md")
    options = parser.parse_args()
    wanted = options.clients.split(",")
    build(wanted)
    time.sleep(float(options.settle))
    options.load = os.getloadavg()[0]
    for name in [name for name in CLIENTS if name not in wanted]:
        del CLIENTS[name]
    chosen, results, reasons = collect(options)
    calls = {} if options.no_calls else counted(options)
    text = page(options, chosen, results, reasons, calls)
    print(text)
    raw = {f"{row} {name}": by_style for (row, name), by_style in results.items()}
    (BUILT / "results.json").write_text(json.dumps(raw))
    if options.write:
        (ROOT / "docs/performance.md").write_text(text)


main()
