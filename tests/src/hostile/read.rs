//! What happens, read from bytes. Every input means something, and near inputs mean nearly the same.

use std::time::Duration;

use zk_proto::{
    ErrorCode, EventType, Xid,
    session::{LinkError, ProbeAnswer, WatchBy},
};

use crate::input::Input;

use super::step::{Delivery, Greeting, Message, PATHS, Resumed, Setup, Socket, Step};

/// Most steps of one script: more only takes time.
const STEPS_MAX: usize = 200;

/// The bytes of a script that have not been read.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    input: Input<'a>,
    steps: usize,
}

impl<'a> Script<'a> {
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        Self { input: Input::new(input), steps: 0 }
    }

    /// Two bytes, and what they say is there.
    pub(crate) fn setup(&mut self) -> Setup {
        let (shape, seed) = (self.input.byte(), self.input.byte());
        let resumed = (shape & 0x80 != 0).then(|| Resumed {
            id: i64::from(self.input.byte()) + 1,
            last_zxid: i64::from(self.input.byte()),
            next_xid: self.input.number(),
        });
        Setup {
            servers: usize::from(shape & 3) + 1,
            timeout: Duration::from_millis(3_000 + 1_000 * u64::from(shape >> 2 & 3)),
            read_only: shape & 0x10 != 0,
            resumed,
            identities: usize::from(shape >> 5 & 3),
            seed: seed.into(),
        }
    }

    /// The next step; `None` where the bytes end.
    pub(crate) fn step(&mut self) -> Option<Step> {
        if self.input.is_empty() || self.steps == STEPS_MAX {
            return None;
        }
        self.steps += 1;
        Some(match self.input.byte() {
            0..=39 => {
                let what = self.input.byte();
                let by = [WatchBy::Data, WatchBy::Exists, WatchBy::Children]
                    .into_iter()
                    .chain([WatchBy::Persistent, WatchBy::Recursive])
                    .nth(usize::from(what & 7));
                Step::Submit { by, resend: what & 8 != 0, path: Self::path(what >> 4) }
            }
            40..=43 => Step::AddAuth,
            44..=49 => Step::Unwatch(self.input.byte().into()),
            50..=51 => Step::Close,
            52 => Step::Detach,
            53..=67 => {
                Step::Dialed(if self.input.byte() & 3 == 0 { Err(self.error()) } else { Ok(()) })
            }
            68..=75 => Step::HungUp(self.error()),
            76..=81 => Step::Socket(Socket::Writable),
            82..=87 => Step::Socket(Socket::Takes(self.input.byte().into())),
            88..=167 => Step::Serve { message: self.message(), delivery: Delivery::All },
            168..=183 => {
                let delivery = Delivery::Bytes(self.input.byte().into());
                Step::Serve { message: self.message(), delivery }
            }
            184..=213 => Step::Connect,
            214..=219 => Step::Probed(match self.input.byte() % 3 {
                0 => ProbeAnswer::ReadWrite,
                1 => ProbeAnswer::ReadOnly,
                _ => ProbeAnswer::Unknown,
            }),
            220..=245 => Step::Advance(self.input.time()),
            246..=252 => Step::Sleep(self.input.time()),
            _ => Step::Wake,
        })
    }

    fn message(&mut self) -> Message {
        match self.input.byte() {
            0..=29 => Message::Greeting(self.greeting()),
            30..=109 => Message::Answers(usize::from(self.input.byte() & 7), self.code()),
            110..=129 => Message::Pong(self.code()),
            130..=149 => Message::Judgement(self.code()),
            150..=189 => {
                let what = self.input.byte();
                let kind = match what & 7 {
                    0 => EventType(i32::from(self.input.byte())),
                    1 => EventType::NODE_DELETED,
                    2 => EventType::NODE_DATA_CHANGED,
                    3 => EventType::NODE_CHILDREN_CHANGED,
                    _ => EventType::NODE_CREATED,
                };
                Message::Event(kind, Self::path(what >> 3))
            }
            // No request has ever one of these.
            190..=199 => Message::Stray(Xid(match self.input.byte() {
                0 => 0,
                1 => -3,
                other => -4 - i32::from(other.max(1)),
            })),
            200..=227 => Message::Nonsense(self.input.bytes().into()),
            _ => Message::Noise(self.input.bytes().into()),
        }
    }

    fn greeting(&mut self) -> Greeting {
        match self.input.byte() {
            0..=15 => Greeting::Expired,
            16..=31 => Greeting::AnotherSession,
            32..=47 => Greeting::ReadOnlyRefusal,
            what => Greeting::Welcome {
                timeout: self.input.time().max(Duration::from_millis(1)),
                read_only: what & 7 == 0,
            },
        }
    }

    fn path(choice: u8) -> usize {
        usize::from(choice) % PATHS.len()
    }

    fn error(&mut self) -> LinkError {
        match self.input.byte() % 3 {
            0 => LinkError::Refused,
            1 => LinkError::Reset,
            _ => LinkError::Closed,
        }
    }

    fn code(&mut self) -> ErrorCode {
        match self.input.byte() {
            0..=127 => ErrorCode::OK,
            128..=159 => ErrorCode::NO_NODE,
            160..=239 => {
                let which = usize::from(self.input.byte()) % ErrorCode::KNOWN.len();
                ErrorCode::KNOWN[which]
            }
            _ => ErrorCode(self.input.number()),
        }
    }
}
