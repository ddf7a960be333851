//! From names to connections: tries every address of a server, and resolves names at each attempt.

use std::{
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    hash::{BuildHasher as _, RandomState},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use futures_core::future::BoxFuture;
use tokio::net::{TcpStream, lookup_host};

use super::connect::{Connect, Transport};

/// How long one address is tried before the next one is tried as well, as RFC 8305 recommends.
const STAGGER: Duration = Duration::from_millis(250);

/// A lookup under way.
type Lookup = BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Connects over TCP to addresses that a resolver finds: to the server's first address that answers. Clones share one
/// rotation over the addresses.
///
/// ```
/// use std::io;
/// use zk_client::{BoxFuture, Connect, ResolvedConnect, Transport};
///
/// /// Prints the server it connects to, and delegates the rest.
/// struct Loud(ResolvedConnect);
///
/// impl Connect for Loud {
///     fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
///         println!("connecting to {server}");
///         self.0.connect(server)
///     }
///
///     fn fails_whole(&self) -> bool {
///         self.0.fails_whole()
///     }
/// }
///
/// let connector = Loud(ResolvedConnect::default());
/// # let _ = connector;
/// ```
#[derive(Clone)]
pub struct ResolvedConnect(Arc<Shared>);

struct Shared {
    /// `None` is the system's.
    resolver: Option<Resolver>,
    /// Counts the attempts of each server, so that each starts with another of its addresses: one counter for all would
    /// step over some where the numbers of servers and of addresses have a common divisor.
    attempts: Mutex<HashMap<Box<str>, usize>>,
    /// Where each server starts: at random, so that processes started together do not all connect to the first address.
    start: RandomState,
}

type Resolver = Box<dyn Fn(&str) -> Lookup + Send + Sync>;

impl ResolvedConnect {
    /// Uses this resolver: see [`ConnectOptions::resolver`](crate::ConnectOptions::resolver).
    pub fn new<F>(resolver: impl Fn(&str) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let resolver = move |server: &str| -> Lookup { Box::pin(resolver(server)) };
        Self::of(Some(Box::new(resolver)))
    }

    fn of(resolver: Option<Resolver>) -> Self {
        let (attempts, start) = (Mutex::default(), RandomState::new());
        Self(Arc::new(Shared { resolver, attempts, start }))
    }
}

/// Uses the system's resolver.
impl Default for ResolvedConnect {
    fn default() -> Self {
        Self::of(None)
    }
}

impl Shared {
    /// The number of this attempt to reach a server.
    fn attempt(&self, server: &str) -> usize {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = attempts.get_mut(server) {
            *attempt = attempt.wrapping_add(1);
            return *attempt;
        }
        let first = self.start.hash_one(server) as usize;
        attempts.insert(server.into(), first);
        first
    }
}

impl fmt::Debug for ResolvedConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResolvedConnect")
    }
}

impl Connect for ResolvedConnect {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        if let Some(resolver) = &self.0.resolver {
            return Box::pin(dial(resolver(server), self.0.attempt(server)));
        }
        // An address needs neither a lookup nor a choice.
        if let Ok(address) = server.parse::<SocketAddr>() {
            return Box::pin(async move { ready(TcpStream::connect(address).await?) });
        }
        let attempt = self.0.attempt(server);
        let server = server.to_owned();
        let lookup = async move { Ok(lookup_host(server).await?.collect()) };
        Box::pin(dial(Box::pin(lookup), attempt))
    }

    fn fails_whole(&self) -> bool {
        true
    }
}

/// Connects to the server's first address that answers.
async fn dial(lookup: Lookup, attempt: usize) -> io::Result<Box<dyn Transport>> {
    // Not as the system calls it: hardly any of its errors say that it was looking for a name.
    let found = lookup.await.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let addresses = in_turn(found, attempt);
    ready(first_of(addresses).await?)
}

fn ready(stream: TcpStream) -> io::Result<Box<dyn Transport>> {
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// The order in which to try addresses: the address families alternate, starting with the one that the resolver put
/// first, and within a family each attempt starts with another address.
fn in_turn(addresses: Vec<SocketAddr>, attempt: usize) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    for kind in [&mut first, &mut second] {
        let len = kind.len().max(1);
        kind.rotate_left(attempt % len);
    }
    let mut turn = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let before = turn.len();
        turn.extend(first.next());
        turn.extend(second.next());
        if turn.len() == before {
            return turn;
        }
    }
}

/// Tries the addresses in order: one that does not answer delays the next only for a moment, one that refuses not at
/// all.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
    let mut left = addresses.into_iter();
    let mut running: Vec<Attempt> = Vec::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "name has no address");
    let mut stagger = Box::pin(tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        loop {
            let mut index = 0;
            while let Some(attempt) = running.get_mut(index) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) => {
                        last = error;
                        drop(running.remove(index));
                    }
                    Poll::Pending => index += 1,
                }
            }
            let is_due = running.is_empty() || stagger.as_mut().poll(cx).is_ready();
            match if is_due { left.next() } else { None } {
                Some(address) => {
                    running.push(Box::pin(TcpStream::connect(address)));
                    stagger.as_mut().reset(tokio::time::Instant::now() + STAGGER);
                }
                None if running.is_empty() => {
                    let nobody = io::Error::from(io::ErrorKind::NotFound);
                    return Poll::Ready(Err(std::mem::replace(&mut last, nobody)));
                }
                None => return Poll::Pending,
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::{
        net::{TcpListener, TcpSocket},
        task::{JoinHandle, yield_now},
        time::timeout,
    };

    use super::*;

    /// Less than what it takes the system to give an attempt up.
    const LIMIT: Duration = Duration::from_secs(20);

    /// A port whose queue is full, so that it answers nothing any more, as long as the rest lives.
    async fn deaf() -> (SocketAddr, TcpListener, Vec<JoinHandle<io::Result<TcpStream>>>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        // More than there is room for, which is one more than was asked for.
        let queue: Vec<_> = (0..8).map(|_| tokio::spawn(TcpStream::connect(address))).collect();
        while queue.iter().filter(|one| one.is_finished()).count() < 2 {
            yield_now().await;
        }
        (address, listener, queue)
    }

    #[test]
    fn address_that_does_not_answer_holds_up_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (first, _listener, _queue) = timeout(LIMIT, deaf()).await.expect("there is room");
            let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let second = open.local_addr().unwrap();
            let stream = timeout(LIMIT, first_of(vec![first, second])).await;
            let stream = stream.expect("the second one is tried").unwrap();
            assert_eq!(stream.peer_addr().unwrap(), second);
        });
    }

    /// Whatever the numbers of servers and of addresses: here each has as many as there are servers.
    #[test]
    fn each_attempt_starts_with_the_next_address_of_its_server() {
        let connect = ResolvedConnect::default();
        let servers = ["zk1:2181", "zk2:2181", "zk3:2181"];
        let mut starts = servers.map(|_| Vec::new());
        for _round in 0..servers.len() {
            for (server, starts) in servers.iter().zip(&mut starts) {
                starts.push(connect.0.attempt(server) % servers.len());
            }
        }
        for mut starts in starts {
            starts.sort_unstable();
            assert_eq!(starts, [0, 1, 2]);
        }
    }

    #[test]
    fn address_families_alternate_and_rotate() {
        let list = |text: &str| -> Vec<SocketAddr> {
            text.split(' ').map(|address| address.parse().unwrap()).collect()
        };
        let found = list("[::1]:1 [::2]:1 10.0.0.1:1 10.0.0.2:1 10.0.0.3:1");
        assert_eq!(
            in_turn(found.clone(), 0),
            list("[::1]:1 10.0.0.1:1 [::2]:1 10.0.0.2:1 10.0.0.3:1")
        );
        assert_eq!(in_turn(found, 1), list("[::2]:1 10.0.0.2:1 [::1]:1 10.0.0.3:1 10.0.0.1:1"));
        assert_eq!(in_turn(Vec::new(), 7), []);
    }
}
