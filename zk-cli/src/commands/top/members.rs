//! What the servers say of themselves, over time.

use std::time::{Duration, Instant};

use crate::commands::health::{self, Answer, Report};

/// A server of the connection string.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) server: String,
    /// `None` until it has been asked.
    pub(crate) answer: Option<Answer>,
    /// How long it took to answer.
    pub(crate) took: Duration,
    /// Since when it has not served.
    pub(crate) down_since: Option<Instant>,
    /// Requests per second between its last two answers.
    pub(crate) requests: Option<f64>,
    received: Option<(Instant, u64)>,
}

impl Member {
    pub(crate) fn new(server: String) -> Self {
        Self {
            server,
            answer: None,
            took: Duration::ZERO,
            down_since: None,
            requests: None,
            received: None,
        }
    }

    /// It has answered, or not.
    pub(crate) fn said(&mut self, answer: Answer, took: Duration, now: Instant) {
        let received = match &answer {
            Answer::Serves(standing) => {
                self.down_since = None;
                standing.received.map(|received| (now, received))
            }
            Answer::Says { .. } | Answer::Fails { .. } => {
                self.down_since.get_or_insert(now);
                None
            }
        };
        self.requests = per_second(self.received, received);
        (self.received, self.answer, self.took) = (received, Some(answer), took);
    }
}

/// Our own request for the answer is one of them. A server that has begun again counts from nothing.
fn per_second(before: Option<(Instant, u64)>, now: Option<(Instant, u64)>) -> Option<f64> {
    let ((before, then), (now, received)) = (before?, now?);
    let between = now.saturating_duration_since(before).as_secs_f64();
    let requests = received.checked_sub(then)?;
    (between > 0.0).then(|| requests as f64 / between)
}

/// All that have been asked, compared; `None` until all have.
pub(crate) fn report(members: &[Member]) -> Option<Report> {
    let answers =
        members.iter().map(|member| Some((member.server.clone(), member.answer.clone()?)));
    Some(health::judged(answers.collect::<Option<Vec<_>>>()?.into_iter()))
}

/// How the ensemble is, in a line, and whether that is well.
pub(crate) fn verdict(members: &[Member]) -> (String, bool) {
    let Some(report) = report(members) else { return ("asking the servers".to_owned(), true) };
    let serving = |answer: &Answer| matches!(answer, Answer::Serves(_));
    let up = report.servers.iter().filter(|server| serving(&server.answer)).count();
    let heads = report.servers.iter().filter_map(|server| match &server.answer {
        Answer::Serves(it) if it.mode == "leader" => Some(format!("{} leads", server.server)),
        Answer::Serves(it) if it.mode == "standalone" => Some("alone".to_owned()),
        _ => None,
    });
    let heads: Vec<_> = heads.collect();
    let head = match (&*heads, up) {
        ([], 0) => "".to_owned(),
        ([], _) => ", NO LEADER SEEN".to_owned(),
        ([head], _) => format!(", {head}"),
        _ => format!(", {} LEADERS SEEN", heads.len()),
    };
    let of = report.servers.len();
    let verb = if up == of { "serve" } else { "SERVE" };
    (format!("{up} of {of} {verb}{head}"), report.healthy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(mode: &str, received: u64) -> Answer {
        health::understood(&format!("Zxid: 0x100000002\nMode: {mode}\nReceived: {received}\n"))
    }

    fn member(answers: &[Answer]) -> Member {
        let (mut member, begin) = (Member::new("a:1".to_owned()), Instant::now());
        for (second, answer) in answers.iter().enumerate() {
            let now = begin + Duration::from_secs(second as u64);
            member.said(answer.clone(), Duration::ZERO, now);
        }
        member
    }

    #[test]
    fn request_rate_is_between_two_answers() {
        let down = Answer::Fails { why: "refused".to_owned() };
        assert_eq!(member(&[answer("leader", 5)]).requests, None);
        assert_eq!(member(&[answer("leader", 5), answer("leader", 12)]).requests, Some(7.0));
        assert_eq!(member(&[answer("leader", 5), answer("leader", 1)]).requests, None);
        let back = member(&[answer("leader", 5), down.clone(), answer("leader", 50)]);
        assert_eq!((back.requests, back.down_since), (None, None));
        assert!(member(&[down]).down_since.is_some());
    }

    #[test]
    fn verdict_counts_servers_and_leaders() {
        let down = || member(&[Answer::Fails { why: "refused".to_owned() }]);
        let of = |mode: &str| member(&[answer(mode, 1)]);
        let verdict = |members: &[Member]| verdict(members);
        assert_eq!(
            verdict(&[of("leader"), of("follower")]),
            ("2 of 2 serve, a:1 leads".into(), true)
        );
        assert_eq!(verdict(&[of("standalone")]), ("1 of 1 serve, alone".into(), true));
        assert_eq!(
            verdict(&[of("follower"), down()]),
            ("1 of 2 SERVE, NO LEADER SEEN".into(), false)
        );
        assert_eq!(verdict(&[down(), down()]), ("0 of 2 SERVE".into(), false));
        assert_eq!(
            verdict(&[of("leader"), of("leader")]),
            ("2 of 2 serve, 2 LEADERS SEEN".into(), false)
        );
        assert!(verdict(&[Member::new("b:1".into()), down()]).0.starts_with("asking"));
    }
}
