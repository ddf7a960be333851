//! Requests that servers understand, whether they like them or not.

use zk_proto::OpCode;

use super::super::step::Part;
use super::{Chars, Data, Field, Maker};

/// Longest data that a request with a short path can carry, and a little more.
const LEN_DATA_MAX: usize = 0xF_FFFF;

/// Makes the fields of one kind of request.
type Make = fn(&mut Maker) -> (OpCode, Vec<Field>);

/// Reads of one node: so often, and which.
const READS: [(usize, OpCode); 4] = [
    (8, OpCode::EXISTS),
    (9, OpCode::GET_DATA),
    (6, OpCode::GET_CHILDREN),
    (9, OpCode::GET_CHILDREN2),
];

impl Maker {
    /// Any request, the common ones more often.
    pub(super) fn request(&mut self) -> (OpCode, Vec<Field>) {
        let make: Make = self.rng.weighted(&[
            (26, Self::create as Make),
            (9, Self::delete),
            (10, Self::set_data),
            (5, Self::set_acl),
            (18, Self::read),
            (3, |maker| (OpCode::GET_ACL, vec![maker.a_path()])),
            (2, |maker| (OpCode::SYNC, vec![maker.a_path()])),
            (2, |maker| (OpCode::GET_ALL_CHILDREN_NUMBER, vec![maker.a_path()])),
            (2, Self::get_ephemerals),
            (14, Self::multi),
            (3, Self::multi_read),
            (1, |maker| (OpCode::CHECK, vec![maker.a_path(), maker.version()])),
            (8, Self::add_watch),
            (6, Self::watches),
            (4, Self::set_watches),
            (1, |_| (OpCode::PING, Vec::new())),
            (4, Self::auth),
            (1, |_| (OpCode::WHO_AM_I, Vec::new())),
            (1, Self::sasl),
            (1, Self::reconfig),
            (1, |_| (OpCode::CLOSE_SESSION, Vec::new())),
            (1, Self::unknown),
            (4, Self::quota),
        ]);
        make(self)
    }

    /// A version to expect.
    pub(super) fn version(&mut self) -> Field {
        let odd = usize::from(!self.is_tame);
        Field::Int(self.rng.weighted(&[
            (14, -1),
            (8, 0),
            (4, 1),
            (2, 2),
            (odd, 7),
            (odd, -2),
            (odd, i32::MAX),
            (odd, i32::MIN),
        ]))
    }

    pub(super) fn data(&mut self) -> Field {
        let text = |text| Data::Bytes(Chars::of(text));
        let giant = if self.is_tame { 199 } else { 200 };
        Field::Data(match self.rng.index(giant) {
            0..80 => text("x"),
            80..120 => text("some data"),
            120..150 => Data::Null,
            150..180 => text(""),
            180..185 => text("count=2,bytes=10"),
            185..199 => Data::Filled(self.rng.one_of(&[20, 64, 5000])),
            _ => Data::Filled(LEN_DATA_MAX - 80 + self.rng.index(90)),
        })
    }

    fn create(&mut self) -> (OpCode, Vec<Field>) {
        let odd = usize::from(!self.is_tame);
        let (op, flags) = self.rng.weighted(&[
            (24, (OpCode::CREATE, 0)),
            (8, (OpCode::CREATE2, 0)),
            (10, (OpCode::CREATE, 1)),
            (3, (OpCode::CREATE2, 1)),
            (6, (OpCode::CREATE, 2)),
            (3, (OpCode::CREATE2, 2)),
            (6, (OpCode::CREATE, 3)),
            (3, (OpCode::CREATE2, 3)),
            (5, (OpCode::CREATE_CONTAINER, 4)),
            (4, (OpCode::CREATE_TTL, 5)),
            (2, (OpCode::CREATE_TTL, 6)),
            // What does not belong together.
            (odd, (OpCode::CREATE, 4)),
            (odd, (OpCode::CREATE, 5)),
            (odd, (OpCode::CREATE2, 6)),
            (odd, (OpCode::CREATE, 7)),
            (odd, (OpCode::CREATE, -1)),
            (odd, (OpCode::CREATE_CONTAINER, 0)),
            (odd, (OpCode::CREATE_TTL, 0)),
            (odd, (OpCode::CREATE_TTL, 3)),
            (odd, (OpCode::CREATE_TTL, 4)),
        ]);
        let path = self.path_to_create(matches!(flags, 2 | 3 | 6));
        let mut fields = vec![Field::Text(path), self.data(), self.acl(), Field::Int(flags)];
        if op == OpCode::CREATE_TTL {
            // A negative time to live for a node without one would kill a real server.
            let negative = usize::from(matches!(flags, 5 | 6));
            fields.push(Field::Long(self.rng.weighted(&[
                (6, 1_000_000),
                (2, 1),
                (1, 0),
                (negative, -1),
                (1, 1 << 40),
                (1, (1 << 40) - 1),
                (1, 1 << 32),
                (1, i64::MAX),
                (negative, i64::MIN),
            ])));
        }
        (op, fields)
    }

    fn delete(&mut self) -> (OpCode, Vec<Field>) {
        (OpCode::DELETE, vec![self.a_path(), self.version()])
    }

    fn set_data(&mut self) -> (OpCode, Vec<Field>) {
        let path = self.path();
        // Statistics that are none would kill a real server at the next change that they count.
        let is_statistics = path.as_ref().is_some_and(|path| path.0.ends_with(b"_stats"));
        let data = if is_statistics { statistics() } else { self.data() };
        (OpCode::SET_DATA, vec![Field::Text(path), data, self.version()])
    }

    pub(super) fn read(&mut self) -> (OpCode, Vec<Field>) {
        let op = self.rng.weighted(&READS);
        let watch = self.rng.weighted(&[(5, 0), (5, 1), (1, 2)]);
        (op, vec![self.a_path(), Field::Byte(watch)])
    }

    fn get_ephemerals(&mut self) -> (OpCode, Vec<Field>) {
        let path = match self.rng.index(3) {
            0 => Some(Chars::of(self.rng.one_of(&["", "/", " / ", "$", "$/", "$/a"]))),
            _ => self.path(),
        };
        (OpCode::GET_EPHEMERALS, vec![Field::Text(path)])
    }

    fn multi(&mut self) -> (OpCode, Vec<Field>) {
        let count = self.rng.weighted(&[(1, 0), (3, 1), (5, 2), (5, 3), (2, 5), (1, 8)]);
        // One odd part is enough to spoil the whole.
        self.is_tame = !self.rng.one_in(4);
        let parts = (0..count).map(|_| self.part()).collect();
        self.is_tame = false;
        (OpCode::MULTI, vec![Field::Parts(parts)])
    }

    fn part(&mut self) -> Part {
        let make: Make = self.rng.weighted(&[
            (20, Self::create as Make),
            (9, Self::delete),
            (9, Self::set_data),
            (7, |maker| (OpCode::CHECK, vec![maker.a_path(), maker.version()])),
            (usize::from(!self.is_tame), Self::foreign),
        ]);
        let (op, body) = make(self);
        Part { op, body }
    }

    /// What a multi cannot contain.
    fn foreign(&mut self) -> (OpCode, Vec<Field>) {
        let make: Make = self.rng.one_of(&[
            Self::read as Make,
            Self::set_acl,
            |maker| (OpCode::SYNC, vec![maker.a_path()]),
            |_| (OpCode::ERROR, vec![Field::Int(0)]),
            |_| (OpCode(99), Vec::new()),
        ]);
        make(self)
    }

    fn multi_read(&mut self) -> (OpCode, Vec<Field>) {
        let count = self.rng.weighted(&[(1, 0), (3, 1), (5, 2), (2, 4)]);
        let mut part = || {
            let op = self.rng.weighted(&[
                (9, OpCode::GET_DATA),
                (9, OpCode::GET_CHILDREN),
                (1, OpCode::EXISTS),
                (1, OpCode::GET_CHILDREN2),
            ]);
            if self.rng.one_in(40) {
                return self.part();
            }
            let watch = self.rng.weighted(&[(3, 0), (1, 1)]);
            Part { op, body: vec![self.a_path(), Field::Byte(watch)] }
        };
        let parts = (0..count).map(|_| part()).collect();
        (OpCode::MULTI_READ, vec![Field::Parts(parts)])
    }

    fn sasl(&mut self) -> (OpCode, Vec<Field>) {
        let token = self.rng.one_of(&[Data::Null, Data::Bytes(Chars::of("")), Data::Filled(9)]);
        (OpCode::SASL, vec![Field::Data(token)])
    }

    fn reconfig(&mut self) -> (OpCode, Vec<Field>) {
        let servers = [None, Some(Chars::of("")), Some(Chars::of("server.1=127.0.0.1:1:2;3"))];
        let mut text = || Field::Text(self.rng.one_of(&servers));
        let texts = [text(), text(), text()];
        let id = Field::Long(self.rng.one_of(&[-1, 0, 7]));
        (OpCode::RECONFIG, texts.into_iter().chain([id]).collect())
    }

    fn unknown(&mut self) -> (OpCode, Vec<Field>) {
        let numbers = [0, 10, 23, 99, 108, 1000, -1, -10, -2, i32::MIN, i32::MAX];
        // One of them sets the session's timeout, which had better not be over at once.
        (OpCode(self.rng.one_of(&numbers)), vec![Field::Int(super::TIMEOUT)])
    }

    /// Everything that a quota is made of.
    pub(super) fn quotas(&mut self) -> Vec<Vec<Field>> {
        let limits = self.limits();
        let mut node = |path: &str, data: Field| {
            let path = Field::Text(Some(Chars::of(path)));
            vec![path, data, self.acl(), Field::Int(0)]
        };
        vec![
            node("/zookeeper/quota$", Field::Data(Data::Null)),
            node("/zookeeper/quota$/zookeeper_limits", limits),
            node("/zookeeper/quota$/zookeeper_stats", statistics()),
        ]
    }

    fn limits(&mut self) -> Field {
        let limits = [
            "count=2,bytes=10",
            "count=1,bytes=-1",
            "count=-1,bytes=-1=;byteHardLimit=12;countHardLimit=3",
            "count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=7",
            "count=3,bytes=20=;countHardLimit=3",
            "bytes=5",
            "nonsense",
            "",
        ];
        Field::Data(Data::Bytes(Chars::of(self.rng.one_of(&limits))))
    }

    /// Sets or changes the limits of what is below some node.
    fn quota(&mut self) -> (OpCode, Vec<Field>) {
        self.has_quota = true;
        let of = self.rng.one_of(&["$", "$/a", "$/b"]);
        let below =
            self.rng.one_of(&["", "/zookeeper_limits", "/zookeeper_limits", "/zookeeper_stats"]);
        let path = Field::Text(Some(Chars::of(&format!("/zookeeper/quota{of}{below}"))));
        let limits = self.limits();
        let limits = if below == "/zookeeper_stats" { statistics() } else { limits };
        match self.rng.index(6) {
            0 => (OpCode::DELETE, vec![path, Field::Int(-1)]),
            1 => (OpCode::SET_DATA, vec![path, limits, Field::Int(-1)]),
            2 => (OpCode::GET_DATA, vec![path, Field::Byte(1)]),
            _ => (OpCode::CREATE, vec![path, limits, self.acl(), Field::Int(0)]),
        }
    }
}

fn statistics() -> Field {
    Field::Data(Data::Bytes(Chars::of("count=1,bytes=3")))
}
