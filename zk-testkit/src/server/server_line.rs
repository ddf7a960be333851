//! One server in an ensemble's configuration: `host:port:port:role;host:port;host:port`.

use std::{fmt, net::IpAddr};

use zk_proto::ErrorCode;

/// One server of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerLine {
    host: String,
    /// For transactions, and for elections.
    ports: (u16, u16),
    pub(super) votes: bool,
    client: Option<(String, u16)>,
    secure: Option<(String, u16)>,
}

impl ServerLine {
    /// What a member is called that nothing was said of. Nothing listens on its ports.
    pub(super) fn voter(member: usize) -> Self {
        let port = |first: u16| first.saturating_add(u16::try_from(member).unwrap_or(u16::MAX));
        let host = "127.0.0.1".to_owned();
        let client = Some((host.clone(), port(2181)));
        Self { host, ports: (port(2888), port(3888)), votes: true, client, secure: None }
    }

    /// `server.1=…`: its number, and the rest.
    pub(super) fn parse_entry(text: &str) -> Result<(i64, Self), ErrorCode> {
        let mut parts = text.trim().split('=').filter(|part| !part.is_empty());
        let (Some(key), Some(line), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(ErrorCode::BAD_ARGUMENTS);
        };
        let number = key.trim().rsplit('.').next().unwrap_or_default();
        // Servers stumble over what is no number.
        let number = number.parse().map_err(|_| ErrorCode::MARSHALLING_ERROR)?;
        Ok((number, Self::parse(line.trim())?))
    }

    fn parse(text: &str) -> Result<Self, ErrorCode> {
        let mut parts = text.trim_end_matches(';').split(';');
        let server = host_and_rest(parts.next().unwrap_or_default());
        let client = client_address(parts.next().unwrap_or_default())?;
        let secure = client_address(parts.next().unwrap_or_default())?;
        let (host, ports, role) = match &*server {
            [host, first, second] => (*host, (*first, *second), "participant"),
            [host, first, second, role] => (*host, (*first, *second), *role),
            _ => return Err(ErrorCode::BAD_ARGUMENTS),
        };
        let ports = (port(ports.0)?, port(ports.1)?);
        if ports.0 == ports.1 {
            return Err(ErrorCode::BAD_ARGUMENTS);
        }
        let votes = match &*role.trim().to_ascii_lowercase() {
            "participant" => true,
            "observer" => false,
            _ => return Err(ErrorCode::BAD_ARGUMENTS),
        };
        Ok(Self { host: host.to_owned(), ports, votes, client, secure })
    }

    pub(super) const fn has_client_address(&self) -> bool {
        self.client.is_some()
    }

    /// Whether two servers would listen on the same port of the same host. On this host they may, and so they may on all of
    /// a host's addresses.
    pub(super) fn collides(&self, other: &Self) -> bool {
        self.addresses().any(|mine| other.addresses().any(|theirs| mine == theirs))
    }

    fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        let clients = [&self.client, &self.secure].into_iter().flatten();
        let clients = clients.map(|(host, port)| (&**host, *port));
        let own = [(&*self.host, self.ports.0), (&*self.host, self.ports.1)];
        own.into_iter().chain(clients).filter(|(host, _)| !is_local(host))
    }
}

/// In the form in which servers write it, which is more than they need.
impl fmt::Display for ServerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = if self.votes { "participant" } else { "observer" };
        write!(f, "{}:{}:{}:{role}", bracketed(&self.host), self.ports.0, self.ports.1)?;
        if let Some((host, port)) = &self.client {
            write!(f, ";{}:{port}", bracketed(host))?;
        }
        if let Some((host, port)) = &self.secure {
            let skipped = if self.client.is_none() { ";" } else { "" };
            write!(f, "{skipped};{}:{port}", bracketed(host))?;
        }
        Ok(())
    }
}

/// Parts between colons, of which the first may be an IPv6 address in brackets.
fn host_and_rest(text: &str) -> Vec<&str> {
    match text.strip_prefix('[').and_then(|text| text.split_once("]:")) {
        Some((host, rest)) => [host].into_iter().chain(rest.split(':')).collect(),
        None => text.split(':').collect(),
    }
}

fn client_address(text: &str) -> Result<Option<(String, u16)>, ErrorCode> {
    if text.is_empty() {
        return Ok(None);
    }
    match &*host_and_rest(text) {
        [number] => Ok(Some(("0.0.0.0".to_owned(), port(number)?))),
        [host, number] => Ok(Some(((*host).to_owned(), port(number)?))),
        _ => Err(ErrorCode::BAD_ARGUMENTS),
    }
}

fn port(text: &str) -> Result<u16, ErrorCode> {
    let number: i32 = text.parse().map_err(|_| ErrorCode::BAD_ARGUMENTS)?;
    // Servers stumble over numbers that are too large.
    u16::try_from(number).map_err(|_| ErrorCode::MARSHALLING_ERROR)
}

fn is_local(host: &str) -> bool {
    let is = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host == "localhost" || host.parse().is_ok_and(is)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_full() {
        for (short, full) in [
            ("a:1:2;3", "a:1:2:participant;0.0.0.0:3"),
            ("a:1:2:Observer", "a:1:2:observer"),
            ("[::1]:1:2;[::]:3;", "[::1]:1:2:participant;[::]:3"),
            ("a:1:2;;b:4", "a:1:2:participant;;b:4"),
        ] {
            assert_eq!(ServerLine::parse(short).unwrap().to_string(), full);
        }
    }

    #[test]
    fn faulty_lines_are_refused() {
        for line in ["", "a", "a:1", "a:b:2", "a:1:2:leader", "a:1:2;b:c:3", "a:1:2:observer:3"] {
            assert_eq!(ServerLine::parse(line), Err(ErrorCode::BAD_ARGUMENTS), "{line}");
        }
        assert_eq!(ServerLine::parse("a:1:70000"), Err(ErrorCode::MARSHALLING_ERROR));
    }

    #[test]
    fn collisions_are_noticed_beyond_this_host() {
        let line = |text| ServerLine::parse(text).unwrap();
        assert!(line("zk1:1:2;3").collides(&line("zk1:4:2;5")));
        assert!(!line("zk1:1:2;3").collides(&line("zk2:1:2;3")));
        assert!(!line("localhost:1:2;3").collides(&line("localhost:1:2;3")));
    }
}
