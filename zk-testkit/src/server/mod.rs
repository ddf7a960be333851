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
//! | `credentials` | who a client says and proves to be |
//! | `prepare`, `multi`, `commit`, `reconfigure` | what the leader decides, and how members carry it out |
//! | `author` | whose write it is, and what comes of it |
//! | `txn`, `node`, `tree`, `quota` | a decision; one node; what decisions change; what counts nodes |
//! | `acl`, `sasl`, `sessions` | permissions; proofs of who a client is; live sessions |
//! | `member`, `quorum`, `reader` | what each member has for itself; which one leads; one that only serves readers |
//! | `membership`, `server_line` | which servers belong to the ensemble; one of them, as configurations name it |
//! | `java` | strings as servers write them |
//! | `words` | four-letter words |
//! | `listen`, `listen_tls`, `member_port` | the same on real sockets, in real time; with TLS; ports that members have |

mod acl;
mod author;
mod commit;
mod config;
mod connection;
mod credentials;
mod ensemble;
mod handshake;
mod ids;
mod java;
mod leader_alone;
mod listen;
#[cfg(feature = "tls")]
mod listen_tls;
mod member;
mod member_port;
mod membership;
mod multi;
mod node;
mod prepare;
mod quirks;
mod quorum;
mod quota;
mod read;
mod reader;
mod reconfigure;
mod sasl;
mod serve;
mod server_line;
mod sessions;
mod tree;
mod txn;
mod watches;
mod words;

pub use config::Config;
pub use ensemble::{Ensemble, Output};
pub use ids::{Conn, Member};
pub use listen::Listening;
pub(crate) use listen::server_lines;
pub use node::Node;
pub use sessions::Session;
pub use tree::Tree;
pub use txn::{Committed, NodeKind, Stamp, Txn};
