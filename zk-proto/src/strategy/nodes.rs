//! Requests that have to do with each other.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::fmt::Debug;

use proptest::{
    arbitrary::any,
    collection::{SizeRange, vec},
    sample::Index,
    strategy::{BoxedStrategy, Strategy, Union},
};

use crate::{
    data::{Acl, AclList, AddWatchMode, CreateFlags, WatcherType},
    list::List,
    op::OpCode,
    path::{ZkPath, join, parent},
    request::{
        CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, GetChildrenRequest,
        GetDataRequest, MultiOp, MultiReadRequest, MultiRequest, SetDataRequest,
    },
    strategy::{
        OwnedAnyRequest, OwnedCreate2Request, OwnedCreateContainerRequest, OwnedCreateRequest,
        OwnedDeleteContainerRequest, OwnedRemoveWatchesRequest, request,
    },
    text::{Str, Text},
};

/// The nodes that generated requests are about: a few, so that they meet.
///
/// ```
/// use proptest::prelude::*;
/// use zk_proto::strategy::{Conversation, Nodes};
///
/// let nodes = Nodes::new(["/app", "/app/lock", "/app/lock/x-1"].map(|path| path.parse().unwrap()));
/// let on_these = any_with::<Conversation>(nodes);
/// # let _ = on_these;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(Vec<ZkPath>);

impl Nodes {
    /// These nodes. A node whose parent is not among them, and is not the root, is never there.
    pub fn new(paths: impl IntoIterator<Item = ZkPath>) -> Self {
        Self(paths.into_iter().collect())
    }
}

impl Default for Nodes {
    /// Six nodes on three levels.
    fn default() -> Self {
        let paths = ["/a", "/a/b", "/a/b/c", "/d", "/d/e", "/f"];
        Self::new(paths.into_iter().filter_map(|path| path.parse().ok()))
    }
}

/// Requests of every operation but the end of the session, sent in this order to a server that has none of the `nodes`.
///
/// Three in four are about nodes that are there by then, as far as the requests before them tell, and have versions,
/// access control lists and flags that servers take; the others are any. Shrinks to fewer and simpler requests, which
/// still fit each other.
pub fn requests(
    nodes: Nodes,
    count: impl Into<SizeRange>,
) -> impl Strategy<Value = Vec<OwnedAnyRequest>> {
    vec((one_each(request), choice()), count).prop_map(move |drawn| {
        let mut memory = Memory::new(&nodes);
        drawn.into_iter().map(|(request, choice)| memory.fit(request, choice)).collect()
    })
}

/// One of what there is for each operation but the end of the session; those that make nodes, and those that need them,
/// more often than others.
pub(super) fn one_each<T: Debug + 'static>(
    strategy: impl Fn(OpCode) -> Option<BoxedStrategy<T>>,
) -> impl Strategy<Value = T> {
    let weighted = OpCode::KNOWN.iter().filter_map(|&op| match op {
        OpCode::CLOSE_SESSION => None,
        OpCode::CREATE | OpCode::CREATE2 => Some((6, strategy(op)?)),
        OpCode::DELETE
        | OpCode::EXISTS
        | OpCode::GET_DATA
        | OpCode::SET_DATA
        | OpCode::GET_CHILDREN2
        | OpCode::MULTI => Some((3, strategy(op)?)),
        _ => Some((1, strategy(op)?)),
    });
    Union::new_weighted(weighted.collect())
}

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    node: Index,
    is_wild: bool,
}

pub(super) fn choice() -> impl Strategy<Value = Choice> {
    (any::<Index>(), proptest::bool::weighted(0.25))
        .prop_map(|(node, is_wild)| Choice { node, is_wild })
}

/// The nodes that are there after the requests so far, if a server has carried them out.
pub(super) struct Memory<'n> {
    nodes: &'n [ZkPath],
    /// By path; whether children are allowed. Always with the root.
    there: BTreeMap<&'n str, bool>,
}

impl<'n> Memory<'n> {
    pub(super) fn new(Nodes(nodes): &'n Nodes) -> Self {
        Self { nodes, there: BTreeMap::from([("/", true)]) }
    }

    /// Makes a request fit those before it, unless it is to stay as it was drawn.
    pub(super) fn fit(
        &mut self,
        mut request: OwnedAnyRequest,
        Choice { node, is_wild }: Choice,
    ) -> OwnedAnyRequest {
        if is_wild {
            return request;
        }
        match &mut request {
            OwnedAnyRequest::Create(it)
            | OwnedAnyRequest::Create2(OwnedCreate2Request(it))
            | OwnedAnyRequest::CreateContainer(OwnedCreateContainerRequest(it)) => {
                self.fit_create(it, node);
            }
            OwnedAnyRequest::CreateTtl(it) => {
                it.path = Text::from(&*self.numbered(node));
                (it.acl, it.flags) = (open(), CreateFlags::PERSISTENT_SEQUENTIAL_TTL);
                it.ttl = ttl(it.ttl);
            }
            OwnedAnyRequest::Delete(it)
            | OwnedAnyRequest::DeleteContainer(OwnedDeleteContainerRequest(it)) => {
                (it.path, it.version) = (Text::from(self.leaf(node)), -1);
                self.there.retain(|path, _| it.path != Text::from(*path));
            }
            OwnedAnyRequest::Exists(it) => it.path = self.any(node),
            OwnedAnyRequest::GetData(it) => it.path = self.any(node),
            OwnedAnyRequest::SetData(it) => (it.path, it.version) = (self.any(node), -1),
            OwnedAnyRequest::GetAcl(it) => it.path = self.any(node),
            OwnedAnyRequest::SetAcl(it) => {
                (it.path, it.acl, it.version) = (self.any(node), open(), -1);
            }
            OwnedAnyRequest::GetChildren(it) => it.path = self.any(node),
            OwnedAnyRequest::GetChildren2(it) => it.path = self.any(node),
            OwnedAnyRequest::Sync(it) => it.path = self.any(node),
            OwnedAnyRequest::Check(it) => (it.path, it.version) = (self.any(node), -1),
            OwnedAnyRequest::GetEphemerals(it) => it.prefix_path = self.any(node),
            OwnedAnyRequest::GetAllChildrenNumber(it) => it.path = self.any(node),
            OwnedAnyRequest::AddWatch(it) => {
                it.path = self.any(node);
                if !AddWatchMode::KNOWN.contains(&it.mode) {
                    it.mode = AddWatchMode::PERSISTENT;
                }
            }
            OwnedAnyRequest::CheckWatches(it)
            | OwnedAnyRequest::RemoveWatches(OwnedRemoveWatchesRequest(it)) => {
                (it.path, it.kind) = (self.any(node), WatcherType::ANY);
            }
            OwnedAnyRequest::Auth(it) => {
                let pair = bytes::Bytes::from_static(b"user:password");
                (it.kind, it.scheme, it.auth) = (0, Text::from_static("digest"), Some(pair));
            }
            OwnedAnyRequest::Multi(multi) => *multi = self.fit_multi(multi, node),
            OwnedAnyRequest::MultiRead(MultiReadRequest(multi)) => {
                *multi = self.fit_multi(multi, node);
            }
            OwnedAnyRequest::SetWatches(it) => {
                let lists = [&mut it.data_watches, &mut it.exist_watches, &mut it.child_watches];
                self.fit_lists(lists, node);
            }
            OwnedAnyRequest::SetWatches2(it) => {
                let lists = [
                    &mut it.data_watches,
                    &mut it.exist_watches,
                    &mut it.child_watches,
                    &mut it.persistent_watches,
                    &mut it.persistent_recursive_watches,
                ];
                self.fit_lists(lists, node);
            }
            _ => {}
        }
        request
    }

    /// A node that is not there below one that is; one with a number if all are there.
    fn fit_create(&mut self, create: &mut OwnedCreateRequest, node: Index) {
        let is_container = create.flags == CreateFlags::CONTAINER;
        let is_ephemeral = create.flags.0 & 1 == 1;
        create.acl = open();
        let free: Vec<_> = self.nodes.iter().filter(|path| self.is_free(path)).collect();
        if free.is_empty() {
            create.path = Text::from(&*self.numbered(node));
            create.flags = CreateFlags::PERSISTENT_SEQUENTIAL;
            return;
        }
        let path = node.get(&free).as_str();
        create.path = Text::from(path);
        create.flags = match (is_container, is_ephemeral) {
            (true, _) => CreateFlags::CONTAINER,
            (_, true) => CreateFlags::EPHEMERAL,
            _ => CreateFlags::PERSISTENT,
        };
        self.there.insert(path, !is_ephemeral);
    }

    /// Operations of a multi all succeed, and do not depend on each other: no node is deleted that another of them needs. Where
    /// there are too few nodes to delete, some are only looked at; where there are too few to make containers of, some get
    /// numbers.
    fn fit_multi(&mut self, multi: &MultiRequest, node: Index) -> MultiRequest {
        let is_delete = |(_, op): &(_, MultiOp<'_>)| matches!(op, MultiOp::Delete(_));
        let leaves = self.leaves();
        let deletes = multi.iter().filter(is_delete).count().min(leaves.len());
        let begin = node.index(leaves.len().max(1));
        let doomed: Vec<_> = leaves.iter().cycle().skip(begin).take(deletes).copied().collect();
        let kept = |path: &str| !doomed.contains(&path);
        let (path, numbered) = (self.any_of(node, kept), self.numbered_below(node, kept));
        let numbered = Text::from(&*numbered);
        let free = self.nodes.iter().map(ZkPath::as_str);
        let mut free = free.filter(|path| self.is_free(path) && parent(path).is_some_and(kept));
        let (mut deleted, mut made) = (doomed.iter(), Vec::new());
        let fit = |op| {
            let (path, version) = (Str::from(&path), -1);
            let check = MultiOp::Check(CheckVersionRequest { path, version });
            match op {
                MultiOp::Create(it) => MultiOp::Create(sequential(it, &numbered)),
                MultiOp::Create2(it) => MultiOp::Create2(sequential(it, &numbered)),
                MultiOp::CreateContainer(it) => match free.next() {
                    Some(path) => {
                        made.push(path);
                        MultiOp::CreateContainer(container(it, path))
                    }
                    None => MultiOp::Create(sequential(it, &numbered)),
                },
                MultiOp::CreateTtl(it) => MultiOp::CreateTtl(mortal(it, &numbered)),
                MultiOp::Delete(_) => deleted.next().map_or(check, |path| {
                    MultiOp::Delete(DeleteRequest { path: Str::from(*path), version })
                }),
                MultiOp::SetData(it) => MultiOp::SetData(SetDataRequest { path, version, ..it }),
                MultiOp::Check(_) => check,
                MultiOp::GetData(it) => MultiOp::GetData(GetDataRequest { path, ..it }),
                MultiOp::GetChildren(it) => MultiOp::GetChildren(GetChildrenRequest { path, ..it }),
            }
        };
        let fitted = multi.iter().map(|(_, op)| op).map(fit).collect();
        self.there.retain(|path, _| !doomed.contains(path));
        self.there.extend(made.into_iter().map(|path| (path, true)));
        fitted
    }

    /// As many in each list as were drawn, each of which is there.
    fn fit_lists<const N: usize>(&self, lists: [&mut List<Text>; N], node: Index) {
        let there: Vec<_> = self.there.keys().collect();
        let from = there.iter().cycle().skip(node.index(there.len()));
        for list in lists {
            *list = list.iter().zip(from.clone()).map(|(_, path)| Text::from(**path)).collect();
        }
    }

    fn is_free(&self, path: &str) -> bool {
        let below = parent(path).and_then(|parent| self.there.get(parent));
        below == Some(&true) && !self.there.contains_key(path)
    }

    /// One that is there: the root, if there is no other.
    fn any(&self, node: Index) -> Text {
        self.any_of(node, |_| true)
    }

    fn any_of(&self, node: Index, may: impl Fn(&str) -> bool) -> Text {
        let may = |path: &&str| *path != "/" && may(path);
        let there: Vec<_> = self.there.keys().copied().filter(may).collect();
        Text::from(if there.is_empty() { "/" } else { *node.get(&there) })
    }

    /// Those that are there and have no children.
    fn leaves(&self) -> Vec<&'n str> {
        let has_children = |path: &str| self.there.keys().any(|child| parent(child) == Some(path));
        self.there.keys().copied().filter(|path| *path != "/" && !has_children(path)).collect()
    }

    /// One that is there and has no children; a node that is not there, if there is no other.
    fn leaf(&self, node: Index) -> &'n str {
        let leaves = self.leaves();
        leaves.get(node.index(leaves.len().max(1))).copied().unwrap_or("/gone")
    }

    /// The beginning of a name that a server will append a number to.
    fn numbered(&self, node: Index) -> String {
        self.numbered_below(node, |_| true)
    }

    fn numbered_below(&self, node: Index, may: impl Fn(&str) -> bool) -> String {
        let above: Vec<_> =
            self.there.iter().filter(|(path, above)| **above && may(path)).collect();
        join(node.get(&above).0, "n-")
    }
}

fn sequential<'a>(create: CreateRequest<'a>, path: &'a Text) -> CreateRequest<'a> {
    let (path, acl, flags) = (Str::from(path), open(), CreateFlags::PERSISTENT_SEQUENTIAL);
    CreateRequest { path, acl, flags, ..create }
}

fn container<'a>(create: CreateRequest<'a>, path: &'a str) -> CreateRequest<'a> {
    let (path, acl, flags) = (Str::from(path), open(), CreateFlags::CONTAINER);
    CreateRequest { path, acl, flags, ..create }
}

fn mortal<'a>(create: CreateTtlRequest<'a>, path: &'a Text) -> CreateTtlRequest<'a> {
    let (path, acl, ttl) = (Str::from(path), open(), ttl(create.ttl));
    CreateTtlRequest { path, acl, flags: CreateFlags::PERSISTENT_SEQUENTIAL_TTL, ttl, ..create }
}

/// A time to live that servers take, in milliseconds.
fn ttl(any: i64) -> i64 {
    any.clamp(1, 1 << 38)
}

fn open() -> AclList {
    [Acl::open_unsafe()].into_iter().collect()
}
