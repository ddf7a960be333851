//! What a guard has of its node, shared with the task that takes locks away.

use std::{
    fmt, mem,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use zk_client::{OwnedNode, WriteError};

/// The node of a guard, or what is left of it.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Owned>);

#[derive(Debug, Default)]
pub(super) enum Owned {
    Node(OwnedNode),
    /// Taken away: the session deletes it, and the guard can wait for that.
    GivenAway(Deletion),
    /// A trade uses it up, or has done so.
    #[default]
    Nothing,
}

/// A delete that the session carries out, whether or not this is polled.
pub(super) struct Deletion(Pin<Box<dyn Future<Output = Result<(), WriteError>> + Send>>);

impl Slot {
    fn change<T>(&self, change: impl FnOnce(&mut Owned) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn put(&self, node: Option<OwnedNode>) {
        self.change(|owned| *owned = node.map_or(Owned::Nothing, Owned::Node));
    }

    pub(super) fn take(&self) -> Owned {
        self.change(mem::take)
    }

    /// Takes the node, unless it has been given away or used up.
    pub(super) fn lend(&self) -> Option<OwnedNode> {
        self.change(|owned| match mem::take(owned) {
            Owned::Node(node) => Some(node),
            other => {
                *owned = other;
                None
            }
        })
    }

    /// Leaves the node to the session, which deletes it as if its guard were released.
    pub(super) fn give_away(&self) {
        self.change(|owned| {
            *owned = match mem::take(owned) {
                Owned::Node(node) => Owned::GivenAway(Deletion(Box::pin(node.delete()))),
                other => other,
            }
        });
    }
}

impl Deletion {
    pub(super) async fn done(self) -> Result<(), WriteError> {
        self.0.await
    }
}

impl fmt::Debug for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deletion")
    }
}
