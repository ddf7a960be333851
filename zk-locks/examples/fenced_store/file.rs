//! A file whose first line is the largest token that was shown.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
};

use rustix::fs::{FlockOperation, flock};
use zk_locks::FencingToken;

use super::{FencedStore, StoreError};

/// A file that several processes of one machine share.
pub(super) struct FencedFile {
    path: PathBuf,
}

impl FencedFile {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Keeps all others out, until the file is closed.
    fn alone(&self) -> io::Result<File> {
        let path = self.path.with_extension("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    /// The value, if no larger token has been shown. To be called alone.
    fn admit(&self, token: &str) -> Result<String, StoreError> {
        let content = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "\n".to_owned(),
            content => content?,
        };
        let (highest, value) = content.split_once('\n').unwrap_or_default();
        // Of equal length, so that they compare as the tokens do.
        if token < highest { Err(StoreError::Stale) } else { Ok(value.to_owned()) }
    }

    /// The old content or the new one, whatever happens. To be called alone.
    fn replace(&self, token: &str, value: &str) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(format!("{token}\n{value}").as_bytes())?;
        file.sync_all()?;
        fs::rename(next, &self.path)
    }
}

impl FencedStore for FencedFile {
    fn read(&mut self, token: FencingToken) -> Result<String, StoreError> {
        let (_alone, token) = (self.alone()?, digits(token));
        let value = self.admit(&token)?;
        self.replace(&token, &value)?;
        Ok(value)
    }

    fn write(&mut self, token: FencingToken, value: &str) -> Result<(), StoreError> {
        let (_alone, token) = (self.alone()?, digits(token));
        self.admit(&token)?;
        Ok(self.replace(&token, value)?)
    }
}

/// All of the token, as digits that compare as it does.
fn digits(token: FencingToken) -> String {
    token.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
