//! What a client must be able to do to be measured.

use std::{error::Error, future::Future};

use crate::task::Workload;

/// Why something could not be measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A client with a session, and what is measured of it. Clones share the session.
pub trait Client: Clone + Send + Sync + 'static {
    /// What it is called in reports.
    const NAME: &'static str;
    /// Workloads that it has nothing for, and why.
    const LACKS: &'static [(Workload, &'static str)] = &[];

    /// A lock that is held.
    type Held: Send;

    /// A client with a session of ten seconds.
    fn connect(server: &str) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Ends the session.
    fn close(self) -> impl Future<Output = ()> + Send;

    /// Reads a node's data.
    fn get(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Writes a node, whatever its version.
    fn set(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Creates a persistent node.
    fn create(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Deletes a node, whatever its version.
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Writes all these nodes, or none.
    fn set_all(
        &self,
        paths: &[String],
        data: &[u8],
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Takes a lock.
    fn acquire(&self, path: &str) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Gives it back; with `unawaited`, without waiting for the answer.
    fn release(
        &self,
        held: Self::Held,
        unawaited: bool,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}
