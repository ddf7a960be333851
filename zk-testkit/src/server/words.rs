//! Four-letter words: questions that operators ask without a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use zk_proto::SessionId;

use super::{Conn, Ensemble, Member, member::Service, quirks};

/// Whether the first bytes of a connection are such a question, and not the length of a frame.
pub(super) fn is_word(first: [u8; 4]) -> bool {
    first.iter().all(u8::is_ascii_lowercase)
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
        _ => {
            let word = String::from_utf8_lossy(&word);
            format!("{word} is not executed because it is not in the whitelist.\n")
        }
    }
}

fn mode(ensemble: &Ensemble, member: usize) -> &'static str {
    match ensemble.members.get(member).map(|it| it.service) {
        Some(Service::Readers) => "read-only",
        _ if ensemble.members.len() == 1 => "standalone",
        _ if ensemble.leader == Some(member) => "leader",
        _ => "follower",
    }
}

fn version(ensemble: &Ensemble) -> String {
    format!("{}-zk-testkit", quirks::version(ensemble.config.release))
}

fn server(ensemble: &Ensemble, member: usize) -> String {
    let connections = ensemble.connections(Member(member)).count();
    let nodes = ensemble.tree(Member(member)).map_or(0, |tree| tree.iter().count());
    let received = ensemble.members.get(member).map_or(0, |it| it.received);
    format!(
        "Zookeeper version: {}\nReceived: {received}\nConnections: {connections}\nZxid: {}\nMode: {}\nNode count: {nodes}\n",
        version(ensemble),
        ensemble.applied(Member(member)),
        mode(ensemble, member),
    )
}

fn monitor(ensemble: &Ensemble, member: usize) -> String {
    let tree = ensemble.tree(Member(member));
    let nodes = tree.map_or(0, |tree| tree.iter().count());
    let connections = ensemble.connections(Member(member)).count();
    format!(
        "zk_version\t{}\nzk_server_state\t{}\nzk_num_alive_connections\t{connections}\n\
         zk_znode_count\t{nodes}\nzk_watch_count\t{}\n",
        version(ensemble),
        mode(ensemble, member),
        ensemble.watch_count(),
    )
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
