"""Prints where cargo has the source of a version of zookeeper-client, after fetching it. Arguments: version, scratch folder."""

import json
import pathlib
import subprocess
import sys

version, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
(scratch / "src").mkdir(parents=True)
(scratch / "src" / "lib.rs").touch()
(scratch / "Cargo.toml").write_text(
    '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
    f'[dependencies]\nzookeeper-client = "={version}"\n'
)
command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", scratch / "Cargo.toml"]
found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
[package] = [it for it in found["packages"] if it["name"] == "zookeeper-client"]
print(pathlib.Path(package["manifest_path"]).parent)
