//! Identities, and what they allow.

use std::net::{IpAddr, Ipv6Addr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha1::{Digest as _, Sha1};
use zk_proto::{Acl, AclList, ErrorCode, Id, Perms, Text};

use super::{
    java,
    node::{Node, grants},
};

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

    /// The client has shown a certificate.
    pub(super) fn certify(&mut self, subject: &str) {
        self.push(Id { scheme: "x509".into(), id: subject.into() });
    }

    /// The client has proved to be this user.
    pub(super) fn prove(&mut self, user: &str) {
        self.push(Id { scheme: "sasl".into(), id: user.into() });
    }

    pub(super) fn has_proved(&self) -> bool {
        self.named("sasl").next().is_some()
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
            let name = java::string(id.id.as_bytes());
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
        let scheme = java::string(wanted.scheme.as_bytes());
        match &*scheme {
            "world" => java::string(wanted.id.as_bytes()) == "anyone",
            "ip" => {
                let net = java::string(wanted.id.as_bytes());
                self.named("ip").any(|id| in_net(&java::string(id.id.as_bytes()), &net))
            }
            // Whoever is called so may do what others may.
            "sasl" => self.named("sasl").any(|id| id.id == wanted.id || id.id.lossy() == "super"),
            scheme => self.named(scheme).any(|id| id.id == wanted.id),
        }
    }

    fn named<'a>(&'a self, scheme: &'a str) -> impl Iterator<Item = &'a Id> {
        self.ids.iter().filter(move |id| java::string(id.scheme.as_bytes()) == scheme)
    }

    /// A list as it is stored: without duplicates, with `auth` replaced by the creator's identities.
    ///
    pub(super) fn settle(&self, wanted: &AclList, schemes: Schemes) -> Result<AclList, ErrorCode> {
        let mut settled: Vec<Acl> = Vec::new();
        let mut seen: Vec<Acl> = Vec::new();
        for acl in wanted {
            if !contains(&seen, &acl)? {
                seen.push(acl);
            }
        }
        if seen.is_empty() {
            return Err(ErrorCode::INVALID_ACL);
        }
        for acl in seen {
            self.settle_one(acl, &mut settled, schemes)?;
        }
        Ok(settled.into_iter().collect())
    }

    fn settle_one(
        &self,
        acl: Acl,
        settled: &mut Vec<Acl>,
        schemes: Schemes,
    ) -> Result<(), ErrorCode> {
        if acl.id.id.is_null()
            && matches!(&*java::string(acl.id.scheme.as_bytes()), "world" | "digest" | "ip")
        {
            return Err(ErrorCode::MARSHALLING_ERROR);
        }
        let id = java::string(acl.id.id.as_bytes()).into_owned();
        let valid = match &*java::string(acl.id.scheme.as_bytes()) {
            "world" => id == "anyone",
            "auth" => {
                let mine = self.ids.iter().filter(|id| is_proof(id));
                let mine = mine.map(|id| Acl { perms: acl.perms, id: id.clone() });
                let before = settled.len();
                settled.extend(mine);
                return (settled.len() > before).then_some(()).ok_or(ErrorCode::INVALID_ACL);
            }
            // As Java splits: what is empty at the end does not count.
            "digest" => id.trim_end_matches(':').split(':').count() == 2,
            "ip" => parse_net(&id).is_some_and(|(address, _)| address.is_ipv4() || schemes.ipv6),
            "sasl" => schemes.sasl,
            "x509" => schemes.x509 && id.contains('='),
            _ => false,
        };
        if !valid {
            return Err(ErrorCode::INVALID_ACL);
        }
        settled.push(acl);
        Ok(())
    }
}

/// What access control lists can name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schemes {
    /// IPv6 addresses.
    pub(super) ipv6: bool,
    pub(super) sasl: bool,
    pub(super) x509: bool,
}

/// Whether an identity is more than where a client comes from.
fn is_proof(id: &Id) -> bool {
    matches!(&*java::string(id.scheme.as_bytes()), "digest" | "sasl" | "x509")
}

/// Whether an entry stands in a list. Servers stumble over null where they have to look that closely.
fn contains(list: &[Acl], acl: &Acl) -> Result<bool, ErrorCode> {
    for other in list.iter().filter(|other| other.perms == acl.perms) {
        if acl.id.scheme.is_null() {
            return Err(ErrorCode::MARSHALLING_ERROR);
        }
        if acl.id.scheme == other.id.scheme {
            if acl.id.id.is_null() {
                return Err(ErrorCode::MARSHALLING_ERROR);
            }
            if acl.id.id == other.id.id {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The list as it is shown to clients that may not change it: without password hashes.
pub(super) fn masked(acl: &AclList) -> AclList {
    let mask = |mut acl: Acl| {
        if java::string(acl.id.scheme.as_bytes()) == "digest" {
            let id = java::string(acl.id.id.as_bytes()).into_owned();
            acl.id.id = format!("{}:x", id.split(':').next().unwrap_or_default()).into();
        }
        acl
    };
    acl.iter().map(mask).collect()
}

/// The list as it goes over the wire.
pub(super) fn written(acl: &AclList) -> AclList {
    let write = |acl: Acl| {
        let text = |text: &Text| match text.as_bytes() {
            Some(bytes) => java::text(&java::string(Some(bytes))),
            None => Text::NULL,
        };
        Acl { id: Id { scheme: text(&acl.id.scheme), id: text(&acl.id.id) }, ..acl }
    };
    acl.iter().map(write).collect()
}

/// `user:password` as it stands in access control lists: `user:base64(sha1(user:password))`.
fn digest(auth: &[u8]) -> String {
    let text = java::string(Some(auth));
    let user = text.split(':').next().unwrap_or_default();
    format!("{user}:{}", BASE64_STANDARD.encode(Sha1::digest(text.as_bytes())))
}

/// A network, as address and number of leading bits that count. As servers parse them, which is more
/// generous than usual with IPv4.
fn parse_net(net: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match net.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (net, None),
    };
    let address = if address.contains(':') {
        IpAddr::V6(parse_v6(address)?)
    } else {
        let parts: Vec<u8> =
            address.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        IpAddr::from(<[u8; 4]>::try_from(parts).ok()?)
    };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok())?;
    (bits <= bits_max).then_some((address, bits))
}

/// Groups of up to four digits; an IPv4 address at the end is not known.
fn parse_v6(address: &str) -> Option<Ipv6Addr> {
    let plain = address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
    address.parse().ok().filter(|_| plain)
}

fn in_net(address: &str, net: &str) -> bool {
    let (Some((address, _)), Some((net, bits))) = (parse_net(address), parse_net(net)) else {
        return false;
    };
    let same = |one: u128, other: u128, len: u32| {
        let shift = len.saturating_sub(bits);
        (one ^ other).checked_shr(shift).unwrap_or_default() == 0
    };
    match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            same(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_real_servers() {
        assert_eq!(digest(b"u:p"), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
    }

    #[test]
    fn networks_compare_by_leading_bits() {
        assert!(in_net("127.0.0.1", "127.0.0.0/8"));
        assert!(in_net("127.0.0.1", "0.0.0.0/0"));
        assert!(in_net("127.0.0.1", "127.0.0.1"));
        assert!(!in_net("127.0.0.1", "127.0.0.2/31"));
    }
}
