//! What a client must be able to do to be measured.

use std::{error::Error, future::Future};

use crate::task::{Task, Workload};

/// Why something could not be measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A client with a session, and what is measured of it. Clones share the session.
pub trait Client: Clone + Send + Sync + 'static {
    /// What it is called in reports.
    const NAME: &'static str;
    /// Workloads that it has nothing for, and why.
    const LACKS: &'static [(Workload, &'static str)] = &[];
    /// Whether its program here talks TLS.
    const HAS_TLS: bool = false;

    /// A lock that can be taken again and again.
    type Lock: Clone + Send + Sync + 'static;

    /// A lock that is held.
    type Held: Send;

    /// A client with a session of ten seconds, with the task's server.
    fn connect(task: &Task) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Ends the session.
    fn close(self) -> impl Future<Output = ()> + Send;

    /// Reads a node's data.
    fn get(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Reads the names of a node's children.
    fn list(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send;

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

    /// A lock at this path, made once for all the times that it is taken, as users do.
    fn lock(&self, path: &str) -> Self::Lock;

    /// Takes it.
    fn acquire(lock: &Self::Lock) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Gives it back; with `unawaited`, without waiting for the answer.
    fn release(
        held: Self::Held,
        unawaited: bool,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}
