//! Builders of the plain operations.
//!
//! | module | concern |
//! |---|---|
//! | `read` | data, existence, children, access control |
//! | `write` | data, access control, deletes |
//! | `sync` | catching up with the leader |
//! | `session` | what servers know of this session: its nodes, its identities |
//! | `config` | the ensemble's members |
//! | `several` | several reads in one request |
//! | `add_watch`, `check_watches` | setting persistent watches; checking for watches and removing them |
//! | `builder` | the common parts of all of them |

mod add_watch;
pub(crate) mod builder;
mod check_watches;
mod config;
mod read;
mod session;
mod several;
mod sync;
mod write;

pub(crate) use self::read::{read_children, read_data, read_exists};
pub use self::{
    add_watch::AddWatch,
    check_watches::{CheckWatches, WatchKind},
    config::{Config, ConfigWatched, EnsembleConfig, EnsembleMember, Reconfig},
    read::{
        ChildNames, Children, ChildrenPacked, ChildrenWatched, DescendantCount, Exists,
        ExistsWatched, Get, GetAcl, GetWatched,
    },
    session::{AddAuth, Ephemerals, WhoAmI},
    several::{MultiRead, ReadResult},
    sync::LeaderSync,
    write::{Delete, DeleteIfExists, Set, SetAcl},
};
