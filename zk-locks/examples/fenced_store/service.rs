//! An HTTP service that wants to see a token with each request.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use zk_locks::FencingToken;

use super::{FencedStore, StoreError};

/// In the name of a header, as a service would document it: the number and, behind a dot, its local part.
const HEADER: &str = "x-fencing-token";

/// A client of the service.
pub(super) struct FencedService {
    addr: SocketAddr,
}

/// What the service keeps. With several instances it would be a row of their database.
#[derive(Default)]
struct State {
    highest: (i64, u32),
    value: String,
}

impl FencedService {
    /// Starts the service in a thread, and knows where it is.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        thread::spawn(move || {
            let state = Arc::new(Mutex::new(State::default()));
            for stream in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                // A client that hangs up harms only itself.
                thread::spawn(move || serve(stream, &state));
            }
        });
        Ok(Self { addr })
    }

    fn ask(&self, method: &str, token: FencingToken, body: &str) -> Result<String, StoreError> {
        let mut stream = TcpStream::connect(self.addr)?;
        let (number, local, len) = (token.get(), token.local(), body.len());
        write!(
            stream,
            "{method} /report HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{HEADER}: \
             {number}.{local}\r\ncontent-length: {len}\r\n\r\n{body}",
            self.addr,
        )?;
        let answer = Message::read(stream)?;
        match answer.first_line.split(' ').nth(1) {
            Some("200") => Ok(answer.body),
            Some("409") => Err(StoreError::Stale),
            _ => Err(StoreError::Broken(answer.first_line.into())),
        }
    }
}

impl FencedStore for FencedService {
    fn read(&mut self, token: FencingToken) -> Result<String, StoreError> {
        self.ask("GET", token, "")
    }

    fn write(&mut self, token: FencingToken, value: &str) -> Result<(), StoreError> {
        self.ask("PUT", token, value).map(drop)
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    let request = Message::read(stream)?;
    let (status, body) = answer(&request, state);
    let len = body.len();
    write!(answers, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n{body}")
}

fn answer(request: &Message, state: &Mutex<State>) -> (&'static str, String) {
    let token = request.header(HEADER).and_then(|token| token.split_once('.'));
    let token = token.and_then(|(number, local)| Some((number.parse().ok()?, local.parse().ok()?)));
    let Some(token) = token else { return ("400 Bad Request", format!("no {HEADER}")) };
    // Held over comparison and change.
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if token < state.highest {
        return ("409 Conflict", "somebody has shown a larger token".to_owned());
    }
    state.highest = token;
    if request.first_line.starts_with("PUT ") {
        state.value.clone_from(&request.body);
    }
    ("200 OK", state.value.clone())
}

/// A request or an answer, as far as this example needs it.
struct Message {
    first_line: String,
    headers: Vec<String>,
    body: String,
}

impl Message {
    fn read(stream: TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        for line in reader.by_ref().lines() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let first_line = head.drain(..head.len().min(1)).collect();
        let mut message = Self { first_line, headers: head, body: String::new() };
        let len = message.header("content-length").and_then(|len| len.parse().ok());
        reader.take(len.unwrap_or_default()).read_to_string(&mut message.body)?;
        Ok(message)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}
