//! Ids in names.

/// The length of a UUID with its dashes.
pub(super) const ID_LENGTH: usize = 36;

/// Those of ids in front of names: as Curator and this crate write them, and as go-zookeeper does.
pub(super) const ID_LENGTHS: [usize; 2] = [ID_LENGTH, 32];

/// Whether a name begins with an id, as those of Curator, kazoo and go-zookeeper do, and of ZooKeeper's own recipes where
/// this crate writes them.
pub(super) fn begins_with_id(name: &str) -> bool {
    let behind = ["_c_", "x-"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    let name = behind.unwrap_or(name).as_bytes();
    ID_LENGTHS.into_iter().any(|length| name.get(..length).is_some_and(is_id))
}

pub(super) fn is_id(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte == b'-' || byte.is_ascii_hexdigit())
}
