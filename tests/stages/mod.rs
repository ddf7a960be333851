//! What every operation says at every stage of the life of what it is called on.
//!
//! `tables/` has a page for each recipe and each part of the client. A page has a section for each [`Fate`]: something
//! goes wrong while the handle is in use, and each operation is called before that, right behind it, once more, and when
//! all is well again. A line has the time that the operation took, the call, its result, and the requests that were sent
//! meanwhile; lines of observers begin with `*`. The pages are meant to be read. What they say was compared with the
//! documentation, and a change of them is for a reviewer to judge: `REWRITE=1 cargo test -p zk-tests --test all stages::`.
//!
//! A page for each [`Setting`], an option or another release, has what changes on all other pages with it: an empty one says
//! that nothing does. A run of the tests plays a [`Share`] of these, with `ZK_TESTS=whole` all. Names of nodes and numbers of
//! transactions are compared by their order only; where so much changes that requests would hide the rest, results only, and
//! times to half a second.
//!
//! Client, recipes and the in-process server are the real ones, time is simulated.

mod copies;
mod elections;
mod fate;
mod guards;
mod meeting;
mod page;
mod plain;
mod play;
mod queues;
mod requests;
mod setting;
mod waits;

use std::{fs, path::PathBuf, pin::Pin, sync::OnceLock};

use zk_locks::{ForeignNodes, Layout};
use zk_tests::share::Share;

use self::{
    fate::Fate,
    page::{differences, only},
    plain::{Detail, plain},
    play::Play,
    setting::{Recipe, Setting, settings},
};

type Act = for<'a> fn(&'a Play) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Makes a test of each page.
macro_rules! pages {
    ($($name:ident: $act:path;)*) => {
        const PAGES: &[(&str, Act)] = &[$((stringify!($name), |play| Box::pin($act(play)))),*];

        $(#[test]
        fn $name() {
            let name = stringify!($name);
            let played = sections(name, Setting::Default, |play| Box::pin($act(play)));
            compare(name, &played.concat(), |_| true);
        })*
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
    waiting_multi_lock: waits::waiting_multi_lock;
    waiting_semaphore: waits::waiting_semaphore;
    waiting_reader: waits::waiting_reader;
    waiting_writer: waits::waiting_writer;
    waiting_cohort: waits::waiting_cohort;
    waiting_at_barrier: waits::waiting_at_barrier;
    entering: waits::entering;
    delayed_lock: waits::delayed_lock;
    named_lock: waits::named_lock;
    taken_node: waits::taken_node;
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

settings! {
    compare_settings;
    All {
        retry_throttled: setting::RETRY_THROTTLED;
        request_timeout: setting::REQUEST_TIMEOUT;
        reply_len_max: setting::REPLY_LEN_MAX;
        watch_items_max: setting::WATCH_ITEMS_MAX;
        lease_margin: setting::LEASE_MARGIN;
        read_only: setting::READ_ONLY;
        connect_timeout: setting::CONNECT_TIMEOUT;
        layout_go: Setting::Layout(Layout::Go);
        ignore_foreign_nodes: Setting::Recipe(Recipe::ForeignNodes(ForeignNodes::Ignore));
        look_ahead: Setting::Recipe(Recipe::LookAhead);
        max_hold: Setting::Recipe(Recipe::MaxHold);
        max_waiters: Setting::Recipe(Recipe::MaxWaiters);
        no_recheck: Setting::Recipe(Recipe::NoRecheck);
        herd: Setting::Recipe(Recipe::Herd);
    }
    Results {
        chroot: Setting::Chroot;
        release_3_4: setting::V3_4;
        release_3_5: setting::V3_5;
        release_3_6: setting::V3_6;
        release_3_7: setting::V3_7;
        release_3_8: setting::V3_8;
        follower: Setting::Follower;
        fail_fast: setting::FAIL_FAST;
        call_timeout: setting::CALL_TIMEOUT;
        requests_max: setting::REQUESTS_MAX;
        request_bytes_max: setting::REQUEST_BYTES_MAX;
        lease_of_connection: setting::LEASE_OF_CONNECTION;
        layout_kazoo: Setting::Layout(Layout::Kazoo);
        layout_recipe: Setting::Layout(Layout::Recipe);
        layout_host_type: Setting::Layout(Layout::HostType);
        layout_bare: Setting::Layout(Layout::Bare);
        refuse_foreign_nodes: Setting::Recipe(Recipe::ForeignNodes(ForeignNodes::Refuse));
        release_after: Setting::Recipe(Recipe::ReleaseAfter);
        require_path: Setting::Recipe(Recipe::RequirePath);
        require_parent: Setting::Recipe(Recipe::RequireParent);
        rotate_at: Setting::Recipe(Recipe::RotateAt);
    }
}

#[test]
fn every_page_is_written() {
    let listed: Vec<_> =
        PAGES.iter().map(|(name, _)| *name).chain(SETTINGS.iter().copied()).collect();
    for entry in fs::read_dir(folder()).expect("there are pages") {
        let name = entry.expect("they can be listed").file_name();
        assert!(
            listed.iter().any(|listed| name == *format!("{listed}.txt")),
            "no test writes {name:?}"
        );
    }
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "stages", "tables"].iter().collect()
}

/// What each page has in the default setting, played once.
static DEFAULTS: [OnceLock<Vec<String>>; PAGES.len()] = [const { OnceLock::new() }; PAGES.len()];

/// A page: something is played with every fate.
fn sections(name: &str, setting: Setting, act: Act) -> Vec<String> {
    Fate::ALL.iter().map(|fate| play::perform(name, setting, *fate, act)).collect()
}

/// A page of what a setting changes on all others, or on those of a share.
fn compare_settings(name: &str, setting: Setting, detail: Detail) {
    let mut share = if rewrites() { Share::Whole } else { Share::of(name) };
    let (mut page, mut played) = (String::new(), Vec::new());
    for ((of, act), default) in PAGES.iter().zip(DEFAULTS.iter()) {
        if !share.takes_next() {
            continue;
        }
        played.push(*of);
        let default = default.get_or_init(|| sections(of, Setting::Default, *act));
        for (without, with) in default.iter().zip(&sections(of, setting, *act)) {
            let [without, with] = [without, with].map(|section| plain(section, detail));
            page.push_str(&differences(&without, &with));
        }
    }
    compare(name, &page, |of| played.contains(&of));
}

/// Compares what was said with those sections of the page that are of something that was played.
fn compare(name: &str, page: &str, is_played: impl Fn(&str) -> bool) {
    let path = folder().join(format!("{name}.txt"));
    if rewrites() {
        fs::write(&path, page).expect("it can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let differences = differences(&only(&expected, is_played), page);
    assert!(
        differences.is_empty(),
        "not what tests/stages/tables/{name}.txt says (- said, + done):\n\n{differences}"
    );
}

fn rewrites() -> bool {
    std::env::var_os("REWRITE").is_some()
}
