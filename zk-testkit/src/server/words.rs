//! Four-letter words: questions that operators ask without a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use zk_proto::SessionId;

use super::{Conn, Ensemble, Member, connection::Connection, member::Service, quirks};
use crate::release::Release;

/// All that servers know, most of which is answered by a refusal.
const KNOWN: [&[u8; 4]; 18] = [
    b"conf", b"cons", b"crst", b"dirs", b"dump", b"envi", b"gtmk", b"hash", b"isro", b"mntr",
    b"ruok", b"srst", b"srvr", b"stat", b"stmk", b"wchc", b"wchp", b"wchs",
];

/// Whether the first bytes of a connection are such a question, and not the length of a frame.
pub(super) fn is_word(first: [u8; 4]) -> bool {
    KNOWN.contains(&&first)
}

pub(super) fn answer(ensemble: &Ensemble, conn: Conn, word: [u8; 4]) -> String {
    let Some(member) = ensemble.conns.get(&conn).map(|it| it.member) else {
        return String::new();
    };
    let service = ensemble.members.get(member).map_or(Service::Nobody, |it| it.service);
    match (&word, service) {
        (b"ruok", _) => "imok".to_owned(),
        (b"isro", Service::All) => "rw".to_owned(),
        (b"isro", Service::Readers) => "ro".to_owned(),
        (b"isro", Service::Nobody) => "null".to_owned(),
        (_, Service::Nobody) => {
            "This ZooKeeper instance is not currently serving requests\n".to_owned()
        }
        (b"srvr" | b"stat", _) => server(ensemble, member),
        (b"mntr", _) => monitor(ensemble, member),
        (b"envi", _) => format!("Environment:\nzookeeper.version={}\n", version(ensemble)),
        (b"wchp", _) => watches(ensemble, member),
        (b"cons", _) => connections(ensemble, member),
        _ => {
            let word = String::from_utf8_lossy(&word);
            format!("{word} is not executed because it is not in the whitelist.\n")
        }
    }
}

const READ_ONLY: &str = "read-only";
const LEADER: &str = "leader";

fn mode(ensemble: &Ensemble, member: usize) -> &'static str {
    match ensemble.members.get(member).map(|it| it.service) {
        Some(Service::Readers) => READ_ONLY,
        _ if ensemble.standalone => "standalone",
        _ if ensemble.leader == Some(member) => LEADER,
        Some(_) if ensemble.observes(member) => "observer",
        _ => "follower",
    }
}

fn version(ensemble: &Ensemble) -> String {
    let release = ensemble.config.release;
    format!("{}-zk-testkit, built on {}", quirks::version(release), quirks::build_date(release))
}

fn server(ensemble: &Ensemble, member: usize) -> String {
    let connections = ensemble.connections(Member(member)).count();
    let nodes = ensemble.tree(Member(member)).map_or(0, |tree| tree.iter().count());
    let (received, sent) = ensemble.members.get(member).map_or((0, 0), |it| (it.received, it.sent));
    let of = |it: &&Connection| it.member == member;
    let outstanding: usize = ensemble.conns.values().filter(of).map(|it| it.queue.len()).sum();
    let release = ensemble.config.release;
    let latency = quirks::latency_of_nothing(release);
    let mut answer = format!("Zookeeper version: {}\n", version(ensemble));
    let mode = mode(ensemble, member);
    if mode == READ_ONLY {
        answer.push_str("READ-ONLY mode; serving only read-only clients\n");
    }
    let _ = write!(
        answer,
        "Latency min/avg/max: {latency}\nReceived: {received}\nSent: {sent}\nConnections: {connections}\n\
         Outstanding: {outstanding}\nZxid: {}\nMode: {mode}\nNode count: {nodes}\n",
        ensemble.applied(Member(member)),
    );
    if mode == LEADER && release >= Release::V3_5 {
        answer.push_str("Proposal sizes last/min/max: -1/-1/-1\n");
    }
    answer
}

fn monitor(ensemble: &Ensemble, member: usize) -> String {
    let tree = ensemble.tree(Member(member));
    let nodes = tree.map_or(0, |tree| tree.iter().count());
    let connections = ensemble.connections(Member(member)).count();
    let watches = ensemble.members.get(member).map_or(0, |it| it.watches.len());
    format!(
        "zk_version\t{}\nzk_server_state\t{}\nzk_num_alive_connections\t{connections}\n\
         zk_znode_count\t{nodes}\nzk_watch_count\t{watches}\n",
        version(ensemble),
        mode(ensemble, member),
    )
}

/// A line for each connection, with its session once it has one. What real servers count for each is left out.
fn connections(ensemble: &Ensemble, member: usize) -> String {
    let mut answer = String::new();
    for connection in ensemble.conns.values().filter(|it| it.member == member) {
        let _ = write!(answer, " /{}[1](queued={}", connection.peer, connection.queue.len());
        if let Some(id) = connection.session() {
            let _ = write!(answer, ",sid={id}");
            if let Some(session) = ensemble.sessions.get(id) {
                let _ = write!(answer, ",to={}", session.timeout().as_millis());
            }
        }
        answer.push_str(")\n");
    }
    answer
}

/// Every path whose data or existence is watched, with the sessions that watch it.
fn watches(ensemble: &Ensemble, member: usize) -> String {
    let mut watchers: BTreeMap<&str, BTreeSet<SessionId>> = BTreeMap::new();
    for (conn, session) in ensemble.connections(Member(member)) {
        let Some(session) = session else { continue };
        let (data, _) = ensemble.watches(conn);
        for path in data {
            watchers.entry(path).or_default().insert(session);
        }
    }
    let mut answer = String::new();
    for (path, sessions) in watchers {
        let _ = writeln!(answer, "{path}");
        for session in sessions {
            let _ = writeln!(answer, "\t{session}");
        }
    }
    answer
}
