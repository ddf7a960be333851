//! Nodes: create, delete, read, write, list, sync.

use bytes::Bytes;

use crate::{
    data::{AclList, CreateFlags, Stat},
    list::List,
    record::record,
    request::define::{requests, same_record},
    text::{Str, Text},
};

record! {
    /// Arguments of every create but the one with a time to live.
    CreateRequest<'a> {
        /// The node's path; a sequential create appends ten digits.
        path: Str<'a>,
        /// Null and empty are kept apart.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::inspect::buffer"))]
        data: Option<&'a [u8]>,
        /// Null and empty are refused.
        acl: AclList,
        /// The kind of node; must agree with the operation.
        flags: CreateFlags,
    }
}

record! {
    /// Arguments of a create with a time to live.
    CreateTtlRequest<'a> {
        /// The node's path; a sequential create appends ten digits.
        path: Str<'a>,
        /// Null and empty are kept apart.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::inspect::buffer"))]
        data: Option<&'a [u8]>,
        /// Null and empty are refused.
        acl: AclList,
        /// [`CreateFlags::PERSISTENT_TTL`] or [`CreateFlags::PERSISTENT_SEQUENTIAL_TTL`].
        flags: CreateFlags,
        /// Milliseconds without a write, 1 to 2^40 - 1.
        ttl: i64,
    }
}

same_record! {
    /// Create, answered with path and [`Stat`]. Since 3.5.0.
    Create2Request(CreateRequest);
    /// Create a container. Since 3.5.1.
    CreateContainerRequest(CreateRequest);
    /// Internal to servers: reap a container.
    DeleteContainerRequest(DeleteRequest);
}

record! {
    /// Answer to a create.
    CreateResponse {
        /// The node's path, with its sequence number.
        path: Text,
    }
}

record! {
    /// Answer to a create that also wants the [`Stat`].
    Create2Response {
        /// The node's path, with its sequence number.
        path: Text,
        /// The new node's metadata.
        stat: Stat,
    }
}

record! {
    /// A [`Create2Response`] that borrows from its frame.
    Create2View<'a> of Create2Response {
        /// As in [`Create2Response`].
        path: Str<'a>,
        /// As in [`Create2Response`].
        stat: Stat,
    }
}

record! {
    /// Delete a node without children.
    DeleteRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Expected data version; -1 for any.
        version: i32,
    }
}

record! {
    /// Ask whether a node exists.
    ExistsRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Whether to arm a watch; it is armed for a missing node too.
        watch: bool,
    }
}

record! {
    /// Answer that is a [`Stat`] and nothing else.
    ExistsResponse {
        /// The node's metadata.
        stat: Stat,
    }
}

record! {
    /// Read a node's data.
    GetDataRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Whether to arm a watch; none is armed if the node is missing.
        watch: bool,
    }
}

record! {
    /// A node's data.
    GetDataResponse {
        /// Null if the node was created with null.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::inspect::buffer"))]
        data: Option<Bytes>,
        /// The node's metadata.
        stat: Stat,
    }
}

record! {
    /// A [`GetDataResponse`] that borrows from its frame.
    GetDataView<'a> of GetDataResponse {
        /// As in [`GetDataResponse`].
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::inspect::buffer"))]
        data: Option<&'a [u8]>,
        /// As in [`GetDataResponse`].
        stat: Stat,
    }
}

record! {
    /// Replace a node's data.
    SetDataRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Null and empty are kept apart.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::inspect::buffer"))]
        data: Option<&'a [u8]>,
        /// Expected data version; -1 for any.
        version: i32,
    }
}

record! {
    /// Answer to a write.
    SetDataResponse {
        /// The node's metadata after the write.
        stat: Stat,
    }
}

record! {
    /// List children by name.
    GetChildrenRequest<'a> {
        /// The parent's path.
        path: Str<'a>,
        /// Whether to arm a watch on the set of children.
        watch: bool,
    }
}

record! {
    /// Names of children, in no order.
    GetChildrenResponse {
        /// Names, not paths.
        children: List<Text>,
    }
}

record! {
    /// List children by name, with the parent's [`Stat`].
    GetChildren2Request<'a> {
        /// The parent's path.
        path: Str<'a>,
        /// Whether to arm a watch on the set of children.
        watch: bool,
    }
}

record! {
    /// Names of children, in no order, and the parent's [`Stat`].
    GetChildren2Response {
        /// Names, not paths.
        children: List<Text>,
        /// The parent's metadata.
        stat: Stat,
    }
}

record! {
    /// Flush the channel between this server and the leader.
    SyncRequest<'a> {
        /// Echoed; otherwise ignored.
        path: Str<'a>,
    }
}

record! {
    /// This server has applied everything that the leader had committed when it saw the sync.
    SyncResponse {
        /// The path in the request.
        path: Text,
    }
}

requests! {
    CreateRequest<'_> = CREATE -> CreateResponse;
    Create2Request<'_> = CREATE2 -> Create2Response;
    CreateContainerRequest<'_> = CREATE_CONTAINER -> Create2Response;
    CreateTtlRequest<'_> = CREATE_TTL -> Create2Response;
    DeleteRequest<'_> = DELETE -> ();
    DeleteContainerRequest<'_> = DELETE_CONTAINER -> ();
    ExistsRequest<'_> = EXISTS -> ExistsResponse;
    GetDataRequest<'_> = GET_DATA -> GetDataResponse;
    SetDataRequest<'_> = SET_DATA -> SetDataResponse;
    GetChildrenRequest<'_> = GET_CHILDREN -> GetChildrenResponse;
    GetChildren2Request<'_> = GET_CHILDREN2 -> GetChildren2Response;
    SyncRequest<'_> = SYNC -> SyncResponse;
}
