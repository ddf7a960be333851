//! Where releases differ, as far as clients can see.
//!
//! Each release line behaves as its last version does.

use zk_proto::OpCode;

use crate::release::Release;

/// The version whose behaviour is shown for a release line.
pub(super) fn version(release: Release) -> &'static str {
    match release {
        Release::V3_4 => "3.4.14",
        Release::V3_5 => "3.5.10",
        Release::V3_6 => "3.6.4",
        Release::V3_7 => "3.7.2",
        Release::V3_8 => "3.8.6",
        _ => "3.9.5",
    }
}

/// When that version was built, in the form in which servers say so.
pub(super) fn build_date(release: Release) -> &'static str {
    match release {
        Release::V3_4 => "03/06/2019 18:49 GMT",
        Release::V3_5 => "05/29/2022 16:59 GMT",
        Release::V3_6 => "12/18/2022 18:10 GMT",
        Release::V3_7 => "2023-10-06 09:51 UTC",
        Release::V3_8 => "2026-01-28 20:28 UTC",
        _ => "2026-02-11 20:18 UTC",
    }
}

/// Shortest, mean and longest time that a server took for requests, if it took none.
pub(super) fn latency_of_nothing(release: Release) -> &'static str {
    if release < Release::V3_6 { "0/0/0" } else { "0/0.0/0" }
}

/// Whether a server of this release knows the operation.
pub(super) fn knows(release: Release, op: OpCode) -> bool {
    let since = match op {
        OpCode::CREATE
        | OpCode::DELETE
        | OpCode::EXISTS
        | OpCode::GET_DATA
        | OpCode::SET_DATA
        | OpCode::GET_ACL
        | OpCode::SET_ACL
        | OpCode::GET_CHILDREN
        | OpCode::SYNC
        | OpCode::PING
        | OpCode::GET_CHILDREN2
        | OpCode::MULTI
        | OpCode::AUTH
        | OpCode::SET_WATCHES
        | OpCode::SASL
        | OpCode::CREATE_SESSION
        | OpCode::CLOSE_SESSION => Release::V3_4,
        OpCode::CREATE2
        | OpCode::RECONFIG
        | OpCode::CHECK_WATCHES
        | OpCode::REMOVE_WATCHES
        | OpCode::CREATE_CONTAINER
        | OpCode::DELETE_CONTAINER
        | OpCode::CREATE_TTL => Release::V3_5,
        OpCode::MULTI_READ
        | OpCode::GET_EPHEMERALS
        | OpCode::GET_ALL_CHILDREN_NUMBER
        | OpCode::SET_WATCHES2
        | OpCode::ADD_WATCH => Release::V3_6,
        OpCode::WHO_AM_I => Release::V3_7,
        // A check outside a multi is refused like an unknown operation (ZOOKEEPER-2623).
        _ => return false,
    };
    release >= since
}

/// Whether events carry the number of their transaction.
pub(super) fn events_have_zxids(release: Release) -> bool {
    release >= Release::V3_9
}

/// Whether watches of several kinds live side by side, and can be distinguished when removed.
pub(super) fn watches_mix(release: Release) -> bool {
    release >= Release::V3_9
}

/// Whether a member without a quorum goes on with the sessions that the others know, and ends them by itself
/// (ZOOKEEPER-3863).
pub(super) fn readers_take_all_sessions(release: Release) -> bool {
    release < Release::V3_7
}

/// Whether asking for existence needs the right to read, and events are kept from who lacks it.
pub(super) fn existence_is_guarded(release: Release) -> bool {
    release >= Release::V3_8
}

/// Whether servers can read this part of a multi, whatever they make of it.
pub(super) fn reads_in_multi(release: Release, op: OpCode) -> bool {
    let is_old = matches!(op, OpCode::CREATE | OpCode::DELETE | OpCode::SET_DATA | OpCode::CHECK);
    is_old || release >= Release::V3_5
}

/// Whether there are containers, and flags for nodes with a time to live.
pub(super) fn knows_mortal_nodes(release: Release) -> bool {
    release >= Release::V3_5
}

/// Whether a multi tells the metadata of nodes that it creates.
pub(super) fn multi_has_create2(release: Release) -> bool {
    release >= Release::V3_7
}

/// Whether what is heard of a session counts its present timeout, even if an earlier and longer one is not over.
pub(super) fn sessions_shorten(release: Release) -> bool {
    release >= Release::V3_5
}

/// Whether quotas can refuse writes.
pub(super) fn enforces_quotas(release: Release) -> bool {
    release >= Release::V3_7
}

/// Whether there is a node with the ensemble's configuration.
pub(super) fn has_config(release: Release) -> bool {
    release >= Release::V3_5
}

/// Whether a write that cannot be read takes a place in history all the same.
pub(super) fn garbage_has_zxids(release: Release) -> bool {
    release < Release::V3_9
}

/// Whether access control lists can name IPv6 addresses.
pub(super) fn knows_ipv6(release: Release) -> bool {
    release >= Release::V3_9
}

/// Whether a multi with a null path takes a place in history all the same.
pub(super) fn null_in_multi_has_zxid(release: Release) -> bool {
    release >= Release::V3_9
}

/// Whether asking for a watch looks at the paths above, too.
pub(super) fn seeks_watches_upwards(release: Release) -> bool {
    (Release::V3_6..Release::V3_9).contains(&release)
}

/// Whether a delete looks for the node before it asks for permission, and null for an access control list
/// is stumbled over.
pub(super) fn looks_before_it_asks(release: Release) -> bool {
    release < Release::V3_6
}
