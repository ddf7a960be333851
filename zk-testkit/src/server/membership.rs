//! Which servers the ensemble consists of, as its configuration says, and what becomes of a wish to change that.

use std::{collections::BTreeMap, fmt::Write as _};

use zk_proto::{ErrorCode, Str, Zxid, request::ReconfigRequest};

use super::{java, server_line::ServerLine};

/// What the first leader of an ensemble begins with, before any transaction.
pub(super) const FIRST_EPOCH: Zxid = Zxid(1 << 32);

/// The servers of an ensemble by their numbers. Some may be none of [`Ensemble`](super::Ensemble)'s members: they are out of
/// reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    servers: BTreeMap<i64, ServerLine>,
    /// The transaction that made it so; at first that with which the first leader began.
    version: i64,
}

impl Membership {
    /// What a new ensemble is configured as: these lines of a configuration, or as many voters as it has members.
    pub(super) fn new(lines: &[String], members: usize) -> Self {
        let mut servers: BTreeMap<_, _> =
            lines.iter().filter_map(|line| ServerLine::parse_entry(line).ok()).collect();
        if servers.is_empty() {
            servers =
                (0..members).map(|member| (number(member), ServerLine::voter(member))).collect();
        }
        Self { servers, version: FIRST_EPOCH.0 }
    }

    /// As it stands in `/zookeeper/config`.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (number, server) in &self.servers {
            let _ = writeln!(text, "server.{number}={server}");
        }
        let _ = write!(text, "version={:x}", self.version);
        text
    }

    pub(super) fn votes(&self, number: i64) -> bool {
        self.servers.get(&number).is_some_and(|server| server.votes)
    }

    /// Whether a server takes no part in decisions because the configuration says so. One that it does not mention could
    /// join as a voter at once.
    pub(super) fn observes(&self, number: i64) -> bool {
        self.servers.get(&number).is_some_and(|server| !server.votes)
    }

    /// Whether these servers are more than half of the voters.
    pub(super) fn has_quorum(&self, numbers: impl Iterator<Item = i64>) -> bool {
        numbers.filter(|number| self.votes(*number)).count() > self.voters() / 2
    }

    /// What the ensemble would be after a change, in the order in which servers find what is wrong with it.
    pub(super) fn changed(
        &self,
        it: &ReconfigRequest<'_>,
        version: i64,
        least_voters: usize,
    ) -> Result<Self, ErrorCode> {
        if it.cur_config_id.0 != -1 && it.cur_config_id.0 != self.version {
            return Err(ErrorCode::BAD_VERSION);
        }
        let servers = if it.new_members.as_bytes().is_none() {
            self.moved(it.joining_servers, it.leaving_servers)?
        } else {
            replaced(it.new_members)?
        };
        let next = Self { servers, version };
        if next.voters() < least_voters {
            return Err(ErrorCode::BAD_ARGUMENTS);
        }
        Ok(next)
    }

    /// With some servers less, and others more.
    fn moved(
        &self,
        joining: Str<'_>,
        leaving: Str<'_>,
    ) -> Result<BTreeMap<i64, ServerLine>, ErrorCode> {
        let mut servers = self.servers.clone();
        for number in items(&java::string(leaving.as_bytes())) {
            // Servers stumble over what is no number.
            let number = number.parse().map_err(|_| ErrorCode::MARSHALLING_ERROR)?;
            servers.remove(&number);
        }
        for entry in items(&java::string(joining.as_bytes())) {
            let (number, server) = ServerLine::parse_entry(entry)?;
            if !server.has_client_address() {
                return Err(ErrorCode::BAD_ARGUMENTS);
            }
            if servers.iter().any(|(other, it)| *other != number && server.collides(it)) {
                return Err(ErrorCode::BAD_ARGUMENTS);
            }
            servers.insert(number, server);
        }
        Ok(servers)
    }

    fn voters(&self) -> usize {
        self.servers.values().filter(|server| server.votes).count()
    }
}

/// A whole configuration: entries, or lines of them.
fn replaced(text: Str<'_>) -> Result<BTreeMap<i64, ServerLine>, ErrorCode> {
    let text = java::string(text.as_bytes());
    let mut servers = BTreeMap::new();
    for line in text.split([',', '\n']).map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once('=') {
            Some((key, _)) if key.trim().starts_with("server.") => {
                servers.extend([ServerLine::parse_entry(line)?]);
            }
            Some((key, version)) if key.trim() == "version" => {
                i64::from_str_radix(version.trim(), 16)
                    .map_err(|_| ErrorCode::MARSHALLING_ERROR)?;
            }
            _ => return Err(ErrorCode::BAD_ARGUMENTS),
        }
    }
    if servers.values().all(|server| !server.votes) {
        return Err(ErrorCode::MARSHALLING_ERROR);
    }
    Ok(servers)
}

/// Parts between commas, without what is empty.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// What a member is called that was there from the start.
pub(super) fn number(member: usize) -> i64 {
    i64::try_from(member).unwrap_or(i64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Membership {
        Membership::new(&[], 3)
    }

    fn request<'a>(
        joining: Option<&'a str>,
        leaving: Option<&'a str>,
        members: Option<&'a str>,
    ) -> ReconfigRequest<'a> {
        let text = |text: Option<&'a str>| text.map_or(Str::NULL, Str::from);
        ReconfigRequest {
            joining_servers: text(joining),
            leaving_servers: text(leaving),
            new_members: text(members),
            cur_config_id: Zxid(-1),
        }
    }

    #[test]
    fn servers_join_and_leave() {
        let joining = "server.100=0.0.0.0:1:2:observer;0.0.0.0:3";
        let more = three().changed(&request(Some(joining), Some("3"), None), 0x10, 2).unwrap();
        assert!(more.text().ends_with(&format!("{joining}\nversion=10")), "{}", more.text());
        assert!(!more.text().contains("server.3"));
        assert!(more.observes(100) && more.votes(1) && !more.votes(3) && !more.observes(3));
        assert!(more.has_quorum([1, 2].into_iter()));
        assert!(!more.has_quorum([1, 3, 100].into_iter()));
    }

    #[test]
    fn impossible_changes_are_refused() {
        let refused = |joining, leaving, members| {
            three().changed(&request(joining, leaving, members), 1, 2).unwrap_err()
        };
        assert_eq!(refused(Some("some thing"), None, None), ErrorCode::BAD_ARGUMENTS);
        assert_eq!(refused(Some("server.4=a:1:2"), None, None), ErrorCode::BAD_ARGUMENTS);
        assert_eq!(refused(Some("server.4=a:1:1;3"), None, None), ErrorCode::BAD_ARGUMENTS);
        assert_eq!(refused(None, Some("1,2"), None), ErrorCode::BAD_ARGUMENTS);
        assert_eq!(refused(None, Some("one"), None), ErrorCode::MARSHALLING_ERROR);
        assert_eq!(refused(None, None, Some("members=1")), ErrorCode::BAD_ARGUMENTS);
        let stale = ReconfigRequest { cur_config_id: Zxid(7), ..request(None, Some("3"), None) };
        assert_eq!(three().changed(&stale, 1, 2), Err(ErrorCode::BAD_VERSION));
    }

    #[test]
    fn whole_configurations_replace_others() {
        let lines = "server.1=a:1:2;3\n,server.4=b:1:2:observer\nserver.2=c:4:5;d:6;e:7";
        let next = three().changed(&request(None, None, Some(lines)), 1, 2).unwrap();
        let text = "server.1=a:1:2:participant;0.0.0.0:3\nserver.2=c:4:5:participant;d:6;e:7\n\
                    server.4=b:1:2:observer\nversion=1";
        assert_eq!(next.text(), text);
    }
}
