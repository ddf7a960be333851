//! Questions to single servers, without a session: four-letter words, and the admin server.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
    time::timeout,
};
use zk_client::{Connect, ResolvedConnect, Transport};

use crate::{
    args::{AskArgs, ConnectArgs},
    exit::{Exit, Failure},
};

/// More than any server says, with the connections of ten thousand clients; what else listens there may have no end.
const ANSWER_MAX: u64 = 16 << 20;

/// The same question in both languages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// Of four letters.
    pub(crate) word: &'static str,
    /// Of the admin server.
    pub(crate) command: &'static str,
}

/// What a server has answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To a four-letter word.
    Text(String),
    /// The admin server.
    Json(serde_json::Value),
    /// Not at all, and why.
    Not(String),
}

/// How servers are asked.
#[derive(Clone)]
pub(crate) struct Asker {
    connector: Arc<dyn Connect>,
    args: AskArgs,
}

impl Asker {
    pub(crate) fn new(connect: &ConnectArgs, args: AskArgs) -> Result<Self, Failure> {
        let connector: Arc<dyn Connect> = match connect.security()?.tls()? {
            Some(tls) if args.admin.is_none() || args.admin_tls => Arc::new(tls),
            // Told to be secure, and not whom to trust.
            None if args.admin_tls => {
                return Err(Failure::new(Exit::Usage, "--admin-tls: goes with --tls-ca"));
            }
            _ => Arc::new(ResolvedConnect::default()),
        };
        Ok(Self { connector, args })
    }

    /// Asks one server.
    pub(crate) async fn ask(&self, server: &str, question: Question) -> Answer {
        let limit = self.args.timeout;
        match timeout(limit, self.exchange(server, question)).await {
            Err(_) => Answer::Not(no_answer(limit)),
            Ok(Err(error)) => Answer::Not(error.to_string()),
            Ok(Ok(answer)) => answer,
        }
    }

    async fn exchange(&self, server: &str, question: Question) -> io::Result<Answer> {
        let Some(port) = self.args.admin else {
            let stream = self.connector.connect(server).await?;
            let text = exchange(stream, question.word.as_bytes()).await?;
            return Ok(match &*text {
                "" => Answer::Not("closed the connection without an answer".to_owned()),
                _ => Answer::Text(text),
            });
        };
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        let stream = self.connector.connect(&format!("{host}:{port}")).await?;
        let request =
            format!("GET /commands/{} HTTP/1.0\r\nHost: {host}\r\n\r\n", question.command);
        exchange(stream, request.as_bytes()).await.map(|text| admin_answer(&text))
    }
}

/// Asks each server, all at once. In the order of the connection string.
pub(crate) async fn all<T: Send + 'static>(
    connect: &ConnectArgs,
    args: AskArgs,
    question: Question,
    read: fn(&str, Answer) -> T,
) -> Result<Vec<(String, T)>, Failure> {
    let asker = Asker::new(connect, args)?;
    let servers: Vec<String> = connect.options()?.servers().map(str::to_owned).collect();
    let mut asking = JoinSet::new();
    for (index, server) in servers.iter().cloned().enumerate() {
        let asker = asker.clone();
        asking.spawn(async move { (index, read(&server, asker.ask(&server, question).await)) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    Ok(servers.into_iter().zip(answers.into_iter().map(|(_, answer)| answer)).collect())
}

fn no_answer(limit: Duration) -> String {
    format!("no answer within {}", humantime::Duration::from(limit))
}

/// Says all there is to say, and hears the answer until the server closes the connection.
async fn exchange(mut stream: Box<dyn Transport>, question: &[u8]) -> io::Result<String> {
    stream.write_all(question).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_MAX).read_to_end(&mut answer).await {
        // Servers end connections over TLS without saying so.
        Err(error) if answer.is_empty() || error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(error)
        }
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// The body of an answer in HTTP/1.0: all behind the empty line.
fn admin_answer(text: &str) -> Answer {
    let status = text.lines().next().unwrap_or_default();
    let Some(("200", body)) = status
        .strip_prefix("HTTP/1.")
        .and_then(|it| it.split(' ').nth(1))
        .zip(text.split_once("\r\n\r\n").map(|(_, body)| body))
    else {
        return Answer::Not(match status {
            "" => "closed the connection without an answer".to_owned(),
            status => format!("no admin server of ZooKeeper: {status:.60}"),
        });
    };
    match serde_json::from_str(body) {
        Ok(json) => Answer::Json(json),
        Err(error) => Answer::Not(format!("no admin server of ZooKeeper: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_answers_are_understood_or_named() {
        let answer = admin_answer("HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n{\"a\": 1}\n");
        assert!(matches!(answer, Answer::Json(json) if json["a"] == 1));
        for (text, why) in [
            ("", "without an answer"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "404"),
            ("SSH-2.0-x", "SSH"),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", "expected value"),
        ] {
            let Answer::Not(said) = admin_answer(text) else { panic!("{text}") };
            assert!(said.contains(why), "{said}");
        }
    }
}
