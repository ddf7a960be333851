//! Frames that something has happened to.

use super::{super::step::Damage, Maker, Step};

/// Longest frame that a server takes, and a little more and less.
const LENGTHS: [i32; 8] = [-1, i32::MIN, i32::MAX, 0x10_0000, 0x10_0001, 0, 0x7FFF_FFFE, -2];

impl Maker {
    /// A request that is damaged.
    pub(super) fn broken(&mut self) {
        let at = self.rng.index(self.links.len().max(1));
        let (op, body) = self.request();
        let mut request = self.numbered(at, op, body);
        let damage = match self.rng.index(12) {
            0 => Damage::Truncated(self.rng.index(12)),
            1..4 => Damage::Short(1 + self.rng.index(24)),
            4..6 => Damage::Trailing(1 + self.rng.index(9)),
            6..9 => {
                let numbers = [-1, -2, i32::MIN, i32::MAX, 0x10_0000, 0, 3];
                Damage::Number(self.rng.index(40), self.rng.one_of(&numbers))
            }
            9 => Damage::Bit(self.rng.index(40), self.bit()),
            10 => Damage::Length(self.rng.one_of(&LENGTHS)),
            _ => Damage::Promise(1 + self.rng.index(100)),
        };
        request.damage = Some(damage);
        let name = self.name(at);
        if matches!(damage, Damage::Length(_) | Damage::Promise(_)) {
            self.links.retain(|link| link.name != name);
        }
        self.steps.push(Step::Send(name, vec![request]));
    }

    pub(super) fn damage_to_hello(&mut self) -> Damage {
        match self.rng.index(6) {
            0 => Damage::Truncated(self.rng.index(44)),
            1 => Damage::Trailing(1 + self.rng.index(5)),
            2 => Damage::Number(24, self.rng.one_of(&[-2, 17, 15, i32::MAX, i32::MIN])),
            3 => Damage::Bit(self.rng.index(45), self.bit()),
            4 => Damage::Length(self.rng.one_of(&LENGTHS)),
            _ => Damage::Promise(1 + self.rng.index(100)),
        }
    }

    fn bit(&mut self) -> u8 {
        u8::try_from(self.rng.index(8)).unwrap_or(0)
    }
}
