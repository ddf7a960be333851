//! Following a place to the front of a queue.

use std::sync::Arc;

use zk_client::{Cause, ReadError, Rejection, Watch};

use crate::{entry::Entry, line::Line};

/// Follows how many contenders are ahead of a [`Ticket`](crate::Ticket): see
/// [`Ticket::positions`](crate::Ticket::positions). It does not hold the ticket's place, and can outlive it.
///
/// For a few places of interest, not for thousands of waiters: it watches the whole queue, and each change of that
/// costs one notification and one listing. [`Ticket::ahead`](crate::Ticket::ahead) returns what a wait has seen in
/// passing, without a request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// let lock = zk_locks::Lock::new(&zk, "/locks/report");
/// let (first, ticket) = (lock.acquire().await?, lock.enqueue().await?);
/// let mut positions = ticket.positions().ok_or("it is used")?;
/// assert_eq!(positions.next().await?, Some(1));
/// first.release().await?;
/// assert_eq!(positions.next().await?, Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Positions {
    line: Arc<Line>,
    entry: Entry,
    watch: Option<Watch>,
    /// The position that was last returned.
    told: Option<Option<usize>>,
}

impl Positions {
    pub(crate) const fn new(line: Arc<Line>, entry: Entry) -> Self {
        Self { line, entry, watch: None, told: None }
    }

    /// Waits until the number of contenders ahead changes, and returns it: 0 when the lock is granted, `None` when the
    /// place is gone, and on each further call. The first call returns at once. Changes in quick succession may be
    /// reported as one.
    ///
    /// One listing for each change of the queue. The future can be dropped and recreated at will.
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read, or the session has ended. Ask again unless it has.
    pub async fn next(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            if let Some(watch) = &mut self.watch {
                let heard = watch.await;
                self.watch = None;
                heard.map_err(|end| ReadError::Unavailable(Cause::SessionEnded(end)))?;
            }
            if self.told == Some(None) {
                return Ok(None);
            }
            let ahead = match self.line.client.children(&self.line.path).watch().await {
                Ok(((names, _), watch)) => {
                    self.watch = Some(watch);
                    self.ahead(names)
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => None,
                Err(error) => return Err(error),
            };
            if self.told != Some(ahead) {
                self.told = Some(ahead);
                return Ok(ahead);
            }
        }
    }

    fn ahead(&self, names: Vec<String>) -> Option<usize> {
        let filter = &self.line.settings.filter;
        let queue: Vec<Entry> =
            names.into_iter().filter_map(|name| filter.read(name).ok()).collect();
        let is_there = queue.iter().any(|entry| entry.name == self.entry.name);
        is_there.then(|| queue.iter().filter(|entry| entry.blocks(&self.entry)).count())
    }
}
