//! Access control lists and credentials.

use zk_proto::OpCode;

use super::{Chars, Data, Entry, Field, Maker};

/// `u:p` as servers keep it.
const DIGEST: &str = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=";

/// Identities that a list may name, some of them malformed.
const IDS: [(&str, &str); 34] = [
    ("world", "anyone"),
    ("world", "anyone"),
    ("world", "someone"),
    ("world", ""),
    ("auth", ""),
    ("auth", ""),
    ("auth", "whoever"),
    ("digest", DIGEST),
    ("digest", DIGEST),
    ("digest", "v:Mfy8apI9YguGKmh+AxUmAFSwkII="),
    ("digest", "u:p"),
    ("digest", "u"),
    ("digest", ""),
    ("digest", "a:b:c"),
    ("digest", ":"),
    ("ip", "127.0.0.1"),
    ("ip", "127.0.0.0/8"),
    ("ip", "10.0.0.1"),
    ("ip", "127.0.0.1/33"),
    ("ip", "127.0.0.1/-1"),
    ("ip", "127.0.0.1/0"),
    ("ip", "127.0.0"),
    ("ip", "127.0.0.256"),
    ("ip", "127.0.0.1/x"),
    ("ip", "::1"),
    ("ip", ""),
    ("super", "super"),
    ("super", ""),
    ("sasl", "somebody"),
    ("x509", "CN=somebody"),
    ("ensemble", "x"),
    ("unknown", "x"),
    ("", ""),
    ("Digest", DIGEST),
];

impl Maker {
    pub(super) fn acl(&mut self) -> Field {
        let open = || vec![Entry::new(31, "world", "anyone")];
        let odd = if self.is_tame { 70 } else { 100 };
        Field::Acl(Some(match self.rng.index(odd) {
            0..66 => open(),
            66..69 => vec![Entry::new(1, "world", "anyone")],
            69..73 => vec![Entry::new(31, "auth", "")],
            73..76 => vec![Entry::new(31, "digest", DIGEST)],
            76..78 => vec![Entry::new(31, "digest", DIGEST), Entry::new(1, "world", "anyone")],
            78..80 => vec![Entry::new(31, "ip", "127.0.0.1")],
            80..82 => [open(), open(), vec![Entry::new(1, "world", "anyone")]].concat(),
            82 => return Field::Acl(None),
            83 => Vec::new(),
            _ => (0..=self.rng.index(3)).map(|_| self.entry()).collect(),
        }))
    }

    /// A list that denies an identity some operation.
    pub(super) fn restricted(&mut self) -> Field {
        let perms = self.rng.one_of(&[1, 2, 4, 8, 16, 30, 23]);
        let open = Entry::new(perms, "world", "anyone");
        let own = Entry::new(31, "digest", DIGEST);
        Field::Acl(Some(self.rng.one_of(&[vec![own.clone()], vec![open.clone()], vec![own, open]])))
    }

    fn entry(&mut self) -> Entry {
        let perms = self.rng.one_of(&[31, 31, 31, 1, 2, 3, 4, 8, 16, 0, 30, -1, 63, i32::MIN]);
        let (scheme, id) = self.rng.one_of(&IDS);
        let mut entry = Entry::new(perms, scheme, id);
        match self.rng.index(40) {
            0 => entry.id = None,
            1 => entry.scheme = None,
            2 => entry.id = Some(Chars::of("u:\u{1f600}")),
            _ => {}
        }
        entry
    }

    pub(super) fn set_acl(&mut self) -> (OpCode, Vec<Field>) {
        let acl = if self.rng.one_in(3) { self.restricted() } else { self.acl() };
        (OpCode::SET_ACL, vec![self.a_path(), acl, self.version()])
    }

    pub(super) fn auth(&mut self) -> (OpCode, Vec<Field>) {
        let credentials = [
            ("digest", "u:p"),
            ("digest", "u:p"),
            ("digest", "u:p"),
            ("digest", "v:q"),
            ("digest", "super:secret"),
            ("ip", ""),
            ("ip", "1.2.3.4"),
        ];
        let refused = [
            ("digest", "nocolon"),
            ("digest", ""),
            ("digest", "a:b:c"),
            ("world", "anyone"),
            ("auth", ""),
            ("sasl", "x"),
            ("x509", ""),
            ("super", "super:secret"),
            ("ensemble", "x"),
            ("unknown", "x"),
            ("", ""),
            ("DIGEST", "u:p"),
        ];
        let is_odd = self.rng.one_in(3);
        let (scheme, data) =
            if is_odd { self.rng.one_of(&refused) } else { self.rng.one_of(&credentials) };
        let mut scheme = Some(Chars::of(scheme));
        let mut data = Data::Bytes(Chars::of(data));
        if is_odd {
            match self.rng.index(12) {
                0 => scheme = None,
                1 => data = Data::Null,
                2 => data = Data::Bytes(Chars(b"\xff:\x00".to_vec())),
                _ => {}
            }
        }
        let kind = self.rng.weighted(&[(9, 0), (1, 5)]);
        (OpCode::AUTH, vec![Field::Int(kind), Field::Text(scheme), Field::Data(data)])
    }
}
