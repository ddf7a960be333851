//! The queue under a path: joining, whom to watch, when a grant is proved, leaving. Nothing else knows these.
//!
//! Every waiting node has a number, given out by the leader in the order of creation. Whoever has nobody in
//! front whom it has to wait for holds the lock: a reader need not wait for readers, all others for
//! everybody. Leaving is deleting one's node, which happens by itself when its
//! [`OwnedNode`](zk_client::OwnedNode) is dropped: so an acquire can be dropped at any point and leaves
//! nothing behind.
//!
//! | module | concern |
//! |---|---|
//! | `join` | getting a place: the create, and the listing behind it |
//! | `together` | the same in several queues at once |
//! | `herd` | waiting by watching everybody |
//! | `place` | our node, and what is heard of those in front |
//! | `listing` | what a list of names means, and when hearing is as good as looking |
//! | `beside` | nodes at and under the path that have no place |
//! | `term` | what is known of the one who had the lock before |
//! | `delay` | a pause after those who have not released the lock themselves |
//! | `rotate` | making a path anew before its numbers end |
//! | `wait` | looking, watching, hearing, until nobody is in front |

use std::time::Duration;

use zk_client::{
    AclList, CallOptions, Client, Create, Rejection, WriteError, ZkPath, ancestors, parent,
};

use crate::{
    error::AcquireError,
    layout::{Filter, Layout, NAME_END, Role},
    observe::Observers,
    queue::Queue,
};

mod beside;
mod delay;
mod herd;
mod join;
mod listing;
mod place;
mod rotate;
mod term;
mod together;
mod wait;

pub use self::listing::ahead_in_line;
pub(crate) use self::{
    delay::SignOff,
    listing::Listing,
    place::{Lent, Place, Waited},
};

/// How requests are made on whose order others rely that are submitted behind them: answered in their place, or not at
/// all. Of those that are asked again, as by [`Client::patient`], the answer comes behind the others'.
pub(crate) const IN_PLACE: CallOptions = CallOptions::new();

/// A queue under a path.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) settings: Settings,
    /// The node that must be there, if one must: it and what is above it are not to be created.
    required: Option<String>,
}

/// What all recipes can be told. [`Builder`](crate::Builder) says what is what.
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
    /// Whether a waiter watches everybody, and not only the one in front.
    pub(crate) herd: bool,
    pub(crate) downgrades: Downgrades,
}

/// Which node is not to be created, together with all that is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Required {
    Nothing,
    Parent,
    Path,
}

/// Who may put a node in front of one that waits to write, by going on to read under a write lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Downgrades {
    /// Those who have names for it: nobody in the queue of an exclusive lock.
    #[default]
    AsNamed,
    /// Anybody, whatever the names: kazoo's do not tell writers from exclusive locks.
    Possible,
    /// Nobody, as its users have promised.
    Never,
}

impl Line {
    pub(crate) fn new(client: Client, path: String, settings: Settings) -> Self {
        let required = match settings.required {
            Required::Nothing => None,
            Required::Parent => parent(&path).map(str::to_owned),
            Required::Path => Some(path.clone()),
        };
        Self { client, path, settings, required }
    }

    /// Another queue of the same recipe: at this path, with the same node required.
    pub(crate) fn beside(&self, path: String) -> Self {
        let required = self.required.clone();
        // One below a path that is none would be one.
        let path = if self.check_path().is_ok() { path } else { self.path.clone() };
        Self { required, ..Self::new(self.client.clone(), path, self.settings.clone()) }
    }

    /// The same for a recipe that is the node at the path itself: what must be there is the node above.
    pub(crate) fn of_one_node(mut self) -> Self {
        let above = parent(&self.path).unwrap_or("/");
        self.required = self.required.map(|_| above.to_owned());
        self
    }

    /// Whether the path is one: what is below it may be one all the same.
    ///
    /// # Errors
    /// [`AcquireError::InvalidPath`], with the path as the recipe was given it.
    pub(crate) fn check_path(&self) -> Result<(), AcquireError> {
        self.path.parse::<ZkPath>().map(drop).map_err(AcquireError::InvalidPath)
    }

    /// Whether a node at this path is to be created where it is missing.
    pub(crate) fn may_create(&self, path: &str) -> bool {
        let required = self.required.as_deref();
        required.is_none_or(|required| ancestors(required).all(|level| level != path))
    }

    /// A create as the recipe wants it, of what is missing above as well.
    pub(crate) fn create<'a>(
        &'a self,
        client: &'a Client,
        path: &'a str,
        data: &'a [u8],
    ) -> Create<'a> {
        let create = client.create(path, data).acl(&self.settings.acl);
        let create = match self.settings.lock_delay {
            // Who has to know who came before needs a path that does not go.
            Some(_) => create.parents(),
            None => create.containers(),
        };
        match &self.required {
            Some(required) => create.parents_below(required),
            None => create,
        }
    }

    /// What a write was refused with, to whoever asked for the lock.
    pub(crate) fn refused(&self, error: WriteError) -> AcquireError {
        match (&self.required, error) {
            (Some(path), WriteError::Rejected(Rejection::NoNode)) => {
                AcquireError::PathMissing { path: path.clone() }
            }
            (_, error) => error.into(),
        }
    }

    /// Which queue it is, of all that there are: where, and of several that share a path, which.
    pub(crate) fn place(&self) -> (&str, Option<&str>) {
        (&self.path, self.settings.filter.named.as_deref())
    }

    /// The same queue from outside.
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
