//! `zk sessions`: which clients have sessions, and from which address.

use serde::Serialize;
use serde_json::Value;
use zk_client::SessionId;

use crate::{
    args::SessionsArgs,
    ask::{self, Answer, Question},
    exit::{Exit, Failure},
    render::{self, Lean, Table, complain, printable},
};

const QUESTION: Question = Question { word: "cons", command: "connections" };

#[derive(Debug, Serialize)]
struct Report {
    sessions: Vec<Held>,
    /// Servers that have not answered, and why.
    failures: Vec<Silent>,
}

/// A session that a server has a connection of.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Held {
    /// Hexadecimal, as servers print it.
    session: String,
    client: String,
    server: String,
    timeout_ms: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Silent {
    server: String,
    why: String,
}

pub(crate) async fn run(args: SessionsArgs) -> Result<Exit, Failure> {
    let mut report = Report { sessions: Vec::new(), failures: Vec::new() };
    let answers = ask::all(&args.connect, args.ask, QUESTION, read).await?;
    let servers = answers.len();
    for (server, held) in answers {
        match held {
            Ok(held) => report.sessions.extend(held),
            Err(why) => report.failures.push(Silent { server, why }),
        }
    }
    if let Some(session) = args.session {
        report.sessions.retain(|held| held.session == session.to_string());
    }
    if args.output.json {
        render::json(&report)?;
    } else {
        for Silent { server, why } in &report.failures {
            complain(&format_args!("{server}: {}", printable(why)));
        }
        render::bytes(table(&report.sessions).as_bytes())?;
    }
    let missing = args.session.filter(|_| report.sessions.is_empty());
    let found = args.session.is_some() && missing.is_none();
    match (report.failures.is_empty(), missing) {
        (true, None) => Ok(Exit::Done),
        _ if found => Ok(Exit::Done),
        // It may be where no answer came from.
        (false, _) => {
            let why = format!("no answer from {} of {servers} servers", report.failures.len());
            let next =
                "zk sessions --admin asks admin servers; or allow cons in 4lw.commands.whitelist";
            Err(Failure::new(Exit::No, why).next(next))
        }
        (true, Some(session)) => {
            let why = format!("{session}: no server has a connection of this session");
            let next = format!("zk ephemerals --session {session} lists what it has left");
            Err(Failure::new(Exit::No, why).next(next))
        }
    }
}

fn read(server: &str, answer: Answer) -> Result<Vec<Held>, String> {
    match answer {
        Answer::Text(text) => of_text(server, &text),
        Answer::Json(json) => of_json(server, &json),
        Answer::Not(why) => Err(why),
    }
}

/// Lines such as `/10.0.0.7:53464[1](queued=0,recved=7,sent=7,sid=0x1000c1e3f1a0000,...,to=10000,...)`. Connections
/// without a session, such as the one that asks, have no `sid`.
fn of_text(server: &str, text: &str) -> Result<Vec<Held>, String> {
    if text.contains("is not executed because") || text.contains("not currently serving") {
        return Err(text.trim().to_owned());
    }
    let connections = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let connection = line.split_once('(').and_then(|(client, fields)| {
            // An IPv6 address has such brackets, too.
            Some((client.rsplit_once('[')?.0, fields))
        });
        connection.ok_or_else(|| line.to_owned())
    });
    let connections: Vec<_> = connections.collect::<Result<_, _>>()?;
    let held = connections.into_iter().filter_map(|(client, fields)| {
        let field = |name: &str| {
            let mut fields = fields.trim_end_matches(')').split(',');
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let session = u64::from_str_radix(field("sid")?.strip_prefix("0x")?, 16).ok()?;
        Some(Held {
            session: SessionId(session as i64).to_string(),
            client: client.trim_start_matches('/').to_owned(),
            server: server.to_owned(),
            timeout_ms: field("to").and_then(|to| to.parse().ok()),
        })
    });
    Ok(held.collect())
}

fn of_json(server: &str, json: &Value) -> Result<Vec<Held>, String> {
    if let Some(error) = json["error"].as_str() {
        return Err(error.to_owned());
    }
    let lists = ["connections", "secure_connections"].map(|key| json[key].as_array());
    if lists == [None; 2] {
        return Err("nothing of its connections".to_owned());
    }
    let connections = lists.into_iter().flatten().flatten();
    let held = connections.filter_map(|connection| {
        let session = connection["session_id"].as_i64().filter(|id| *id != 0)?;
        Some(Held {
            session: SessionId(session).to_string(),
            client: connection["remote_socket_address"]
                .as_str()?
                .trim_start_matches('/')
                .to_owned(),
            server: server.to_owned(),
            timeout_ms: connection["session_timeout"].as_i64(),
        })
    });
    Ok(held.collect())
}

fn table(sessions: &[Held]) -> String {
    let mut table = Table::new([
        ("SESSION", Lean::Left),
        ("CLIENT", Lean::Left),
        ("SERVER", Lean::Left),
        ("TIMEOUT", Lean::Right),
    ]);
    for Held { session, client, server, timeout_ms } in sessions {
        table.row([
            session.clone(),
            printable(client),
            server.clone(),
            timeout_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_keeps_its_address() {
        let text = " /[0:0:0:0:0:0:0:1]:6[1](queued=0,recved=7,sent=7,sid=0x1,to=4000)\n";
        let held = of_text("zk1:2181", text).unwrap();
        let [held] = &*held else { panic!("{held:?}") };
        assert_eq!((&*held.client, held.timeout_ms), ("[0:0:0:0:0:0:0:1]:6", Some(4000)));
    }

    #[test]
    fn connections_without_a_session_are_left_out() {
        let text = " /127.0.0.1:5[1](queued=0,recved=7,sid=0x1000c1e3f1a0000,lop=PING,to=9000,lcxid=0x1)\n \
                    /[0:0:0:0:0:0:0:1]:6[0](queued=0,recved=1,sent=0)\n\n";
        let held = of_text("zk1:2181", text).unwrap();
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!((&*held[0].client, held[0].timeout_ms), ("127.0.0.1:5", Some(9000)));
        assert_eq!(held[0].session, SessionId(0x0100_0c1e_3f1a_0000).to_string());
        let json = serde_json::json!({"connections": [{"session_id": 5, "remote_socket_address": "h:1"}, {"session_id": 0}]});
        assert_eq!(of_json("zk1:2181", &json).unwrap().len(), 1);
        assert!(of_text("s", "cons is not executed because it is not in the whitelist.").is_err());
        // Of something else that listens there.
        assert_eq!(
            of_text("s", "HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err(),
            "HTTP/1.1 400 Bad Request"
        );
        assert!(of_text("s", "\n").unwrap().is_empty());
        assert!(of_json("s", &serde_json::json!({"status": "up"})).is_err());
    }
}
