//! The queue under a path: joining, choosing nodes to watch, proving a grant, leaving. Only this module knows these.
//!
//! Every waiting node has a number, assigned by the leader in the order of creation. A contender with none ahead that
//! it has to wait for holds the lock: a reader need not wait for readers, all others wait for every contender. Leaving
//! means deleting one's node, which happens when its [`OwnedNode`](zk_client::OwnedNode) is dropped: so an acquire can
//! be dropped at any point and leaves nothing behind.
//!
//! | module | concern |
//! |---|---|
//! | `join` | getting a place: the create, and the listing behind it |
//! | `together` | getting places in several queues at once |
//! | `herd` | waiting by watching the whole queue |
//! | `position` | our node, and the events of those ahead |
//! | `listing` | what a list of names means, and when an event replaces a listing |
//! | `beside` | nodes at and under the path that have no place |
//! | `asked` | reads whose answers stay |
//! | `previous_holder` | what is known of the previous holder |
//! | `delay` | a pause after holders that have not released the lock themselves |
//! | `rotate` | recreating a path before its numbers end |
//! | `wait` | listing and watching until no contender is ahead |

use std::{borrow::Cow, time::Duration};

use zk_client::{
    AclList, CallOptions, Client, Create, Rejection, WriteError,
    path::{ZkPath, ancestors, join, parent},
};

use crate::{
    error::AcquireError,
    layout::{Filter, Layout, NAME_END, Role},
    observe::Observers,
    queue::Queue,
};

mod asked;
mod beside;
mod delay;
mod herd;
mod join;
mod listing;
mod position;
mod previous_holder;
mod rotate;
mod together;
mod wait;

pub(crate) use self::{
    delay::ReleaseRecord,
    listing::Listing,
    position::{DetachedPosition, Position, WaitSpan, Waited, watched_event},
    rotate::Pace,
};

/// Options for requests on whose order later requests rely: answered in order, or not at all. The answer to a repeated
/// request, as with [`Client::patient`], follows those of later ones.
pub(crate) const IN_PLACE: CallOptions = CallOptions::new();

/// A queue under a path.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) settings: Settings,
    /// The node that must exist, if any: neither it nor its ancestors are created.
    required: Option<String>,
}

/// The settings of all recipes, documented at [`Builder`](crate::Builder).
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) description: String,
    pub(crate) acl: AclList,
    pub(crate) recheck: Option<Duration>,
    pub(crate) layout: Layout,
    pub(crate) filter: Filter,
    pub(crate) look_ahead: bool,
    pub(crate) max_waiters: Option<usize>,
    pub(crate) rotate_at: i32,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) release_after: Option<Duration>,
    pub(crate) lock_delay: Option<Duration>,
    pub(crate) required: Required,
    pub(crate) observers: Observers,
    /// Whether a waiter watches the whole queue, and not only its predecessor.
    pub(crate) herd: bool,
    pub(crate) downgrades: Downgrades,
    pub(crate) stay: Stay,
}

/// How long a lock stays in a cohort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) max_sections: u32,
    pub(crate) max_time: Duration,
    pub(crate) linger: Duration,
    /// Whether the waiters queue up again when the node is lost.
    pub(crate) requeues: bool,
}

impl Default for Stay {
    fn default() -> Self {
        let (max_time, linger) = (Duration::from_millis(50), Duration::ZERO);
        Self { max_sections: 64, max_time, linger, requeues: true }
    }
}

/// Which node is never created, nor are its ancestors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Required {
    Nothing,
    Parent,
    Path,
}

/// Which contenders may put a node ahead of a waiting writer, by a downgrade of their write lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Downgrades {
    /// Those with names for it: none in the queue of an exclusive lock.
    #[default]
    AsNamed,
    /// Any, whatever the names: kazoo's do not distinguish writers from exclusive locks.
    Possible,
    /// None, as the users of the lock have promised.
    Never,
}

impl WaitQueue {
    pub(crate) fn new(client: Client, path: String, settings: Settings) -> Self {
        let required = match settings.required {
            Required::Nothing => None,
            Required::Parent => parent(&path).map(str::to_owned),
            Required::Path => Some(path.clone()),
        };
        Self { client, path, settings, required }
    }

    /// A path below that of the recipe; if that is invalid, the same, as appending to it might make a valid one.
    pub(crate) fn below(&self, name: &str) -> String {
        if self.check_path().is_ok() { join(&self.path, name) } else { self.path.clone() }
    }

    /// Another queue of the same recipe: at this path, with the same required node.
    pub(crate) fn beside(&self, path: String) -> Self {
        let required = self.required.clone();
        Self { required, ..Self::new(self.client.clone(), path, self.settings.clone()) }
    }

    /// For a recipe that is the node at the path itself: the required node is the parent.
    pub(crate) fn of_one_node(mut self) -> Self {
        let above = parent(&self.path).unwrap_or("/");
        self.required = self.required.map(|_| above.to_owned());
        self
    }

    /// Checks the path: an invalid one may have valid paths below it.
    ///
    /// # Errors
    /// [`AcquireError::InvalidPath`], with the path as the recipe was given it.
    pub(crate) fn check_path(&self) -> Result<(), AcquireError> {
        self.path.parse::<ZkPath>().map(drop).map_err(AcquireError::InvalidPath)
    }

    /// Whether a missing node at this path may be created.
    pub(crate) fn may_create(&self, path: &str) -> bool {
        let required = self.required.as_deref();
        required.is_none_or(|required| ancestors(required).all(|level| level != path))
    }

    /// A create with the recipe's settings, of missing ancestors as well.
    pub(crate) fn create<'a>(
        &'a self,
        client: &'a Client,
        path: &'a str,
        data: &'a [u8],
    ) -> Create<'a> {
        let create = client.create(path, data).acl(&self.settings.acl);
        let create = match self.settings.lock_delay {
            // The lock delay needs a path that is not deleted when empty.
            Some(_) => create.parents(),
            None => create.containers(),
        };
        match &self.required {
            Some(required) => create.parents_below(required),
            None => create,
        }
    }

    /// Converts the error of a write for the caller that asked for the lock.
    pub(crate) fn refused(&self, error: WriteError) -> AcquireError {
        match (&self.required, error) {
            (Some(path), WriteError::Rejected(Rejection::NoNode)) => {
                AcquireError::PathMissing { path: path.clone() }
            }
            (_, error) => error.into(),
        }
    }

    /// Identifies the queue: its path, as the servers name it, and its name if several share the path.
    pub(crate) fn location(&self) -> (Cow<'_, str>, Option<&str>) {
        (self.client.absolute(&self.path), self.settings.filter.named.as_deref())
    }

    /// The queue as seen from outside.
    pub(crate) fn queue(&self) -> Queue {
        Queue::filtered(&self.client, &self.path, self.settings.filter.clone())
    }

    /// The name of a new node, up to its number; `None` if the layout has none for the role.
    pub(crate) fn node_name(&self, role: Role, id: &str) -> Option<String> {
        match &self.settings.filter.named {
            Some(lock) if role == Role::Lock => Some(format!("{lock}{NAME_END}")),
            _ => self.settings.layout.name(role, id),
        }
    }
}
