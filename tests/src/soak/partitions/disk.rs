//! The disks of members, which are small enough to be full.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// How many snapshots a member keeps, each with the transactions behind it.
const KEPT: usize = 3;

/// Above that, what a member has said is thrown away.
const LOG_LEN_MAX: u64 = 16 << 20;

/// The ballast is written in pieces of this.
const PIECE: usize = 64 << 10;

/// Leaves no room for anything more.
pub(super) fn fill(folder: &Path) -> io::Result<()> {
    let mut ballast = File::create(ballast(folder))?;
    let piece = vec![0; PIECE];
    for size in [PIECE, 1] {
        loop {
            match ballast.write(&piece[..size]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Makes room again.
pub(super) fn free(folder: &Path) -> io::Result<()> {
    match fs::remove_file(ballast(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn ballast(folder: &Path) -> PathBuf {
    folder.join("ballast")
}

/// Deletes snapshots that newer ones stand for, and the transactions in front of those that are kept, as the purge
/// task of servers does each hour at most. `data` is the folder of a server that runs.
pub(super) fn purge(data: &Path) -> io::Result<()> {
    let folder = data.join("version-2");
    let mut snapshots = numbered(&folder, "snapshot.")?;
    let keep = snapshots.len().saturating_sub(KEPT);
    let Some(&(oldest, _)) = snapshots.get(keep) else { return Ok(()) };
    let mut logs = numbered(&folder, "log.")?;
    // The last one that begins before a snapshot has transactions from before and after it.
    let begun = logs.iter().take_while(|(zxid, _)| *zxid <= oldest).count();
    let stale = snapshots.drain(..keep).chain(logs.drain(..begun.saturating_sub(1)));
    for (_, file) in stale.collect::<Vec<_>>() {
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Empties the log of a server that has said much.
pub(super) fn shorten(log: &Path) -> io::Result<()> {
    let log = File::options().append(true).open(log)?;
    if log.metadata()?.len() > LOG_LEN_MAX {
        log.set_len(0)?;
    }
    Ok(())
}

/// The files of a kind with the transaction that they begin with, in order.
fn numbered(folder: &Path, kind: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let zxid = name.strip_prefix(kind).map(|hex| u64::from_str_radix(hex, 16));
        if let Some(Ok(zxid)) = zxid {
            found.push((zxid, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purge_keeps_what_snapshots_need() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("version-2");
        fs::create_dir(&folder).unwrap();
        let files = ["snapshot.0", "snapshot.9", "snapshot.1f", "snapshot.30", "snapshot.100"];
        let logs = ["log.1", "log.a", "log.20", "log.31", "acceptedEpoch"];
        for name in files.iter().chain(&logs) {
            fs::write(folder.join(name), "").unwrap();
        }
        purge(data.path()).unwrap();
        let left = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        let expected =
            ["acceptedEpoch", "log.20", "log.31", "log.a", "snapshot.100", "snapshot.1f"];
        assert_eq!(left, [&expected[..], &["snapshot.30"]].concat());
    }
}
