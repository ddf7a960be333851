//! The records of requests and replies, grouped by subject, and the trait that connects them.
//!
//! Requests borrow (from the caller when encoding, from the frame when decoding); replies share the
//! memory of their frame.

mod acl;
mod admin;
mod define;
mod dispatch;
#[cfg(feature = "serde")]
mod inspect;
mod multi;
mod multi_op;
mod node;
mod session;
mod watch;

#[cfg(not(feature = "serde"))]
pub use self::dispatch::Inspect;
pub use self::{
    acl::{
        GetAclRequest, GetAclResponse, SetAclRequest, SetAclResponse, WhoAmIRequest, WhoAmIResponse,
    },
    admin::{
        GetAllChildrenNumberRequest, GetAllChildrenNumberResponse, GetEphemeralsRequest,
        GetEphemeralsResponse, ReconfigRequest,
    },
    define::Request,
    dispatch::{RequestVisitor, dispatch},
    multi::{Items, MultiReadRequest, MultiRequest, MultiResponse},
    multi_op::{CheckVersionRequest, MultiHeader, MultiOp, MultiResult},
    node::{
        Create2Request, Create2Response, Create2View, CreateContainerRequest, CreateRequest,
        CreateResponse, CreateTtlRequest, DeleteContainerRequest, DeleteRequest, ExistsRequest,
        ExistsResponse, GetChildren2Request, GetChildren2Response, GetChildrenRequest,
        GetChildrenResponse, GetDataRequest, GetDataResponse, GetDataView, SetDataRequest,
        SetDataResponse, SyncRequest, SyncResponse,
    },
    session::{
        AuthPacket, CloseSession, ConnectRequest, ConnectResponse, ConnectView, GetSaslRequest,
        LEN_CONNECT_RESPONSE_MIN, Ping, SetSaslResponse, TrailingFlag,
    },
    watch::{
        AddWatchRequest, CheckWatchesRequest, ErrorResponse, RemoveWatchesRequest, SetWatches,
        SetWatches2, WatcherEvent, WatcherEventView,
    },
};
