//! Reads of nodes.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use zk_proto::{
    AclList, ErrorCode, List, Stat, Str, Text,
    request::{
        ExistsRequest, ExistsResponse, GetAclRequest, GetAclResponse, GetAllChildrenNumberRequest,
        GetAllChildrenNumberResponse, GetChildren2Request, GetChildren2Response, GetDataRequest,
        GetDataView,
    },
    session::{Answer, WatchBy},
};

use super::builder::{armed, awaitable, read};
use crate::{
    error::ReadError,
    request::{
        answer::{Unread, body, detached},
        call_options::Admission,
        pending::Pending,
        target::Target,
    },
    watch::Watch,
};

awaitable! {
    Get: (Bytes, Stat), ReadError;
    GetWatched: ((Bytes, Stat), Watch), ReadError;
    Exists: Option<Stat>, ReadError;
    ExistsWatched: (Option<Stat>, Watch), ReadError;
    Children: (Vec<String>, Stat), ReadError;
    ChildrenWatched: ((Vec<String>, Stat), Watch), ReadError;
    ChildrenPacked: (ChildNames, Stat), ReadError;
    GetAcl: (AclList, Stat), ReadError;
    DescendantCount: u32, ReadError;
}

/// Declares a read of a path.
macro_rules! read_of_path {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[must_use = "nothing happens until it is awaited or submitted"]
        pub struct $name<'a> {
            target: Target<'a>,
            path: &'a str,
        }

        impl<'a> $name<'a> {
            pub(crate) const fn new(target: Target<'a>, path: &'a str) -> Self {
                Self { target, path }
            }
        }
    };
}

/// Declares a read and its watched twin.
macro_rules! watchable {
    ($(#[$doc:meta])* $plain:ident, $watched:ident) => {
        read_of_path! {
            $(#[$doc])* $plain
        }
        read_of_path! {
            #[doc = concat!("A [`", stringify!($plain), "`] that also arms a watch.")]
            $watched
        }

        impl<'a> $plain<'a> {
            /// Also arms a watch, in the same step on the server: no change falls in between.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let server = zk_testkit::TestServer::start().await?;
            /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
            /// let (there, changed) = zk.exists("/ready").watch().await?;
            /// zk.create("/ready", b"").await?;
            /// assert!(there.is_none());
            /// println!("{}", changed.await?.kind);
            /// # Ok(())
            /// # }
            /// ```
            pub const fn watch(self) -> $watched<'a> {
                $watched::new(self.target, self.path)
            }
        }
    };
}

watchable! {
    /// Reads a node's data: resolves to the data and the node's [`Stat`].
    ///
    /// The data of a node that was created with null reads as empty. A watch fires when the data is written
    /// or the node deleted; none is armed if there is no such node.
    Get, GetWatched
}

watchable! {
    /// Whether a node exists: resolves to its [`Stat`] if it does.
    ///
    /// A watch is armed either way; it fires when the node is created, written or deleted.
    Exists, ExistsWatched
}

watchable! {
    /// The names (not paths) of a node's children, in no order, and the node's own [`Stat`].
    ///
    /// A watch fires when a child is created or deleted, or the node itself is deleted.
    Children, ChildrenWatched
}

read_of_path! {
    /// The same listing as [`Children`], in one piece of memory: see [`Children::packed`].
    ChildrenPacked
}

impl<'a> Children<'a> {
    /// Leaves the names in the reply's memory, instead of making a string of each: for callers that list often, or
    /// many, and keep few.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (names, parent) = zk.children("/jobs").packed().await?;
    /// assert_eq!(names.len() as i32, parent.num_children);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn packed(self) -> ChildrenPacked<'a> {
        ChildrenPacked::new(self.target, self.path)
    }
}

/// Names of children, unordered, in the reply's memory: see [`Children::packed`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// zk.create("/job-7", b"").await?;
/// let (names, _) = zk.children("/").packed().await?;
/// assert!(names.iter().any(|name| name == "job-7"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ChildNames(List<Text>);

impl ChildNames {
    /// Returns the names. One that is not UTF-8, which servers do not accept, is shown with replacement characters.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.strs()
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ChildNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

read_of_path! {
    /// Reads a node's access control list: see [`Client::acl`](crate::Client::acl).
    GetAcl
}

read_of_path! {
    /// Counts a node's descendants: see [`Client::descendant_count`](crate::Client::descendant_count).
    DescendantCount
}

pub(crate) fn read_data(answer: &Answer) -> Result<(Bytes, Stat), Unread> {
    let GetDataView { data, stat } = body(answer)?;
    Ok((detached(&answer.body, data.unwrap_or_default()), stat))
}

pub(crate) fn read_exists(answer: &Answer) -> Result<Option<Stat>, Unread> {
    match body::<ExistsResponse>(answer) {
        Ok(ExistsResponse { stat }) => Ok(Some(stat)),
        Err(Unread::Code(ErrorCode::NO_NODE)) => Ok(None),
        Err(unread) => Err(unread),
    }
}

pub(crate) fn read_children(answer: &Answer) -> Result<(Vec<String>, Stat), Unread> {
    let GetChildren2Response { children, stat } = body(answer)?;
    Ok((children.strs().map(Into::into).collect(), stat))
}

impl Get<'_> {
    fn start(self, admission: Admission) -> Pending<(Bytes, Stat), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetDataRequest { path, watch: false });
        read(self.target, self.path, None, frame, admission, |answer, _| read_data(&answer))
    }
}

impl GetWatched<'_> {
    fn start(self, admission: Admission) -> Pending<((Bytes, Stat), Watch), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetDataRequest { path, watch: true });
        read(self.target, self.path, Some(WatchBy::Data), frame, admission, |answer, context| {
            armed(read_data(&answer)?, context.watch)
        })
    }
}

impl Exists<'_> {
    fn start(self, admission: Admission) -> Pending<Option<Stat>, ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&ExistsRequest { path, watch: false });
        read(self.target, self.path, None, frame, admission, |answer, _| read_exists(&answer))
    }
}

impl ExistsWatched<'_> {
    fn start(self, admission: Admission) -> Pending<(Option<Stat>, Watch), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&ExistsRequest { path, watch: true });
        let by = Some(WatchBy::Exists);
        read(self.target, self.path, by, frame, admission, |answer, context| {
            armed(read_exists(&answer)?, context.watch)
        })
    }
}

impl Children<'_> {
    fn start(self, admission: Admission) -> Pending<(Vec<String>, Stat), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetChildren2Request { path, watch: false });
        read(self.target, self.path, None, frame, admission, |answer, _| read_children(&answer))
    }
}

impl ChildrenPacked<'_> {
    fn start(self, admission: Admission) -> Pending<(ChildNames, Stat), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetChildren2Request { path, watch: false });
        read(self.target, self.path, None, frame, admission, |answer, _| {
            let answer = Answer { body: detached(&answer.body, &answer.body), ..answer };
            let GetChildren2Response { children, stat } = body(&answer)?;
            Ok((ChildNames(children), stat))
        })
    }
}

impl ChildrenWatched<'_> {
    fn start(self, admission: Admission) -> Pending<((Vec<String>, Stat), Watch), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetChildren2Request { path, watch: true });
        let by = Some(WatchBy::Children);
        read(self.target, self.path, by, frame, admission, |answer, context| {
            armed(read_children(&answer)?, context.watch)
        })
    }
}

impl GetAcl<'_> {
    fn start(self, admission: Admission) -> Pending<(AclList, Stat), ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetAclRequest { path });
        read(self.target, self.path, None, frame, admission, |answer, _| {
            body(&answer).map(|GetAclResponse { acl, stat }| (acl, stat))
        })
    }
}

impl DescendantCount<'_> {
    fn start(self, admission: Admission) -> Pending<u32, ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&GetAllChildrenNumberRequest { path });
        read(self.target, self.path, None, frame, admission, |answer, _| {
            let GetAllChildrenNumberResponse { total_number } = body(&answer)?;
            Ok(u32::try_from(total_number).unwrap_or_default())
        })
    }
}
