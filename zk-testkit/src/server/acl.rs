//! Who somebody is, and what that allows.

use std::net::IpAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha1::{Digest as _, Sha1};
use zk_proto::{Acl, AclList, ErrorCode, Id, Perms};

use super::tree::{Node, grants};

/// The identities of a connection.
#[derive(Clone, Debug)]
pub(super) struct Identities {
    ids: Vec<Id>,
    is_super: bool,
}

impl Identities {
    /// Every connection has its address.
    pub(super) fn new(peer: IpAddr) -> Self {
        let id = Id { scheme: "ip".into(), id: peer.to_string().into() };
        Self { ids: vec![id], is_super: false }
    }

    /// Takes credentials. Refused: the connection must end.
    pub(super) fn add(
        &mut self,
        scheme: &str,
        auth: Option<&[u8]>,
        super_digest: Option<&str>,
    ) -> Result<(), ErrorCode> {
        match (scheme, auth) {
            ("digest", Some(auth)) => {
                let id = digest(auth);
                if super_digest == Some(&id) {
                    self.is_super = true;
                    self.push(Id { scheme: "super".into(), id: "".into() });
                }
                self.push(Id { scheme: "digest".into(), id: id.into() });
                Ok(())
            }
            ("ip", _) => Ok(()),
            _ => Err(ErrorCode::AUTH_FAILED),
        }
    }

    fn push(&mut self, id: Id) {
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }

    /// Scheme and name of each identity, without secrets.
    pub(super) fn users(&self) -> impl Iterator<Item = (&Id, String)> {
        self.ids.iter().map(|id| {
            let name = id.id.lossy();
            (id, name.split(':').next().unwrap_or_default().to_owned())
        })
    }

    /// Whether these identities may do that with a node.
    pub(super) fn may(&self, wanted: Perms, node: &Node) -> bool {
        node.open || self.may_by(wanted, &node.acl)
    }

    pub(super) fn may_by(&self, wanted: Perms, acl: &AclList) -> bool {
        if self.is_super || acl.is_empty() {
            return true;
        }
        acl.iter().any(|acl| grants(&acl, wanted) && self.is(&acl.id))
    }

    pub(super) fn check(&self, wanted: Perms, node: &Node) -> Result<(), ErrorCode> {
        self.may(wanted, node).then_some(()).ok_or(ErrorCode::NO_AUTH)
    }

    fn is(&self, wanted: &Id) -> bool {
        let scheme = wanted.scheme.lossy();
        match &*scheme {
            "world" => wanted.id.lossy() == "anyone",
            "ip" => {
                let net = wanted.id.lossy();
                self.named("ip").any(|id| in_net(&id.id.lossy(), &net))
            }
            scheme => self.named(scheme).any(|id| id.id == wanted.id),
        }
    }

    fn named<'a>(&'a self, scheme: &'a str) -> impl Iterator<Item = &'a Id> {
        self.ids.iter().filter(move |id| id.scheme.lossy() == scheme)
    }

    /// A list as it is stored: without duplicates, with `auth` replaced by who the creator is.
    pub(super) fn settle(&self, wanted: &AclList) -> Result<AclList, ErrorCode> {
        let mut settled: Vec<Acl> = Vec::new();
        let mut seen: Vec<Acl> = Vec::new();
        for acl in wanted {
            if seen.contains(&acl) {
                continue;
            }
            seen.push(acl.clone());
            self.settle_one(acl, &mut settled)?;
        }
        if settled.is_empty() {
            return Err(ErrorCode::INVALID_ACL);
        }
        Ok(settled.into_iter().collect())
    }

    fn settle_one(&self, acl: Acl, settled: &mut Vec<Acl>) -> Result<(), ErrorCode> {
        if acl.id.scheme.is_null() || acl.id.id.is_null() {
            return Err(ErrorCode::INVALID_ACL);
        }
        let id = acl.id.id.lossy().into_owned();
        let valid = match &*acl.id.scheme.lossy() {
            "world" => id == "anyone",
            "auth" => {
                let mine = self.named("digest").map(|id| Acl { perms: acl.perms, id: id.clone() });
                let before = settled.len();
                settled.extend(mine);
                return (settled.len() > before).then_some(()).ok_or(ErrorCode::INVALID_ACL);
            }
            // As Java splits: what is empty at the end does not count.
            "digest" => id.trim_end_matches(':').split(':').count() == 2,
            "ip" => parse_net(&id).is_some(),
            _ => false,
        };
        if !valid {
            return Err(ErrorCode::INVALID_ACL);
        }
        settled.push(acl);
        Ok(())
    }
}

/// The list as it is shown to who may not change it: without password hashes.
pub(super) fn masked(acl: &AclList) -> AclList {
    let mask = |mut acl: Acl| {
        if acl.id.scheme.lossy() == "digest" {
            let id = acl.id.id.lossy().into_owned();
            acl.id.id = format!("{}:x", id.split(':').next().unwrap_or_default()).into();
        }
        acl
    };
    acl.iter().map(mask).collect()
}

/// `user:password` as it stands in access control lists: `user:base64(sha1(user:password))`.
fn digest(auth: &[u8]) -> String {
    let text = String::from_utf8_lossy(auth);
    let user = text.split(':').next().unwrap_or_default();
    format!("{user}:{}", BASE64_STANDARD.encode(Sha1::digest(text.as_bytes())))
}

/// An IPv4 network, as address and number of leading bits that count.
fn parse_net(net: &str) -> Option<(u32, u32)> {
    let (address, bits) = match net.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
        None => (net, 32),
    };
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    Some((address.to_bits(), bits))
}

fn in_net(address: &str, net: &str) -> bool {
    let (Some((address, _)), Some((net, bits))) = (parse_net(address), parse_net(net)) else {
        return false;
    };
    let shift = 32u32.saturating_sub(bits);
    (address ^ net).checked_shr(shift).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_real_servers() {
        assert_eq!(digest(b"u:p"), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
    }

    #[test]
    fn networks_are_compared_by_their_leading_bits() {
        assert!(in_net("127.0.0.1", "127.0.0.0/8"));
        assert!(in_net("127.0.0.1", "0.0.0.0/0"));
        assert!(in_net("127.0.0.1", "127.0.0.1"));
        assert!(!in_net("127.0.0.1", "127.0.0.2/31"));
    }
}
