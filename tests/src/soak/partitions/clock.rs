//! Clocks that jump: what time it is, as libfaketime tells a process. How much time goes by is told truly, as kernels do when
//! somebody sets the clock.

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

/// Where distributions keep it, below a folder for each architecture or not.
const FOLDERS: [&str; 2] = ["/usr/lib", "/usr/lib64"];

/// The clock of processes.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    library: PathBuf,
    /// Which is read by the processes once a second.
    file: PathBuf,
}

impl Clock {
    /// A clock that is right.
    ///
    /// # Errors
    /// The library is not installed, or the file cannot be written.
    pub(super) fn new(file: PathBuf) -> Result<Self, Box<dyn Error>> {
        let library =
            library().ok_or("there is no libfaketimeMT.so.1 (Debian's package faketime)")?;
        let clock = Self { library, file };
        clock.set(0)?;
        Ok(clock)
    }

    /// It is wrong by so many seconds from now on.
    pub(super) fn set(&self, seconds: i64) -> io::Result<()> {
        // Whole, or not at all: it is read at any time.
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n"))?;
        fs::rename(next, &self.file)
    }

    /// What gives a program this clock; it becomes that program.
    pub(super) fn wear(&self) -> Vec<String> {
        let variables = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            // Or else waits of Java's threads, which go by the clock that is not faked, end at once.
            ("FAKETIME_FORCE_MONOTONIC_FIX", "0".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ];
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        ["env".to_owned()].into_iter().chain(variables).collect()
    }
}

fn library() -> Option<PathBuf> {
    let inside = |folder: &Path| {
        let file = folder.join("faketime/libfaketimeMT.so.1");
        file.is_file().then_some(file)
    };
    FOLDERS.iter().find_map(|folder| {
        let folder = Path::new(folder);
        let below = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        inside(folder).or_else(|| below.map(|entry| entry.path()).find_map(|path| inside(&path)))
    })
}
