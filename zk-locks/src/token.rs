//! Fencing tokens.

use std::fmt;

use zk_client::Zxid;

/// A number that grows with every grant of a lock.
///
/// Pass it to the resource that the lock protects, which should remember the largest number it has seen and refuse
/// smaller ones: then a holder that was stalled past the end of its lock can do no harm. It is the transaction that
/// created the lock's node (`czxid`); unlike the number in the node's name it keeps growing when the lock's path is
/// deleted and recreated.
///
/// Where a process passes a lock on among its own tasks, the tasks hold it in turn under the same transaction, and a
/// [local](FencingToken::local) number distinguishes them: compare both, or the [bytes](FencingToken::to_bytes).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::{FencingToken, Lock};
///
/// /// The protected resource: refuses any token smaller than the largest it has seen.
/// #[derive(Default)]
/// struct Store(Option<FencingToken>);
///
/// impl Store {
///     fn write(&mut self, token: FencingToken) -> Result<(), &'static str> {
///         if Some(token) < self.0 {
///             return Err("you have lost the lock");
///         }
///         self.0 = Some(token);
///         Ok(())
///     }
/// }
///
/// let (lock, mut store) = (Lock::new(&zk, "/locks/store"), Store::default());
/// let first = lock.acquire().await?;
/// let old = first.token();
/// first.release().await?;
/// let second = lock.acquire().await?;
/// store.write(second.token())?;
/// assert!(store.write(old).is_err(), "a former holder is refused");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    czxid: Zxid,
    local: u32,
}

impl FencingToken {
    pub(crate) const fn new(czxid: Zxid) -> Self {
        Self { czxid, local: 0 }
    }

    /// The token of the next holder within the process.
    pub(crate) fn passed_on(self) -> Self {
        Self { czxid: self.czxid, local: self.local.saturating_add(1) }
    }

    /// Returns the number, which is positive.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.czxid.0
    }

    /// Returns how often the lock had been passed on within the process. 0 for all locks that are not passed on.
    #[must_use]
    pub const fn local(self) -> u32 {
        self.local
    }

    /// Returns both numbers as bytes that compare as the token does: 8 and 4, most significant first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 12] {
        let number = i128::from(self.czxid.0) << 32 | i128::from(self.local);
        let mut bytes = [0; 12];
        for (index, byte) in bytes.iter_mut().rev().enumerate() {
            *byte = u8::try_from(number >> (8 * index) & 0xFF).unwrap_or_default();
        }
        bytes
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.local {
            0 => write!(f, "{}", self.get()),
            local => write!(f, "{}.{local}", self.get()),
        }
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_compare_as_the_token_does() {
        let token = |czxid, local| FencingToken { czxid: Zxid(czxid), local };
        let tokens = [
            token(0, 0),
            token(0, 1),
            token(1, 0),
            token(1, 255),
            token(1, 256),
            token(1, u32::MAX),
            token(2, 0),
            token(1 << 32, 7),
            token(i64::MAX, u32::MAX),
        ];
        assert!(tokens.is_sorted() && tokens.map(FencingToken::to_bytes).is_sorted());
        assert_eq!(token(0x0102, 3).to_bytes(), [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3]);
    }
}
