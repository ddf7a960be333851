//! Ours beside locks that others have written: small models of their protocols, name by name and request by request.
//! Curator and kazoo themselves are in `interop`.
//!
//! | module | concern |
//! |---|---|
//! | `theirs` | locks as articles and textbooks have them |
//! | `nameless` | nodes of ours that have no id in their names |
//! | `replaced` | such nodes, when others' have their names |
//! | `ours` | which of ours goes with which |
//! | `meetings` | recipes without a queue, and locks that are more than their nodes |
//! | `queue` | several contenders for one lock, and when each holds it |

mod meetings;
mod nameless;
mod ours;
mod queue;
mod replaced;
mod theirs;

use std::{collections::BTreeMap, sync::Arc};

use tokio::task::JoinSet;
use zk_testkit::{
    TestServer,
    real::{Release, Server},
};
use zk_tests::share::Share;

use self::{
    ours::matching,
    queue::{Cell, End, Place, Side, play},
    theirs::{Class, Mode},
};

const CLASSES: [Class; 14] = [
    Class::SimpleLock,
    Class::ZooKeeperLock,
    Class::BareReadWrite,
    Class::BareText,
    Class::ExclusiveLock,
    Class::DistributedLock,
    Class::GuidHerd,
    Class::GuidNearest,
    Class::InterProcessMutex,
    Class::InterProcessReadWriteLock,
    Class::KazooLocks,
    Class::GoLock,
    Class::HostHerd,
    Class::HostNearest,
];

/// Every way to choose three out of these.
fn triples<T: Copy>(of: &[T]) -> Vec<[T; 3]> {
    let one = || of.iter().copied();
    one().flat_map(|a| one().flat_map(move |b| one().map(move |c| [a, b, c]))).collect()
}

/// The table: class, ours, who is who, who wants what, how locks are given back. Where there are readers, the last goes
/// round, or there would be a thousand.
fn cells() -> Vec<Cell> {
    const ENDS: [End; 3] = [End::Release, End::SessionEnds, End::SecondGivesUp];
    let mut cells = Vec::new();
    for class in CLASSES {
        let pairs =
            matching(class).iter().flat_map(|&ours| mixed().map(move |sides| (ours, sides)));
        for (ours, sides) in pairs {
            if class.has_readers() {
                for modes in triples(&[Mode::Read, Mode::Write]) {
                    let end = ENDS[cells.len() % ENDS.len()];
                    cells.push(Cell { class, ours, sides, modes, end });
                }
            } else {
                let modes = [Mode::Write; 3];
                cells.extend(ENDS.map(|end| Cell { class, ours, sides, modes, end }));
            }
        }
    }
    cells.retain(|cell| !is_known_to_fail(cell));
    cells
}

/// Three, some of them ours and some theirs.
fn mixed() -> impl Iterator<Item = [Side; 3]> {
    triples(&[Side::Ours, Side::Theirs]).into_iter().filter(|[a, b, c]| a != b || b != c)
}

/// The class whose waiters do not look again takes the end of its predecessor for its turn, also if that has
/// only waited. It does so among its own kind as well.
fn is_known_to_fail(cell: &Cell) -> bool {
    let Cell { class, sides, end, .. } = cell;
    *class == Class::ZooKeeperLock && *end == End::SecondGivesUp && sides[2] == Side::Theirs
}

/// How many are played side by side.
const AT_ONCE: usize = 8;

/// Plays these, and prints how many there were of each pair.
async fn play_all(place: Place, cells: impl IntoIterator<Item = Cell>) {
    let place = Arc::new(place);
    let (mut counts, mut failed) = (BTreeMap::<String, usize>::new(), Vec::new());
    let mut running = JoinSet::new();
    let mut cells = cells.into_iter().enumerate();
    loop {
        for (number, cell) in cells.by_ref().take(AT_ONCE - running.len()) {
            let place = place.clone();
            running.spawn(
                async move { (cell, play(&place, &cell, &format!("/cell-{number}")).await) },
            );
        }
        let Some(played) = running.join_next().await else { break };
        let (cell, played) = played.unwrap();
        *counts.entry(format!("{:?} beside {:?}", cell.class, cell.ours)).or_default() += 1;
        failed.extend(played.err().map(|why| format!("{cell:?}: {why}")));
    }
    for (pair, count) in counts {
        println!("{count:4} cells: {pair}");
    }
    assert!(failed.is_empty(), "{} cells fail:\n{}", failed.len(), failed.join("\n"));
}

#[tokio::test]
async fn foreign_and_our_locks_exclude() {
    let place = Place::InProcess(TestServer::start().await.unwrap());
    play_all(place, cells()).await;
}

/// A part of the table each, which differs from release to release.
async fn on_real(release: Release, first: usize) {
    let place = Place::Real(Box::new(Server::start(release).await.unwrap()));
    let mut share = Share::of(&format!("meetings on {release}"));
    let cells = cells().into_iter().skip(first).step_by(7).filter(|_| share.takes_next());
    play_all(place, cells).await;
}

#[tokio::test]
async fn theirs_and_ours_get_along_on_a_real_3_9() {
    on_real(Release::V3_9, 0).await;
}

#[tokio::test]
async fn theirs_and_ours_get_along_on_a_real_3_4() {
    on_real(Release::V3_4, 3).await;
}
