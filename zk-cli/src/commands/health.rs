//! `zk health`: what each server says of itself.

use serde::Serialize;
use serde_json::Value;

use crate::{
    args::HealthArgs,
    ask::{self, Asker, Question},
    exit::{Exit, Failure},
    render::{self, Lean, Table, printable},
};

const QUESTION: Question = Question { word: "srvr", command: "server_stats" };

/// What a server calls itself that knows of no leader, and serves readers meanwhile.
const READ_ONLY: &str = "read-only";

/// What all servers have said.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Whether all of them serve, readers and writers, and one leads.
    pub(crate) healthy: bool,
    pub(crate) servers: Vec<Server>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct Server {
    pub(crate) server: String,
    #[serde(flatten)]
    pub(crate) answer: Answer,
    /// How many transactions it is behind the leader; `None` if that is unknown.
    pub(crate) behind: Option<i64>,
}

/// What a server has said.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub(crate) enum Answer {
    Serves(Standing),
    /// There, and said something else.
    Says {
        what: String,
    },
    /// Not to be reached, or silent.
    Fails {
        why: String,
    },
}

/// What `srvr` tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Standing {
    pub(crate) mode: String,
    pub(crate) zxid: i64,
    // The rest is of interest to people only, and servers of other makes leave some of it out.
    pub(crate) version: Option<String>,
    pub(crate) nodes: Option<u64>,
    pub(crate) connections: Option<u64>,
    /// Requests that it has received since it began.
    pub(crate) received: Option<u64>,
    /// Requests that wait.
    pub(crate) outstanding: Option<u64>,
    /// Milliseconds: least, mean, most.
    pub(crate) latency_ms: Option<[f64; 3]>,
}

impl Answer {
    /// What it calls itself, if it serves.
    fn mode(&self) -> Option<&str> {
        match self {
            Self::Serves(standing) => Some(&standing.mode),
            Self::Says { .. } | Self::Fails { .. } => None,
        }
    }
}

pub(crate) async fn run(args: HealthArgs) -> Result<Exit, Failure> {
    let answers = ask::all(&args.connect, args.ask, QUESTION, |_, answer| read(answer)).await?;
    let report = judged(answers.into_iter());
    if args.output.json {
        render::json(&report)?;
    } else {
        render::bytes(table(&report).as_bytes())?;
        if let Some(advice) = advice(&report) {
            render::complain(&advice);
        }
    }
    Ok(if report.healthy { Exit::Done } else { Exit::No })
}

/// Asks one server.
pub(crate) async fn ask(asker: &Asker, server: &str) -> Answer {
    read(asker.ask(server, QUESTION).await)
}

fn read(answer: ask::Answer) -> Answer {
    match answer {
        ask::Answer::Text(text) => understood(&text),
        ask::Answer::Json(json) => told(&json),
        ask::Answer::Not(why) => Answer::Fails { why },
    }
}

/// What the admin server says.
fn told(json: &Value) -> Answer {
    let stats = &json["server_stats"];
    let standing = || {
        let version = json["version"].as_str().and_then(|it| it.split(['-', ',']).next());
        let latency = ["min_latency", "avg_latency", "max_latency"].map(|it| stats[it].as_f64());
        let read_only = json["read_only"] == true;
        Some(Standing {
            mode: if read_only { READ_ONLY } else { stats["server_state"].as_str()? }.to_owned(),
            zxid: stats["last_processed_zxid"].as_i64()?,
            version: version.map(str::to_owned),
            nodes: json["node_count"].as_u64(),
            connections: stats["num_alive_client_connections"].as_u64(),
            received: stats["packets_received"].as_u64(),
            outstanding: stats["outstanding_requests"].as_u64(),
            latency_ms: latency
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .and_then(|it| it.try_into().ok()),
        })
    };
    standing().map_or_else(
        || Answer::Says { what: json["error"].as_str().unwrap_or("nothing of itself").to_owned() },
        Answer::Serves,
    )
}

/// Reads what a server has said.
pub(crate) fn understood(text: &str) -> Answer {
    let standing = || {
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let number = |name: &str| field(name)?.parse().ok();
        let latency = |text: &str| -> Option<[f64; 3]> {
            let parts = text.split('/').map(|part| part.parse().ok());
            parts.collect::<Option<Vec<f64>>>()?.try_into().ok()
        };
        let version = field("Zookeeper version:").and_then(|it| it.split(['-', ',']).next());
        Some(Standing {
            mode: field("Mode:")?.to_owned(),
            zxid: i64::from_str_radix(field("Zxid: 0x")?, 16).ok()?,
            version: version.map(str::to_owned),
            nodes: number("Node count:"),
            connections: number("Connections:"),
            received: number("Received:"),
            outstanding: number("Outstanding:"),
            latency_ms: field("Latency min/avg/max:").and_then(latency),
        })
    };
    standing().map_or_else(
        || match text.trim() {
            "" => Answer::Fails { why: "closed the connection without an answer".to_owned() },
            said => Answer::Says { what: said.lines().next().unwrap_or_default().to_owned() },
        },
        Answer::Serves,
    )
}

/// Compares what servers have said.
pub(crate) fn judged(servers: impl Iterator<Item = (String, Answer)>) -> Report {
    let servers: Vec<_> = servers.collect();
    let standing = |answer: &'_ Answer| match answer {
        Answer::Serves(standing) => Some((standing.mode.clone(), standing.zxid)),
        _ => None,
    };
    let standings: Vec<_> = servers.iter().map(|(_, answer)| standing(answer)).collect();
    let heads: Vec<i64> =
        standings.iter().flatten().filter(|(mode, _)| leads(mode)).map(|(_, zxid)| *zxid).collect();
    let head = match *heads {
        [head] => Some(head),
        _ => None,
    };
    let serves = |answer: &Answer| answer.mode().is_some_and(|mode| mode != READ_ONLY);
    let healthy = head.is_some() && servers.iter().all(|(_, answer)| serves(answer));
    // Numbers of different epochs have no distance.
    let behind = |zxid: i64| head.filter(|head| head >> 32 == zxid >> 32).map(|head| head - zxid);
    let servers = servers
        .into_iter()
        .zip(standings)
        .map(|((server, answer), standing)| Server {
            server,
            answer,
            // It was asked a moment later than the leader, or earlier.
            behind: standing.and_then(|(_, zxid)| behind(zxid)).map(|behind| behind.max(0)),
        })
        .collect();
    Report { healthy, servers }
}

fn table(report: &Report) -> String {
    let mut table = Table::new([
        ("SERVER", Lean::Left),
        ("STATE", Lean::Left),
        ("VERSION", Lean::Left),
        ("ZXID", Lean::Left),
        ("BEHIND", Lean::Right),
        ("NODES", Lean::Right),
        ("CONNECTIONS", Lean::Right),
        ("WAITING", Lean::Right),
        ("LATENCY", Lean::Left),
    ]);
    for Server { server, answer, behind } in &report.servers {
        let cells = match answer {
            Answer::Serves(it) => [
                printable(&it.mode),
                it.version.as_deref().map_or_else(unknown, printable),
                format!("0x{:x}", it.zxid),
                or_unknown(*behind),
                or_unknown(it.nodes),
                or_unknown(it.connections),
                or_unknown(it.outstanding),
                it.latency_ms
                    .map_or_else(unknown, |it| it.map(|ms| ms.to_string()).join("/") + " ms"),
            ],
            Answer::Says { what: said } | Answer::Fails { why: said } => {
                let mut cells = <[String; 8]>::default();
                cells[0] = printable(said);
                cells
            }
        };
        let [mode, version, zxid, behind, nodes, connections, waiting, latency] = cells;
        let server = server.clone();
        table.row([server, mode, version, zxid, behind, nodes, connections, waiting, latency]);
    }
    table.text()
}

/// What to look at where something is wrong.
fn advice(report: &Report) -> Option<Failure> {
    let not_served = |it: &&Server| !matches!(it.answer, Answer::Serves(_));
    let Some(Server { server, answer, .. }) = report.servers.iter().find(not_served) else {
        return without_a_head(report);
    };
    let (what, next) = match answer {
        Answer::Fails { .. } => (
            "does not answer",
            "does it run, is this its client port, is it meant for TLS (--tls-ca)? its log says more",
        ),
        Answer::Says { .. } | Answer::Serves(_) => (
            "does not serve",
            "without a quorum it says so; if it refuses the word: 4lw.commands.whitelist, or --admin",
        ),
    };
    Some(Failure::new(Exit::No, format_args!("{server} {what}")).next(next))
}

/// The same where all of them serve.
fn without_a_head(report: &Report) -> Option<Failure> {
    let is_head = |it: &&Server| it.answer.mode().is_some_and(leads);
    let (what, next) = match report.servers.iter().filter(is_head).count() {
        1 => {
            let is_read_only = |it: &&Server| it.answer.mode() == Some(READ_ONLY);
            let server = report.servers.iter().find(is_read_only)?;
            (
                format!("{} serves only reads", server.server),
                "it does not reach the leader: can it reach the other servers? its log says more",
            )
        }
        0 => (
            "no leader is among these servers".to_owned(),
            "zk config lists the members, for --server to name all; read-only ones have no quorum",
        ),
        heads => (
            format!("{heads} of these servers lead, or stand alone"),
            "they are of several ensembles: zk config lists the members of one",
        ),
    };
    Some(Failure::new(Exit::No, what).next(next))
}

/// Whether a server of this kind is followed by others, or by none.
fn leads(mode: &str) -> bool {
    matches!(mode, "leader" | "standalone")
}

fn unknown() -> String {
    "-".to_owned()
}

fn or_unknown(what: Option<impl ToString>) -> String {
    what.map_or_else(unknown, |what| what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRVR: &str = "Zookeeper version: 3.9.5-abc, built on 2025\nLatency min/avg/max: 0/1.5/20\nReceived: 5\nSent: 4\nConnections: 2\nOutstanding: 0\nZxid: 0x200000005\nMode: leader\nNode count: 7\n";

    fn serving(mode: &str, zxid: i64) -> Answer {
        match understood(SRVR) {
            Answer::Serves(standing) => {
                Answer::Serves(Standing { mode: mode.to_owned(), zxid, ..standing })
            }
            other => panic!("{other:?}"),
        }
    }

    fn judge<const N: usize>(answers: [Answer; N]) -> (bool, [Option<i64>; N]) {
        let named = answers.into_iter().enumerate().map(|(n, answer)| (format!("s{n}"), answer));
        let Report { healthy, servers } = judged(named);
        let behind: Vec<_> = servers.iter().map(|server| server.behind).collect();
        (healthy, behind.try_into().unwrap())
    }

    #[test]
    fn what_a_server_says_is_understood() {
        let Answer::Serves(standing) = understood(SRVR) else { panic!() };
        assert_eq!((standing.version.as_deref(), &*standing.mode), (Some("3.9.5"), "leader"));
        assert_eq!((standing.zxid, standing.nodes), (0x2_0000_0005, Some(7)));
        assert_eq!(standing.latency_ms, Some([0.0, 1.5, 20.0]));
        let refusal = "srvr is not executed because it is not in the whitelist.\n";
        assert_eq!(understood(refusal), Answer::Says { what: refusal.trim().to_owned() });
        assert!(matches!(understood(""), Answer::Fails { .. }));
    }

    #[test]
    fn healthy_means_all_serve_and_one_leads() {
        let one = 1 << 32;
        let leader = || serving("leader", one + 9);
        assert_eq!(judge([leader(), serving("follower", one + 7)]), (true, [Some(0), Some(2)]));
        // Asked a moment later.
        assert_eq!(judge([leader(), serving("follower", one + 12)]).1[1], Some(0));
        assert_eq!(judge([leader(), serving("follower", 5)]).1[1], None);
        let down = Answer::Fails { why: "refused".to_owned() };
        assert_eq!(judge([leader(), down]), (false, [Some(0), None]));
        assert!(!judge([serving("follower", one)]).0);
        assert!(!judge([leader(), leader()]).0);
        assert_eq!(judge([serving("standalone", 3)]), (true, [Some(0)]));
        assert!(!judge([leader(), serving("read-only", one + 9)]).0);
    }
}
