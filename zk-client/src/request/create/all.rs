//! Creating several nodes together.

use std::future::{Future, IntoFuture};

use zk_proto::OpCode;

use super::{
    builder::Create,
    parents::{Above, Outcome as _, Round},
    started::{Check, start},
    wish::{OwnedWish, Wish},
};
use crate::{
    carry::{
        attempt::{Concluded, CreatedNodes, KnownBy},
        node::OwnedNode,
    },
    error::{MultiError, WriteError},
    request::{
        ask::Target, call_options::CallOptions, client::Client, pending::Pending, span::RequestSpan,
    },
};

impl Client {
    /// Creates several ephemeral nodes together or not at all, even if replies are lost: each is a
    /// [protected](Create::protected) create of this client, whether or not it says so, all in one transaction.
    /// [`CallOptions`] do not apply.
    ///
    /// Resolves to the nodes in that order. As with [`multi`](Client::multi), a refusal is an [`Err`] inside of `Ok`
    /// with the index of the refused create. [`NoNode`](crate::Rejection::NoNode) means a missing parent or, if the
    /// reply was lost, a node that another client deleted before the session found it again; none of the others remains
    /// then.
    ///
    /// Only the transaction, the owner and the length of the nodes' [`Stat`](crate::Stat) are known.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use zk_client::CreateMode;
    ///
    /// let queues = ["/a/seat-", "/b/seat-"];
    /// let seat = |path| zk.create(path, b"").mode(CreateMode::EphemeralSequential);
    /// let seats = zk.create_all_protected(queues.map(seat)).await??;
    /// // One transaction: both get the same zxid.
    /// assert_eq!(seats[0].stat().czxid, seats[1].stat().czxid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_all_protected<'a>(
        &'a self,
        creates: impl IntoIterator<Item = Create<'a>>,
    ) -> CreateAllProtected<'a> {
        CreateAllProtected::new(self, creates)
    }
}

/// Several protected creates that are applied together or not at all: see [`Client::create_all_protected`].
///
/// For creates with [parents](crate::Create::parents), missing parents are created first.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CreateAllProtected<'a> {
    client: &'a Client,
    creates: Vec<Create<'a>>,
    replaced: Option<OwnedNode>,
    checked: Vec<Check>,
    parents_first: bool,
}

impl<'a> CreateAllProtected<'a> {
    pub(crate) fn new(client: &'a Client, creates: impl IntoIterator<Item = Create<'a>>) -> Self {
        // Each is a protected create of this client, whatever it was begun with.
        let of_client = |Create { wish }: Create<'a>| {
            let acl = Some(Box::new(wish.acl().clone()));
            let known_by = wish.known_by.or(Some(KnownBy::Prefix));
            let options = CallOptions::new();
            Create { wish: Wish { client, acl, known_by, options, ..wish } }
        };
        let creates = creates.into_iter().map(of_client).collect();
        Self { client, creates, replaced: None, checked: Vec::new(), parents_first: false }
    }

    /// Requires that a node exists. Checks come after the creates; without any, nothing is sent.
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
    /// as usual, or [taken back](Pending::take_back).
    ///
    /// Nothing is sent if other clients use the node's name too, as those of
    /// [`protected_by_its_data`](Create::protected_by_its_data) do: a transaction would delete whatever has the name.
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
    pub fn submit(self) -> Pending<Result<Vec<OwnedNode>, MultiError>, WriteError> {
        let above = self.above();
        let Self { client, creates, replaced, checked, parents_first } = self;
        let Some(above) = above else {
            let target = Target { handle: &client.handle, options: CallOptions::new() };
            let wishes = creates.iter().map(|create| create.wish.clone());
            let started = start(target.handle, wishes, replaced, &checked);
            let span = RequestSpan::begin(target.handle, OpCode::MULTI, None);
            return Pending::creating(target, started, |nodes| nodes).in_span(span);
        };
        let owned: Vec<_> = creates.iter().map(|create| OwnedWish::of(&create.wish)).collect();
        let attempt = move |client: &Client, replaced| {
            let wishes = owned.iter().map(|owned| owned.wish(client));
            start(&client.handle, wishes, replaced, &checked)
        };
        let first = if parents_first {
            // In one write; or with all that the client holds back already.
            let cork = client.handle.held.is_none().then(|| client.cork());
            above.begin(cork.as_deref().unwrap_or(client), |client| attempt(client, replaced))
        } else {
            Round::alone(attempt(client, replaced))
        };
        let client = OwnedWish::uncorked(client);
        Pending::working(Box::pin(async move {
            let again = |client: &Client, before: Concluded| attempt(client, before.kept);
            let Concluded { nodes, kept, .. } = match first.ended().await {
                Ok(first) => above.climb(&client, first, again).await,
                Err(last) => last,
            };
            (nodes, kept)
        }))
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
            let wishes = creates.iter().map(|Create { wish }| Wish { client, ..wish.clone() });
            (start(&client.handle, wishes, replaced, &checked), behind(client))
        };
        let cork = client.handle.held.is_none().then(|| client.cork());
        let (nodes, submitted) = submit(cork.as_deref().unwrap_or(client), replaced);
        drop(cork);
        async move {
            let mut outcome = (nodes.await, submitted);
            if outcome.missing().is_some() {
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
    type IntoFuture = Pending<Result<Vec<OwnedNode>, MultiError>, WriteError>;
    fn into_future(self) -> Self::IntoFuture {
        self.submit()
    }
}
