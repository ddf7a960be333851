//! Namespaces of a run's own, for its network, its mounts and its processes: nothing outside of them sees anything of it, and
//! they go with it, whatever ends it.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

/// Says that this process runs in namespaces of its own.
const INSIDE: &str = "ZK_SOAK_IN_NAMESPACES";

/// Where a run keeps its files: in memory, and seen by its own processes only.
pub(super) const FILES: &str = "/run/zk-soak";

/// Programs that make namespaces and networks, with Debian's packages for them.
const PROGRAMS: [(&str, &str); 5] = [
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("faketime", "faketime"),
];

/// The first process in there. It ends, and all others with it, when the command does, or when its input does: which is when
/// the process outside is gone, however it went.
const FIRST: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
command=$!
{ read -r never; kill -KILL "$command"; } <&3 &
wait "$command"
"#;

const UNSHARE: [&str; 6] =
    ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"];

/// Whether this process is in there.
pub(super) fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Whether namespaces can be had.
///
/// # Errors
/// They cannot, or programs for them are missing.
pub(super) fn check() -> Result<(), Box<dyn Error>> {
    for (program, package) in PROGRAMS {
        if find(program).is_none() {
            return Err(format!("{program} is missing (Debian's package {package})").into());
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces are made by root only".into());
    }
    let tried = Command::new("unshare").args(UNSHARE).arg("true").output()?;
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        return Err(format!("there are no network namespaces to be had here: {why}").into());
    }
    Ok(())
}

/// Runs this command again, with the same arguments, in namespaces of its own.
///
/// # Errors
/// The operating system refuses.
pub(super) fn run_inside() -> Result<ExitCode, Box<dyn Error>> {
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", FIRST, "zk-soak"]).arg(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(INSIDE, "1").env("TMPDIR", FILES);
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    // Held for as long as this process lives.
    let input = child.stdin.take();
    let status = child.wait()?;
    drop(input);
    Ok(ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(2)))
}

/// Makes room for what a run needs, in mounts that only its own processes see.
///
/// # Errors
/// The kernel refuses.
pub(super) fn furnish() -> Result<(), Box<dyn Error>> {
    mount_memory(Path::new("/run"), None)?;
    fs::create_dir(FILES)?;
    // Where `ip` keeps the names of namespaces.
    fs::create_dir("/run/netns")?;
    Ok(())
}

/// Mounts a file system of at most so many megabytes.
pub(super) fn mount_memory(folder: &Path, megabytes: Option<u32>) -> Result<(), Box<dyn Error>> {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs"]);
    if let Some(megabytes) = megabytes {
        mount.args(["-o", &format!("size={megabytes}m")]);
    }
    complete(mount.arg("tmpfs").arg(folder))
}

/// Runs a program; if it fails, the error is what it said.
pub(super) fn complete(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("{command:?} ended with {}: {said}", output.status)).into())
}

/// The file that a program is in. What runs systems need not be on every user's path.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut files = env::split_paths(&path).chain(beside).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}
