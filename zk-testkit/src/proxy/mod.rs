//! A proxy that knows where one frame ends and the next begins: to watch a client's conversation
//! with its server, and to break it off at a chosen point.
//!
//! * **Rules**: a [`Match`] says which frames, a [`Reaction`] what happens to them; a
//!   [`RuleHandle`] counts, waits, releases, and removes the rule when dropped.
//! * **Switches** for all connections: [`Proxy::silence`], [`Proxy::cut_all`],
//!   [`Proxy::refuse_connections`] and others.
//! * **Log**: every [`Frame`] with its operation, path, result, and the batch it came in, in one
//!   order for both directions. [`Frames::round_trips`] counts how often a client had to wait.
//!
//! Frames are never reordered. Those that arrive together are sent on together, in one write.
//! Bytes that are not frames of this protocol (TLS, four-letter words) pass unhindered.
//!
//! Where the model stops: the proxy reads whole frames before it sends them on, so it adds their
//! transmission time; and it acknowledges bytes on behalf of the other side, so a silence looks
//! to the sender like a peer that does not answer, not like a cable that is cut.

// | module | concern |
// |---|---|
// | `frame`, `log` | what is remembered |
// | `rule`, `handle` | what tests demand |
// | `dissect` | from bytes to frames |
// | `lane` | one direction: what waits, and for what |
// | `connection` | one client's two sockets |
// | `front`, `shared` | the proxy as tests see it; what its tasks share |

mod connection;
mod dissect;
mod frame;
mod front;
mod handle;
mod lane;
mod log;
mod rule;
mod shared;

pub use frame::{Direction, Disposition, Frame, Kind};
pub use front::Proxy;
pub use handle::{On, RuleHandle};
pub use log::{Counts, Frames, Mark};
pub use rule::{Forward, Match, Reaction, Rewrite, Silence};
