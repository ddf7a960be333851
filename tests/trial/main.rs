//! Trials of the locks and of the client on real servers, as far as seconds go: `zk-trial` runs them at full strength.

use std::time::Duration;

use tokio::process::Command;
use zk_testkit::real::Release;
use zk_tests::trial::{Report, cohort, fencing, handoff, rolling, severed, waiters};

#[track_caller]
fn assert_clean(report: &Report) {
    assert_eq!(report.violations(), [""; 0], "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_waiters_are_granted_in_order() {
    for (sessions, release) in [(1, Release::V3_9), (50, Release::V3_8)] {
        let options = waiters::Options { waiters: 500, sessions, look_ahead: false, release };
        let report = waiters::run(options).await.unwrap();
        assert_clean(&report);
        assert_eq!(report.count("grants"), Some(500), "{report}");
        // Some neighbours in the queue are of one session, which is notified once.
        let expected = if sessions == 1 { 501..=501 } else { 900..=1001 };
        assert!(expected.contains(&report.count("notifications").unwrap()), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_look_ahead_each_release_tells_two() {
    let options =
        waiters::Options { waiters: 200, sessions: 1, look_ahead: true, release: Release::V3_9 };
    let report = waiters::run(options).await.unwrap();
    assert_clean(&report);
    // A session is notified once, however many of its waiters that wakes.
    assert_eq!(report.count("notifications"), Some(201), "{report}");
}

/// With a moment in between for those behind the next one to look at the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ahead_hands_over_without_a_request() {
    let options = handoff::Options {
        contenders: vec![2, 16],
        acquisitions: 300,
        hold: Duration::from_millis(5),
        release: Release::V3_9,
    };
    let report = handoff::run(&options).await.unwrap();
    assert_clean(&report);
    let share =
        |name: &str| report.number(&format!("{name}: of them without a request, %")).unwrap();
    assert!(share("2 contenders") > share("16 contenders"), "{report}");
    assert!(share("16 contenders, look-ahead") > share("16 contenders"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cohorts_hand_over_locally_and_take_turns() {
    let options = cohort::Options {
        processes: 3,
        tasks: 16,
        visits: 600,
        hold: Duration::from_millis(1),
        judge_times: false,
        program: env!("CARGO_BIN_EXE_zk-trial").into(),
        release: Release::V3_9,
    };
    let report = cohort::run(&options).await.unwrap();
    assert_clean(&report);
    let handoffs = |name: &str| report.count(name).unwrap();
    assert_eq!(handoffs("1 process: hand-offs between its tasks"), 615, "{report}");
    assert!(handoffs("3 processes: hand-offs between tasks of one process") > 300, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fenced_counter_survives_stopped_holders() {
    let options = fencing::Options {
        unfenced: 300,
        scoped: 0,
        fenced: 300,
        holders: 3,
        program: env!("CARGO_BIN_EXE_zk-trial").into(),
        release: Release::V3_9,
    };
    let report = fencing::run(&options).await.unwrap();
    assert_clean(&report);
    assert!(report.count("no check: updates lost") > Some(0), "{report}");
    assert_eq!(report.count("token check: updates lost"), Some(0), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recipes_progress_while_members_die() {
    let options = rolling::Options {
        time: Duration::ZERO,
        kills: 3,
        every: Duration::from_secs(1),
        sessions: 2,
        release: Release::V3_9,
    };
    let report = rolling::run(options).await.unwrap();
    assert_clean(&report);
    let kills = (report.count("members killed"), report.count("of them: leaders"));
    assert_eq!(kills, (Some(3), Some(2)), "{report}");
}

/// In a process of its own: it counts open files, and who panics.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_writes_are_accounted_for() {
    let mut trial = Command::new(env!("CARGO_BIN_EXE_zk-trial"));
    trial.args(["client", "--seconds", "10", "--tasks", "32", "--every", "500", "--json"]);
    let output = trial.kill_on_drop(true).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_str(&told).unwrap();
    for figure in [
        "members killed",
        "of them: leaders",
        "of them: leaders that were stopped",
        "changes of the leader",
        "writes applied: sets",
        "writes applied: creates",
        "writes applied: sequential creates",
        "writes applied: deletes",
        "writes applied: multis",
        "reads",
        "of them: fired",
        "events of streams",
        "gaps that streams told of",
        "events of caches",
    ] {
        assert!(report["figures"][figure].as_u64() > Some(0), "{figure}: {told}");
    }
}

/// The leases are what keeps them from it: by their connections alone they believe for too long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn severed_holders_do_not_believe_too_long() {
    for by_connection in [false, true] {
        let options = severed::Options {
            holders: 12,
            rounds: 1,
            tick: Duration::from_secs(1),
            sync_limit: 10,
            session_timeout: Duration::from_secs(4),
            by_connection,
            release: Release::V3_9,
        };
        let report = severed::run(options).await.unwrap();
        assert_clean(&report);
        let believed = report.count("holders that believed in them still");
        assert_eq!(believed == Some(0), !by_connection, "{report}");
    }
}
