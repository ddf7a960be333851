//! The program that measures does what it says: so many operations, so many requests.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

const ZK_BENCH: &str = env!("CARGO_BIN_EXE_zk-bench");

/// A server that ends with its input, and so with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(kind: &str) -> Self {
        let mut command = Command::new(ZK_BENCH);
        command.arg("serve").args(kind.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    fn measure(&self, client: &str, task: &str) -> Value {
        let mut command = Command::new(ZK_BENCH);
        command.arg(client).args(task.split(' ')).args(["--server", &self.address]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{client} {task}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A test that fails leaves it no reason to stay.
        let _ = self.child.wait();
    }
}

#[track_caller]
fn expect(report: &Value, figure: &str, wanted: u64) {
    assert_eq!(report[figure].as_u64(), Some(wanted), "{figure} of {report}");
}

#[test]
fn operations_send_the_expected_requests() {
    let server = Server::start("instant");
    for client in ["null", "ours"] {
        for (workload, requests) in
            [("get", 1), ("set", 1), ("mixed", 1), ("create-delete", 2), ("multi", 1)]
        {
            for in_flight in [1, 16, 100] {
                let task = format!("{workload} --in-flight {in_flight} --operations 200");
                let report = server.measure(client, &task);
                expect(&report, "operations", 200);
                expect(&report, "requests_seen", 200 * requests);
            }
        }
        // The handshake, the read, the end of the session.
        let report = server.measure(client, "connect --operations 5");
        expect(&report, "operations", 5);
        expect(&report, "requests_seen", 15);
        let report = server.measure(client, "idle --in-flight 5 --seconds 0.05");
        expect(&report, "operations", 5);
        expect(&report, "requests_seen", 0);
        // No session has sent anything meanwhile; null does not ask how long that was.
        let silence = report["longest_silence_ms"].as_u64();
        assert!(client == "null" || silence.unwrap() >= 50, "{report}");
    }
}

#[test]
fn task_style_and_threads_send_the_same() {
    let server = Server::start("instant");
    for threads in [1, 4] {
        let task = format!("get --in-flight 16 --operations 200 --style tasks --threads {threads}");
        let report = server.measure("ours", &task);
        expect(&report, "operations", 200);
        expect(&report, "requests_seen", 200);
    }
}

#[test]
fn data_are_as_long_as_asked_for() {
    let server = Server::start("instant");
    for workload in ["get", "set"] {
        for payload in [0, 65_536, 1_000_000] {
            let task = format!("{workload} --in-flight 3 --operations 9 --payload {payload}");
            for client in ["null", "ours"] {
                expect(&server.measure(client, &task), "operations", 9);
            }
        }
    }
}

#[test]
fn a_fixed_rate_is_kept() {
    let server = Server::start("instant");
    for client in ["null", "ours"] {
        let report = server.measure(client, "steady --rate 2000 --operations 400");
        expect(&report, "operations", 400);
        expect(&report, "requests_seen", 400);
        // The last one is due when those before it have had their time.
        assert!(report["seconds"].as_f64().unwrap() >= 399.0 / 2000.0, "{report}");
        assert!(report["longest_us"].as_f64() >= report["p999_us"].as_f64(), "{report}");
    }
}

#[test]
fn tls_carries_the_same_requests() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem").display().to_string();
    let server = Server::start(&format!("instant --tls {authority}"));
    for client in ["null", "ours"] {
        for in_flight in [1, 16] {
            let task = format!("get --in-flight {in_flight} --operations 100");
            for tls in [String::new(), format!(" --tls {authority}")] {
                let report = server.measure(client, &format!("{task}{tls}"));
                expect(&report, "operations", 100);
                expect(&report, "requests_seen", 100);
            }
        }
    }
}

#[test]
fn listings_are_of_so_many_children() {
    for kind in ["instant", "testkit"] {
        let server = Server::start(kind);
        for client in ["null", "null-tokio", "ours"] {
            let report = server.measure(client, "list --children 50 --in-flight 8 --operations 40");
            expect(&report, "operations", 40);
            expect(&report, "requests_seen", 40);
        }
    }
}

#[test]
fn watches_fire_and_are_restored_in_batches() {
    let server = Server::start("instant");
    let report = server.measure("ours", "fan-out --in-flight 300");
    expect(&report, "operations", 300);
    // The writer's.
    expect(&report, "requests_seen", 300);
    let report = server.measure("ours", "reconnect --in-flight 5000");
    expect(&report, "operations", 5050);
    // The handshake, frames of up to 128 KiB, the read behind them.
    let requests = report["requests_seen"].as_u64().unwrap();
    assert!((3..=8).contains(&requests), "{report}");
}

#[test]
fn all_sessions_come_back_from_a_storm() {
    let server = Server::start("instant --outage 0.2");
    let report = server.measure("ours", "storm --in-flight 50");
    expect(&report, "operations", 50);
    expect(&report, "sessions_lost", 0);
    // One dial at least; more while the server is down.
    assert!(report["dials"].as_u64() >= Some(50), "{report}");
    assert!(report["seconds_to_half"].as_f64() <= report["seconds_to_all"].as_f64(), "{report}");
}

#[test]
fn locks_are_granted_as_often_as_asked_for() {
    let server = Server::start("testkit");
    for client in ["null", "ours"] {
        for release in ["", " --unawaited"] {
            let report = server.measure(client, &format!("lock --operations 20{release}"));
            expect(&report, "operations", 20);
            // To join, to look, to leave; whether the unawaited last one has arrived is open.
            if release.is_empty() {
                expect(&report, "requests_seen", 3 * 20);
            }
            let task = format!("hand-off --in-flight 4 --operations 40{release}");
            expect(&server.measure(client, &task), "operations", 40);
        }
    }
}

#[test]
fn an_ensemble_passes_locks_on() {
    let server = Server::start("real --members 3 --fsync");
    for client in ["null", "ours"] {
        let report = server.measure(client, "hand-off --in-flight 4 --operations 20 --unawaited");
        expect(&report, "operations", 20);
    }
}

#[test]
fn many_locks_are_had_without_contention() {
    let server = Server::start("testkit");
    for client in ["null", "null-tokio", "ours"] {
        for spread in ["--in-flight 8 --locks 20", "--in-flight 6 --locks 6 --sessions 6"] {
            let task = format!("many-locks {spread} --operations 60");
            let report = server.measure(client, &task);
            expect(&report, "operations", 60);
            // To join, to look, to leave: nobody waits for anybody.
            expect(&report, "requests_seen", 3 * 60);
            expect(&server.measure(client, &format!("{task} --unawaited")), "operations", 60);
        }
    }
}

#[test]
fn each_waiter_costs_bounded_requests() {
    let server = Server::start("testkit");
    for release in ["", " --unawaited"] {
        let report =
            server.measure("ours", &format!("waiters --in-flight 50 --sessions 3{release}"));
        expect(&report, "operations", 50);
        // To join and to look; to watch the predecessor, and the one that it waits for, if there is one.
        let forming = report["requests_to_form"].as_u64().unwrap();
        assert!((3 * 50..=4 * 50 + 3).contains(&forming), "{report}");
        // Releases, the first holder's among them; the last one of them may still be on its way.
        let requests = report["requests_seen"].as_u64().unwrap();
        assert!((50..=2 * 51).contains(&requests), "{report}");
    }
}

#[test]
fn cohort_handover_sends_no_request() {
    let server = Server::start("testkit");
    for release in ["", " --unawaited"] {
        let task = format!("cohort --in-flight 8 --operations 2000{release}");
        let alone = server.measure("ours", &task);
        expect(&alone, "operations", 2000);
        let requests = alone["requests_seen"].as_u64().unwrap();
        assert!((3..=100).contains(&requests), "{alone}");
        // Two of them take turns: a turn is of 64 sections at most.
        let two = server.measure("ours", &format!("{task} --sessions 2"));
        expect(&two, "operations", 2000);
        assert!(two["requests_seen"].as_u64().unwrap() > requests, "{two}");
    }
}

#[test]
fn cache_costs_a_read_for_each_node_and_change() {
    let server = Server::start("testkit");
    for shape in ["", " --children 5"] {
        let report = server.measure("ours", &format!("cache --in-flight 1000 --payload 10{shape}"));
        expect(&report, "operations", 1000);
        // Up to 32 reads in each, and fewer in the first ones; in a tree, inner nodes are listed, too.
        let requests = report["requests_seen"].as_u64().unwrap();
        assert!((32..=110).contains(&requests), "{report}");
        assert_eq!(
            report["requests_per_change"].as_f64(),
            Some(2.0),
            "a write and a read: {report}"
        );
    }
}
