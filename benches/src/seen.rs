//! What the server says that it has seen.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

/// What servers answer to `srvr` about requests, each of our questions included; `None` if they cannot be asked.
pub(crate) fn requests(server: &str) -> Option<u64> {
    figure(server, "Received: ")
}

/// For how long it has heard nothing of some session, at most, since [`forget`] was called. Only the
/// instant server knows.
pub(crate) fn longest_silence(server: &str) -> Option<u64> {
    figure(server, "Longest silence: ")
}

/// Has it begin to count anew.
pub(crate) fn forget(server: &str) {
    // A server that cannot count cannot forget.
    let _ = ask(server, b"srst");
}

/// Has it break all connections and be down for a while. Only the instant server does.
pub(crate) fn cut(server: &str) {
    // Its answer may be cut off, too.
    let _ = ask(server, b"down");
}

/// A figure in the answer to `srvr`.
fn figure(server: &str, label: &str) -> Option<u64> {
    let answer = ask(server, b"srvr").ok()?;
    answer.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
}

fn ask(server: &str, word: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(word)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
