//! `DIGEST-MD5` (RFC 2831), the server's side of it, as Java's servers play it.

use std::collections::BTreeMap;

use md5::{Digest as _, Md5};

/// What servers call themselves and their realm, wherever they are.
const SERVICE: &str = "zookeeper/zk-sasl-md5";
const REALM: &str = "zk-sasl-md5";

/// An exchange with one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    /// The client may begin.
    Start,
    /// It was given this nonce, and has to prove something with it.
    Challenged { nonce: String },
    /// It has, or it has failed. There is no way on from here.
    Over,
}

/// What to say next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Challenge(String),
    /// The client is this user; the server proves itself in turn.
    Proved {
        user: String,
        proof: String,
    },
    Refused,
}

impl Exchange {
    /// Takes a token of the client's. `chance` makes the nonce, if one is needed.
    pub(super) fn step(
        &mut self,
        token: &[u8],
        users: &BTreeMap<String, String>,
        chance: u64,
    ) -> Step {
        match std::mem::replace(self, Self::Over) {
            Self::Start if token.is_empty() => {
                let nonce = format!("{chance:016x}");
                let challenge =
                    format!("realm=\"{REALM}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess");
                *self = Self::Challenged { nonce };
                Step::Challenge(challenge)
            }
            Self::Challenged { nonce } => {
                let proved = std::str::from_utf8(token).ok().and_then(directives);
                let proved = proved.and_then(|said| said.check(&nonce, users));
                proved.map_or(Step::Refused, |(user, proof)| Step::Proved { user, proof })
            }
            Self::Start | Self::Over => Step::Refused,
        }
    }
}

/// What a client says of itself.
struct Response(BTreeMap<String, String>);

impl Response {
    /// Who it is, and what proves to it that the server knows the password.
    fn check(&self, nonce: &str, users: &BTreeMap<String, String>) -> Option<(String, String)> {
        let said = |name: &str| self.0.get(name).map(String::as_str);
        let user = said("username")?;
        let password = users.get(user)?;
        let realm = said("realm").unwrap_or_default();
        let uri = said("digest-uri")?;
        let fits = said("nonce") == Some(nonce)
            && said("nc") == Some("00000001")
            && said("qop").unwrap_or("auth") == "auth"
            && matches!(realm, REALM | "")
            && uri.eq_ignore_ascii_case(SERVICE);
        if !fits {
            return None;
        }
        let cnonce = said("cnonce")?;
        let secret = [user, realm, password].map(latin).join(&b':');
        let mut key = Md5::new();
        key.update(Md5::digest(secret));
        key.update(format!(":{nonce}:{cnonce}"));
        if let Some(authorized) = said("authzid") {
            key.update(format!(":{authorized}"));
        }
        let key = hex(&key.finalize());
        let proof = |method: &str| {
            let action = hex(&Md5::digest(format!("{method}:{uri}")));
            hex(&Md5::digest(format!("{key}:{nonce}:00000001:{cnonce}:auth:{action}")))
        };
        let is_proved = said("response") == Some(&*proof("AUTHENTICATE"));
        is_proved.then(|| (user.to_owned(), format!("rspauth={}", proof(""))))
    }
}

/// The bytes of a name to hash: Latin-1 if the name can be written in it, even if the exchange is in UTF-8.
fn latin(text: &str) -> Vec<u8> {
    let latin: Result<_, _> = text.chars().map(u8::try_from).collect();
    latin.unwrap_or_else(|_| text.as_bytes().to_vec())
}

/// `name=value` or `name="value"` between commas. Nothing may be said twice.
fn directives(text: &str) -> Option<Response> {
    let mut said = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            return Some(Response(said));
        }
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, behind) = behind.split_once(',').unwrap_or((behind, ""));
                (value.trim().to_owned(), behind)
            }
        };
        rest = behind;
        if said.insert(name.trim().to_ascii_lowercase(), value).is_some() {
            return None;
        }
    }
}

/// The text before the closing quote, and what is behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> BTreeMap<String, String> {
        [("bob".to_owned(), "secret".to_owned())].into()
    }

    fn challenged(nonce: &str) -> Exchange {
        Exchange::Challenged { nonce: nonce.to_owned() }
    }

    /// Recorded between the Java client and a server.
    const RECORDED: &str = "charset=utf-8,username=\"bob\",realm=\"zk-sasl-md5\",\
        nonce=\"ge53UEpJpPHObC+bE5mmSIFtKjrbt5OaVo5nsSnL\",nc=00000001,cnonce=\"OA6MHXh6VqTrRk\",\
        digest-uri=\"zookeeper/zk-sasl-md5\",response=d96260133516c703a406d3403326169b,qop=auth";
    const NONCE: &str = "ge53UEpJpPHObC+bE5mmSIFtKjrbt5OaVo5nsSnL";

    #[test]
    fn recorded_exchange_is_proved() {
        let mut exchange = challenged(NONCE);
        let step = exchange.step(RECORDED.as_bytes(), &users(), 0);
        let proof = "rspauth=5542e6610a9cbc0160a88fae7ad885d4".to_owned();
        assert_eq!(step, Step::Proved { user: "bob".to_owned(), proof });
        assert_eq!(exchange.step(RECORDED.as_bytes(), &users(), 0), Step::Refused);
    }

    #[test]
    fn anything_else_is_refused() {
        for (said, instead) in [
            ("bob", "eve"),
            ("d962", "d963"),
            ("nc=00000001", "nc=00000002"),
            ("qop=auth", "qop=auth-int"),
            ("zookeeper/", "http/"),
            ("cnonce=", "x="),
            ("charset=utf-8", "qop=auth"),
            ("\"bob\"", "\"bob"),
        ] {
            let token = RECORDED.replacen(said, instead, 1);
            let step = challenged(NONCE).step(token.as_bytes(), &users(), 0);
            assert_eq!(step, Step::Refused, "{instead} for {said}");
        }
        assert_eq!(challenged("n").step(RECORDED.as_bytes(), &users(), 0), Step::Refused);
        assert_eq!(challenged(NONCE).step(RECORDED.as_bytes(), &BTreeMap::new(), 0), Step::Refused);
        assert_eq!(Exchange::Start.step(b"x", &users(), 0), Step::Refused);
    }
}
