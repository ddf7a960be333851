"""Who is measured: every client's program, built if it can be."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
BUILT = HERE / "target"
# What a server with TLS writes, and clients trust.
AUTHORITY = BUILT / "authority.pem"
BENCH = ROOT / "target/compare/zk-bench"
# The same, with allocations counted, which takes time of its own.
COUNTED = ROOT / "target/counted/compare/zk-bench"

# A client's name and the command that its task is appended to; filled in by build().
CLIENTS = {}
# What could not be had, and why.
MISSING = {}
VERSIONS = {}

RUST = ["kezhuw", "tokio-zookeeper", "zookeeper-async"]
# What is possible, in the system and on the runtime that clients of Rust use.
FLOORS = ["null", "null-tokio"]
ALL = [*FLOORS, "ours", *RUST, "go", "java", "curator", "c", "kazoo"]


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
    """With the profile `compare`, which is the same for all clients of Rust: optimised across crates."""
    done = run("cargo", "build", "--profile", "compare", "--locked", *arguments, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr)


def build(wanted):
    BUILT.mkdir(exist_ok=True)
    cargo(ROOT, "-p", "zk-benches")
    cargo(ROOT, "-p", "zk-benches", "--features", "count-allocations", "--target-dir", "target/counted")
    CLIENTS.update({name: [BENCH, name] for name in (*FLOORS, "ours")})
    VERSIONS["ours"] = commit()
    if any(name in RUST for name in wanted):
        try:
            cargo(HERE)
            for name in RUST:
                CLIENTS[name] = [BUILT / "compare" / name]
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
    # A listing of 100 000 children is longer than the megabyte that it takes by default: it would try for ever.
    return ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", f"-Djute.maxbuffer={64 << 20}", "-cp", f"{place}:{jars}/*", "Driver", client]


def commit():
    described = run("git", "describe", "--always", "--dirty", "--exclude", "*", cwd=ROOT).stdout.strip()
    return f"commit {described}"
