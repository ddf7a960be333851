//! Frames that something has happened to.

use super::{super::step::Damage, Maker, Step};

/// Longest frame that a server takes, and a little more and less.
const LENGTHS: [i32; 8] = [-1, i32::MIN, i32::MAX, 0x10_0000, 0x10_0001, 0, 0x7FFF_FFFE, -2];

impl Maker {
    /// A request that is damaged.
    pub(super) fn broken(&mut self) {
        let at = self.chance.below(self.links.len().max(1));
        let (op, body) = self.request();
        let mut request = self.numbered(at, op, body);
        let damage = match self.chance.below(12) {
            0 => Damage::Truncated(self.chance.below(12)),
            1..4 => Damage::Short(1 + self.chance.below(24)),
            4..6 => Damage::Trailing(1 + self.chance.below(9)),
            6..9 => {
                let numbers = [-1, -2, i32::MIN, i32::MAX, 0x10_0000, 0, 3];
                Damage::Number(self.chance.below(40), self.chance.pick(&numbers))
            }
            9 => Damage::Bit(self.chance.below(40), self.bit()),
            10 => Damage::Length(self.chance.pick(&LENGTHS)),
            _ => Damage::Promise(1 + self.chance.below(100)),
        };
        request.damage = Some(damage);
        let name = self.name(at);
        if matches!(damage, Damage::Length(_) | Damage::Promise(_)) {
            self.links.retain(|link| link.name != name);
        }
        self.steps.push(Step::Send(name, vec![request]));
    }

    pub(super) fn damage_to_hello(&mut self) -> Damage {
        match self.chance.below(6) {
            0 => Damage::Truncated(self.chance.below(44)),
            1 => Damage::Trailing(1 + self.chance.below(5)),
            2 => Damage::Number(24, self.chance.pick(&[-2, 17, 15, i32::MAX, i32::MIN])),
            3 => Damage::Bit(self.chance.below(45), self.bit()),
            4 => Damage::Length(self.chance.pick(&LENGTHS)),
            _ => Damage::Promise(1 + self.chance.below(100)),
        }
    }

    fn bit(&mut self) -> u8 {
        u8::try_from(self.chance.below(8)).unwrap_or(0)
    }
}
