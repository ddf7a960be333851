//! A library's documentation as JSON.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler whose JSON the version of `public-api` in `tests/Cargo.toml` reads. The form has not been promised, and
/// changes every few releases.
const TOOLCHAIN: &str = "1.95.0";

/// Where it is, once it is there.
///
/// # Panics
/// The compiler can neither be found nor installed, or the library does not build with it.
pub(crate) fn json(library: &str, features: &str) -> PathBuf {
    have_toolchain();
    // Other tests read what is built with features, at the same time.
    let place = if features.is_empty() { "plain" } else { "surface" };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut cargo = rustup(&["run", TOOLCHAIN, "cargo", "rustdoc", "--quiet", "--lib"]);
    cargo.args(["--package", library, "--features", features, "--target-dir"]).arg(&target);
    cargo.args(["--", "-Zunstable-options", "--output-format", "json"]).current_dir(root);
    // JSON is unstable, which a stable compiler has to be talked into.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    run(cargo, "the documentation cannot be built");
    target.join("doc").join(format!("{}.json", library.replace('-', "_")))
}

fn have_toolchain() {
    let there = rustup(&["run", TOOLCHAIN, "rustdoc", "--version"]).output();
    let there = there.expect("`rustup` is needed, for the compiler that this test reads");
    if !there.status.success() {
        let install = rustup(&["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
        run(install, "the compiler that this test reads cannot be installed");
    }
}

fn rustup(args: &[&str]) -> Command {
    let mut rustup = Command::new("rustup");
    // Those of the cargo that runs this test would win.
    for ours in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUSTDOCFLAGS"] {
        rustup.env_remove(ours);
    }
    rustup.args(args);
    rustup
}

fn run(mut command: Command, wrong: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}: {command:?}\n{said}");
}
