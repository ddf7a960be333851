//! Programs in Go, built once.

use std::{fs, path::PathBuf};

use tokio::process::Command;
use zk_testkit::real::Locator;

use super::fetch::{FetchLock, complete, digest, finish, unfinished};

/// The files of a program, by name: its module, the sums of what it uses, and itself.
pub(crate) type Sources = [(&'static str, &'static str); 3];

/// The program, built into the testkit's cache directory if it is not there.
pub(crate) async fn build(name: &str, sources: &Sources) -> Result<PathBuf, String> {
    let cache = Locator::from_env().cache().join("interop");
    let texts = sources.map(|(_, text)| text);
    let target = cache.join(format!("{name}-{:016x}", digest(&texts)));
    let _lock = FetchLock::acquire(&cache).await?;
    if target.exists() {
        return Ok(target.join(name));
    }
    eprintln!("building {name} with Go");
    let unfinished = unfinished(&cache)?;
    let dir = unfinished.path().join(name);
    let write = |(file, text): &(&str, &str)| fs::write(dir.join(file), text);
    let written = fs::create_dir(&dir).and_then(|()| sources.iter().try_for_each(write));
    written.map_err(|error| format!("cannot write to {}: {error}", dir.display()))?;
    let mut go = Command::new("go");
    go.args(["build", "-buildvcs=false", "-o", name, "."]).current_dir(&dir);
    complete(go).await?;
    Ok(finish(&dir, target)?.join(name))
}
