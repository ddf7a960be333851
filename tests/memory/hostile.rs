//! What a server can make a client take in: no more than the limits say, whatever it sends; and the next server is
//! asked.

use std::{net::Ipv4Addr, pin::pin, sync::Mutex, task::Poll, thread, time::Duration};

use allocation_counter::measure;
use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use zk_client::{
    BoxFuture, Cause, Connect, ConnectOptions, LinkError, OpCode, ReadError, Rejection, Resync,
    Transport, WatchItem,
};
use zk_proto::frame::encode_frame_with;
use zk_testkit::{
    proxy::{Match, Proxy},
    server::{Config, Listening},
};
use zk_tests::patience::closed;

/// Longest reply that the client is configured to take.
const REPLY_LEN_MAX: usize = 1 << 20;

/// What a session may take in because of its server, in bytes: a frame of the longest kind, what it is copied to,
/// and what goes on besides.
const BYTES_MAX: u64 = 2 * REPLY_LEN_MAX as u64 + (256 << 10);

/// Bound on each case; what is stuck is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The second request of a session, which is the one that is answered with nonsense.
const XID: i32 = 2;

/// What comes of the request that was answered with nonsense.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The next server answers it.
    Answered,
    /// It fails, with an error of this kind, and the session goes on.
    Fails(fn(&ReadError) -> bool),
}

fn frame(content: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    encode_frame_with(&mut out, content);
    out.freeze()
}

/// A reply, with this after its header. As if nothing had happened yet: other servers refuse clients that saw more
/// than they have.
fn reply(xid: i32, err: i32, body: impl FnOnce(&mut BytesMut)) -> Bytes {
    frame(|out| {
        out.put_i32(xid);
        out.put_i64(0);
        out.put_i32(err);
        body(out);
    })
}

/// An event about a path of these bytes.
fn event(kind: i32, path: &[u8]) -> Bytes {
    reply(-1, 0, |out| {
        out.put_i32(kind);
        out.put_i32(3);
        out.put_i32(i32::try_from(path.len()).unwrap());
        out.put_slice(path);
    })
}

/// A length, and so much of what it speaks of.
fn length(len: i32, rest: usize) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i32(len);
    out.put_bytes(0, rest);
    out.freeze()
}

/// As many bytes of path as fit into an event of the longest kind.
const PATH_LEN_MAX: usize = REPLY_LEN_MAX - 16 - 12;

/// A listing of the longest kind, of names that are all `name`, and how many these are.
fn listing(name: &[u8]) -> (Bytes, usize) {
    let count = (REPLY_LEN_MAX - 16 - 4 - 68) / (4 + name.len());
    let listing = reply(XID, 0, |out| {
        out.put_i32(i32::try_from(count).unwrap());
        for _ in 0..count {
            out.put_i32(i32::try_from(name.len()).unwrap());
            out.put_slice(name);
        }
        out.put_bytes(0, 68);
    });
    (listing, count)
}

fn is_undecodable(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable(Cause::Undecodable(_)))
}

fn is_too_large(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable(Cause::ReplyTooLarge { .. }))
}

fn is_violation(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable(Cause::Disconnected(LinkError::Protocol(_))))
}

fn is_unheard_of(error: &ReadError) -> bool {
    matches!(error, ReadError::Rejected(Rejection::Other(code)) if code.0 == -4711)
}

/// Instead of the answer to the read of a node's data.
fn nonsense() -> Vec<(&'static str, Bytes, Outcome, Whereabouts)> {
    use Outcome::{Answered, Fails};
    use Whereabouts::{Left, Stayed};
    let max = i32::try_from(REPLY_LEN_MAX).unwrap();
    let data = |len: i32| reply(XID, 0, |out| out.put_i32(len));
    let answer = reply(XID, 0, |out| out.put_bytes(0, 4 + 68));
    let behind = |bytes: Bytes, times| Bytes::from([&bytes.repeat(times)[..], &answer].concat());
    vec![
        ("a reply to nothing", reply(7, 0, |_| ()), Answered, Left),
        ("an answer twice", Bytes::from([&answer[..], &answer].concat()), Answered, Left),
        ("a number of none", reply(0, 0, |_| ()), Answered, Left),
        ("no header", length(0, 0), Answered, Left),
        ("half a header", length(3, 3), Answered, Left),
        ("a negative length", length(-1, 64), Fails(is_violation), Left),
        ("the most negative length", length(i32::MIN, 64), Fails(is_violation), Left),
        ("a length beyond the limit", length(max + 1, 64), Fails(is_too_large), Left),
        ("the largest length", length(i32::MAX, 64), Fails(is_too_large), Left),
        (
            "another protocol",
            Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            Fails(is_too_large),
            Left,
        ),
        ("a frame that does not end", length(max, REPLY_LEN_MAX - 1), Answered, Left),
        ("an answer without a body", reply(XID, 0, |_| ()), Fails(is_undecodable), Stayed),
        ("data of two gigabytes", data(i32::MAX), Fails(is_undecodable), Stayed),
        ("data of less than nothing", data(-2), Fails(is_undecodable), Stayed),
        (
            "no data at all",
            reply(XID, 0, |out| {
                out.put_i32(-1);
                out.put_bytes(0, 68);
            }),
            Answered,
            Stayed,
        ),
        ("an unheard-of error", reply(XID, -4711, |_| ()), Fails(is_unheard_of), Stayed),
        ("an event without a path", reply(-1, 0, |out| out.put_i32(1)), Answered, Left),
        (
            "an event with a long path",
            behind(event(3, &vec![b'/'; PATH_LEN_MAX]), 1),
            Answered,
            Stayed,
        ),
        ("an event whose path is no text", event(3, &vec![0xff; PATH_LEN_MAX]), Answered, Left),
        ("a storm of events", behind(event(3, b"/nobody/listens/here"), 100_000), Answered, Stayed),
        ("a storm for a listener", behind(event(3, b"/zookeeper"), 100_000), Answered, Stayed),
        ("a storm of events of no kind", behind(event(77, b"/"), 100_000), Answered, Stayed),
        ("a storm of pongs", behind(reply(-2, 0, |_| ()), 100_000), Answered, Stayed),
        ("a storm of verdicts", behind(reply(-4, 0, |_| ()), 100_000), Answered, Stayed),
    ]
}

/// A server, and in front of it a proxy that will talk nonsense, both in threads of their own: memory is counted by
/// thread.
struct Scene {
    _elsewhere: Runtime,
    server: Listening,
    proxy: Proxy,
}

impl Scene {
    fn new() -> Self {
        let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let server = elsewhere.block_on(Listening::start(Config::default(), &[any])).unwrap();
        let proxy = elsewhere.block_on(Proxy::start(server.addrs()[0])).unwrap();
        Self { _elsewhere: elsewhere, server, proxy }
    }

    /// A client that will ask the proxy first and the server itself next.
    fn options(&self) -> ConnectOptions {
        let servers = format!("{},{}", self.proxy.connect_string(), self.server.addrs()[0]);
        let options = ConnectOptions::new(&servers).unwrap().reply_len_max(REPLY_LEN_MAX);
        let options = options.session_timeout(Duration::from_secs(10));
        let seed = (0..).find(|seed| first(&options, *seed) == self.proxy.connect_string());
        options.seed(seed.unwrap())
    }
}

/// The server that a client with this seed asks first.
fn first(options: &ConnectOptions, seed: u64) -> String {
    /// Remembers the first server, and reaches none.
    struct Asked(std::sync::Arc<Mutex<Option<String>>>);
    impl Connect for Asked {
        fn connect(&self, server: &str) -> BoxFuture<'static, std::io::Result<Box<dyn Transport>>> {
            self.0.lock().unwrap().get_or_insert_with(|| server.to_owned());
            Box::pin(std::future::pending())
        }
    }
    let asked = std::sync::Arc::default();
    let options = options.clone().seed(seed).connector(Asked(std::sync::Arc::clone(&asked)));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connecting = pin!(options.connect());
        while asked.lock().unwrap().is_none() {
            std::future::poll_fn(|cx| {
                assert!(connecting.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            tokio::task::yield_now().await;
        }
    });
    let asked = asked.lock().unwrap().take();
    asked.unwrap()
}

/// Runs a client in this thread, and bounds what it has taken at any time.
#[track_caller]
fn frugally(what: &str, bytes_max: u64, work: impl AsyncFnOnce()) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let memory = measure(|| {
        let done = runtime.block_on(async { timeout(PATIENCE, work()).await });
        done.unwrap_or_else(|_| panic!("{what}: stuck"));
    });
    println!("{what}: {} bytes at most", memory.bytes_max);
    assert!(memory.count_total > 0, "memory is not counted");
    assert!(memory.bytes_max <= bytes_max, "{what}: {} bytes", memory.bytes_max);
}

/// The server that the client is connected to in the end: after nonsense it asks the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    Stayed,
    Left,
}

#[test]
fn hostile_reply_uses_bounded_memory() {
    use Whereabouts::{Left, Stayed};
    // A thread for each, as clients wait before they ask the next server.
    thread::scope(|threads| {
        for (what, bytes, outcome, whereabouts) in nonsense() {
            threads.spawn(move || {
                let scene = Scene::new();
                let options = scene.options();
                let rule = scene.proxy.on(Match::reply(OpCode::GET_DATA).once()).forge(bytes);
                frugally(what, BYTES_MAX, async || {
                    let zk = options.connect().await.unwrap();
                    // Of all kinds that an event could be for.
                    let (_, _watch) = zk.exists("/zookeeper").watch().await.unwrap();
                    match (outcome, zk.get("/").await) {
                        (Outcome::Answered, Ok(_)) => {}
                        (Outcome::Fails(is_right), Err(error)) if is_right(&error) => {}
                        (outcome, got) => panic!("{what}: {got:?} is not {outcome:?}"),
                    }
                    assert_eq!(rule.times_fired(), 1, "{what}");
                    zk.get("/").await.unwrap();
                    let connections = zk.session().epoch();
                    let found = if connections == 1 { Stayed } else { Left };
                    assert_eq!(found, whereabouts, "{what}");
                    closed(&zk).await;
                });
                assert_eq!(scene.proxy.accepted(), 1, "{what}: the same server was asked again");
            });
        }
    });
}

#[test]
fn event_storm_uses_bounded_memory() {
    let scene = Scene::new();
    let options = scene.options();
    let answer = reply(XID, 0, |out| out.put_bytes(0, 4 + 68));
    let storm = [&event(3, b"/zookeeper").repeat(100_000)[..], &answer].concat();
    let _rule = scene.proxy.on(Match::reply(OpCode::GET_DATA).once()).forge(storm);
    frugally("a storm for a stream", BYTES_MAX, async || {
        let zk = options.clone().connect().await.unwrap();
        let mut stream = zk.watch("/zookeeper").await.unwrap();
        zk.get("/").await.unwrap();
        assert_eq!(stream.next().await, Some(WatchItem::Resync(Resync::Lagged)));
        closed(&zk).await;
    });
}

/// Instead of the answer to the handshake. All of it makes the client ask the next server.
fn no_greetings() -> Vec<(&'static str, Bytes)> {
    let max = i32::try_from(REPLY_LEN_MAX).unwrap();
    let greeting = |timeout: i32, id: i64| {
        frame(|out| {
            out.put_i32(0);
            out.put_i32(timeout);
            out.put_i64(id);
            out.put_i32(16);
            out.put_bytes(0, 16);
            out.put_u8(0);
        })
    };
    let password = |len: i32| {
        frame(|out| {
            out.put_slice(&greeting(4000, 7)[4..20]);
            out.put_i32(len);
            out.put_bytes(0, 17);
        })
    };
    vec![
        ("no time to live", greeting(0, 7)),
        ("less than no time to live", greeting(-1, 7)),
        ("the least time to live", greeting(i32::MIN, 7)),
        ("no id", greeting(4000, 0)),
        ("a password of two gigabytes", password(i32::MAX)),
        ("a password of less than nothing", password(-2)),
        ("a refusal", frame(|out| out.put_bytes(0, 16))),
        ("nothing", length(0, 0)),
        ("a negative length", length(-1, 64)),
        ("a length beyond the limit", length(max + 1, 64)),
        ("a frame that does not end", length(max, REPLY_LEN_MAX - 1)),
        ("a refusal by TLS", Bytes::from_static(&[0x15, 3, 1, 0, 2, 2, 0x28])),
        ("another protocol", Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    ]
}

#[test]
fn hostile_handshake_uses_bounded_memory() {
    thread::scope(|threads| {
        for (what, bytes) in no_greetings() {
            threads.spawn(move || {
                let scene = Scene::new();
                let options = scene.options();
                let rule = scene.proxy.on(Match::connect_response()).forge(bytes);
                frugally(what, BYTES_MAX, async || {
                    let zk = options.connect().await.unwrap();
                    assert_eq!(rule.times_fired(), 1, "{what}");
                    zk.get("/").await.unwrap();
                    closed(&zk).await;
                });
            });
        }
    });
}

/// What the caller has asked for is the caller's: beside the frame there are its names, of which each takes up a
/// string, in a vector that grows.
#[test]
fn listing_costs_its_frame_and_names() {
    let scene = Scene::new();
    let options = scene.options();
    for name in [&b""[..], b"n", b"lock-0000000001"] {
        let (listing, count) = listing(name);
        let _rule = scene.proxy.on(Match::reply(OpCode::GET_CHILDREN2).once()).forge(listing);
        let what = format!("a listing of {count} names of {} bytes", name.len());
        let names = count * (size_of::<String>() + name.len());
        frugally(&what, BYTES_MAX + 3 * names as u64, async || {
            let zk = options.clone().connect().await.unwrap();
            zk.get("/").await.unwrap();
            assert_eq!(zk.children("/").await.unwrap().0.len(), count);
            closed(&zk).await;
        });
    }
}
