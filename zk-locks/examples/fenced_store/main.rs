//! The other half of a lock: resources that refuse a holder of the past, by its token.
//!
//! A process can be stopped at any moment, between any two instructions, for longer than its session lasts, and
//! then go on as if nothing had happened. No lock can keep it from that; only what it writes to can. All that
//! takes is to remember the largest token that was ever shown, and to compare and write in one step.
//!
//! | module | resource | what makes it one step |
//! |---|---|---|
//! | `file` | a file | a lock of the operating system, and a rename |
//! | `table` | a row of an SQL table | one statement |
//! | `service` | an HTTP service | its own mutex; the token comes in a header |
//!
//! `cargo run --example fenced_store -- 127.0.0.1:2181`

mod file;
mod service;
mod table;

use std::{env, error::Error, fmt, io};

use zk_locks::{Client, FencingToken, Lock};

use self::{file::FencedFile, service::FencedService, table::FencedTable};

/// A value that is read and written under a lock.
trait FencedStore {
    /// The value.
    ///
    /// Reads show the token too. Otherwise a holder of the past could still write after its successor has read,
    /// and what the successor makes of that would be written over it.
    fn read(&mut self, token: FencingToken) -> Result<String, StoreError>;

    /// Replaces the value.
    fn write(&mut self, token: FencingToken, value: &str) -> Result<(), StoreError>;
}

/// Why a store refused an operation.
#[derive(Debug)]
enum StoreError {
    /// A larger token has been shown: the caller has lost its lock.
    Stale,
    /// It does not work.
    Broken(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("somebody has shown a larger token"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl Error for StoreError {}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let servers = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    run(&servers).await
}

/// The program, for servers of one's choice.
pub async fn run(servers: &str) -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("fenced-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut stores: [(&str, Box<dyn FencedStore>); 3] = [
        ("file", Box::new(FencedFile::new(folder.join("report")))),
        ("table", Box::new(FencedTable::open()?)),
        ("service", Box::new(FencedService::start()?)),
    ];
    let zk = Client::connect(servers).await?;
    for (name, store) in &mut stores {
        let lock = Lock::new(&zk, &format!("/locks/fenced-store/{name}"));
        two_holders(&lock, name, &mut **store).await?;
    }
    zk.close().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// The first holder does not notice that it has lost the lock, as if it had been stopped for a while.
async fn two_holders(
    lock: &Lock,
    name: &str,
    store: &mut dyn FencedStore,
) -> Result<(), Box<dyn Error>> {
    let first = lock.acquire().await?;
    let read = store.read(first.token())?;
    store.write(first.token(), &format!("{read}+1"))?;

    // What the servers do with the node of a client that is not heard of any more.
    let queue = lock.queue();
    for contender in queue.contenders().await? {
        queue.evict(&contender).await?;
    }
    let second = lock.acquire().await?;
    let read = store.read(second.token())?;
    assert_eq!(read, "+1");

    // Between the other's read and its write: the moment at which it would do most harm.
    let late = store.write(first.token(), "overwritten");
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    store.write(second.token(), &format!("{read}+2"))?;
    let too_late = store.read(first.token());
    assert!(matches!(too_late, Err(StoreError::Stale)), "{too_late:?}");
    println!("{name}: {:?}", store.read(second.token())?);
    second.release().await?;
    Ok(())
}
