//! The records of requests and replies, grouped by subject, and the trait that connects them.
//!
//! Requests borrow (from the caller when encoding, from the frame when decoding); replies share the
//! memory of their frame.

mod acl;
mod admin;
mod any;
mod define;
mod dispatch;
#[cfg(feature = "serde")]
mod inspect;
mod multi;
mod multi_op;
mod node;
mod session;
mod watch;

pub use self::{
    acl::*, admin::*, any::AnyRequest, define::Request, multi::*, multi_op::*, node::*, session::*,
    watch::*,
};
