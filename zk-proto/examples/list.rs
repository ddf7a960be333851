//! Lists the root's children over a plain socket: the smallest driver of a session.

use std::{
    error::Error,
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use zk_proto::{
    Str, Time,
    frame::RequestFrame,
    jute::decode_exact,
    request::{GetChildrenRequest, GetChildrenResponse},
    session::{
        CloseReason, Config, DriverFault, LinkError, OnLoss, Outcome, Outgoing, Output, Patience,
        Session, State,
    },
};

/// What comes back with an answer.
#[derive(Debug)]
enum Asked {
    ToList,
    ToClose,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:?}", run("127.0.0.1:2181")?);
    Ok(())
}

/// The program, for a server of one's choice.
pub fn run(server: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let begin = Instant::now();
    let now = || Time::new(begin.elapsed());
    let mut session: Session<Asked, ()> = Session::new(Config::new([server]), 7, now());
    let frame = RequestFrame::of(&GetChildrenRequest { path: Str::from("/"), watch: false });
    let (token, on_loss) = (Asked::ToList, OnLoss::Resend);
    session.submit(
        now(),
        Outgoing { frame, token, on_loss, watch: None, patience: Patience::Connections },
    );

    let mut link: Option<TcpStream> = None;
    let mut names = Vec::new();
    loop {
        // What the session wants done, in its order.
        while let Some(output) = session.poll() {
            match output {
                Output::Dial { server } => {
                    let dialed = TcpStream::connect(&*server).map_err(in_its_words);
                    session.dialed(now(), dialed.as_ref().map(drop).map_err(Clone::clone));
                    link = dialed.ok();
                }
                Output::HangUp => link = None,
                Output::Reply { token: Asked::ToList, outcome: Outcome::Answered(answer) } => {
                    if !answer.code.is_ok() {
                        return Err(answer.code.to_string().into());
                    }
                    let GetChildrenResponse { children } = decode_exact(&answer.body)?;
                    names = children.strs().map(Into::into).collect();
                    session.close(now(), Asked::ToClose);
                }
                // Never sent, or without an answer that can be read.
                Output::Reply { token: Asked::ToList, outcome } => {
                    return Err(format!("{outcome:?}").into());
                }
                Output::State(State::Over(CloseReason::Closed)) => return Ok(names),
                Output::State(State::Over(why)) => return Err(why.to_string().into()),
                _ => {}
            }
        }
        // Until when it has nothing to do unless something comes.
        let patience = session.deadline().map_or(Duration::ZERO, |due| due.since(now()));
        let patience = patience.max(Duration::from_millis(1));
        match link.as_mut().map(|socket| exchange(socket, &mut session, patience)) {
            Some(Ok(0)) => {}
            Some(Ok(_)) => session.received(now()),
            Some(Err(why)) => {
                link = None;
                session.hung_up(now(), why);
            }
            None => std::thread::sleep(patience),
        }
        session.elapsed(now());
    }
}

/// Writes what there is to write, and waits for bytes: so many have come.
fn exchange(
    socket: &mut TcpStream,
    session: &mut Session<Asked, ()>,
    patience: Duration,
) -> Result<usize, LinkError> {
    let outbound = session.outbound().take_all();
    let mut bytes = [0; 4096];
    let written = socket.write_all(&outbound);
    let read = written
        .and_then(|()| socket.set_read_timeout(Some(patience)))
        .and_then(|()| socket.read(&mut bytes));
    match read {
        Ok(0) => Err(LinkError::Closed),
        Ok(len) => {
            session.inbound().extend_from_slice(&bytes[..len]);
            Ok(len)
        }
        Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(0),
        Err(why) => Err(in_its_words(why)),
    }
}

fn in_its_words(why: std::io::Error) -> LinkError {
    match why.kind() {
        ErrorKind::ConnectionRefused => LinkError::Refused,
        ErrorKind::ConnectionReset => LinkError::Reset,
        _ => LinkError::Driver(DriverFault::new(why)),
    }
}
