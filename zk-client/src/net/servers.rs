//! The connection string: `host1:2181,[::1]:2182,host3/chroot`.

use std::{str::FromStr, sync::Arc};

use zk_proto::path::ZkPath;

use crate::error::ConnectError;

/// ZooKeeper's default port.
const PORT_DEFAULT: u16 = 2181;

/// Servers and the chroot after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    /// Each `host:port`.
    pub(crate) addresses: Vec<Arc<str>>,
    pub(crate) chroot: ZkPath,
}

impl FromStr for Servers {
    type Err = ConnectError;

    fn from_str(text: &str) -> Result<Self, ConnectError> {
        let (servers, chroot) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, "/"),
        };
        let addresses = servers
            .split(',')
            .map(str::trim)
            .filter(|server| !server.is_empty())
            .map(|server| {
                with_port(server).ok_or_else(|| ConnectError::InvalidServer(server.to_owned()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            return Err(ConnectError::NoServer);
        }
        let chroot = chroot.trim_end().parse().map_err(ConnectError::InvalidChroot)?;
        Ok(Self { addresses, chroot })
    }
}

/// Returns `host:port`, with brackets around an IPv6 address and the default port filled in.
fn with_port(server: &str) -> Option<Arc<str>> {
    let is_ipv6 = |host: &str| host.parse::<std::net::Ipv6Addr>().is_ok();
    let (host, port) = match server.strip_prefix('[') {
        Some(bracketed) => {
            let (host, behind) = bracketed.split_once(']').filter(|(host, _)| is_ipv6(host))?;
            let port = match behind {
                "" => None,
                behind => Some(behind.strip_prefix(':')?),
            };
            (format!("[{host}]"), port)
        }
        None if is_ipv6(server) => (format!("[{server}]"), None),
        None => match server.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (server.to_owned(), None),
        },
    };
    let is_name = |c: char| !c.is_whitespace() && !c.is_control() && c != ':' && c != '@';
    let name_is_sound = host.starts_with('[') || (!host.is_empty() && host.chars().all(is_name));
    let port = match port {
        None => PORT_DEFAULT,
        Some(port) => port.parse().ok().filter(|&port| port != 0)?,
    };
    name_is_sound.then(|| Arc::from(format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, addresses: &[&str], chroot: &str) {
        let servers: Servers = text.parse().unwrap();
        let found: Vec<&str> = servers.addresses.iter().map(|address| &**address).collect();
        assert_eq!((found.as_slice(), servers.chroot.as_str()), (addresses, chroot), "{text:?}");
    }

    #[test]
    fn hosts_ports_and_chroot_are_parsed() {
        check("a", &["a:2181"], "/");
        check(" a:1 , b ,, c:3 ", &["a:1", "b:2181", "c:3"], "/");
        check("a/", &["a:2181"], "/");
        check("a:1,b:2/app/x", &["a:1", "b:2"], "/app/x");
        check("a:1/app\n", &["a:1"], "/app");
        check("[::1]:5,[fe80::1],::1", &["[::1]:5", "[fe80::1]:2181", "[::1]:2181"], "/");
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in ["", " , ", "/app"] {
            assert_eq!(text.parse::<Servers>(), Err(ConnectError::NoServer), "{text:?}");
        }
        for text in [
            "a:", "a:0", "a:x", "a:99999", ":1", "[::1", "[a]:1", "[::1]x", "[::1]:", "a b",
            "a:1:2",
        ] {
            let error = text.parse::<Servers>().unwrap_err();
            assert!(matches!(error, ConnectError::InvalidServer(_)), "{text:?}: {error:?}");
        }
        for text in ["a//", "a/x/", "a/../b"] {
            let error = text.parse::<Servers>().unwrap_err();
            assert!(matches!(error, ConnectError::InvalidChroot(_)), "{text:?}: {error:?}");
        }
    }
}
