//! The in-process server against real ones: what it does must be what they do.
//!
//! `cargo run -p zk-tests --bin zk-diff run` plays as much as you like of the same.

use std::{fs, thread};

use zk_testkit::{real::Release, sim::Rng};
use zk_tests::{
    differential::{
        Batch, Difference, Golden, Memory, Setup, Tcp, Wire, generate_mortal, play_among_others,
        roots,
    },
    share::Share,
};

/// Operations that are played on a real server of each release.
const OPERATIONS: usize = 20_000;

/// Sequences that are played on one server before another is started.
const SEQUENCES: u64 = 55;

/// Sequences with sessions that expire; they are played side by side.
const MORTALS: u64 = 24;

fn goldens() -> Vec<Golden> {
    let files = fs::read_dir(Golden::folder()).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let read = |path| Golden::parse(&fs::read_to_string(path).unwrap()).unwrap();
    paths.into_iter().map(read).collect()
}

fn assert_none(differences: &[Difference], of: &str) {
    let shown: String =
        differences.iter().take(3).map(|difference| difference.to_string()).collect();
    let count = differences.len();
    assert!(
        differences.is_empty(),
        "{of}: {count} differences, in process (-), real (+):\n{shown}"
    );
}

#[test]
fn in_process_server_matches_recordings() {
    for golden in goldens() {
        let Golden { version, number, batch, records } = golden;
        let ours = batch.play(&mut Memory::new(batch.setup.ensemble()));
        assert_none(&batch.differences(&ours, &records), &format!("{version}, batch {number}"));
    }
}

#[test]
fn each_release_has_two_thousand_recordings() {
    for release in [Release::V3_8, Release::V3_9] {
        let of = |golden: &Golden| golden.batch.setup.release == release;
        let kept: usize =
            goldens().iter().filter(|it| of(it)).map(|golden| golden.records.len()).sum();
        assert!(kept >= 2_000, "{release}: {kept}");
    }
}

/// A comparison of answers that never vary would prove nothing.
#[test]
fn recordings_cover_every_standalone_answer() {
    const ANSWERS: [&str; 22] = [
        " Ok",
        " NoNode",
        " NoAuth",
        " BadVersion",
        " NoChildrenForEphemerals",
        " NodeExists",
        " NotEmpty",
        " InvalidAcl",
        " AuthFailed",
        " BadArguments",
        " MarshallingError",
        " Unimplemented",
        " NoWatcher",
        " ReconfigDisabled",
        " QuotaExceeded",
        " RuntimeInconsistency",
        " NodeCreated 3 ",
        " NodeDeleted 3 ",
        " NodeDataChanged 3 ",
        " NodeChildrenChanged 3 ",
        " closed",
        " hello 0 ",
    ];
    for release in [Release::V3_8, Release::V3_9] {
        let lines: Vec<String> = goldens()
            .into_iter()
            .filter(|golden| golden.batch.setup.release == release)
            .flat_map(|golden| golden.records)
            .flat_map(|record| record.steps.into_iter().flatten())
            .collect();
        for answer in ANSWERS {
            let count = lines.iter().filter(|line| line.contains(answer)).count();
            assert!(count >= 5, "{release}:{answer} is there {count} times");
        }
    }
}

/// Plays batches on a real server and in process, until that is enough.
fn compare_live(release: Release) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut share, mut played) = (Share::of(&format!("operations on {release}")), 0);
    let (mut first, mut operations) = (0, 0);
    while operations < OPERATIONS {
        let variant = usize::try_from(first / SEQUENCES).unwrap();
        let setup = Setup::timeless(release, variant);
        let batch = Batch { setup, seed: 1, first, count: SEQUENCES };
        operations += batch.operations();
        first += SEQUENCES;
        if !share.takes_next() {
            continue;
        }
        let server = runtime.block_on(setup.start()).unwrap();
        let theirs = batch.play(&mut Tcp::new(server.addr()));
        let ours = batch.play(&mut Memory::new(setup.ensemble()));
        assert_none(&batch.differences(&ours, &theirs), &format!("{release}, variant {variant}"));
        played += batch.operations();
    }
    assert!(played >= share.at_least(OPERATIONS) / 2, "{played} operations");
}

#[test]
fn random_operations_match_a_real_3_8() {
    compare_live(Release::V3_8);
}

#[test]
fn random_operations_match_a_real_3_9() {
    compare_live(Release::V3_9);
}

/// What was heard in the course of a sequence, without when.
fn all_lines(index: u64, root: &str, wire: &mut impl Wire) -> Vec<String> {
    let record = play_among_others(&generate_mortal(Rng::stream(1, index)), root, wire);
    let mut lines: Vec<_> = record.steps.into_iter().flatten().collect();
    lines.sort();
    lines
}

fn compare_mortals(release: Release) {
    let setup = Setup::hurried(release);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(setup.start()).unwrap();
    let addr = server.addr();
    thread::scope(|scope| {
        for (index, root) in (0..MORTALS).zip(roots()) {
            scope.spawn(move || {
                let theirs = all_lines(index, &root, &mut Tcp::new(addr));
                let ours = all_lines(index, &root, &mut Memory::new(setup.ensemble()));
                let sequence = generate_mortal(Rng::stream(1, index));
                assert_eq!(ours, theirs, "{release}, {sequence}");
                let ended = ours.iter().filter(|line| line.contains("NodeDeleted")).count();
                let expired = ours.iter().any(|line| line.contains(" hello 0 "));
                assert!(expired, "no session has expired, {ended} nodes have: {sequence}");
            });
        }
    });
}

#[test]
fn expiry_matches_a_real_3_8() {
    compare_mortals(Release::V3_8);
}

#[test]
fn expiry_matches_a_real_3_9() {
    compare_mortals(Release::V3_9);
}
