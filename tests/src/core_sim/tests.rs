//! As much of it as fits into a debug build's patience. What a release build does is in the guide.

use zk_proto::{
    ErrorCode, EventType, Time, Zxid,
    session::{Answer, NodeEvent, Outcome, WatchBy, WatchNotice},
};
use zk_testkit::{
    server::{Committed, NodeKind, Stamp, Txn},
    sim::{Fault, Incident},
};

use super::{
    Plan, Scope, change_log::ChangeLog, checker::Checker, exhaust, exhaustive::every_fault, run,
    soak, watching::Watching, workload::Wish,
};

/// Things that happen in the runs of a test.
const EVENTS: u64 = 150_000;

#[test]
fn runs_made_up_from_seeds_break_no_promise() {
    let report = soak(1, EVENTS).unwrap_or_else(|found| panic!("{found}"));
    assert!(report.missing().iter().all(|it| !["expired", "unknown"].contains(it)), "{report}");
    assert!(
        report.count("reads checked") > 1000 && report.count("watch events") > 1000,
        "{report}"
    );
}

#[test]
fn single_early_faults_break_no_invariant() {
    let scope = Scope { faults: 1, depth: 12 };
    let report = exhaust(scope).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(report.runs, 1 + 12 * every_fault().len() as u64);
    let hits = |incident: &Incident| report.fired.get(&incident.fault).copied();
    // Alone, these leave the connections as they are.
    let alone = |incident: &&Incident| !matches!(incident.fault, Fault::Refuse | Fault::Silent);
    assert!(every_fault().iter().filter(alone).all(|it| hits(it) >= Some(12)), "{report}");
}

#[test]
fn early_fault_pairs_break_no_invariant() {
    let report = exhaust(Scope { faults: 2, depth: 1 });
    assert!(report.is_ok(), "{}", report.unwrap_err());
}

#[test]
fn the_same_plan_is_the_same_run() {
    for seed in 100..102 {
        let [first, second] =
            [(); 2].map(|()| run(&Plan::of_seed(seed)).expect("no promise is broken"));
        assert_eq!((first.hash, first.events), (second.hash, second.events), "{seed}");
    }
}

/// A history in which `/a` is created, with the mark 7, and written.
fn log() -> ChangeLog {
    let path: Box<str> = "/a".into();
    let data = |mark| Some(super::change_log::mark(mark).to_vec().into());
    let acl = [zk_proto::Acl::open_unsafe()].into_iter().collect();
    let kind = NodeKind::Persistent;
    let create = Txn::Create { path: path.clone(), data: data(7), acl, kind, parent_cversion: 1 };
    let set = Txn::SetData { path, data: data(8), version: 1 };
    let committed = |zxid, txn| Committed {
        stamp: Stamp { zxid: Zxid(zxid), millis: 0, session: zk_proto::SessionId(1) },
        at: Time::ZERO,
        txn,
    };
    let mut log = ChangeLog::default();
    log.learn(&[committed(1, create), committed(2, set)]);
    log
}

fn answered(zxid: i64, code: ErrorCode) -> Outcome {
    Outcome::Answered(Answer { zxid: Zxid(zxid), code, body: bytes::Bytes::new() })
}

/// A session that was asked for something and for a watch of a kind on `/a`, which is armed at 1.
fn checker(by: WatchBy) -> Checker {
    let mut checker = Checker::default();
    checker.asked(1, Wish::Sync, Some(Watching::new(by, "/a")));
    checker.concluded(1, &answered(1, ErrorCode::OK), &log());
    assert_eq!(checker.violations, [""; 0]);
    checker
}

#[track_caller]
fn finds(checker: &Checker, rule: &str) {
    let is_it = |violation: &String| violation.starts_with(rule);
    assert!(checker.violations.iter().any(is_it), "{rule}: {:?}", checker.violations);
}

fn event(kind: EventType, zxid: i64) -> WatchNotice {
    WatchNotice::Event(NodeEvent { kind, path: "/a".into(), zxid: Some(Zxid(zxid)) })
}

#[test]
fn reply_overtaking_its_event_is_reported() {
    for by in [WatchBy::Data, WatchBy::Persistent, WatchBy::Recursive] {
        let mut checker = checker(by);
        checker.asked(2, Wish::Sync, None);
        checker.concluded(2, &answered(2, ErrorCode::OK), &log());
        finds(&checker, "W1");
    }
}

#[test]
fn only_undue_events_are_reported() {
    for (by, rule) in [(WatchBy::Data, "W3"), (WatchBy::Persistent, "W4")] {
        let mut good = checker(by);
        good.noticed(1, &event(EventType::NODE_DATA_CHANGED, 2), &log());
        assert_eq!(good.violations, [""; 0]);
        let mut again = good;
        again.noticed(1, &event(EventType::NODE_DATA_CHANGED, 2), &log());
        finds(&again, "W");
        let mut wrong = checker(by);
        wrong.noticed(1, &event(EventType::NODE_DELETED, 2), &log());
        finds(&wrong, rule);
    }
}

#[test]
fn outcomes_against_history_are_reported() {
    let mut checker = Checker::default();
    for token in 7..=9 {
        checker.asked(token, Wish::Set("/a"), None);
    }
    checker.begun(8);
    // Sent, and said not to be; not done, and said to be; and one outcome too many.
    checker.concluded(8, &Outcome::NotSent(cause()), &log());
    finds(&checker, "S9: 0x8 was sent");
    checker.concluded(9, &answered(2, ErrorCode::OK), &log());
    finds(&checker, "S9: 0x9");
    checker.concluded(9, &answered(2, ErrorCode::OK), &log());
    finds(&checker, "S8: 0x9");
    // Not sent, and done all the same; and nothing may be left open.
    checker.close(&log());
    finds(&checker, "S9: 0x8 was done");
    finds(&checker, "S8: without an outcome");
}

#[test]
fn a_state_that_goes_back_is_found() {
    let mut checker = Checker::default();
    for (token, zxid) in [(1, 2), (2, 1)] {
        checker.asked(token, Wish::Sync, None);
        checker.concluded(token, &answered(zxid, ErrorCode::OK), &log());
    }
    finds(&checker, "S7");
}

#[test]
fn a_read_that_is_not_of_its_time_is_found() {
    let mut checker = Checker::default();
    checker.asked(1, Wish::Exists("/a", false), None);
    checker.concluded(1, &answered(1, ErrorCode::NO_NODE), &log());
    finds(&checker, "S5");
}

const fn cause() -> zk_proto::session::Cause {
    zk_proto::session::Cause::LinkLost(zk_proto::session::LinkError::Reset)
}
