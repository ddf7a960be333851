//! A ZooKeeper server without I/O: it is given what clients send and what time it is, and says what to
//! send back.
//!
//! | module | concern |
//! |---|---|
//! | `ensemble` | the surface: connections in, outputs out; what tests may look at |
//! | `ids` | what members and connections are called |
//! | `config`, `quirks` | how it is set up; where releases differ |
//! | `connection`, `handshake`, `serve` | one client's conversation: its session, its requests, answers in order |
//! | `read`, `watches` | what a member answers by itself, and which clients it notifies of changes |
//! | `prepare`, `multi`, `commit` | what the leader decides, and how members carry it out |
//! | `author` | whose write it is, and what comes of it |
//! | `txn`, `node`, `tree`, `quota` | a decision; one node; what decisions change; what counts nodes |
//! | `acl`, `sessions` | permissions; live sessions |
//! | `member`, `quorum` | what each member has for itself; which one leads |
//! | `java` | strings as servers write them |
//! | `words` | four-letter words |
//! | `listen` | the same on real sockets, in real time |

mod acl;
mod author;
mod commit;
mod config;
mod connection;
mod ensemble;
mod handshake;
mod ids;
mod java;
mod listen;
mod member;
mod multi;
mod node;
mod prepare;
mod quirks;
mod quorum;
mod quota;
mod read;
mod serve;
mod sessions;
mod tree;
mod txn;
mod watches;
mod words;

pub use config::Config;
pub use ensemble::{Ensemble, Output};
pub use ids::{Conn, Member};
pub use listen::Listening;
pub use node::Node;
pub use sessions::Session;
pub use tree::Tree;
pub use txn::{Committed, NodeKind, Stamp, Txn};
