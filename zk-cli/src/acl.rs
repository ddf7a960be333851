//! Entries of access control lists, as people write them: `digest:ann:hash=:cdrwa`.

use std::str::FromStr;

use zk_client::{Acl, AclList, Id, Perms};

/// Letters of permissions, in the order in which they are printed.
const LETTERS: [(char, Perms); 5] = [
    ('c', Perms::CREATE),
    ('d', Perms::DELETE),
    ('r', Perms::READ),
    ('w', Perms::WRITE),
    ('a', Perms::ADMIN),
];

/// An entry on the command line, or in a file. Servers keep entries that permit nothing, and so do files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) Acl);

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not SCHEME:ID:PERMISSIONS, such as world:anyone:r");
        let (id, letters) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (scheme, id) = id.split_once(':').ok_or_else(wrong)?;
        if scheme.is_empty() {
            return Err(wrong());
        }
        let mut perms = Perms(0);
        for letter in letters.chars() {
            let known = LETTERS.iter().find(|(it, _)| *it == letter);
            let (_, perm) = known.ok_or_else(|| {
                format!("{letter:?} is no permission: c(reate), d(elete), r(ead), w(rite), a(dmin)")
            })?;
            perms = perms | *perm;
        }
        Ok(Self(Id { scheme: scheme.into(), id: id.into() }.may(perms)))
    }
}

/// An entry that a person has typed.
///
/// # Errors
/// That it is none, or one that nobody can be meant by, or that permits nothing.
pub(crate) fn typed(text: &str) -> Result<Entry, String> {
    let entry = stored(text)?;
    if entry.0.perms == Perms::NONE {
        return Err(format!(
            "{text:?} permits nothing: c(reate), d(elete), r(ead), w(rite), a(dmin)"
        ));
    }
    Ok(entry)
}

/// An entry of a file.
///
/// # Errors
/// That it is none, or one that nobody can be meant by.
pub(crate) fn stored(text: &str) -> Result<Entry, String> {
    let entry: Entry = text.parse()?;
    let Id { scheme, id } = &entry.0.id;
    let has_hash = id.lossy().split_once(':').is_some_and(|(_, hash)| is_hash(hash));
    if scheme.lossy() == "digest" && !has_hash {
        return Err(format!(
            "{text:?} has no hash: digest:USER:base64(sha1(USER:PASSWORD)):PERMISSIONS. auth::cdrwa is the \
             identity in --auth-file, without one"
        ));
    }
    Ok(entry)
}

/// Bytes of the hashes that servers can be told to use: SHA-1, and since 3.7 others (`digestAlg`).
const HASH_LENS: [usize; 4] = [20, 32, 48, 64];

/// Whether this is base64 of a hash. A password in its place would lock everybody out.
fn is_hash(text: &str) -> bool {
    let is_base64 = |it: u8| it.is_ascii_alphanumeric() || it == b'+' || it == b'/';
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let len = text.len() / 4 * 3;
    text.len() % 4 == 0
        && padding <= 2
        && HASH_LENS.contains(&len.saturating_sub(padding))
        && digits.bytes().all(is_base64)
}

/// A list of such entries, for servers.
pub(crate) fn list(entries: &[Entry]) -> AclList {
    entries.iter().map(|Entry(acl)| acl.clone()).collect()
}

/// Whether servers have withheld the hash of a password, as they do from those who may not change the list.
pub(crate) fn is_masked(list: &AclList) -> bool {
    list.iter().any(|Acl { id, .. }| id.is_masked())
}

/// The entries of a list, for people.
pub(crate) fn texts(list: &AclList) -> Vec<String> {
    list.iter().map(|acl| text(&acl)).collect()
}

fn text(acl: &Acl) -> String {
    let has = |perm: Perms| acl.perms.0 & perm.0 != 0;
    let letters: String =
        LETTERS.iter().filter(|(_, perm)| has(*perm)).map(|(letter, _)| letter).collect();
    format!("{}:{}:{letters}", acl.id.scheme, acl.id.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_written_as_they_are_read() {
        for entry in [
            "world:anyone:r",
            "digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:cdrwa",
            "auth::cdrwa",
            "ip:::1:r",
            "world:anyone:",
        ] {
            assert_eq!(text(&entry.parse::<Entry>().unwrap().0), entry);
        }
    }

    #[test]
    fn a_password_is_no_hash() {
        for typed in ["digest:ann:secret:r", "digest:ann:r", "digest:ann:x/y=:cdrwa"] {
            assert!(super::typed(typed).unwrap_err().contains("no hash"), "{typed:?}");
        }
        for typed in ["digest:ann:qJ7HQqzpyLxCuC/lYhQGu1yzMK0=:r", "auth::r", "world:anyone:r"] {
            assert!(super::typed(typed).is_ok(), "{typed:?}");
        }
        // The digits and the padding of 20, 32, 48 and 64 bytes.
        for (digits, padding) in [(27, 1), (43, 1), (64, 0), (86, 2)] {
            let hash =
                |digits| format!("digest:ann:{}{}:r", "a".repeat(digits), "=".repeat(padding));
            assert!(typed(&hash(digits)).is_ok(), "{digits} digits");
            assert!(typed(&hash(digits + 4)).is_err(), "{} digits", digits + 4);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for entry in ["", "r", "world:r", ":x:r", "world:anyone:x"] {
            assert!(entry.parse::<Entry>().is_err(), "{entry:?}");
        }
        assert!(typed("world:anyone:").unwrap_err().contains("permits nothing"));
    }
}
