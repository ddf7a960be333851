//! The client's operations, on real servers of each release line, and on the in-process one. What a release lacks the
//! tests ask [`zk_tests::feature`], and look at what comes instead.

mod answers;
mod armed;
mod batches;
mod busy;
mod caches;
mod chroot;
mod closes;
mod counts;
mod creates;
mod deletes;
mod detached;
mod doubt;
mod dropped;
mod durations;
mod ends;
mod ensemble;
mod floods;
mod following;
mod gone;
mod kinds;
mod limits;
mod multi;
mod nodes;
mod operations;
mod order;
mod place;
mod promises;
mod protected;
mod readers;
mod reports;
mod reruns;
mod retries;
mod roaming;
mod runtimes;
mod secrets;
mod session;
mod streams;
mod substitutes;
mod supervised;
mod together;

use place::{Place, behind_proxy, client, on_each_release, on_each_release_to_restart};
