//! The values that records are made of: numbers with a meaning, node metadata, access control.

use core::fmt;

use crate::{jute::newtype_codec, list::List, numbered::numbered, record::record, text::Text};

/// A transaction's place in the ensemble's history: epoch in the high half, counter in the low one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Zxid(pub i64);

/// A session's number. Opaque: its top byte is a server's, so it may well be negative.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SessionId(pub i64);

/// A request's number within its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Xid(pub i32);

impl Xid {
    /// A watch event.
    pub const NOTIFICATION: Self = Self(-1);
    /// A heartbeat, in both directions.
    pub const PING: Self = Self(-2);
    /// Credentials, in both directions.
    pub const AUTH: Self = Self(-4);
    /// Where the C client puts watch restoration. Servers only echo it; this crate uses ordinary ones.
    pub const SET_WATCHES: Self = Self(-8);
    /// The first ordinary number.
    pub const FIRST: Self = Self(1);

    /// The ordinary number after this one: behind the largest comes 1, never a reserved number.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(next) if next > 0 => Self(next),
            _ => Self::FIRST,
        }
    }
}

newtype_codec!(Zxid(i64), SessionId(i64), Xid(i32));

/// As servers print it: hexadecimal.
impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zxid({self})")
    }
}

/// As servers print it: unsigned hexadecimal.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xid({})", self.0)
    }
}

record! {
    /// What a server knows of a node besides its data.
    #[derive(Copy, Default)]
    fixed Stat {
        /// Transaction that created the node.
        czxid: Zxid,
        /// Transaction that last wrote the data; the creating one until then.
        mzxid: Zxid,
        /// Wall-clock time of creation on the leader, in milliseconds since 1970.
        ctime: i64,
        /// Wall-clock time of the last data write, in milliseconds since 1970.
        mtime: i64,
        /// Number of data writes.
        version: i32,
        /// Twice the children ever created, less the present ones. **Not** the sequence counter.
        cversion: i32,
        /// Number of changes of the access control list.
        aversion: i32,
        /// The session that owns an ephemeral node; 0 for every other kind of node.
        ephemeral_owner: SessionId,
        /// Bytes of data; 0 for null.
        data_length: i32,
        /// Present direct children.
        num_children: i32,
        /// Transaction that last changed the set of children; the creating one until then.
        pzxid: Zxid,
    }
}

record! {
    /// An identity: an authentication scheme and a name in it.
    Id {
        /// `world`, `auth`, `digest`, `ip`, `x509`, `sasl`, `super`, or a server plug-in's.
        scheme: Text,
        /// In the scheme's own form, such as `user:base64(sha1(user:password))` for `digest`.
        id: Text,
    }
}

record! {
    /// One entry of an access control list.
    Acl {
        /// The permissions.
        perms: Perms,
        /// The identity that has them.
        id: Id,
    }
}

/// An access control list, encoded once and cheap to clone.
pub type AclList = List<Acl>;

record! {
    /// One identity of a connection.
    ClientInfo {
        /// Its authentication scheme.
        auth_scheme: Text,
        /// Its name in that scheme, without secrets.
        user: Text,
    }
}

numbered! {
    /// The permissions of an identity on a node, as a set of bits.
    Perms {
        /// Nothing.
        NONE = 0 "none",
        /// Read the data and list the children.
        READ = 1 "read",
        /// Write the data.
        WRITE = 2 "write",
        /// Create children.
        CREATE = 4 "create",
        /// Delete children.
        DELETE = 8 "delete",
        /// Change the access control list.
        ADMIN = 16 "admin",
        /// Everything.
        ALL = 31 "all",
    }
}

impl core::ops::BitOr for Perms {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

numbered! {
    /// The `flags` of a create request. Enumerated values, not bits: 4 is not "ephemeral | 4".
    CreateFlags {
        /// Lives until deleted.
        PERSISTENT = 0 "persistent",
        /// Lives as long as the session.
        EPHEMERAL = 1 "ephemeral",
        /// Persistent, with a sequence number appended to its name.
        PERSISTENT_SEQUENTIAL = 2 "persistent-sequential",
        /// Ephemeral, with a sequence number appended to its name.
        EPHEMERAL_SEQUENTIAL = 3 "ephemeral-sequential",
        /// Deleted by the server some time after its last child; only with `createContainer`.
        CONTAINER = 4 "container",
        /// Deleted by the server when childless and not written for a time; only with `createTTL`.
        PERSISTENT_TTL = 5 "persistent-ttl",
        /// As `persistent-ttl`, with a sequence number appended to its name.
        PERSISTENT_SEQUENTIAL_TTL = 6 "persistent-sequential-ttl",
    }
}

numbered! {
    /// What happened to a watched node.
    EventType {
        /// Made by clients: the state of the session changed.
        NONE = -1 "None",
        /// The node was created.
        NODE_CREATED = 1 "NodeCreated",
        /// The node was deleted.
        NODE_DELETED = 2 "NodeDeleted",
        /// The data was written, perhaps with the same bytes.
        NODE_DATA_CHANGED = 3 "NodeDataChanged",
        /// A child was created or deleted.
        NODE_CHILDREN_CHANGED = 4 "NodeChildrenChanged",
        /// Made by clients: a data watch was removed.
        DATA_WATCH_REMOVED = 5 "DataWatchRemoved",
        /// Made by clients: a child watch was removed.
        CHILD_WATCH_REMOVED = 6 "ChildWatchRemoved",
        /// Made by clients: a persistent watch was removed.
        PERSISTENT_WATCH_REMOVED = 7 "PersistentWatchRemoved",
    }
}

numbered! {
    /// The connection state in a watch event. Servers always send [`KeeperState::SYNC_CONNECTED`].
    KeeperState {
        /// No connection.
        DISCONNECTED = 0 "Disconnected",
        /// Connected to a server that takes part in a quorum.
        SYNC_CONNECTED = 3 "SyncConnected",
        /// Credentials were refused.
        AUTH_FAILED = 4 "AuthFailed",
        /// Connected to a server that is cut off from the quorum.
        CONNECTED_READ_ONLY = 5 "ConnectedReadOnly",
        /// A SASL exchange has ended well.
        SASL_AUTHENTICATED = 6 "SaslAuthenticated",
        /// The client was closed.
        CLOSED = 7 "Closed",
        /// The session has expired.
        EXPIRED = -112 "Expired",
    }
}

numbered! {
    /// The reach of a persistent watch.
    AddWatchMode {
        /// The node itself and its set of children.
        PERSISTENT = 0 "persistent",
        /// The node and all its descendants; no event for sets of children.
        PERSISTENT_RECURSIVE = 1 "persistent-recursive",
    }
}

numbered! {
    /// Which watches on a path to look for or to remove.
    WatcherType {
        /// One-shot watches on the set of children.
        CHILDREN = 1 "children",
        /// One-shot watches on data or existence.
        DATA = 2 "data",
        /// All of them.
        ANY = 3 "any",
        /// Persistent watches. Since 3.9.
        PERSISTENT = 4 "persistent",
        /// Persistent recursive watches. Since 3.9.
        PERSISTENT_RECURSIVE = 5 "persistent-recursive",
    }
}
