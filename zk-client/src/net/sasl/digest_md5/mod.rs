//! `DIGEST-MD5` (RFC 2831), as ZooKeeper implements it.

mod challenge;

use std::{fmt, future::ready};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use md5::{Digest as _, Md5};
use zeroize::Zeroizing;
use zk_proto::{Secret, session::SaslInput};

use self::challenge::Challenge;
use super::{SaslExchange, SaslMechanism, SaslStep, malformed};
use crate::error::SaslFault;

/// The URI that all servers accept, whatever their names are.
const DIGEST_URI: &str = "zookeeper/zk-sasl-md5";

/// How often this nonce has been used: exchanges are never resumed.
const NONCE_COUNT: &str = "00000001";

/// Authentication by user and password. The password is not sent; each side proves that it knows it.
///
/// MD5 is broken, and an eavesdropper can guess passwords offline: use it within TLS. `zookeeper.fips-mode`, on by
/// default from 3.9 on, is no hindrance: it keeps Java clients from using it, and servers take it still.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{ConnectOptions, DigestMd5};
///
/// let password = std::fs::read_to_string("/run/secrets/zookeeper")?;
/// let sasl = DigestMd5::new("ann", password.trim_end());
/// let zk = ConnectOptions::new("zk1:2181,zk2:2181")?.sasl(sasl).connect().await?;
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
///
/// Servers know the user as `sasl:` and the name. The password is overwritten when this is dropped.
#[derive(Clone)]
pub struct DigestMd5 {
    user: String,
    password: Zeroizing<String>,
}

impl DigestMd5 {
    /// Creates the mechanism from a user and a password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Zeroizing::new(password.into()) }
    }
}

impl fmt::Debug for DigestMd5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestMd5").field("user", &self.user).finish_non_exhaustive()
    }
}

impl SaslMechanism for DigestMd5 {
    fn begin(&self, _server: &str) -> Box<dyn SaslExchange> {
        Box::new(Exchange { user: self.clone(), stage: Stage::Start })
    }
}

struct Exchange {
    user: DigestMd5,
    stage: Stage,
}

enum Stage {
    Start,
    /// The empty opening has been sent.
    Opened,
    /// Our proof has been sent; `expected` is the proof of a genuine server.
    Answered {
        expected: String,
    },
}

impl SaslExchange for Exchange {
    fn step(&mut self, said: SaslInput) -> BoxFuture<'_, SaslStep> {
        Box::pin(ready(self.next(said)))
    }
}

impl Exchange {
    fn next(&mut self, said: SaslInput) -> SaslStep {
        let answer = match said {
            SaslInput::Nothing => {
                self.stage = Stage::Opened;
                return Ok(Some(Secret(Bytes::new())));
            }
            // No reply of this mechanism is empty.
            SaslInput::Answer(Secret(None)) => return Err(SaslFault::Unavailable),
            SaslInput::Answer(Secret(Some(answer))) => answer,
        };
        match &self.stage {
            Stage::Start => Err(malformed("an answer to nothing")),
            Stage::Opened => {
                let challenge = Challenge::parse(&answer)?;
                let cnonce = cnonce()?;
                let proofs = self.user.proofs(&challenge, &cnonce)?;
                let response = self.user.response(&challenge, &cnonce, &proofs.ours);
                self.stage = Stage::Answered { expected: proofs.theirs };
                Ok(Some(Secret(Bytes::from(response))))
            }
            Stage::Answered { expected } => {
                let proof = answer.strip_prefix(b"rspauth=").ok_or(SaslFault::Unproved)?;
                let differences = proof.iter().zip(expected.bytes());
                let differences = differences.fold(0, |all, (a, b)| all | (a ^ b));
                if proof.len() == expected.len() && differences == 0 {
                    Ok(None)
                } else {
                    Err(SaslFault::Unproved)
                }
            }
        }
    }
}

fn cnonce() -> Result<String, SaslFault> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| SaslFault::Local(format!("no randomness: {error}")))?;
    Ok(hex(&random))
}

/// The proofs by which each side shows that it knows the password.
struct Proofs {
    ours: String,
    theirs: String,
}

impl DigestMd5 {
    fn proofs(&self, challenge: &Challenge, cnonce: &str) -> Result<Proofs, SaslFault> {
        let realm = challenge.realm.as_deref().unwrap_or_default();
        let mut secret = Md5::new();
        for (index, part) in [&*self.user, realm, &*self.password].into_iter().enumerate() {
            if index > 0 {
                secret.update(b":");
            }
            secret.update(&*hashed(part, challenge.is_utf8)?);
        }
        let mut key = Md5::new();
        key.update(Zeroizing::new(<[u8; 16]>::from(secret.finalize())));
        key.update(format!(":{}:{cnonce}", challenge.nonce));
        let key = Zeroizing::new(hex(&key.finalize()));
        let proof = |method: &str| {
            let action = hex(&Md5::digest(format!("{method}:{DIGEST_URI}")));
            let nonce = &challenge.nonce;
            let mut proof = Md5::new();
            proof.update(key.as_bytes());
            proof.update(format!(":{nonce}:{NONCE_COUNT}:{cnonce}:auth:{action}"));
            hex(&proof.finalize())
        };
        Ok(Proofs { ours: proof("AUTHENTICATE"), theirs: proof("") })
    }

    fn response(&self, challenge: &Challenge, cnonce: &str, proof: &str) -> String {
        let mut response = String::new();
        if challenge.is_utf8 {
            response.push_str("charset=utf-8,");
        }
        response.push_str(&format!("username=\"{}\"", quoted(&self.user)));
        if let Some(realm) = &challenge.realm {
            response.push_str(&format!(",realm=\"{}\"", quoted(realm)));
        }
        let nonce = quoted(&challenge.nonce);
        response.push_str(&format!(
            ",nonce=\"{nonce}\",nc={NONCE_COUNT},cnonce=\"{cnonce}\",digest-uri=\"{DIGEST_URI}\"\
             ,response={proof},qop=auth"
        ));
        response
    }
}

/// The bytes of a name to hash: Latin-1 if the name can be encoded in it, even if the exchange is in UTF-8.
fn hashed(text: &str, is_utf8: bool) -> Result<Zeroizing<Vec<u8>>, SaslFault> {
    let latin: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    match latin {
        Ok(latin) => Ok(Zeroizing::new(latin)),
        Err(_) if is_utf8 => Ok(Zeroizing::new(text.as_bytes().to_vec())),
        Err(_) => Err(SaslFault::Local("server knows no such characters".to_owned())),
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange() -> Exchange {
        Exchange { user: DigestMd5::new("bob", "secret"), stage: Stage::Opened }
    }

    fn answer(text: &'static str) -> SaslInput {
        SaslInput::Answer(Secret(Some(Bytes::from_static(text.as_bytes()))))
    }

    /// Recorded between the Java client and a server.
    #[test]
    fn proofs_are_those_of_java() {
        let challenge = "realm=\"zk-sasl-md5\",nonce=\"ge53UEpJpPHObC+bE5mmSIFtKjrbt5OaVo5nsSnL\",\
                         charset=utf-8,algorithm=md5-sess";
        let challenge = Challenge::parse(challenge.as_bytes()).unwrap();
        let proofs = exchange().user.proofs(&challenge, "OA6MHXh6VqTrRk").unwrap();
        assert_eq!(proofs.ours, "d96260133516c703a406d3403326169b");
        assert_eq!(proofs.theirs, "5542e6610a9cbc0160a88fae7ad885d4");
    }

    #[test]
    fn server_without_the_password_is_rejected() {
        for proof in ["rspauth=00000000000000000000000000000000", "rspauth=", "thanks", ""] {
            let mut exchange = exchange();
            let said = exchange.next(answer("nonce=\"n\",algorithm=md5-sess"));
            assert!(matches!(said, Ok(Some(_))), "{said:?}");
            assert_eq!(exchange.next(answer(proof)), Err(SaslFault::Unproved), "{proof:?}");
        }
    }

    #[test]
    fn missing_mechanism_differs_from_success() {
        let nothing = SaslInput::Answer(Secret(None));
        assert_eq!(exchange().next(nothing.clone()), Err(SaslFault::Unavailable));
        let mut exchange = exchange();
        exchange.next(answer("nonce=\"n\",algorithm=md5-sess")).unwrap();
        assert_eq!(exchange.next(nothing), Err(SaslFault::Unavailable));
    }

    #[test]
    fn names_are_quoted() {
        let user = DigestMd5::new("a\"b\\c", "x");
        let challenge = Challenge::parse(b"nonce=\"n\\\"\",algorithm=md5-sess").unwrap();
        let response = user.response(&challenge, "c", "p");
        assert!(response.starts_with(r#"username="a\"b\\c",nonce="n\"","#), "{response}");
    }

    #[test]
    fn the_password_is_not_shown() {
        assert!(!format!("{:?}", DigestMd5::new("bob", "hunter2")).contains("hunter2"));
    }
}
