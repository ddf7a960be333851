//! Which names count as what: checks the tables in the documentation of [`Layout`] and [`ForeignNodes`] against names
//! generated in the manner of every known implementation.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{Filter, ForeignNodes, Layout, Names, Role};
use crate::entry::Kind;

/// The implementations that make nodes.
#[derive(Clone, Copy, Debug)]
enum Maker {
    CuratorMutex,
    CuratorReader,
    CuratorWriter,
    CuratorLatch,
    CuratorLease,
    /// Curator without protection; also textbooks' exclusive lock.
    Unprotected,
    KazooLock,
    KazooReader,
    Go,
    /// ZooKeeper's `WriteLock` in Java, and a `DistributedLock` with `LockNode`s.
    Session,
    /// ZooKeeper's lock in C.
    SessionInHex,
    /// A `ZooKeeperLock` that splits names at `_lock_`.
    Named,
    /// The guid and then `lock-`.
    Guid,
    HostReader,
    HostWriter,
    BareReader,
    BareWriter,
    /// ZooKeeper's `LeaderElectionSupport`.
    LeaderOffer,
}

const MAKERS: [Maker; 18] = [
    Maker::CuratorMutex,
    Maker::CuratorReader,
    Maker::CuratorWriter,
    Maker::CuratorLatch,
    Maker::CuratorLease,
    Maker::Unprotected,
    Maker::KazooLock,
    Maker::KazooReader,
    Maker::Go,
    Maker::Session,
    Maker::SessionInHex,
    Maker::Named,
    Maker::Guid,
    Maker::HostReader,
    Maker::HostWriter,
    Maker::BareReader,
    Maker::BareWriter,
    Maker::LeaderOffer,
];

/// The parts of a name.
#[derive(Clone, Debug)]
struct Parts {
    uuid: String,
    session: i64,
    host: String,
    lock: String,
}

impl Maker {
    /// The name up to its number.
    fn name(self, parts: &Parts) -> String {
        let Parts { uuid, session, host, lock } = parts;
        let hex = uuid.replace('-', "");
        match self {
            Self::CuratorMutex => format!("_c_{uuid}-lock-"),
            Self::CuratorReader => format!("_c_{uuid}-__READ__"),
            Self::CuratorWriter => format!("_c_{uuid}-__WRIT__"),
            Self::CuratorLatch => format!("_c_{uuid}-latch-"),
            Self::CuratorLease => format!("_c_{uuid}-lease-"),
            Self::Unprotected => "lock-".to_owned(),
            Self::KazooLock => format!("{hex}__lock__"),
            Self::KazooReader => format!("{hex}__rlock__"),
            Self::Go => format!("_c_{hex}-lock-"),
            Self::Session => format!("x-{session}-"),
            Self::SessionInHex => format!("x-{session:016x}-"),
            Self::Named => format!("{lock}_lock_"),
            Self::Guid => format!("{uuid}-lock-"),
            Self::HostReader => format!("{host}-R-"),
            Self::HostWriter => format!("{host}-W-"),
            Self::BareReader => "read_".to_owned(),
            Self::BareWriter => "write_".to_owned(),
            Self::LeaderOffer => "n_".to_owned(),
        }
    }

    /// The kind it counts as in any layout but its own.
    const fn kind(self) -> Kind {
        match self {
            Self::CuratorMutex
            | Self::Unprotected
            | Self::KazooLock
            | Self::Go
            | Self::Session
            | Self::SessionInHex
            | Self::Named
            | Self::Guid => Kind::Exclusive,
            Self::CuratorReader | Self::KazooReader => Kind::Read,
            Self::CuratorWriter => Kind::Write,
            Self::CuratorLatch => Kind::Lead,
            Self::CuratorLease => Kind::Lease,
            Self::HostReader
            | Self::HostWriter
            | Self::BareReader
            | Self::BareWriter
            | Self::LeaderOffer => Kind::Unknown,
        }
    }

    /// The kind it counts as in a layout.
    const fn kind_in(self, layout: Layout) -> Kind {
        match (self, layout) {
            (Self::HostReader, Layout::HostType) | (Self::BareReader, Layout::Bare) => Kind::Read,
            (Self::HostWriter, Layout::HostType) | (Self::BareWriter, Layout::Bare) => Kind::Write,
            _ => self.kind(),
        }
    }
}

const LAYOUTS: [Layout; 7] = [
    Layout::Curator,
    Layout::Kazoo,
    Layout::Go,
    Layout::Recipe,
    Layout::HostType,
    Layout::Bare,
    Layout::Custom(Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-")),
];

const FOREIGN_NODES: [ForeignNodes; 3] =
    [ForeignNodes::Wait, ForeignNodes::Ignore, ForeignNodes::Refuse];

fn uuid() -> impl Strategy<Value = String> {
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
}

/// A host called `x` would pass for ZooKeeper's own recipe, as the tables show.
fn host() -> impl Strategy<Value = String> {
    "[a-wyz0-9][a-z0-9.-]{0,11}"
}

fn parts() -> impl Strategy<Value = Parts> {
    (uuid(), any::<i64>(), host(), "[a-zA-Z0-9.-]{1,12}")
        .prop_map(|(uuid, session, host, lock)| Parts { uuid, session, host, lock })
}

/// Those of known implementations among them, and what begins and ends as they do.
fn marker() -> impl Strategy<Value = String> {
    let known = select(&["lock-", "__lock__", "__READ__", "latch-", "-"][..]);
    prop_oneof![
        3 => "[a-zA-Z_.-]{1,8}",
        1 => (known, "[a-f_-]{0,2}").prop_map(|(known, end)| format!("{known}{end}")),
    ]
}

fn filter(layout: Layout, foreign_nodes: ForeignNodes) -> Filter {
    Filter { foreign_nodes, names: layout.names(), named: None }
}

proptest! {
    #[test]
    fn names_count_as_the_tables_say(
        parts in parts(),
        maker in select(&MAKERS[..]),
        number in 0..=i32::MAX,
        layout in select(&LAYOUTS[..]),
        foreign_nodes in select(&FOREIGN_NODES[..]),
    ) {
        let name = format!("{}{number:010}", maker.name(&parts));
        let kind = maker.kind_in(layout);
        let read = filter(layout, foreign_nodes).read(name.as_str());
        match read {
            Ok(entry) => prop_assert_eq!((entry.sequence, entry.kind), (number, kind)),
            Err(_) => prop_assert!(kind == Kind::Unknown && foreign_nodes != ForeignNodes::Wait, "{}", name),
        }
    }

    /// On servers before 3.5 they follow the largest number.
    #[test]
    fn negative_numbers_need_a_known_marker(
        parts in parts(),
        maker in select(&MAKERS[..]).prop_filter("has a marker that all know", |maker| {
            let is_marked = !matches!(maker, Maker::Session | Maker::SessionInHex);
            is_marked && maker.kind() != Kind::Unknown
        }),
        number in i32::MIN..0,
    ) {
        let name = format!("{}{number:010}", maker.name(&parts));
        let entry = Filter::default().read(name.as_str());
        prop_assert_eq!(entry.map(|entry| (entry.sequence, entry.kind)), Ok((number, maker.kind())));
    }

    /// The safe side: a contender with a number is waited for, unless it certainly only reads.
    #[test]
    fn numbered_name_is_never_ignored_or_reader(
        before in "[ -~]{0,40}",
        number in 0..=i32::MAX,
        layout in select(&LAYOUTS[..]),
    ) {
        let name = format!("{before}{number:010}");
        let entry = filter(layout, ForeignNodes::Wait).read(name.as_str());
        let reads: &[&str] = match layout {
            Layout::HostType => &["__READ__", "__rlock__", "-R-"],
            Layout::Custom(_) => &["__READ__", "__rlock__", "-shared-"],
            _ => &["__READ__", "__rlock__"],
        };
        let is_bare = layout == Layout::Bare && before == "read_";
        let may_read = is_bare || reads.iter().any(|end| before.ends_with(end));
        prop_assert_eq!(entry.map(|entry| entry.kind == Kind::Read), Ok(may_read));
    }

    #[test]
    fn a_name_without_a_number_counts_nowhere(
        parts in parts(),
        maker in select(&MAKERS[..]),
        digits in prop_oneof!["[0-9]{0,9}", "[0-9]{10}x", "-0{9}", "[4-9][0-9]{9}"],
        layout in select(&LAYOUTS[..]),
        foreign_nodes in select(&FOREIGN_NODES[..]),
    ) {
        let name = format!("{}{digits}", maker.name(&parts));
        // The end of an id may be digits too.
        prop_assume!(!name.bytes().rev().take(10).all(|byte| byte.is_ascii_digit()) || digits.len() == 10);
        prop_assert!(filter(layout, foreign_nodes).read(name.as_str()).is_err(), "{}", name);
    }

    /// Whatever the markers and their order, unless attempts are refused: a filter with the same names recognizes what is
    /// written, all others wait for it, and neither takes for a reader what is none.
    #[test]
    fn custom_names_parse_as_written(
        id in uuid(),
        markers in vec(marker(), 5),
        prefix in prop_oneof!["[a-z-]{0,6}", "x-"],
        order in 0..4,
        number in prop_oneof![0..=i32::MAX, 1_000_000_000..=i32::MAX],
    ) {
        let marker = |at: usize| -> &'static str { markers[at].clone().leak() };
        let is_distinct = |at: usize| markers.iter().enumerate().all(|(other, text)| {
            // Markers are found at the end of the part before the number, or at its beginning.
            other == at || !markers[at].ends_with(text) && !markers[at].starts_with(text)
        });
        let names = Names::new(marker(0)).read_write(marker(1), marker(2)).lease(marker(3));
        let names = names.lead(marker(4)).prefix(prefix.leak());
        let names = match order {
            0 => names,
            1 => names.id_without_dashes(),
            2 => names.marker_first(),
            _ => names.without_id(),
        };
        let ours = filter(Layout::Custom(names), ForeignNodes::Ignore);
        prop_assume!(ours.check().is_ok());
        let roles = [
            (Role::Lock, Kind::Exclusive),
            (Role::Read, Kind::Read),
            (Role::Write, Kind::Write),
            (Role::Lease, Kind::Lease),
            (Role::Lead, Kind::Lead),
        ];
        for (role, kind) in roles {
            let Some(name) = Layout::Custom(names).name(role, &id) else { continue };
            let name = format!("{name}{number:010}");
            let own = ours.read(name.as_str());
            prop_assert_eq!(own.as_ref().map(|entry| entry.sequence), Ok(number));
            let read = own.map(|entry| entry.kind);
            prop_assert!(read != Ok(Kind::Read) || kind == Kind::Read);
            if (0..5).all(is_distinct) {
                prop_assert_eq!(read, Ok(kind));
            }
            let theirs = Filter::default().read(name.as_str());
            prop_assert_eq!(theirs.map(|entry| entry.sequence), Ok(number));
        }
    }

    /// With several locks under one path, only the nodes of one name count, with or without an id in front.
    #[test]
    fn named_lock_sees_only_its_own_nodes(
        parts in parts(),
        other in parts(),
        maker in select(&MAKERS[..]),
        number in 0..=i32::MAX,
        foreign_nodes in select(&FOREIGN_NODES[..]),
    ) {
        let filter = Filter { foreign_nodes, names: None, named: Some(parts.lock.clone()) };
        let counts = |before: &str| filter.read(format!("{before}{number:010}")).is_ok();
        let plain = Maker::Named.name(&parts);
        let behind_id = format!("_c_{}-{plain}", parts.uuid);
        prop_assert!(counts(&plain) && counts(&behind_id));
        let name = maker.name(&other);
        let is_its_own = matches!(maker, Maker::Named) && other.lock == parts.lock;
        prop_assert_eq!(counts(&name), is_its_own, "{}", name);
    }
}
