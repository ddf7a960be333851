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
//! | `join` | getting a place: the create, the listing behind it, and missing parents |
//! | `together` | the same in several queues at once |
//! | `herd` | waiting by watching everybody |
//! | `place` | our node, and what is heard of those in front |
//! | `listing` | what a list of names means, and when hearing is as good as looking |
//! | `beside` | nodes at and under the path that have no place |
//! | `delay` | a pause after those who have not released the lock themselves |
//! | `rotate` | making a path anew before its numbers end |
//! | `wait` | looking, watching, hearing, until nobody is in front |

use std::{sync::atomic::AtomicBool, time::Duration};

use zk_client::{AclList, Client};

use crate::{
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
mod together;
mod wait;

pub use self::listing::ahead_in_line;
pub(crate) use self::{
    delay::SignOff,
    join::PARENT_TRIES,
    listing::Listing,
    place::{Lent, Place, Waited},
};

/// Pause before asking again a server that is throttling.
pub(crate) const THROTTLE_PAUSE: Duration = Duration::from_millis(100);

/// A queue under a path.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) settings: Settings,
    /// Whether the servers are too old for containers (before 3.5.1), or there are to be none.
    without_containers: AtomicBool,
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
    pub(crate) lock_delay: Option<Duration>,
    pub(crate) observers: Observers,
    /// Whether a waiter watches everybody, and not only the one in front.
    pub(crate) herd: bool,
    pub(crate) downgrades: Downgrades,
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
    pub(crate) const fn new(client: Client, path: String, settings: Settings) -> Self {
        // Who has to know who came before needs a path that does not go.
        let without_containers = AtomicBool::new(settings.lock_delay.is_some());
        Self { client, path, settings, without_containers }
    }

    /// The same queue from outside.
    pub(crate) fn queue(&self) -> Queue {
        Queue::filtered(&self.client, &self.path, self.settings.filter.clone())
    }

    /// The name of a new node, up to its number; `None` if the layout has none for the role.
    pub(crate) fn node_name(&self, role: Role, id: &str) -> Option<String> {
        match &self.settings.filter.named {
            Some(lock) if role == Role::Lock => Some(format!("_c_{id}-{lock}{NAME_END}")),
            _ => self.settings.layout.name(role, id),
        }
    }
}
