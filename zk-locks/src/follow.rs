//! Following what changes, from outside.

use std::{fmt, pin::Pin};

use zk_client::{Cause, Client, Pending, ReadError, Rejection, Watch};

/// Follows something that changes: the [holders](crate::Queue::follow) of a lock, the
/// [leader](crate::Election::follow) of an election, the [members](crate::Group::follow) of a group, the
/// [contenders ahead](crate::Ticket::positions) of a ticket. Costs nothing while nothing changes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// # let lock = zk_locks::Lock::new(&zk, "/locks/report");
/// let mut holders = lock.queue().follow();
/// loop {
///     match holders.next().await?.first() {
///         Some(holder) => println!("{} holds it: {}", holder.description(), holder.token),
///         None => println!("it is free"),
///     }
///     # break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Follow<T> {
    source: Box<dyn Source<T>>,
    /// On the state that was last seen.
    watch: Option<Watch>,
    /// The state that was last returned.
    last: Option<T>,
    /// Whether that is the last one that there will be.
    is_final: bool,
}

/// Where a state is read.
pub(crate) trait Source<T>: fmt::Debug + Send + Sync {
    /// Reads the state, with a watch for its next change; without one if it is final.
    fn look(&self) -> Look<'_, T>;
}

/// A state that is being read.
pub(crate) type Look<'a, T> =
    Pin<Box<dyn Future<Output = Result<(T, Option<Watch>), ReadError>> + Send + 'a>>;

/// Awaits a read of a node that leaves a watch for the next change; if there is no node, a watch for its creation.
///
/// The node may be created between these two requests. The second watch is for the change after that, so it is asked again.
pub(crate) async fn watched<T>(
    client: &Client,
    path: &str,
    mut asked: Pending<(T, Watch), ReadError>,
    ask: impl Fn() -> Pending<(T, Watch), ReadError>,
) -> Result<(Option<T>, Watch), ReadError> {
    loop {
        match asked.await {
            Ok((state, watch)) => return Ok((Some(state), watch)),
            Err(ReadError::Rejected(Rejection::NoNode)) => {}
            Err(error) => return Err(error),
        }
        if let (None, watch) = client.exists(path).watch().await? {
            return Ok((None, watch));
        }
        asked = ask();
    }
}

impl<T: Clone + PartialEq> Follow<T> {
    pub(crate) fn new(source: impl Source<T> + 'static) -> Self {
        Self { source: Box::new(source), watch: None, last: None, is_final: false }
    }

    /// Waits until the state differs from the one last returned, and returns it. The first call returns at once.
    ///
    /// Returns the newest state: changes in quick succession may be returned as one, and what was over between two
    /// looks is skipped. The future can be dropped and recreated: each look asks anew then, so that one needs the time of a
    /// round trip or two. Lost connections and servers that throttle cost nothing but time.
    ///
    /// # Errors
    /// [`ReadError`] if the state cannot be read, or the session has ended: then all further calls fail as well. In
    /// other cases ask again. A state that is final (the place of a ticket that is gone) is returned by all further
    /// calls.
    pub async fn next(&mut self) -> Result<T, ReadError> {
        loop {
            if let Some(last) = self.last.as_ref().filter(|_| self.is_final) {
                return Ok(last.clone());
            }
            if let Some(watch) = &mut self.watch {
                let heard = watch.await;
                self.watch = None;
                heard.map_err(|end| ReadError::Unavailable(Cause::SessionEnded(end)))?;
            }
            let (seen, watch) = self.source.look().await?;
            self.is_final = watch.is_none();
            self.watch = watch;
            if self.last.as_ref() != Some(&seen) {
                self.last = Some(seen.clone());
                return Ok(seen);
            }
        }
    }
}
