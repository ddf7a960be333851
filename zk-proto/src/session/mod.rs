//! The client's half of a session: the state that survives a socket, as a value that never does I/O.
//!
//! The driver of a [`Session`] reports each event (`submit`, `dialed`, `received`, `hung_up`, `probed`, `elapsed`,
//! `close`) with the present [`Time`](crate::Time), and then carries out the session's orders:
//!
//! 1. [`poll`](Session::poll) until there is nothing more, and do each [`Output`] in that order;
//! 2. write the bytes in [`outbound`](Session::outbound) and take off what was written;
//! 3. wait for bytes, for a dial, for a submission, or for [`deadline`](Session::deadline).
//!
//! The same inputs at the same times give the same outputs: all randomness comes from the seed.
//!
//! ```
//! use bytes::Bytes;
//! use zk_proto::{
//!     Secret, SessionId, Time,
//!     frame::encode_frame,
//!     request::{ConnectResponse, TrailingFlag},
//!     session::{Config, Output, Session, State},
//! };
//!
//! let mut session: Session<u64, u64> = Session::new(Config::new(["zk1:2181"]), 7, Time::ZERO);
//! let Some(Output::Dial { server }) = session.poll() else { panic!("it begins to dial at once") };
//! assert_eq!(&*server, "zk1:2181");
//!
//! // The driver has connected; it writes what there is to write, and reads the server's answer.
//! session.dialed(Time::ZERO, Ok(()));
//! assert_eq!(session.outbound().take_all().len(), 49);
//! let answer = ConnectResponse {
//!     protocol_version: 0,
//!     time_out: 6000,
//!     session_id: SessionId(0x10),
//!     passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
//!     read_only: TrailingFlag(Some(false)),
//! };
//! encode_frame(&answer, session.inbound());
//! session.received(Time::ZERO);
//! let Some(Output::State(State::Connected(negotiated))) = session.poll() else { panic!() };
//! assert_eq!(negotiated.id, SessionId(0x10));
//! ```
//!
//! ```text
//!            submit queues at any time; close sends its frame behind what is queued
//!
//!            +-------------------- retry timer --------------------+
//!            v                                                     |
//!  new -> Dialing --dialed--> Handshaking --answer--> Up --loss--> Waiting
//!            |                   |   |              ^ |            ^
//!            |                   |   +-> Authenticating ---+ |            |
//!            |                   |         |          |            |
//!            +--- failed, dial timer, not served -----+------------+
//!                                |                  |
//!                    refused: the session is        +-- close answered, credentials refused
//!                    unknown to the servers         |
//!                                v                  v
//!          expiry or close timer, at any time ->  Over(why)      never left
//! ```

mod auth;
mod close;
mod config;
mod confirm;
mod connect;
mod credential;
mod disposition;
mod elapsed;
mod fault;
mod in_flight;
mod inbound;
mod link;
mod liveness;
mod outbound;
mod output;
mod pausing;
mod pending_request;
mod phase;
mod probation;
mod receive;
mod reconnect;
mod reports;
mod sasl;
mod state;
mod submit;
mod suspects;
mod throttle;
mod timer;
mod unanswered;
mod watch;

pub use self::{
    config::{Auth, Config, Credentials, Lease},
    fault::{Cause, CloseReason, Costly, DriverFault, LinkError},
    outbound::Outbound,
    output::{
        Answer, Negotiated, OnLoss, Outcome, Outgoing, Output, Patience, Place, ProbeAnswer,
        SaslInput, SaslStep, State, Withdrawn,
    },
    state::Session,
    watch::{NodeEvent, WatchBy, WatchIntent, WatchNotice, Watcher},
};
