//! The connection string: what is meant is understood, and anything else is refused.

use std::net::Ipv6Addr;

use zk_client::{ConnectError, ConnectOptions, path::ZkPath};
use zk_proto::session::Config;

/// A connection string, or anything else that is text.
pub(super) fn connect_string(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match (ConnectOptions::new(text), model(text)) {
        (Ok(options), Ok((addresses, chroot))) => {
            let shown = format!("{options:?}");
            let config = format!("{:?}", Config::new(addresses.iter().map(String::as_str)));
            assert!(shown.contains(&config), "{text:?} is taken for {shown}, not {addresses:?}");
            // Said in full it is the same.
            let in_full = format!("{}{chroot}", addresses.join(","));
            let again = ConnectOptions::new(&in_full).expect("what is understood can be repeated");
            assert_eq!(format!("{again:?}"), shown, "{text:?} and {in_full:?}");
        }
        (Err(ConnectError::NoServer), Err(Wrong::Empty)) => {}
        (Err(ConnectError::InvalidServer(named)), Err(Wrong::Address(address))) => {
            assert_eq!(named, address);
        }
        (Err(ConnectError::InvalidChroot(_)), Err(Wrong::Chroot)) => {}
        (found, expected) => panic!("{text:?}: {found:?} instead of {expected:?}"),
    }
}

#[derive(Debug)]
enum Wrong {
    Empty,
    Address(String),
    Chroot,
}

/// Addresses and a chroot, by a description of them instead of a procedure.
fn model(text: &str) -> Result<(Vec<String>, ZkPath), Wrong> {
    let slash = text.find('/').unwrap_or(text.len());
    let named = text[..slash].split(',').map(str::trim).filter(|server| !server.is_empty());
    let addresses = named
        .map(|server| address(server).ok_or_else(|| Wrong::Address(server.into())))
        .collect::<Result<Vec<_>, _>>()?;
    if addresses.is_empty() {
        return Err(Wrong::Empty);
    }
    let chroot = match text[slash..].trim_end() {
        "" => ZkPath::root(),
        chroot => chroot.parse().map_err(|_| Wrong::Chroot)?,
    };
    Ok((addresses, chroot))
}

/// A name, or an IPv6 address that needs brackets only before a port; and perhaps a port from 1 on.
fn address(server: &str) -> Option<String> {
    if server.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{server}]:2181"));
    }
    let (host, port) = match server.rfind(':') {
        Some(colon) if !server.ends_with(']') => (&server[..colon], Some(&server[colon + 1..])),
        _ => (server, None),
    };
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_known = match in_brackets {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_odd = |c: char| c.is_whitespace() || c.is_control() || ":@".contains(c);
            !host.is_empty() && !host.starts_with('[') && !host.contains(is_odd)
        }
    };
    let port = match port {
        None => Some(2181),
        Some(port) => port.parse::<u16>().ok().filter(|&port| port > 0),
    }?;
    is_known.then(|| format!("{host}:{port}"))
}
