//! Creates that the session carries through a lost reply: one, or several together.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    carry::{
        attempt::{Concluded, CreatedNodes},
        node::OwnedNode,
    },
    error::{MultiError, WriteError},
    request::{
        client::Client,
        create::{
            CreateProtected,
            parents::{Above, Outcome as _},
            started::{Check, Started},
            wish::{OwnedWish, Wish},
        },
    },
};

/// Several protected creates that are applied together or not at all: see [`Client::create_all_protected`].
///
/// For creates with [parents](crate::Create::parents), missing parents are created first.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateAllProtected<'a> {
    client: &'a Client,
    creates: Vec<CreateProtected<'a>>,
    replaced: Option<OwnedNode>,
    checked: Vec<Check>,
    parents_first: bool,
}

impl<'a> CreateAllProtected<'a> {
    pub(crate) fn new(
        client: &'a Client,
        creates: impl IntoIterator<Item = CreateProtected<'a>>,
    ) -> Self {
        let creates = creates.into_iter().collect();
        Self { client, creates, replaced: None, checked: Vec::new(), parents_first: false }
    }

    /// Requires that a node exists. Checks come after the creates.
    pub fn check(mut self, path: &str) -> Self {
        self.checked.push((path.to_owned(), None));
        self
    }

    /// Requires that a node exists and that its data has this version. Nothing is sent if it is -1, which servers take
    /// as any.
    pub fn check_version(mut self, path: &str, version: i32) -> Self {
        self.checked.push((path.to_owned(), Some(version)));
        self
    }

    /// Deletes this node in the same transaction, as its last operation. If the transaction fails, the node is dropped
    /// as usual, or [taken back](PendingNodes::take_back).
    pub fn replacing(mut self, node: OwnedNode) -> Self {
        self.replaced = Some(node);
        self
    }

    /// Creates parents first instead of trying without them, for callers that know some are missing: saves a round
    /// trip.
    pub const fn parents_first(mut self) -> Self {
        self.parents_first = true;
        self
    }

    /// Submits the creates now. Missing parents are noticed when this is awaited.
    pub fn submit(self) -> PendingNodes {
        let above = self.above();
        let Self { client, creates, replaced, checked, parents_first } = self;
        let lacking = above.is_some() && parents_first;
        let again = above.map(|above| {
            (above, creates.iter().map(|create| OwnedWish::of(&create.wish)).collect())
        });
        let first = match lacking {
            true => Err(Concluded::lacking(replaced)),
            false => {
                let wishes = creates.into_iter().map(|create| create.wish);
                Ok(Started::all(&client.handle, wishes, replaced, &checked))
            }
        };
        let under = match (first, again) {
            (Ok(first), None) => Under::Started(first),
            (first, again) => {
                let client = OwnedWish::uncorked(client);
                Under::Climbing(Box::pin(async move {
                    let (above, owned): (Above, Vec<OwnedWish>) = again.unwrap_or_default();
                    let first = match first {
                        Ok(first) => first.await,
                        Err(lacking) => lacking,
                    };
                    let again = |client: &Client, before: Concluded| {
                        let wishes = owned.iter().map(|owned| owned.wish(client));
                        Started::all(&client.handle, wishes, before.kept, &checked)
                    };
                    above.climb(&client, first, again).await
                }))
            }
        };
        PendingNodes { under, kept: None }
    }

    /// As [`Create::followed_by`](crate::Create::followed_by).
    ///
    /// # Errors
    /// As without it.
    pub fn followed_by<B>(
        self,
        behind: impl Fn(&Client) -> B,
    ) -> impl Future<Output = Result<Result<(Vec<OwnedNode>, B), MultiError>, WriteError>> {
        let above = self.above().unwrap_or_default();
        let Self { client, creates, replaced, checked, .. } = self;
        let submit = move |client: &Client, replaced| {
            let wishes = creates.iter().map(|create| Wish { client, ..create.wish.clone() });
            (Started::all(&client.handle, wishes, replaced, &checked), behind(client))
        };
        let cork = client.cork();
        let (nodes, submitted) = submit(&cork, replaced);
        drop(cork);
        async move {
            let mut outcome = (nodes.await, submitted);
            if outcome.is_missing() {
                let again = |client: &Client, (before, _): (Concluded, B)| {
                    let (nodes, submitted) = submit(client, before.kept);
                    async move { (nodes.await, submitted) }
                };
                // Rare, and large.
                outcome = Box::pin(above.climb(client, outcome, again)).await;
            }
            let (concluded, behind) = outcome;
            Ok(concluded.nodes?.map(|nodes| (nodes, behind)))
        }
    }

    fn above(&self) -> Option<Above> {
        Above::of(self.creates.iter().map(|create| &create.wish))
    }
}

impl IntoFuture for CreateAllProtected<'_> {
    type Output = CreatedNodes;
    type IntoFuture = PendingNodes;
    fn into_future(self) -> PendingNodes {
        self.submit()
    }
}

/// Protected creates in progress; resolves to the nodes, in the order of the creates.
///
/// Dropping it leaves no node: the session determines the outcome of the creates and deletes the nodes.
#[must_use = "dropping it deletes the nodes"]
pub struct PendingNodes {
    under: Under,
    kept: Option<OwnedNode>,
}

enum Under {
    Started(Started),
    Climbing(Pin<Box<dyn Future<Output = Concluded> + Send>>),
}

impl PendingNodes {
    /// Returns the node that was to be [replaced](CreateAllProtected::replacing) and was not, for another attempt: once
    /// this has resolved to an error, unless the session has ended. The error may be that this node is gone.
    ///
    /// If it is not taken back, it is deleted when this is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let seat = |path| zk.create(path, b"").mode(CreateMode::Ephemeral).protected();
    /// let old = seat("/old").await?;
    /// // Moves, unless another client has closed the gate.
    /// let mut moving = zk.create_all_protected([seat("/new")]).check("/gate").replacing(old).submit();
    /// let refused = (&mut moving).await?.is_err();
    /// let kept = moving.take_back().ok_or("it has moved")?;
    /// assert!(refused && zk.exists(kept.path()).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_back(&mut self) -> Option<OwnedNode> {
        self.kept.take()
    }
}

impl Future for PendingNodes {
    type Output = CreatedNodes;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let concluded = match &mut self.under {
            Under::Started(started) => Pin::new(started).poll(cx),
            Under::Climbing(work) => work.as_mut().poll(cx),
        };
        concluded.map(|Concluded { nodes, kept, .. }| {
            self.kept = kept;
            nodes
        })
    }
}

impl fmt::Debug for PendingNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingNodes").field("kept", &self.kept).finish_non_exhaustive()
    }
}
