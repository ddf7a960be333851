//! Numbers: mostly meaningful ones, and now and then any other.

use proptest::{
    arbitrary::any,
    prop_oneof,
    sample::select,
    strategy::{Just, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{
        AddWatchMode, CreateFlags, EventType, KeeperState, Perms, SessionId, WatcherType, Xid, Zxid,
    },
    op::OpCode,
    request::TrailingFlag,
    strategy::record::{arbitrary, is_record},
};

/// Versions, counts and times: small ones, -1 for "any", both ends of the range, and all others.
pub fn int() -> impl Strategy<Value = i32> {
    prop_oneof![
        4 => 0..100_i32,
        2 => Just(-1),
        1 => Just(i32::MIN),
        1 => Just(i32::MAX),
        2 => any::<i32>(),
    ]
}

/// As [`int`], with 64 bits.
pub fn long() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..100_i64,
        2 => Just(-1),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        2 => any::<i64>(),
    ]
}

/// The xid of a request that a client waits for: 1 to `i32::MAX`, often at one of the ends.
pub fn ordinary_xid() -> impl Strategy<Value = Xid> {
    prop_oneof![4 => 1..100_i32, 1 => Just(i32::MAX), 1 => 1..=i32::MAX].prop_map(Xid)
}

/// An xid that is not an ordinary request's.
pub fn reserved_xid() -> impl Strategy<Value = Xid> {
    select(&[Xid::NOTIFICATION, Xid::PING, Xid::AUTH, Xid::SET_WATCHES])
}

/// An error, mostly one with a name; never [`ErrorCode::OK`].
pub fn refusal() -> impl Strategy<Value = ErrorCode> {
    any::<ErrorCode>().prop_map(|code| match code {
        ErrorCode::OK => ErrorCode::NO_NODE,
        code => code,
    })
}

/// An error behind which the connection goes on.
pub(super) fn lasting_refusal() -> impl Strategy<Value = ErrorCode> {
    refusal().prop_map(|err| if ends_connection(err) { ErrorCode::NO_NODE } else { err })
}

/// Whether servers close the connection behind this error, or clients leave it.
pub(super) const fn ends_connection(err: ErrorCode) -> bool {
    err.ends_session()
        || matches!(
            err,
            ErrorCode::SESSION_MOVED
                | ErrorCode::AUTH_FAILED
                | ErrorCode::SESSION_CLOSED_REQUIRE_AUTH
        )
}

/// Named numbers, seven times as often as others.
macro_rules! numbered {
    ($($type:ident),*) => {
        arbitrary! {$(
            $type = prop_oneof![
                7 => select($type::KNOWN),
                1 => any::<i32>().prop_map(Self),
            ];
        )*}
        is_record!($($type),*);
    };
}

numbered!(AddWatchMode, CreateFlags, ErrorCode, EventType, KeeperState, OpCode, Perms, WatcherType);

arbitrary! {
    Zxid = long().prop_map(Self);
    SessionId = long().prop_map(Self);
    Xid = prop_oneof![6 => ordinary_xid(), 2 => reserved_xid(), 1 => any::<i32>().prop_map(Self)];
    TrailingFlag = any::<Option<bool>>().prop_map(Self);
}
is_record!(Zxid, SessionId, Xid, TrailingFlag);
