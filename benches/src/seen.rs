//! What the server says that it has seen.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

/// What servers answer to `srvr` about requests, each of our questions included; `None` if they cannot be asked.
pub(crate) fn requests(server: &str) -> Option<u64> {
    figure(server, "Received: ")
}

/// A figure in the answer to `srvr`.
pub(crate) fn figure(server: &str, label: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(server).ok()?;
    stream.write_all(b"srvr").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
}
