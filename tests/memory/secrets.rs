//! What is left of secrets in memory.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File},
    hash::BuildHasher as _,
    os::unix::fs::FileExt as _,
    time::Duration,
};

use bytes::Bytes;
use memchr::memchr_iter;
use zk_client::{ConnectOptions, SessionState};
use zk_testkit::real::{Release, Server};
use zk_tests::patience::closed;

/// How secrets are kept by this test, which must not be what it finds.
const MASK: u8 = 0xA5;

/// A secret, and the same in a form in which it is not found.
fn secret() -> (Vec<u8>, Vec<u8>) {
    let mut secret = Vec::with_capacity(64);
    secret.extend_from_slice(b"ann:");
    for word in 0..2_u32 {
        let random = RandomState::new().hash_one(word);
        secret.extend((0..16).map(|digit| b'a' + (random >> (4 * digit)) as u8 % 16));
    }
    let hidden = hidden(&secret);
    (secret, hidden)
}

fn hidden(secret: &[u8]) -> Vec<u8> {
    secret.iter().map(|byte| byte ^ MASK).collect()
}

/// Bytes that are looked at together.
const CHUNK: usize = 1 << 20;

/// How often a secret is in the memory of this process: its heap, its stacks, whatever can be written.
fn found(hidden: &[u8]) -> usize {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut chunk = vec![0; CHUNK + hidden.len()];
    let mut found = 0;
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        if !rights.starts_with("rw") {
            continue;
        }
        let (begin, end) = range.split_once('-').unwrap();
        let [mut at, end] = [begin, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        while at < end {
            // One that has gone since holds nothing.
            let len = memory.read_at(&mut chunk, at).unwrap_or_default();
            found += count(&chunk[..len], hidden);
            at += CHUNK as u64;
        }
        chunk.fill(0);
    }
    found
}

fn count(bytes: &[u8], hidden: &[u8]) -> usize {
    // Most of what there is does not begin like it, and a single byte is found by instructions that look at many at once.
    let begins = memchr_iter(hidden[0] ^ MASK, bytes);
    begins.filter(|at| is(&bytes[*at..], hidden)).count()
}

fn is(bytes: &[u8], hidden: &[u8]) -> bool {
    bytes.len() >= hidden.len()
        && bytes.iter().zip(hidden).all(|(byte, hidden)| byte ^ MASK == *hidden)
}

async fn connected_again(zk: &zk_client::Client, server: &Server) {
    let mut session = zk.session();
    server.restart().await.unwrap();
    while !matches!(session.state(), SessionState::Connected { .. }) || session.epoch() < 2 {
        assert!(!matches!(session.state(), SessionState::Ended(_)), "the server took too long");
        session.changed().await;
    }
}

// The client has threads of its own: it goes on hearing of its server while this one looks through all memory, which
// may take half a minute on a busy machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ended_session_leaves_no_secrets() {
    let server = Server::builder().release(Release::V3_9).start().await.unwrap();
    let ((first, first_hidden), (second, second_hidden)) = (secret(), secret());
    let options = ConnectOptions::new(&server.addr().to_string()).unwrap();
    let options = options.session_timeout(Duration::from_secs(40));

    let zk = options.clone().auth("digest", Bytes::from(first)).connect().await.unwrap();
    zk.add_auth("digest", Bytes::from(second)).await.unwrap();
    assert!(found(&first_hidden) > 0, "secrets are kept as long as they are needed");
    assert!(found(&second_hidden) > 0, "secrets are kept as long as they are needed");
    connected_again(&zk, &server).await;
    zk.create("/a", b"x").await.unwrap();
    closed(&zk).await;
    drop(zk);

    let zk = options.connect().await.unwrap();
    let credentials = zk.detach().await.unwrap();
    let password = hidden(&credentials.password.0);
    assert!(found(&password) > 0);
    drop(credentials);

    for (name, hidden) in
        [("first", first_hidden), ("second", second_hidden), ("session", password)]
    {
        assert_eq!(found(&hidden), 0, "{name}");
    }
}
