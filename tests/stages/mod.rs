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
mod toll;
mod waits;

use std::{fs, path::PathBuf, pin::Pin, sync::OnceLock, time::Duration};

use zk_client::{CallOptions, Lease};
use zk_locks::{ForeignNodes, Layout};
use zk_testkit::real::Release;
use zk_tests::share::Share;

use self::{
    fate::Fate,
    page::{differences, only},
    plain::{Detail, plain},
    play::{BRIEF, Play},
    setting::{Recipe, Setting, settings},
};

type Act = for<'a> fn(&'a Play) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Makes a test of each page.
macro_rules! pages {
    ($($name:ident: $act:path;)*) => {
        const PAGES: &[(&str, Act)] = &[$((stringify!($name), |play| Box::pin($act(play)))),*];

        $(#[test]
        fn $name() {
            compare(stringify!($name), &default(stringify!($name)).concat(), |_| true);
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
        retry_throttled: Setting::Client(|client| client.with(CallOptions::new().retry_throttled()));
        request_timeout: Setting::Session(|options| options.request_timeout(3 * BRIEF));
        reply_len_max: Setting::Session(|options| options.reply_len_max(250));
        watch_items_max: Setting::Session(|options| options.watch_items_max(1));
        lease_margin: Setting::Session(|options| options.lease_margin(Duration::from_millis(500)));
        read_only: Setting::Session(|options| options.read_only(true));
        connect_timeout: Setting::Session(|options| options.connect_timeout(BRIEF / 4));
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
        release_3_4: Setting::Release(Release::V3_4);
        release_3_5: Setting::Release(Release::V3_5);
        release_3_6: Setting::Release(Release::V3_6);
        release_3_7: Setting::Release(Release::V3_7);
        release_3_8: Setting::Release(Release::V3_8);
        follower: Setting::Follower;
        fail_fast: Setting::Client(|client| client.with(CallOptions::new().fail_fast()));
        call_timeout: Setting::Client(|client| client.with(CallOptions::new().timeout(BRIEF)));
        requests_max: Setting::Session(|options| options.requests_max(1));
        request_bytes_max: Setting::Session(|options| options.request_bytes_max(200));
        lease_of_connection: Setting::Session(|options| options.lease(Lease::Connection));
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

/// A page in the default setting, played once.
fn default(name: &str) -> &'static [String] {
    static PLAYED: [OnceLock<Vec<String>>; PAGES.len()] = [const { OnceLock::new() }; PAGES.len()];
    let of_it = PAGES.iter().zip(&PLAYED).find(|((page, _), _)| *page == name);
    let ((_, act), played) = of_it.expect("it is a page");
    played.get_or_init(|| sections(name, Setting::Default, *act))
}

/// A page: something is played with every fate.
fn sections(name: &str, setting: Setting, act: Act) -> Vec<String> {
    Fate::ALL.iter().map(|fate| play::perform(name, setting, *fate, act)).collect()
}

/// A page of what a setting changes on all others, or on those of a share.
fn compare_settings(name: &str, setting: Setting, detail: Detail) {
    let mut share = if rewrites() { Share::Whole } else { Share::of(name) };
    let (mut page, mut played) = (String::new(), Vec::new());
    for (of, act) in PAGES {
        if !share.takes_next() {
            continue;
        }
        played.push(*of);
        for (without, with) in default(of).iter().zip(&sections(of, setting, *act)) {
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
