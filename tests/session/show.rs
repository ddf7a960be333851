//! What the session says, a line for each output.

use zk_proto::{
    Zxid,
    session::{Answer, NodeEvent, Outcome, Output, SaslInput, State, WatchNotice},
};

/// The same news for more watches than this is counted.
const REPEATED_MAX: usize = 4;

/// Shortens what thousands of watches receive.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    notice: Option<WatchNotice>,
    count: usize,
}

impl Repeated {
    pub(crate) fn push(&mut self, output: &Output<String, String>, lines: &mut Vec<String>) {
        let notice = match output {
            Output::Watch { notice, .. } => Some(notice),
            _ => None,
        };
        if notice.is_none() || notice != self.notice.as_ref() {
            self.finish(lines);
            self.notice = notice.cloned();
        }
        self.count += 1;
        if self.count <= REPEATED_MAX {
            lines.push(self::output(output));
        }
    }

    pub(crate) fn finish(&mut self, lines: &mut Vec<String>) {
        let more = std::mem::take(&mut self.count).saturating_sub(REPEATED_MAX);
        if more > 0 {
            lines.push(format!("... and {more} more"));
        }
    }
}

fn output(output: &Output<String, String>) -> String {
    match output {
        Output::Dial { server } => format!("dial {server}"),
        Output::HangUp => "hang up".into(),
        Output::Probe { server } => format!("probe {server}"),
        Output::Failed { server, error } => format!("failed {server}: {error}"),
        Output::Reply { token, outcome } => format!("reply {token}: {}", self::outcome(outcome)),
        Output::Watch { watcher, notice } => format!("watch {watcher}: {}", self::notice(notice)),
        Output::Sasl { server, said: SaslInput::Nothing } => format!("sasl begins with {server}"),
        Output::Sasl { said: SaslInput::Answer(token), .. } => match &token.0 {
            Some(token) => format!("sasl heard {:?}", String::from_utf8_lossy(token)),
            None => "sasl heard nothing".into(),
        },
        Output::State(State::Connected(negotiated)) => format!(
            "state connected id={} timeout={:?}{}",
            negotiated.id,
            negotiated.timeout,
            if negotiated.read_only { " read-only" } else { "" },
        ),
        Output::State(State::Disconnected(why)) => format!("state disconnected: {why}"),
        Output::State(State::Over(over)) => format!("state over: {over}"),
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered(Answer { zxid, code, body }) => {
            let body = match body.len() {
                0 => String::new(),
                len => format!(" and {len} bytes"),
            };
            format!("{code} at {zxid}{body}")
        }
        Outcome::NotSent(cause) => format!("not sent, {cause}"),
        Outcome::Unknown(cause) => format!("unknown, {cause}"),
    }
}

fn notice(notice: &WatchNotice) -> String {
    match notice {
        WatchNotice::Event(NodeEvent { kind, path, zxid }) => {
            format!(
                "{kind} {path}{}",
                zxid.map(|zxid: Zxid| format!(" at {zxid}")).unwrap_or_default()
            )
        }
        WatchNotice::Gap => "gap".into(),
        WatchNotice::Unsupported => "unsupported".into(),
        WatchNotice::Over(over) => format!("over: {over}"),
        _ => format!("{notice:?}"),
    }
}
