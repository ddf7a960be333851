//! What is fetched or built once, into the testkit's cache directory.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::fs::FlockOperation;
use tokio::{process::Command, task::spawn_blocking, time::timeout};

/// Some megabytes over a slow line.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// Keeps other processes from fetching the same at the same time, until dropped.
#[derive(Debug)]
pub(crate) struct FetchLock {
    _file: File,
}

impl FetchLock {
    /// Waits for it; the directory is made if it is not there.
    pub(crate) async fn acquire(cache: &Path) -> Result<Self, String> {
        let at = |error| format!("cannot use {}: {error}", cache.display());
        fs::create_dir_all(cache).map_err(at)?;
        let file = File::create(cache.join("lock")).map_err(at)?;
        let locked = spawn_blocking(|| {
            rustix::fs::flock(&file, FlockOperation::LockExclusive).map(|()| file)
        });
        let locked = locked.await.map_err(|error| error.to_string())?;
        Ok(Self { _file: locked.map_err(|error| at(error.into()))? })
    }
}

pub(crate) fn unfinished(cache: &Path) -> Result<tempfile::TempDir, String> {
    let directory = tempfile::Builder::new().prefix("fetching-").tempdir_in(cache);
    directory.map_err(|error| format!("cannot write to {}: {error}", cache.display()))
}

/// Renaming last makes a directory of this name complete by definition.
pub(crate) fn finish(dir: &Path, target: PathBuf) -> Result<PathBuf, String> {
    fs::rename(dir, &target)
        .map_err(|error| format!("cannot create {}: {error}", target.display()))?;
    Ok(target)
}

/// Runs a program to its end; if it fails or takes too long, the error has the end of what it said.
pub(crate) async fn complete(mut command: Command) -> Result<(), String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(FETCH_LIMIT, running)
        .await
        .map_err(|_| format!("{program} did not end within {FETCH_LIMIT:?}"))?
        .map_err(|error| format!("cannot run {program}: {error}; is it installed?"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let tail = String::from_utf8_lossy(&said[said.len().saturating_sub(2_000)..]).into_owned();
    Err(format!("{program} ended with {}: {}", output.status, tail.trim()))
}

/// FNV-1a: not secret, only stable from one build to the next.
pub(crate) fn digest(texts: &[&str]) -> u64 {
    texts.iter().flat_map(|text| text.bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
