//! Soak tests of the locks and of the client on real servers, as far as seconds go: `zk-soak` runs them at full strength.

use std::time::Duration;

use tokio::process::Command;
use zk_testkit::real::Release;
use zk_tests::soak::{
    Report, rolling,
    severed::{self, By, Trouble},
};

#[track_caller]
fn assert_clean(report: &Report) {
    assert_eq!(report.violations(), [""; 0], "{report}");
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
    let mut soak = Command::new(env!("CARGO_BIN_EXE_zk-soak"));
    soak.args(["client", "--seconds", "10", "--tasks", "32", "--every", "500", "--json"]);
    let output = soak.kill_on_drop(true).output().await.unwrap();
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
    let by = async |lease| {
        let options = severed::Options {
            holders: 12,
            rounds: 1,
            tick: Duration::from_secs(1),
            sync_limit: 30,
            session_timeout: Duration::from_secs(10),
            trouble: Trouble::Severed,
            lease,
            idle: false,
            release: Release::V3_9,
        };
        let report = severed::run(options).await.unwrap();
        assert_clean(&report);
        let believed = report.count("holders that believed in them still");
        assert_eq!(believed == Some(0), lease != By::Connection, "{report}");
    };
    tokio::join!(by(By::Confirmed), by(By::Connection));
}
