"""What criterion says of the core alone: codec, lines of waiters, session."""

import json
import sys

from comparison.clients import ROOT, run
from comparison.measuring import CLIENT_CORE

CRITERION = ROOT / "target/criterion"
BENCH = "`cargo bench -p zk-benches --bench {}`"


def bench(seconds):
    """Runs what measures the core alone. Returns why it could not, if so."""
    done = run("taskset", "-c", CLIENT_CORE, "cargo", "bench", "--quiet", "-p", "zk-benches", "--bench", "codec", "--bench", "line",
               "--bench", "session", "--", "--warm-up-time", seconds / 2, "--measurement-time", seconds, cwd=ROOT)
    print("criterion's benchmarks", file=sys.stderr, flush=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed without a word"])[-1]


def nanoseconds(group, function):
    path = CRITERION / group / function / "new/estimates.json"
    return json.loads(path.read_text())["median"]["point_estimate"] if path.exists() else None


def groups(prefix):
    return sorted(path.name for path in CRITERION.glob(f"{prefix} *"))
