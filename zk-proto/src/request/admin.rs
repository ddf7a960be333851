//! Membership and statistics.

use crate::{
    data::Zxid,
    list::List,
    record::record,
    request::{define::requests, node::GetDataResponse},
    text::{Str, Text},
};

record! {
    /// Change the ensemble's membership. Since 3.5.0. Null means "not used".
    ReconfigRequest<'a> {
        /// Incremental: `server.N=...` specifications, separated by commas.
        joining_servers: Str<'a>,
        /// Incremental: server numbers, separated by commas.
        leaving_servers: Str<'a>,
        /// Not incremental: all members.
        new_members: Str<'a>,
        /// Expected version of the configuration; -1 for any.
        cur_config_id: Zxid,
    }
}

record! {
    /// This session's ephemeral nodes under a prefix. Since 3.6.0.
    GetEphemeralsRequest<'a> {
        /// A string prefix, not a parent; empty or `/` for all.
        prefix_path: Str<'a>,
    }
}

record! {
    /// Paths of ephemeral nodes.
    GetEphemeralsResponse {
        /// In no order.
        ephemerals: List<Text>,
    }
}

record! {
    /// Number of descendants. Since 3.6.0; costs the server a walk over its whole tree.
    GetAllChildrenNumberRequest<'a> {
        /// The node's path.
        path: Str<'a>,
    }
}

record! {
    /// Number of descendants.
    GetAllChildrenNumberResponse {
        /// All levels, without the node itself.
        total_number: i32,
    }
}

requests! {
    ReconfigRequest<'_> = RECONFIG -> GetDataResponse;
    GetEphemeralsRequest<'_> = GET_EPHEMERALS -> GetEphemeralsResponse;
    GetAllChildrenNumberRequest<'_> = GET_ALL_CHILDREN_NUMBER -> GetAllChildrenNumberResponse;
}
