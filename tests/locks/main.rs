//! Locks on real servers, seen from both ends: what callers get, and what goes over the wire.
//!
//! | module | concern |
//! |---|---|
//! | `counts` | requests, round trips and notifications, each with its number |
//! | `queue` | who comes when |
//! | `support` | servers, proxies, and ways of waiting |

mod counts;
mod queue;
mod support;
