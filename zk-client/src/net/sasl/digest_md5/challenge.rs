//! The server's challenge: `realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess`.

use crate::{error::SaslFault, net::sasl::malformed};

/// The server's challenge.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) realm: Option<String>,
    pub(super) nonce: String,
    pub(super) is_utf8: bool,
}

impl Challenge {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, SaslFault> {
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("not UTF-8"))?;
        let mut challenge = Self::default();
        let (mut nonce, mut algorithm, mut qop) = (None, None, None);
        let mut rest = text;
        while let Some((name, value)) = directive(&mut rest)? {
            let once = |place: &mut Option<String>, value| match place.replace(value) {
                None => Ok(()),
                Some(_) => Err(malformed("something is said twice")),
            };
            match &*name.to_ascii_lowercase() {
                // There may be several to choose from; the first is used.
                "realm" => drop(challenge.realm.get_or_insert(value)),
                "nonce" => once(&mut nonce, value)?,
                "algorithm" => once(&mut algorithm, value)?,
                "qop" => once(&mut qop, value)?,
                "charset" => challenge.is_utf8 = value.eq_ignore_ascii_case("utf-8"),
                // Unknown directives must be ignored.
                _ => {}
            }
        }
        let has_auth = |qop: String| qop.split(',').any(|one| one.trim() == "auth");
        if algorithm.as_deref() != Some("md5-sess") {
            return Err(malformed("another algorithm than md5-sess"));
        }
        if !qop.is_none_or(has_auth) {
            return Err(malformed("nothing less than a security layer"));
        }
        challenge.nonce = nonce.ok_or_else(|| malformed("no nonce"))?;
        Ok(challenge)
    }
}

/// Takes the next `name=value` from the front, unquoted.
fn directive<'a>(rest: &mut &'a str) -> Result<Option<(&'a str, String)>, SaslFault> {
    let text = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return Ok(None);
    }
    let (name, behind) = text.split_once('=').ok_or_else(|| malformed("a name without value"))?;
    let (value, behind) = match behind.trim_start().strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let (value, behind) = behind.split_once(',').unwrap_or((behind, ""));
            (value.trim().to_owned(), behind)
        }
    };
    *rest = behind;
    Ok(Some((name.trim(), value)))
}

/// Returns the text before the closing quote and the text after it.
fn unquoted(text: &str) -> Result<(String, &str), SaslFault> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    Err(malformed("a quote without end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_taken_apart() {
        let text = br#"realm="a,b",realm="c", nonce="x\"y=", qop="auth-int, auth",charset=UTF-8,algorithm=md5-sess,x=y"#;
        let challenge = Challenge::parse(text).unwrap();
        let expected =
            Challenge { realm: Some("a,b".into()), nonce: "x\"y=".into(), is_utf8: true };
        assert_eq!(challenge, expected);
    }

    #[test]
    fn garbage_is_refused() {
        for text in [
            "",
            "nonce",
            "nonce=\"x",
            "nonce=x",
            "algorithm=md5-sess",
            "nonce=x,algorithm=md5",
            "nonce=x,nonce=y,algorithm=md5-sess",
            "nonce=x,algorithm=md5-sess,qop=\"auth-conf\"",
            "\u{0}",
            "=,=,=",
        ] {
            let outcome = Challenge::parse(text.as_bytes());
            assert!(matches!(outcome, Err(SaslFault::Malformed(_))), "{text:?}: {outcome:?}");
        }
        assert!(Challenge::parse(&[0xFF]).is_err());
    }
}
