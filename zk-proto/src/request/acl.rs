//! Access control lists, and the identities of this connection.

use crate::{
    data::{AclList, ClientInfo, Stat},
    list::List,
    record::record,
    request::define::{empty_requests, requests},
    text::Str,
};

record! {
    /// Read a node's access control list.
    GetAclRequest<'a> {
        /// The node's path.
        path: Str<'a>,
    }
}

record! {
    /// A node's access control list.
    GetAclResponse {
        /// Digests are masked for clients that may not change the list.
        acl: AclList,
        /// The node's metadata.
        stat: Stat,
    }
}

record! {
    /// Replace a node's access control list.
    SetAclRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Null and empty are refused.
        acl: AclList,
        /// Expected version of the list (`aversion`); -1 for any.
        version: i32,
    }
}

record! {
    /// Answer to a change of access.
    SetAclResponse {
        /// The node's metadata after the change.
        stat: Stat,
    }
}

record! {
    /// The identities of this connection.
    WhoAmIResponse {
        /// In no order.
        client_info: List<ClientInfo>,
    }
}

/// Ask for the identities of this connection. Since 3.7.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhoAmIRequest;

empty_requests!(WhoAmIRequest);

requests! {
    GetAclRequest<'_> = GET_ACL -> GetAclResponse;
    SetAclRequest<'_> = SET_ACL -> SetAclResponse;
    WhoAmIRequest = WHO_AM_I -> WhoAmIResponse;
}
