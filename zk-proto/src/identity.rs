//! Identities, and entries of access control lists.

use alloc::format;
use core::net::IpAddr;

use crate::{
    data::{Acl, Id, Perms},
    text::Text,
};

/// ```
/// use zk_proto::{Acl, AclList, Id, Perms};
///
/// // The creator may do everything, a colleague may read and write, all others may read.
/// let list = AclList::from_iter([
///     Acl::creator_all(),
///     Id::x509("CN=reports,O=Example").may(Perms::READ | Perms::WRITE),
///     Acl::world_readable(),
/// ]);
/// assert_eq!(list.len(), 3);
/// ```
impl Acl {
    /// All clients may do everything. The word `unsafe` is meant to be seen in reviews.
    #[must_use]
    pub const fn open_unsafe() -> Self {
        Self { perms: Perms::ALL, id: Id::anyone() }
    }

    /// All clients may read.
    #[must_use]
    pub const fn world_readable() -> Self {
        Self { perms: Perms::READ, id: Id::anyone() }
    }

    /// The creator, under every identity that its connection has besides its address, may do everything.
    #[must_use]
    pub const fn creator_all() -> Self {
        Self { perms: Perms::ALL, id: Id::creator() }
    }
}

impl Id {
    /// All clients, authenticated or not.
    #[must_use]
    pub const fn anyone() -> Self {
        Self { scheme: Text::from_static("world"), id: Text::from_static("anyone") }
    }

    /// The client that creates the node or changes its list, under every identity that its connection has but the
    /// address. Servers replace this by the identities themselves, and refuse if there are none.
    #[must_use]
    pub const fn creator() -> Self {
        Self { scheme: Text::from_static("auth"), id: Text::from_static("") }
    }

    /// A client that knows the password of a user. `digest` is what servers compute from both, by default the SHA-1 of
    /// `user:password` in base 64.
    #[must_use]
    pub fn digest(user: &str, digest: &str) -> Self {
        Self::of("digest", &format!("{user}:{digest}"))
    }

    /// Whether a server has withheld the digest, as from those who may not change the list: it shows `user:x`. Written
    /// back, that would be nobody.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        self.scheme.lossy() == "digest" && self.id.lossy().ends_with(":x")
    }

    /// A client that has shown a certificate with this subject, as RFC 2253 writes it: `CN=ann,O=Example`, without
    /// blanks behind the commas, the innermost part first.
    #[must_use]
    pub fn x509(subject: &str) -> Self {
        Self::of("x509", subject)
    }

    /// A client that has proved by SASL to be this user. Servers may leave out host and realm of Kerberos principals.
    #[must_use]
    pub fn sasl(user: &str) -> Self {
        Self::of("sasl", user)
    }

    /// A client that connects from this address; not from behind a proxy, then.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self::of("ip", &format!("{address}"))
    }

    /// A client that connects from an address with the same first `bits` bits.
    #[must_use]
    pub fn network(address: IpAddr, bits: u8) -> Self {
        Self::of("ip", &format!("{address}/{bits}"))
    }

    /// An entry of an access control list that grants these permissions.
    #[must_use]
    pub const fn may(self, perms: Perms) -> Acl {
        Acl { perms, id: self }
    }

    fn of(scheme: &'static str, id: &str) -> Self {
        Self { scheme: Text::from_static(scheme), id: Text::from(id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_print_as_servers_parse_them() {
        let ids = [
            (Id::anyone(), "world:anyone"),
            (Id::creator(), "auth:"),
            (Id::digest("u", "x="), "digest:u:x="),
            (Id::x509("CN=ann"), "x509:CN=ann"),
            (Id::sasl("ann"), "sasl:ann"),
            (Id::address(IpAddr::from([10, 0, 0, 1])), "ip:10.0.0.1"),
            (Id::network(IpAddr::from([10, 0, 0, 0]), 8), "ip:10.0.0.0/8"),
        ];
        for (id, text) in ids {
            assert_eq!(format!("{}:{}", id.scheme, id.id), text);
        }
    }
}
