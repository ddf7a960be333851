//! Identities that servers derive from users and passwords.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha1::{Digest as _, Sha1};
use zk_proto::Id;

/// The identity of a client that knows this user's password, for access control lists made by others than the user.
///
/// ```
/// use zk_client::{AclList, Perms, digest_id};
///
/// let list = AclList::from_iter([digest_id("ann", "secret").may(Perms::ALL)]);
/// assert_eq!(&*digest_id("u", "p").id.lossy(), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
/// ```
///
/// For servers with the default algorithm (`digestAlg=SHA1`); for others see [`Id::digest`]. A client that may read the
/// list can guess passwords offline: use a long one.
#[must_use]
pub fn digest_id(user: &str, password: &str) -> Id {
    let mut digest = Sha1::new();
    for part in [user, ":", password] {
        digest.update(part);
    }
    Id::digest(user, &BASE64_STANDARD.encode(digest.finalize()))
}
