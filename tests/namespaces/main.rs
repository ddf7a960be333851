//! Networks that break, in namespaces that the command `zk-soak` makes, as far as seconds go; and two judges of what clients
//! see there.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{process::Command, time::sleep};
use zk_tests::{patience::within, soak::judges};

/// How often processes are looked for.
const LOOK: Duration = Duration::from_millis(20);

fn zk_soak(arguments: &[&str]) -> Command {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_zk-soak"));
    soak.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    soak
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_survive_a_network_that_breaks() {
    let faults =
        ["minority", "one-way", "severed", "bridge", "loss", "full-disk", "damage", "reconfig"];
    let (count, only) = (faults.len().to_string(), faults.join(","));
    let mut soak = zk_soak(&["partitions", "--no-others", "--json", "--seconds=0"]);
    soak.args(["--session=4000", "--faults", &count, "--only", &only]);
    let output = soak.output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&told).unwrap();
    let figures = &report["figures"];
    for fault in faults {
        assert_eq!(figures[format!("of them: {fault}")].as_u64(), Some(1), "{report}");
    }
    let figures_of = [
        "packets dropped by cuts",
        "packets lost otherwise",
        "operations in them",
        "members that could not load their data",
    ];
    for figure in figures_of {
        assert!(figures[figure].as_u64() > Some(0), "{figure}: {report}");
    }
}

/// However it ends: here by SIGKILL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_end_with_the_command() {
    let mut soak = zk_soak(&["partitions", "--no-others"]).spawn().unwrap();
    let id = soak.id().unwrap();
    let serving = |processes: &BTreeSet<u32>| {
        let command = |id: &u32| fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        processes.iter().any(|id| String::from_utf8_lossy(&command(id)).contains("QuorumPeerMain"))
    };
    within(async {
        while !serving(&descendants(id)) {
            sleep(LOOK).await;
        }
    })
    .await;
    let inside = descendants(id);
    soak.kill().await.unwrap();
    within(async {
        while inside.iter().any(|id| Path::new(&format!("/proc/{id}")).exists()) {
            sleep(LOOK).await;
        }
    })
    .await;
}

/// All processes that a process has started, and those that these have.
fn descendants(id: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut unseen = vec![id];
    let all: Vec<(u32, u32)> = fs::read_dir("/proc").unwrap().filter_map(parent).collect();
    while let Some(id) = unseen.pop() {
        let children = all.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| *child);
        unseen.extend(children.filter(|child| found.insert(*child)));
    }
    found
}

/// A process, and its parent.
fn parent(entry: std::io::Result<fs::DirEntry>) -> Option<(u32, u32)> {
    let path = entry.ok()?.path();
    let id = path.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // Behind the name, which may have anything in it, and the state.
    let (_, behind) = stat.rsplit_once(") ")?;
    Some((id, behind.split(' ').nth(1)?.parse().ok()?))
}

/// By root in a container, as many are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_namespaces_the_command_fails() {
    let mut soak = Command::new("setpriv");
    soak.args(["--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_zk-soak"), "partitions"]);
    let output = within(soak.stdin(Stdio::null()).kill_on_drop(true).output()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("no network namespaces to be had here"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_judges_agree_on_histories() {
    let options = judges::Options { histories: 1_000, wrong: 100, seed: 7 };
    let report = judges::run(options).await.unwrap();
    assert_eq!(report.violations(), [""; 0], "{report}");
    assert_eq!(report.count("on which both agree"), Some(1_000), "{report}");
    assert_eq!(report.count("found wrong by both"), Some(100), "{report}");
}
