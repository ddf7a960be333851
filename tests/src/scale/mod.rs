//! How costs grow with waiters, sessions and watchers: the real client and recipes beside the in-process ensemble, in virtual
//! time, without faults but for the one that is looked at.
//!
//! | module | concern |
//! |---|---|
//! | `site` | sessions of an ensemble, and what passes between them |
//! | `traffic` | counting that |
//! | `queues` | contenders for one lock |
//! | `fleets` | sessions that idle, hear of one change, or all lose their servers |
//! | `page` | the tables of docs/scale.md |

mod fleets;
mod page;
mod queues;
mod site;
mod traffic;

pub use self::page::{TABLES, Table, filled};
