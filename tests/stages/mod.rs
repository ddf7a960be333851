//! What every operation says at every stage of the life of what it is called on.
//!
//! `tables/` has a page for each recipe and each part of the client. A page has a section for each [`Fate`]: something
//! goes wrong while the handle is in use, and each operation is called before that, right behind it, once more, and when
//! all is well again. A line has the time that the operation took, the call, its result, and the requests that were sent
//! meanwhile; lines of observers begin with `*`. The pages are meant to be read. What they say was compared with the
//! documentation, and a change of them is for a reviewer to judge: `REWRITE=1 cargo test -p zk-tests --test all stages::`.
//!
//! Client, recipes and the in-process server are the real ones, time is simulated.

mod copies;
mod elections;
mod fate;
mod guards;
mod meeting;
mod page;
mod play;
mod queues;
mod requests;

use std::{fs, path::PathBuf};

use self::{fate::Fate, page::differences, play::Play};

/// Makes a test of each page.
macro_rules! pages {
    ($($name:ident: $act:path;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), async |play| $act(play).await);
        })*

        #[test]
        fn every_page_is_written() {
            let listed = [$(stringify!($name)),*].map(|name| format!("{name}.txt"));
            for entry in fs::read_dir(folder()).expect("there are pages") {
                let name = entry.expect("they can be listed").file_name();
                assert!(listed.iter().any(|listed| name == **listed), "no test writes {name:?}");
            }
        }
    };
}

pages! {
    lock: guards::lock;
    released_lock: guards::released_lock;
    read_lock: guards::read_lock;
    write_lock: guards::write_lock;
    shared_lock: guards::shared_lock;
    cohort_lock: guards::cohort_lock;
    simple_lock: guards::simple_lock;
    durable_lock: guards::durable_lock;
    semaphore: guards::semaphore;
    multi_lock: guards::multi_lock;
    ticket: queues::ticket;
    first_ticket: queues::first_ticket;
    waiting_lock: queues::waiting_lock;
    queue: queues::queue;
    leadership: elections::leadership;
    leader_latch: elections::leader_latch;
    barrier: meeting::barrier;
    double_barrier: meeting::double_barrier;
    group: meeting::group;
    persistent_node: meeting::persistent_node;
    node_cache: copies::node_cache;
    children_cache: copies::children_cache;
    subtree_cache: copies::subtree_cache;
    watch_stream: copies::watch_stream;
    watches: copies::watches;
    reads: requests::reads;
    writes: requests::writes;
    creates: requests::creates;
    session: requests::session;
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "stages", "tables"].iter().collect()
}

/// Plays it in every way, and compares what was said with the page.
fn check(name: &str, act: impl AsyncFn(&Play)) {
    let mut page = String::new();
    for fate in Fate::ALL {
        page.push_str(&play::perform(name, fate, &act));
    }
    let path = folder().join(format!("{name}.txt"));
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, page).expect("it can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let differences = differences(&expected, &page);
    assert!(
        differences.is_empty(),
        "not what tests/stages/tables/{name}.txt says (- said, + done):\n\n{differences}"
    );
}
