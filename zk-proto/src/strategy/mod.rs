//! Strategies for [`proptest`]: everything that this protocol can carry, and everything that it cannot.
//!
//! Every record has an [`Arbitrary`](proptest::arbitrary::Arbitrary), so that `any::<Stat>()` works.
//! Records that borrow have an owned twin to generate ([`OwnedCreateRequest`] for
//! [`CreateRequest`](crate::request::CreateRequest)); [`AsRecord`] leads from the twin to the record.
//!
//! * One record: `any::<T>()`, with the choices in [`mod@text`] and [`mod@number`].
//! * A request or a response of an operation that is known only at run time: [`OwnedAnyRequest`],
//!   [`request()`], [`response()`], [`response_to`].
//! * Paths: [`mod@path`].
//! * Whole frames, with the kind that is needed to decode them: [`Frame`], [`client_frame`],
//!   [`server_frame`].
//! * Frames that are broken: [`malformed()`], [`Mutation`].
//! * Requests that have to do with each other: [`requests()`], on [`Nodes`] that they make.
//! * Both directions of a connection: [`Conversation`], [`replies_to`], [`last_reply_to`].
//!
//! Values are legal on the wire but not tame: strings need not be UTF-8, numbers need not have names,
//! lists may be null.
//!
//! # Example
//! A server must answer every request of a client, and survive everything that a client sends.
//!
//! ```
//! use bytes::Bytes;
//! use proptest::prelude::*;
//! use zk_proto::{
//!     ErrorCode, Xid, Zxid,
//!     frame::{ReplyHeader, RequestHeader},
//!     jute::{Decode, DecodeError, Reader, decode_exact},
//!     request::CreateRequest,
//!     strategy::{OwnedAnyRequest, AsRecord, OwnedCreateRequest, client_frame, malformed},
//! };
//!
//! /// The server under test: answers a frame without its length prefix, if it can be read.
//! fn answer(content: &Bytes) -> Result<ReplyHeader, DecodeError> {
//!     let RequestHeader { xid, .. } = Decode::decode(&mut Reader::new(content))?;
//!     Ok(ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK })
//! }
//!
//! proptest! {
//! #   #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
//! #   /*
//!     #[test]
//! #   */
//!     fn every_request_is_answered_with_its_xid(request in any::<OwnedAnyRequest>()) {
//!         let reply = answer(&request.frame(Xid(7)).content())?;
//!         prop_assert_eq!(reply.xid, Xid(7));
//!     }
//!
//! #   /*
//!     #[test]
//! #   */
//!     fn a_create_is_read_as_it_was_written(create in any::<OwnedCreateRequest>()) {
//!         let body = create.encoded();
//!         let request: CreateRequest<'_> = decode_exact(&body)?;
//!         prop_assert_eq!(request, create.as_record());
//!     }
//!
//! #   /*
//!     #[test]
//! #   */
//!     fn broken_frames_do_no_harm(broken in malformed(client_frame())) {
//!         let _ = answer(&broken.frame.content());
//!     }
//! }
//! # every_request_is_answered_with_its_xid();
//! # a_create_is_read_as_it_was_written();
//! # broken_frames_do_no_harm();
//! ```

mod any_request;
mod conversation;
mod data;
mod frame;
mod frames;
mod malformed;
mod multi;
mod nodes;
pub mod number;
pub mod path;
mod record;
mod request;
mod response;
pub mod text;

pub use self::{
    any_request::{OwnedAnyRequest, op_with_request, request},
    conversation::{Conversation, conversation, last_reply_to, number, replies_to},
    frame::{Frame, FrameKind},
    frames::{client_frame, server_frame},
    malformed::{Malformed, Mutation, malformed},
    multi::{OwnedMultiOp, multi_read, multi_read_response, multi_response, multi_write},
    nodes::{Nodes, requests},
    record::AsRecord,
    request::*,
    response::{response, response_to},
};
