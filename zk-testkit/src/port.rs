//! Loopback ports that stay ours while no process listens on them.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// A loopback port, reserved until dropped.
///
/// On Linux a socket is bound to the port but never listens, with `SO_REUSEADDR` set. Linux then
/// gives the port to no process that asks for *any* port, for listening or as the near end of a
/// connection; but a server that asks for this very port, with `SO_REUSEADDR` as Java sets it,
/// gets it. So a server keeps its port while it is down, and nothing else appears there
/// meanwhile. Elsewhere the port is only looked up, and can be lost to a race.
#[derive(Debug)]
pub(crate) struct HeldPort {
    addr: SocketAddr,
    _held: Option<Socket>,
}

impl HeldPort {
    /// Takes any free port.
    pub(crate) fn any() -> io::Result<Self> {
        Self::bind(0)
    }

    /// Takes this port.
    #[cfg(unix)]
    pub(crate) fn exactly(port: u16) -> io::Result<Self> {
        Self::bind(port)
    }

    fn bind(port: u16) -> io::Result<Self> {
        let socket = reusable_socket((Ipv4Addr::LOCALHOST, port).into())?;
        let addr = local_addr(&socket)?;
        Ok(Self { addr, _held: cfg!(target_os = "linux").then_some(socket) })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Starts listening on the port.
    pub(crate) fn listen(&self) -> io::Result<std::net::TcpListener> {
        let socket = reusable_socket(self.addr)?;
        socket.listen(LISTEN_BACKLOG)?;
        Ok(socket.into())
    }

    /// Stops that, so that connections are refused from now on and the port can be listened on again.
    ///
    /// To close the socket is not enough: a process that this one is just starting has a copy of it until it runs its
    /// own program, and keeps it listening.
    pub(crate) fn stop_listening<'a>(listener: impl Into<SockRef<'a>>) {
        // What listens no more is as it should be.
        let _ = listener.into().shutdown(Shutdown::Both);
    }
}

/// Connections that may wait to be accepted; tests with thousands of clients exist.
const LISTEN_BACKLOG: i32 = 1024;

fn reusable_socket(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // Windows would let any other process that says so listen on the same port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(addr))?;
    Ok(socket)
}

fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    socket
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::Error::other("an IPv4 socket has no IPv4 address"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn held_port_refuses_until_listened_on() {
        let port = HeldPort::any().expect("a port");
        let refused = TcpStream::connect(port.addr()).expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let _listener = port.listen().expect("the port is ours");
        TcpStream::connect(port.addr()).expect("somebody listens");
    }

    #[test]
    fn held_port_can_be_listened_on_repeatedly() {
        let port = HeldPort::any().expect("a port");
        for _ in 0..3 {
            let listener = port.listen().expect("the port is ours");
            let client = TcpStream::connect(port.addr()).expect("somebody listens");
            HeldPort::stop_listening(&listener);
            drop((listener, client));
        }
    }

    #[test]
    fn port_is_reusable_despite_a_socket_copy() {
        let port = HeldPort::any().expect("a port");
        let listener = port.listen().expect("the port is ours");
        let copy = listener.try_clone().expect("a copy");
        HeldPort::stop_listening(&listener);
        drop(listener);
        TcpStream::connect(port.addr()).expect_err("nobody listens");
        let _again = port.listen().expect("the port is ours");
        TcpStream::connect(port.addr()).expect("somebody listens");
        drop(copy);
    }

    /// This is how the kernel looks for a port when any will do: whatever is bound is taken.
    #[test]
    fn held_port_excludes_sockets_without_reuse() {
        let port = HeldPort::any().expect("a port");
        let stranger = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let taken = stranger.bind(&port.addr().into()).expect_err("the port is ours");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(port);
        let free = HeldPort::any().expect("a port");
        let addr = free.addr();
        drop(free);
        stranger.bind(&addr.into()).expect("no longer held");
    }
}
