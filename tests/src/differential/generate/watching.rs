//! Watches: arming, asking for, removing and restoring them.

use zk_proto::OpCode;

use super::{Chars, Field, Maker, ZxidOf};

impl Maker {
    pub(super) fn add_watch(&mut self) -> (OpCode, Vec<Field>) {
        let mode = self.rng.weighted(&[(8, 0), (8, 1), (1, 2), (1, -1), (1, i32::MAX)]);
        (OpCode::ADD_WATCH, vec![self.watched_path(), Field::Int(mode)])
    }

    /// Looks for watches, or removes them.
    pub(super) fn watches(&mut self) -> (OpCode, Vec<Field>) {
        let op = self.rng.one_of(&[
            OpCode::CHECK_WATCHES,
            OpCode::REMOVE_WATCHES,
            OpCode::REMOVE_WATCHES,
        ]);
        let kind =
            self.rng.weighted(&[(6, 1), (6, 2), (6, 3), (3, 4), (3, 5), (1, 0), (1, 6), (1, -1)]);
        (op, vec![self.watched_path(), Field::Int(kind)])
    }

    pub(super) fn set_watches(&mut self) -> (OpCode, Vec<Field>) {
        let zxid = self.rng.weighted(&[
            (5, ZxidOf::Seen(0)),
            (3, ZxidOf::Seen(1)),
            (3, ZxidOf::Seen(3)),
            (2, ZxidOf::Number(0)),
            (1, ZxidOf::Number(-1)),
            (1, ZxidOf::Number(i64::MAX)),
        ]);
        let (op, lists) = self.rng.one_of(&[(OpCode::SET_WATCHES, 3), (OpCode::SET_WATCHES2, 5)]);
        // Null among persistent ones is too much for some servers; see `watched_path`.
        let lists = (0..lists).map(|list| self.paths(list < 3));
        (op, [Field::Zxid(zxid)].into_iter().chain(lists).collect())
    }

    fn paths(&mut self, nullable: bool) -> Field {
        let count = match self.rng.index(40) {
            0 => return Field::Texts(None),
            1..16 => 0,
            16..30 => 1,
            30..36 => 2,
            _ => 4,
        };
        let or_not = |path: Option<Chars>| path.or_else(|| Chars::of("$/a").into());
        let path = |path| if nullable { path } else { or_not(path) };
        Field::Texts(Some((0..count).map(|_| path(self.path())).collect()))
    }

    /// Like any other, but rather close to the top: that is where much can be seen from. Not null: 3.8
    /// takes it, and then cannot let go of the connection any more.
    fn watched_path(&mut self) -> Field {
        match self.rng.index(8) {
            0..3 => Field::Text(Some(Chars::of("$"))),
            3 => Field::Text(Some(Chars::of("$/a"))),
            4 => Field::Text(Some(Chars::of(self.rng.one_of(&["/", "$/a/b", "$/missing"])))),
            _ => Field::Text(self.path().or_else(|| Some(Chars::of("$")))),
        }
    }
}
