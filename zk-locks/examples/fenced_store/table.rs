//! A row of an SQL table, with a column for the largest token that was shown.

use rusqlite::{Connection, OptionalExtension as _, params};
use zk_locks::FencingToken;

use super::{FencedStore, StoreError};

/// Bytes compare as numbers do, most significant first: so the token fits in one column.
const CREATE: &str = "
    CREATE TABLE report (id INTEGER PRIMARY KEY, token BLOB NOT NULL, value TEXT NOT NULL);
    INSERT INTO report VALUES (1, x'', '')";

/// Comparison and change are one statement. A `SELECT` of the token in front of an `UPDATE` without the
/// condition would leave a gap for a holder to be stopped in.
const READ: &str = "UPDATE report SET token = ?1 WHERE id = 1 AND token <= ?1 RETURNING value";

const WRITE: &str = "UPDATE report SET token = ?1, value = ?2 WHERE id = 1 AND token <= ?1";

/// A table in a database of this process; the statements are the same for any other.
pub(super) struct FencedTable {
    connection: Connection,
}

impl FencedTable {
    pub(super) fn open() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(CREATE)?;
        Ok(Self { connection })
    }
}

impl FencedStore for FencedTable {
    fn read(&mut self, token: FencingToken) -> Result<String, StoreError> {
        let mut read = self.connection.prepare(READ)?;
        let row = read.query_row([token.to_bytes()], |row| row.get(0)).optional()?;
        row.ok_or(StoreError::Stale)
    }

    fn write(&mut self, token: FencingToken, value: &str) -> Result<(), StoreError> {
        match self.connection.execute(WRITE, params![token.to_bytes(), value])? {
            0 => Err(StoreError::Stale),
            _ => Ok(()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error.into())
    }
}
