//! What happens, read from bytes. Every input means something, and near inputs mean nearly the same.

use std::time::Duration;

use bytes::Bytes;
use zk_proto::{
    Secret, SessionId, Xid, Zxid,
    session::{Auth, Config, Credentials, LinkError, OnLoss, ProbeAnswer, WatchBy},
};

use super::{
    oracle::Watch,
    server::{Message, any_path},
    world::World,
};
use crate::input::Input;

/// Longest frame of a server. Small, so that too long ones are likely.
const REPLY_LEN_MAX: usize = 1 << 12;

const KINDS: [WatchBy; 5] =
    [WatchBy::Data, WatchBy::Exists, WatchBy::Children, WatchBy::Persistent, WatchBy::Recursive];

/// What a session is born with, and its seed: two bytes, and what they say is there.
pub(crate) fn config(input: &mut Input<'_>) -> (Config, u64) {
    let (shape, seed) = (input.byte(), input.byte());
    let servers = (0..=shape & 3).map(|server| format!("server{server}:2181"));
    let mut config = Config::new(servers);
    config.session_timeout = Duration::from_millis(3_000 + 1_000 * u64::from(shape >> 2 & 3));
    config.read_only = shape & 0x10 != 0;
    config.reply_len_max = REPLY_LEN_MAX;
    config.auth = (0..shape >> 5 & 3).map(|_| credentials("configured")).collect();
    config.resume = (shape & 0x80 != 0).then(|| Credentials {
        id: SessionId(i64::from(input.byte()) + 1),
        password: Secret(Bytes::from_static(&[7; 16])),
        last_zxid: Zxid(input.byte().into()),
        next_xid: Xid(input.number()),
        timeout: config.session_timeout,
    });
    (config, seed.into())
}

pub(crate) fn credentials(secret: &str) -> Auth {
    Auth { scheme: "digest".into(), auth: Secret(Bytes::copy_from_slice(secret.as_bytes())) }
}

fn error(input: &mut Input<'_>) -> LinkError {
    input.pick(&[LinkError::Refused, LinkError::Reset, LinkError::Closed])
}

impl World {
    /// One thing happens.
    pub(crate) fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() {
            // A request, perhaps one that arms a watch.
            0..=39 => {
                let what = input.byte();
                let by = KINDS.get(usize::from(what & 7)).copied();
                let path = any_path(what >> 4);
                let on_loss = if what & 8 != 0 { OnLoss::Resend } else { OnLoss::Report };
                self.submit(by.map(|by| Watch { by, path }), on_loss);
            }
            40..=43 => self.add_auth(),
            44..=49 => self.unwatch(input.byte().into()),
            50..=51 => self.close(),
            52 => self.session.detach(),
            53..=67 => {
                let fails = input.byte() & 3 == 0;
                self.dialed(if fails { Err(error(input)) } else { Ok(()) });
            }
            68..=75 => self.hang_up(error(input)),
            76..=81 => self.room = usize::MAX,
            82..=87 => self.room = input.byte().into(),
            88..=167 => self.serve(Message::read(input), usize::MAX),
            168..=183 => {
                let count = input.byte().into();
                self.serve(Message::read(input), count);
            }
            184..=213 => self.connect(),
            214..=219 => {
                let answers = [ProbeAnswer::ReadWrite, ProbeAnswer::ReadOnly, ProbeAnswer::Unknown];
                self.session.probed(self.now, "server0:2181", input.pick(&answers));
            }
            220..=245 => self.advance(self.now.after(input.time())),
            // The session is not woken meanwhile.
            246..=252 => self.now = self.now.after(input.time()),
            _ => self.advance(self.now),
        }
        self.settle();
    }
}
